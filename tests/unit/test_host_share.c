/*
 * host.limit of several processes: what others hold is counted, what the dead held is not, and what cannot be used is left alone. The
 * others are children that do as they are told through a pipe.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "account.h"
#include "host_share.h"
#include "note.h"
#include "place/place.h"

#define MIB (1ull << 20)

static char folder[64], path[96];
static unsigned notes;

void __wrap_spill_note(const char *code, const char *text);
void __wrap_spill_note(const char *code, const char *text)
{
	assert_string_equal(code, "host-share");
	assert_non_null(strstr(text, path));
	notes++;
}

/* A process that takes part. It is told bytes to add, which may be 0, and answers what others hold; or LEAVE. */
#define LEAVE UINT64_MAX
struct other {
	pid_t pid;
	int ask, answer;
};

static uint64_t others(void)
{
	uint64_t bytes = spill_host_share_begin();
	spill_host_share_end();
	return bytes;
}

static void add(uint64_t bytes)
{
	spill_host_share_begin();
	spill_account_host_add(bytes);
	spill_host_share_end();
}

static pid_t begin_child(void)
{
	spill_host_share_fork_prepare();
	pid_t pid = fork();
	spill_host_share_fork_done(pid == 0);
	if (pid == 0) {
		alarm(60);
		spill_account_reset();
	}
	return pid;
}

static void obey(int ask, int answer)
{
	uint64_t word;
	while (read(ask, &word, sizeof(word)) == sizeof(word) && word != LEAVE) {
		if (word)
			add(word);
		word = others();
		if (write(answer, &word, sizeof(word)) != sizeof(word))
			break;
	}
	_exit(0);
}

static struct other begin(void)
{
	int ask[2], answer[2];
	assert_int_equal(pipe2(ask, O_CLOEXEC), 0);
	assert_int_equal(pipe2(answer, O_CLOEXEC), 0);
	struct other other = {begin_child(), ask[1], answer[0]};
	if (other.pid == 0) {
		close(ask[1]);
		close(answer[0]);
		obey(ask[0], answer[1]);
	}
	close(ask[0]);
	close(answer[1]);
	return other;
}

static uint64_t tell(const struct other *other, uint64_t word)
{
	assert_int_equal(write(other->ask, &word, sizeof(word)), sizeof(word));
	assert_int_equal(read(other->answer, &word, sizeof(word)), sizeof(word));
	return word;
}

/* Ends by itself, or is killed. */
static void end(struct other *other, int signal)
{
	const uint64_t leave = LEAVE;
	int status;
	if (signal)
		kill(other->pid, signal);
	else
		assert_int_equal(write(other->ask, &leave, sizeof(leave)), sizeof(leave));
	close(other->ask);
	close(other->answer);
	assert_int_equal(waitpid(other->pid, &status, 0), other->pid);
	assert_int_equal(signal ? WTERMSIG(status) : status, signal);
}

static int setup(void **state)
{
	strcpy(folder, "/tmp/spill-share-XXXXXX");
	assert_non_null(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/table", folder);
	notes = 0;
	spill_account_reset();
	spill_host_share_use(path);
	return 0;
}

static int teardown(void **state)
{
	char command[128];
	spill_account_reset();
	snprintf(command, sizeof(command), "rm -rf '%s'", folder);
	return system(command);
}

static void made_by_the_first_spill_only(void **state)
{
	struct stat file;
	assert_int_equal(spill_host_share_at_start(), 0);
	assert_int_equal(access(path, F_OK), -1);
	mode_t mask = umask(0);
	assert_int_equal(others(), 0);
	umask(mask);
	assert_int_equal(stat(path, &file), 0);
	assert_int_equal(file.st_mode & 07777, 0600);
	/* What others could write is closed to them. */
	assert_int_equal(chmod(path, 0666), 0);
	spill_host_share_use(path);
	assert_int_equal(others(), 0);
	assert_int_equal(stat(path, &file), 0);
	assert_int_equal(file.st_mode & 07777, 0600);
	assert_int_equal(notes, 0);
}

static void the_living_are_counted_and_the_dead_are_not(void **state)
{
	struct other a = begin(), b = begin(), c = begin();
	tell(&a, 10 * MIB);
	tell(&b, 20 * MIB);
	tell(&c, 40 * MIB);
	assert_int_equal(others(), 70 * MIB);
	add(100 * MIB);
	assert_int_equal(tell(&a, 0), 160 * MIB);
	assert_int_equal(tell(&a, 1 * MIB), 160 * MIB);
	assert_int_equal(tell(&b, 0), 151 * MIB);
	end(&a, 0);
	assert_int_equal(others(), 60 * MIB);
	end(&b, SIGKILL);
	assert_int_equal(others(), 40 * MIB);
	assert_int_equal(tell(&c, 0), 100 * MIB);
	/* What is given back is told without asking. */
	spill_account_host_return(99 * MIB);
	assert_int_equal(tell(&c, 0), 1 * MIB);
	end(&c, SIGKILL);
	assert_int_equal(others(), 0);
}

static void a_slot_of_the_dead_is_used_again(void **state)
{
	for (int i = 0; i < SPILL_HOST_SLOTS + 10; i++) {
		struct other one = begin();
		assert_int_equal(tell(&one, MIB), 0);
		end(&one, i % 2 ? SIGKILL : 0);
	}
	assert_int_equal(notes, 0);
	assert_int_equal(others(), 0);
}

/* What others hold when a process begins is missing in what is available: host.limit's share is of both. */
static void what_was_held_at_start(void **state)
{
	struct other a = begin(), b = begin();
	tell(&a, 10 * MIB);
	tell(&b, 20 * MIB);
	spill_host_share_use(path);
	assert_int_equal(spill_host_share_at_start(), 30 * MIB);
	end(&a, SIGKILL);
	spill_host_share_use(path);
	assert_int_equal(spill_host_share_at_start(), 20 * MIB);
	end(&b, 0);
}

/* The child has the parent's descriptor, and so could keep its slot alive, or be taken for it. */
static void a_fork_is_a_process_of_its_own(void **state)
{
	int ask[2], answer[2];
	uint64_t word = 0;
	assert_int_equal(pipe2(ask, O_CLOEXEC), 0);
	assert_int_equal(pipe2(answer, O_CLOEXEC), 0);
	add(1 * MIB);
	pid_t parent = begin_child();
	if (parent == 0) {
		add(40 * MIB);
		if (begin_child() == 0) {
			close(ask[1]);
			obey(ask[0], answer[1]);
		}
		pause();
	}
	close(ask[0]);
	assert_int_equal(write(ask[1], &word, sizeof(word)), sizeof(word));
	assert_int_equal(read(answer[0], &word, sizeof(word)), sizeof(word));
	assert_int_equal(word, 41 * MIB);
	assert_int_equal(others(), 40 * MIB);
	kill(parent, SIGKILL);
	assert_int_equal(waitpid(parent, NULL, 0), parent);
	assert_int_equal(others(), 0);
	word = 2 * MIB;
	assert_int_equal(write(ask[1], &word, sizeof(word)), sizeof(word));
	assert_int_equal(read(answer[0], &word, sizeof(word)), sizeof(word));
	assert_int_equal(word, 1 * MIB);
	assert_int_equal(others(), 2 * MIB);
	word = LEAVE;
	assert_int_equal(write(ask[1], &word, sizeof(word)), sizeof(word));
	close(ask[1]);
	close(answer[1]);
	assert_int_equal(read(answer[0], &word, sizeof(word)), 0);
	close(answer[0]);
	assert_int_equal(others(), 0);
}

/* Daemons close all descriptors, and the numbers become other files'. */
static void a_closed_descriptor_is_found_out(void **state)
{
	int ready[2], go[2];
	char byte;
	assert_int_equal(pipe(ready) + pipe(go), 0);
	add(5 * MIB);
	pid_t pid = begin_child();
	if (pid == 0) {
		add(10 * MIB);
		for (int fd = 3; fd < 1024; fd++)
			if (fd != ready[1] && fd != go[0])
				close(fd);
		/* One that can be locked. */
		snprintf(path + strlen(path), 8, ".mine");
		if (dup2(open(path, O_RDWR | O_CREAT, 0600), STDERR_FILENO) < 0)
			_exit(3);
		path[strlen(path) - 5] = '\0';
		for (int fd = 3; fd < 1024; fd++)
			if (fd != ready[1] && fd != go[0])
				dup2(STDERR_FILENO, fd);
		add(1 * MIB);
		if (others() != 5 * MIB)
			_exit(2);
		for (int fd = 3; fd < 1024; fd++)
			if (fcntl(fd, F_GETFD) < 0)
				_exit(1); /* that was not ours to close */
		_exit(write(ready[1], "", 1) != 1 || read(go[0], &byte, 1) < 0);
	}
	close(ready[1]);
	assert_int_equal(read(ready[0], &byte, 1), 1);
	assert_int_equal(others(), 11 * MIB);
	assert_int_equal(write(go[1], "", 1), 1);
	int status;
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	close(ready[0]);
	close(go[0]);
	close(go[1]);
}

static void a_removed_file_is_found_out(void **state)
{
	struct other a = begin();
	add(1 * MIB);
	tell(&a, 10 * MIB);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(others(), 0);
	assert_int_equal(tell(&a, 0), 1 * MIB);
	assert_int_equal(others(), 10 * MIB);
	end(&a, 0);
}

static void text_file(const char *name, const char *text)
{
	FILE *out = fopen(name, "w");
	assert_non_null(out);
	fputs(text, out);
	fclose(out);
}

/* Own process only, one note, and what is in its place is as it was. */
static void unusable(void)
{
	spill_host_share_use(path);
	assert_int_equal(spill_host_share_at_start(), 0);
	for (int i = 0; i < 3; i++)
		add(1 * MIB);
	assert_int_equal(others(), 0);
	assert_int_equal(notes, 1);
	notes = 0;
}

static void what_is_in_its_place_is_left_alone(void **state)
{
	static char page[4097];
	char target[128];
	struct stat file;
	snprintf(target, sizeof(target), "%s/target", folder);
	text_file(target, "");
	assert_int_equal(symlink(target, path), 0);
	unusable();
	assert_int_equal(stat(target, &file), 0);
	assert_int_equal(file.st_size, 0);
	unlink(path);
	assert_int_equal(link(target, path), 0); /* a second name */
	unusable();
	unlink(path);
	text_file(path, "of another form");
	unusable();
	assert_int_equal(stat(path, &file), 0);
	assert_int_equal(file.st_size, strlen("of another form"));
	memset(page, 'x', 4096);
	text_file(path, page);
	unusable();
	unlink(path);
	assert_int_equal(mkfifo(path, 0600), 0);
	unusable();
	unlink(path);
	assert_int_equal(mkdir(path, 0700), 0);
	unusable();
	rmdir(path);
	snprintf(path, sizeof(path), "%s/no/table", folder);
	unusable();
}

static void another_users_file_is_left_alone(void **state)
{
	if (geteuid() != 0)
		skip();
	text_file(path, "");
	assert_int_equal(chown(path, 12345, 12345), 0);
	unusable();
}

static void all_slots_taken(void **state)
{
	struct flock range = {
	    .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 0, .l_len = SPILL_HOST_SLOTS};
	int fd = open(path, O_RDWR | O_CREAT, 0600);
	assert_int_equal(fcntl(fd, F_OFD_SETLK, &range), 0);
	unusable();
	close(fd);
}

/* One that is stopped in the middle of its check does not stop the others. */
static void who_is_stopped_stops_nobody(void **state)
{
	struct flock range = {
	    .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = SPILL_HOST_SLOTS, .l_len = 1};
	struct other a = begin();
	tell(&a, 10 * MIB);
	int fd = open(path, O_RDWR);
	assert_int_equal(fcntl(fd, F_OFD_SETLK, &range), 0);
	assert_int_equal(others(), 10 * MIB);
	close(fd);
	end(&a, 0);
}

static struct spill_policy limited(uint64_t bytes)
{
	struct spill_policy policy;
	spill_policy_default(&policy);
	policy.host_reserve = (struct spill_amount){SPILL_AMOUNT_BYTES, 0};
	policy.host_limit = (struct spill_amount){SPILL_AMOUNT_BYTES, bytes};
	return policy;
}

static void the_limit_is_of_the_sum(void **state)
{
	struct spill_policy policy = limited(100 * MIB);
	struct other a = begin();
	tell(&a, 60 * MIB);
	assert_string_equal(spill_host_charge(&policy, 41 * MIB), "host.limit");
	assert_int_equal(spill_account_host_held(), 0);
	assert_null(spill_host_charge(&policy, 40 * MIB));
	assert_string_equal(spill_host_charge(&policy, 1), "host.limit");
	end(&a, SIGKILL);
	assert_null(spill_host_charge(&policy, 60 * MIB));
	assert_string_equal(spill_host_charge(&policy, 1), "host.limit");
}

/* All at once: together they get the limit, no more and no less. */
static void of_many_at_once_none_is_over(void **state)
{
	enum { PROCESSES = 6, UNITS = 200 };
	struct spill_policy policy = limited(UNITS * MIB);
	int go[2], done[2], stay[2];
	uint64_t got, sum = 0;
	pid_t pids[PROCESSES];
	char byte;
	assert_int_equal(pipe(go) + pipe(done) + pipe(stay), 0);
	for (int i = 0; i < PROCESSES; i++) {
		if ((pids[i] = begin_child()) != 0)
			continue;
		close(go[1]);
		close(stay[1]);
		others();
		if (read(go[0], &byte, 1) != 0)
			_exit(1);
		while (!spill_host_charge(&policy, MIB))
			;
		got = spill_account_host_held();
		/* What it has it keeps until all have been refused. */
		_exit(write(done[1], &got, sizeof(got)) != sizeof(got) || read(stay[0], &byte, 1) != 0);
	}
	close(go[1]);
	for (int i = 0; i < PROCESSES; i++) {
		assert_int_equal(read(done[0], &got, sizeof(got)), sizeof(got));
		sum += got;
	}
	assert_int_equal(sum, UNITS * MIB);
	close(stay[1]);
	for (int i = 0; i < PROCESSES; i++)
		assert_int_equal(waitpid(pids[i], NULL, 0), pids[i]);
	close(go[0]);
	close(done[0]);
	close(done[1]);
	close(stay[0]);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
	    TEST(made_by_the_first_spill_only),     TEST(the_living_are_counted_and_the_dead_are_not),
	    TEST(a_slot_of_the_dead_is_used_again), TEST(what_was_held_at_start),
	    TEST(a_fork_is_a_process_of_its_own),   TEST(a_closed_descriptor_is_found_out),
	    TEST(a_removed_file_is_found_out),      TEST(what_is_in_its_place_is_left_alone),
	    TEST(another_users_file_is_left_alone), TEST(all_slots_taken),
	    TEST(who_is_stopped_stops_nobody),      TEST(the_limit_is_of_the_sum),
	    TEST(of_many_at_once_none_is_over),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
