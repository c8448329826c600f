/*
 * The file of movable.record: its lines, and that a program is never harmed by it. Each test is a
 * process of its own.
 */
#define SETUP make_folder
#define TEARDOWN remove_folder
#include "logtest.h"

#include <errno.h>
#include <fcntl.h>

#include "access_recording.h"
#include "chunk_map.h"
#include "fake_clock.h"
#include "process.h"

#define UNIT SPILL_CHUNK_MAP_UNIT
#define MIB ((uint64_t)1 << 20)

static struct spill_policy policy;

/* Chunks 0x10 of 64 MiB on the host, and 0x30 of 2 MiB on the device. */
static void begin(const char *pattern)
{
	spill_policy_default(&policy);
	strcpy(policy.movable_record, pattern);
	spill_process_use_policy(&policy);
	fake_clock_use(1000000);
	CHECK(spill_chunk_map_set(0x10 * UNIT, 32 * UNIT, true, false));
	CHECK(spill_chunk_map_set(0x30 * UNIT, UNIT, false, false));
}

static uint64_t launch_as(unsigned count, bool graph)
{
	struct spill_launch_access access = {.stream = (void *)0xabc0,
	                                     .count = count,
	                                     .graph = graph,
	                                     .sure = 1,
	                                     .keys = {0x10, 0x30},
	                                     .range_count = count,
	                                     .ranges = {{0x1f, 3}, {0x30, 1}}};
	return spill_access_recording_launch(&access, 7);
}

static uint64_t launch(unsigned count)
{
	return launch_as(count, false);
}

/* The whole file. */
static void check_file(const char *path, const char *expected)
{
	size_t length;
	char *text = read_all(path, &length);
	if (length != strlen(expected) || memcmp(text, expected, length) != 0)
		dprintf(STDOUT_FILENO, "%.*s", (int)length, text);
	CHECK(length == strlen(expected) && memcmp(text, expected, length) == 0);
	free(text);
}

#define HEAD "spill-recording 2\n"
#define LAUNCH "L 1 0 7 abc0 0 1 2 64 10:32h 30:1 | 1f:3 30:1\n"

CHILD_TEST(lines)
{
	const char *path = in_folder("one.rec");
	struct spill_exchange_choice choice = {
	    .pays = true, .excess_ns = 58000, .comes = 64 * MIB, .goes = 128 * MIB};
	struct spill_recorded_exchange done = {
	    .cost_ns = 29000, .busy_ns = 5000, .waited_ns = 2000, .moved_ns = 1856000, .came = 64 * MIB};
	begin(path);
	CHECK(spill_access_recording_on());
	CHECK(launch(2) == 1);
	fake_clock.ns += 3000;
	CHECK(launch_as(1, true) == 2);
	spill_access_recording_time(1, 64 * MIB, 123456);
	spill_access_recording_time(0, 64 * MIB, 1); /* it was not recorded */
	spill_access_recording_exchange(&choice, &done);
	spill_access_recording_restored();
	errno = 5;
	spill_access_recording_flush();
	CHECK(errno == 5);
	check_file(path, HEAD LAUNCH "L 2 3 7 abc0 2 1 1 64 10:32h | 1f:3\n"
	                             "T 1 64 123456\n"
	                             "X 3 1 58000 29000 64 128 64 2 1856 5\n"
	                             "R 3\n");
}

CHILD_TEST(off)
{
	begin("off");
	CHECK(!spill_access_recording_on());
	CHECK(launch(2) == 0);
	spill_access_recording_restored();
	spill_access_recording_flush();
	CHECK(rmdir(folder) == 0); /* nothing is in it */
	CHECK(mkdir(folder, 0700) == 0);
}

/* In a folder it has the program's name and number, and is no log. */
CHILD_TEST(a_folder)
{
	char name[64];
	begin(folder);
	CHECK(launch(2) == 1);
	spill_access_recording_flush();
	snprintf(name, sizeof(name), "test_access_recording-%d.rec", getpid());
	check_file(in_folder(name), HEAD LAUNCH);
}

/* More than the buffer holds: no line is cut or lost. */
CHILD_TEST(many_lines)
{
	enum { LINES = 5000 };
	const char *path = in_folder("many.rec");
	size_t length;
	unsigned found = 0;
	begin(path);
	for (unsigned i = 0; i < LINES; i++)
		CHECK(launch(2) == i + 1);
	spill_access_recording_flush();
	char *text = read_all(path, &length), *rest = text;
	CHECK(strncmp(strsep(&rest, "\n"), "spill-recording 2", 18) == 0);
	for (char *line = strsep(&rest, "\n"); line && line[0]; line = strsep(&rest, "\n")) {
		unsigned number;
		CHECK(sscanf(line, "L %u 0 7 abc0 0 1 2 64 10:32h 30:1 | 1f:3 30:1", &number) == 1 &&
		      number == ++found);
	}
	CHECK(found == LINES);
	free(text);
}

/* As a signal handler that launches while this thread writes a line. */
static uint64_t interrupt(void)
{
	static bool inside;
	if (!inside) {
		inside = true;
		CHECK(launch(2) == 0);
	}
	return 1000000;
}

CHILD_TEST(a_line_that_would_wait_is_counted)
{
	static const struct spill_clock clock = {.now = interrupt};
	const char *path = in_folder("lost.rec");
	begin(path);
	CHECK(launch(2) == 1);
	spill_clock_use(&clock);
	spill_access_recording_restored();
	spill_access_recording_restored();
	spill_access_recording_flush();
	check_file(path, HEAD LAUNCH "R 0\nD 1\nR 0\n");
}

CHILD_TEST(a_link_is_not_followed)
{
	const char *path = in_folder("link.rec"), *other = in_folder("other");
	int fd = open(other, O_CREAT | O_WRONLY, 0600);
	CHECK(fd >= 0 && close(fd) == 0 && symlink(other, path) == 0);
	begin(path);
	CHECK(launch(2) == 0);
	CHECK(!spill_access_recording_on());
	check_file(other, "");
}

/* The program closes our descriptor: recording ends, and nothing is written elsewhere. */
CHILD_TEST(a_closed_file)
{
	const char *path = in_folder("closed.rec"), *other = in_folder("other");
	begin(path);
	CHECK(launch(2) == 1);
	int fd = find_descriptor(path);
	int mine = open(other, O_CREAT | O_WRONLY, 0600);
	CHECK(fd > 2 && mine >= 0 && dup2(mine, fd) == fd);
	spill_access_recording_flush();
	check_file(other, "");
	check_file(path, "");
	CHECK(!spill_access_recording_on());
	CHECK(launch(2) == 0);
}

/* A child writes no line of its parent, and none into its parent's file. */
CHILD_TEST(fork_begins_anew)
{
	const char *path = in_folder("%p.rec");
	char name[64];
	int status;
	static const struct spill_clock clock = {.now = interrupt};
	begin(path);
	CHECK(launch(2) == 1);
	spill_clock_use(&clock);
	spill_access_recording_restored(); /* the parent loses a line */
	fake_clock_use(1000000);
	pid_t child = fork();
	if (!child) {
		snprintf(name, sizeof(name), "%d.rec", getppid());
		CHECK(find_descriptor(in_folder(name)) > 2);
		spill_access_recording_reset();
		CHECK(find_descriptor(in_folder(name)) < 0);
		CHECK(launch(2) == 1);
		spill_access_recording_flush();
		syscall_exit(0);
	}
	CHECK(waitpid(child, &status, 0) == child && status == 0);
	spill_access_recording_flush();
	snprintf(name, sizeof(name), "%d.rec", child);
	check_file(in_folder(name), HEAD LAUNCH);
	snprintf(name, sizeof(name), "%d.rec", getpid());
	check_file(in_folder(name), HEAD LAUNCH "R 0\n");
}

/* While the file is opened and written no handler runs; afterwards the thread is as before. */
CHILD_TEST(the_thread_stays_as_it_was)
{
	sigset_t before, after;
	int cancel;
	begin(in_folder("one.rec"));
	pthread_sigmask(SIG_SETMASK, NULL, &before);
	CHECK(launch(2) == 1);
	spill_access_recording_flush();
	pthread_sigmask(SIG_SETMASK, NULL, &after);
	for (int signal = 1; signal < 32; signal++)
		CHECK(sigismember(&before, signal) == sigismember(&after, signal));
	pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &cancel);
	CHECK(cancel == PTHREAD_CANCEL_ENABLE);
}

/* No fork to us, and it shares the parent's memory: it must not write the parent's lines. */
CHILD_TEST(a_vfork_child_writes_nothing)
{
	const char *path = in_folder("%p.rec");
	char name[64];
	int status;
	begin(path);
	CHECK(launch(2) == 1);
	pid_t child = fork();
	if (!child) {
		spill_access_recording_flush();
		syscall_exit(0);
	}
	CHECK(waitpid(child, &status, 0) == child && status == 0);
	snprintf(name, sizeof(name), "%d.rec", getpid());
	check_file(in_folder(name), "");
	spill_access_recording_flush();
	check_file(in_folder(name), HEAD LAUNCH);
}
