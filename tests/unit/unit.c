#include "unit.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "scratch.h"

static struct CMUnitTest tests[64];
static size_t count;

static void leave_out(void **reason)
{
	print_message("left out: %s", (char *)*reason);
	skip();
}

/*
 * Tests that this machine cannot run, by the file that LEFT_OUT names (tests/aarch64/left_out). Its
 * lines are `PROGRAM / TEST: REASON`.
 */
static void find_left_out(const char *path)
{
	char line[512];
	FILE *file = path ? fopen(path, "re") : NULL;
	while (file && fgets(line, sizeof(line), file)) {
		char *slash = strstr(line, " / "), *colon = slash ? strstr(slash, ": ") : NULL;
		if (!colon)
			continue;
		*colon = '\0';
		for (size_t i = 0; i < count; i++)
			if (!strcmp(tests[i].name, slash + strlen(" / ")))
				tests[i] = (struct CMUnitTest){tests[i].name, leave_out, NULL, NULL,
				                               strdup(colon + strlen(": "))};
	}
	if (file)
		fclose(file);
}

static sigset_t blocked_before;
/* Enough for those that the library moves out of the program's way (fd.h). */
static bool open_before[256];

/* By a call that no test lets fail. */
static bool is_open(int fd)
{
	return lseek(fd, 0, SEEK_CUR) != -1 || errno != EBADF;
}

enum { ROOMS = 32 };         /* of scratch.c; further ones are elsewhere */
static uintptr_t first_room; /* that was free before the test */
static uint32_t free_before;

/* The rooms that are free, from that one on, a bit each. All of them where the test has replaced scratch.h by none. */
static uint32_t free_rooms(void)
{
	void *rooms[ROOMS];
	uint32_t free = 0;
	for (unsigned i = 0; i < ROOMS; i++) {
		rooms[i] = spill_scratch_take();
		if (!rooms[i])
			free = UINT32_MAX;
		uintptr_t distance = (uintptr_t)rooms[i] - first_room;
		free |= distance < ROOMS * SPILL_SCRATCH ? 1u << distance / SPILL_SCRATCH : 0;
	}
	for (unsigned i = 0; i < ROOMS; i++)
		spill_scratch_give_back(rooms[i]);
	return free;
}

static bool is_room_taken(int unused)
{
	return free_before & ~free_rooms();
}

/*
 * A thread of the library's may just read a file when the test ends. What is left open, or taken, stays so
 * for all of these looks, a second in all. By a call that no test lets fail.
 */
static bool stays(bool (*is)(int fd), int fd)
{
	const struct timespec pause = {.tv_nsec = 1000000};
	for (unsigned looks = 0; looks < 1000; looks++) {
		if (!is(fd))
			return false;
		syscall(SYS_nanosleep, &pause, NULL);
	}
	return true;
}

void test_begins(void)
{
	pthread_sigmask(SIG_SETMASK, NULL, &blocked_before);
	for (int fd = 0; fd < 256; fd++)
		open_before[fd] = is_open(fd);
	void *room = spill_scratch_take();
	first_room = (uintptr_t)room;
	spill_scratch_give_back(room);
	free_before = free_rooms();
}

static void require(bool condition, const char *what)
{
	if (condition)
		return;
	fprintf(stderr, "behind the test, %s\n", what);
	abort();
}

void test_ends(bool keeps_descriptors)
{
	int cancel;
	sigset_t blocked;
	pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &cancel);
	require(cancel == PTHREAD_CANCEL_ENABLE, "this thread cannot be cancelled");
	pthread_sigmask(SIG_SETMASK, NULL, &blocked);
	for (int signal = 1; signal < SIGRTMIN; signal++)
		require(sigismember(&blocked, signal) == sigismember(&blocked_before, signal),
		        "this thread blocks other signals");
	for (int fd = 0; fd < 256 && !keeps_descriptors; fd++)
		require(open_before[fd] || !stays(is_open, fd), "more descriptors are open");
	require(!stays(is_room_taken, 0), "memory of scratch.h is still taken");
}

void add_unit_test(const struct CMUnitTest *test)
{
	if (count == sizeof(tests) / sizeof(tests[0]))
		abort();
	tests[count++] = *test;
}

/* The macro of cmocka counts an array's elements, and this one is not full. */
int run_unit_tests(CMFixtureFunction setup, CMFixtureFunction teardown)
{
	find_left_out(getenv("LEFT_OUT"));
	return _cmocka_run_group_tests("tests", tests, count, setup, teardown);
}

int run_unit_tests_in(char *folder)
{
	if (!mkdtemp(folder) || chdir(folder))
		return 1;
	int failed = run_unit_tests(NULL, NULL);
	return chdir("/") || rmdir(folder) ? 1 : failed;
}
