/*
 * host.limit of several processes. Memory of live processes is counted, memory of dead ones is not.
 * A file that cannot be used is left alone. The others are children that do as they are told
 * through a pipe.
 */
#define SETUP setup
#define KEEPS_DESCRIPTORS /* the file */
#define TEARDOWN teardown
#include "unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/pidfd.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "account.h"
#include "clock.h"
#include "host_available.h"
#include "host_share.h"
#include "hash.h"
#include "place.h"
#include "fake_libc.h"
#include "note.h"
#include "record.h"
#include "memory_limit.h"

#define MIB (1ull << 20)
/* The file's form: where a slot begins, and what each further offset stands for. */
#define SLOT(n) ((off_t)(n) << 40)
#define UNIT 4096

static char folder[64], path[96];
static unsigned notes, waits;

static void nap(uint64_t ns)
{
	waits++;
	nanosleep(&(struct timespec){.tv_nsec = (long)ns}, NULL);
}

/* In place of note.c. */
void spill_note(const char *code, const char *text)
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
	uint64_t bytes = spill_host_share_begin().held;
	spill_host_share_end();
	return bytes;
}

static void add(uint64_t bytes)
{
	spill_host_share_begin();
	uint64_t held = spill_account_host_held();
	while (!spill_account_host_charge(&held, bytes))
		;
	spill_host_share_end();
}

static pid_t begin_child(void)
{
	spill_fork_lock_take(&spill_host_share_fork_lock);
	pid_t pid = fork();
	spill_fork_lock_release(&spill_host_share_fork_lock, pid == 0);
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
	static const struct spill_clock clock = {.sleep = nap};
	spill_clock_use(&clock);
	notes = waits = 0;
	spill_account_reset();
	spill_host_share_use(path, 0);
	return 0;
}

static int teardown(void **state)
{
	char command[128];
	spill_account_reset();
	snprintf(command, sizeof(command), "rm -rf '%s'", folder);
	return system(command);
}

TEST(made_by_the_first_spill_only)
{
	struct stat file;
	assert_int_equal(spill_host_share_at_start().held, 0);
	assert_int_equal(access(path, F_OK), -1);
	mode_t mask = umask(0);
	assert_int_equal(others(), 0);
	umask(mask);
	assert_int_equal(stat(path, &file), 0);
	assert_int_equal(file.st_mode & 07777, 0600);
	assert_int_equal(file.st_size, 0);
	/* What others could write is closed to them. */
	assert_int_equal(chmod(path, 0666), 0);
	spill_host_share_use(path, 0);
	assert_int_equal(others(), 0);
	assert_int_equal(stat(path, &file), 0);
	assert_int_equal(file.st_mode & 07777, 0600);
	assert_int_equal(notes, 0);
}

TEST(the_living_are_counted_and_the_dead_are_not)
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
	/* What is given back, or taken without asking, is told without a check. */
	spill_account_host_return(99 * MIB);
	assert_int_equal(tell(&c, 0), 1 * MIB);
	spill_account_host_add(2 * MIB);
	assert_int_equal(tell(&c, 0), 3 * MIB);
	spill_account_host_return(3 * MIB);
	assert_int_equal(tell(&c, 0), 0);
	/* Rounded up: never less than is held. */
	add(1);
	assert_int_equal(tell(&c, 0), UNIT);
	add(UNIT);
	assert_int_equal(tell(&c, 0), 2 * UNIT);
	spill_account_host_return(1);
	assert_int_equal(tell(&c, 0), UNIT);
	end(&c, SIGKILL);
	assert_int_equal(others(), 0);
}

TEST(a_slot_of_the_dead_is_used_again)
{
	for (int i = 0; i < SPILL_HOST_SLOTS + 10; i++) {
		struct other one = begin();
		assert_int_equal(tell(&one, MIB), 0);
		end(&one, i % 2 ? SIGKILL : 0);
	}
	assert_int_equal(notes, 0);
	assert_int_equal(others(), 0);
}

/*
 * Memory that others hold when a process begins is missing in the available memory, so host.limit
 * is a share of both together.
 */
TEST(what_was_held_at_start)
{
	struct other a = begin(), b = begin();
	tell(&a, 10 * MIB);
	tell(&b, 20 * MIB);
	int next = dup(STDIN_FILENO);
	close(next);
	spill_host_share_use(path, 0);
	assert_int_equal(spill_host_share_at_start().held, 30 * MIB);
	assert_int_equal(dup(STDIN_FILENO), next); /* this look keeps nothing open */
	close(next);
	struct spill_policy half;
	uint64_t most;
	spill_policy_default(&half);
	half.host_limit = (struct spill_amount){SPILL_AMOUNT_PERCENT, 50000};
	half.host_reserve = (struct spill_amount){SPILL_AMOUNT_BYTES, 0};
	spill_host_room(&half, &most);
	assert_int_equal(most, (spill_host_available_at_start() + 30 * MIB) / 2);
	end(&a, SIGKILL);
	spill_host_share_use(path, 0);
	assert_int_equal(spill_host_share_at_start().held, 20 * MIB);
	end(&b, 0);
}

/* The child has the parent's descriptor, and so could keep its slot alive, or be taken for it. */
TEST(a_fork_is_a_process_of_its_own)
{
	int ask[2], answer[2];
	uint64_t word = 0;
	assert_int_equal(pipe2(ask, O_CLOEXEC), 0);
	assert_int_equal(pipe2(answer, O_CLOEXEC), 0);
	add(1 * MIB);
	pid_t parent = begin_child();
	if (parent == 0) {
		add(40 * MIB);
		pid_t child = begin_child();
		if (child == 0) {
			close(ask[1]);
			obey(ask[0], answer[1]);
		}
		word = (uint64_t)child;
		if (write(answer[1], &word, sizeof(word)) == sizeof(word))
			pause();
		_exit(1);
	}
	close(ask[0]);
	assert_int_equal(read(answer[0], &word, sizeof(word)), sizeof(word));
	int child = pidfd_open((pid_t)word, 0);
	assert_true(child >= 0);
	word = 0;
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
	close(answer[0]);
	assert_int_equal(poll(&(struct pollfd){.fd = child, .events = POLLIN}, 1, -1), 1); /* it has ended */
	close(child);
	assert_int_equal(others(), 0);
}

static sem_t entered, go;
static __thread bool blocks;

/* A thread stands still while it opens a file. */
static bool stand_still(long arguments[6], long *result)
{
	if (blocks) {
		blocks = false;
		sem_post(&entered);
		while (sem_wait(&go))
			;
	}
	return false;
}

static void *join_slowly(void *unused)
{
	blocks = true;
	others();
	return unused;
}

/* While another thread of its parent joins: the child joins by itself. */
TEST(a_fork_while_a_thread_joins)
{
	pthread_t thread;
	assert_int_equal(sem_init(&entered, 0, 0) + sem_init(&go, 0, 0), 0);
	fake_libc[FAKE_open64].hook = stand_still;
	assert_int_equal(pthread_create(&thread, NULL, join_slowly, NULL), 0);
	while (sem_wait(&entered))
		;
	struct other child = begin();
	assert_int_equal(tell(&child, 4 * MIB), 0);
	sem_post(&go);
	pthread_join(thread, NULL);
	fake_libc_reset();
	assert_int_equal(others(), 4 * MIB);
	end(&child, 0);
}

static int open_own(const char *suffix)
{
	char name[sizeof(path) + 8];
	snprintf(name, sizeof(name), "%s%s", path, suffix);
	return open(name, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
}

static bool lock_range(int fd, off_t start, off_t length)
{
	struct flock range = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = start, .l_len = length};
	return fcntl(fd, F_OFD_SETLK, &range) == 0;
}

/* Daemons close all descriptors, and the numbers become other files'. */
TEST(a_closed_descriptor_is_found_out)
{
	struct flock any = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
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
		if (dup2(open_own(".mine"), STDERR_FILENO) < 0)
			_exit(3);
		for (int fd = 3; fd < 1024; fd++)
			if (fd != ready[1] && fd != go[0])
				dup2(STDERR_FILENO, fd);
		spill_account_host_return(5 * MIB);
		spill_account_host_add(5 * MIB);
		if (fcntl(open_own(".mine"), F_OFD_GETLK, &any) != 0 || any.l_type != F_UNLCK)
			_exit(4); /* that was not ours to lock */
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

/* A daemon may have closed them. The file's descriptor is the first free one then, and goes elsewhere. */
TEST(a_process_without_standard_descriptors_takes_part)
{
	int ready[2], go[2], status;
	char byte;
	assert_int_equal(pipe(ready) + pipe(go), 0);
	pid_t pid = begin_child();
	if (pid == 0) {
		for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
			close(fd);
		add(10 * MIB);
		for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
			if (fcntl(fd, F_GETFD) >= 0)
				_exit(1);
		_exit(notes || write(ready[1], "", 1) != 1 || read(go[0], &byte, 1) < 0);
	}
	close(ready[1]);
	assert_int_equal(read(ready[0], &byte, 1), 1);
	assert_int_equal(others(), 10 * MIB);
	assert_int_equal(write(go[1], "", 1), 1);
	close(go[1]);
	close(go[0]);
	close(ready[0]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

TEST(a_removed_file_is_found_out)
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

static unsigned open_descriptors(void)
{
	unsigned open = 0;
	for (int fd = 0; fd < 512; fd++)
		open += fcntl(fd, F_GETFD) != -1;
	return open;
}

/* Own process only, one note, and what is in its place is as it was. Nor is it kept open. */
static void unusable(void)
{
	spill_host_share_use(path, 0);
	unsigned before = open_descriptors();
	assert_int_equal(spill_host_share_at_start().held, 0);
	for (int i = 0; i < 3; i++)
		add(1 * MIB);
	assert_int_equal(others(), 0);
	assert_int_equal(notes, 1);
	assert_int_equal(open_descriptors(), before);
	notes = 0;
}

TEST(what_is_in_its_place_is_left_alone)
{
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
	assert_int_equal(mkfifo(path, 0600), 0);
	unusable();
	unlink(path);
	assert_int_equal(mkdir(path, 0700), 0);
	unusable();
	rmdir(path);
	snprintf(path, sizeof(path), "%s/no/table", folder);
	unusable();
}

TEST(another_users_file_is_left_alone)
{
	if (geteuid() != 0)
		skip();
	text_file(path, "");
	assert_int_equal(chown(path, 12345, 12345), 0);
	unusable();
}

TEST(all_slots_taken)
{
	int fd = open_own("");
	for (int slot = 0; slot < SPILL_HOST_SLOTS; slot++)
		assert_true(lock_range(fd, SLOT(slot), 1));
	unusable();
	close(fd);
}

/* The same row of numbers in each run. */
static int any(void)
{
	static uint64_t last = 1;

	last = spill_hash(last, 1);
	return (int)(last >> 34);
}

/* Whatever the order in which the kernel tells them, and wherever they are: each counts, once. */
TEST(every_slot_counts_once)
{
	enum { FILES = 20, ROUNDS = 30 };
	int fds[FILES];
	for (int round = 0; round < ROUNDS; round++) {
		/* From the full table down to a few. */
		int density = round == 0 ? 1 : 1 + any() % 100, slots[SPILL_HOST_SLOTS];
		uint64_t sum = 0;
		for (int i = 0; i < SPILL_HOST_SLOTS; i++) {
			int other = any() % (i + 1);
			slots[i] = slots[other];
			slots[other] = i;
		}
		for (int i = 0; i < FILES; i++)
			fds[i] = open_own("");
		for (int i = 0; i < SPILL_HOST_SLOTS; i++)
			if (any() % density == 0) {
				off_t units =
				    any() % 8 ? any() % 1000 : SLOT(1) - 2; /* one file's do not meet */
				assert_true(lock_range(fds[i % FILES], SLOT(slots[i]), 1 + units));
				sum += (uint64_t)units * UNIT;
			}
		spill_host_share_use(path, 0);
		assert_int_equal(spill_host_share_at_start().held, sum);
		for (int i = 0; i < FILES; i++)
			close(fds[i]);
	}
}

/* Locks that are not of the form count nothing, and nobody stays with them. */
TEST(other_locks_count_nothing)
{
	int fd = open_own(""), beside = open_own("");
	assert_true(lock_range(fd, SLOT(1) + 1, 1000));    /* of no process */
	assert_true(lock_range(fd, SLOT(3), 2 * SLOT(1))); /* two slots */
	assert_true(lock_range(beside, SLOT(2), 1 + 7));
	assert_int_equal(others(), 7 * UNIT);
	close(fd);
	fd = open_own("");
	close(beside);
	spill_host_share_use(path, 0);
	assert_true(lock_range(fd, 0, 0));
	unusable();
	close(fd);
}

/* Of an earlier build, say. What is in the file is nothing to anybody. */
TEST(written_to_and_truncated)
{
	text_file(path, "of another form");
	struct other a = begin();
	add(1 * MIB);
	tell(&a, 10 * MIB);
	for (int size = 4 * UNIT; size >= 0; size -= 2 * UNIT) {
		assert_int_equal(truncate(path, size), 0);
		add(1 * MIB);
		assert_int_equal(others(), 10 * MIB);
		assert_int_equal(tell(&a, 0), spill_account_host_held());
	}
	assert_int_equal(notes, 0);
	end(&a, 0);
}

/* By another one of our own: there they meet again. By a link: that is left alone. */
TEST(replaced_while_in_use)
{
	char target[128];
	struct other a = begin();
	add(1 * MIB);
	tell(&a, 10 * MIB);
	snprintf(target, sizeof(target), "%s.new", path);
	close(open_own(".new"));
	assert_int_equal(rename(target, path), 0);
	assert_int_equal(others(), 0);
	assert_int_equal(tell(&a, 0), 1 * MIB);
	assert_int_equal(others(), 10 * MIB);
	assert_int_equal(notes, 0);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(symlink(target, path), 0);
	assert_int_equal(others(), 0);
	assert_int_equal(notes, 1);
	assert_int_equal(access(target, F_OK), -1);
	end(&a, SIGKILL);
}

/* Nothing is written, so no limit of files' sizes is passed. */
TEST(within_a_limit_of_no_bytes)
{
	int status;
	pid_t pid = begin_child();
	if (pid == 0) {
		setrlimit(RLIMIT_FSIZE, &(struct rlimit){0, 0});
		add(10 * MIB);
		others();
		_exit((int)notes);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

/* A process in the middle of its check, with `bytes` charged before it. */
static pid_t checking(uint64_t bytes)
{
	int status;
	pid_t pid = begin_child();
	if (pid == 0) {
		add(bytes);
		spill_host_share_begin();
		raise(SIGSTOP);
		spill_host_share_end();
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, WUNTRACED), pid);
	assert_true(WIFSTOPPED(status));
	return pid;
}

TEST(who_is_killed_in_its_check_leaves_nothing)
{
	others();
	pid_t pid = checking(10 * MIB);
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	assert_int_equal(others(), 0);
	assert_int_equal(waits, 0);
}

/* It is waited for once, some milliseconds, and counts. When it goes on, all is as before. */
TEST(who_is_stopped_stops_nobody)
{
	pid_t pid = checking(10 * MIB);
	assert_int_equal(others(), 10 * MIB);
	assert_in_range(waits, 1, 1000);
	waits = 0;
	add(1 * MIB);
	assert_int_equal(others(), 10 * MIB);
	spill_account_host_return(1 * MIB);
	assert_int_equal(waits, 0);
	kill(pid, SIGCONT);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	assert_int_equal(others(), 0);
	pid = checking(20 * MIB);
	assert_int_equal(others(), 20 * MIB);
	assert_in_range(waits, 1, 1000);
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static void *charge_and_return(void *seed)
{
	unsigned random = (unsigned)(uintptr_t)seed;
	for (int i = 0; i < 300; i++) {
		uint64_t bytes = 1 + (uint64_t)rand_r(&random) % MIB;
		if (i % 2)
			add(bytes);
		else
			spill_account_host_add(bytes);
		spill_account_host_return(bytes);
	}
	add(1 * MIB);
	return NULL;
}

/* With several threads, the last published figure equals the held memory. */
TEST(many_threads)
{
	pthread_t threads[8];
	struct other a = begin();
	for (uintptr_t i = 0; i < 8; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, charge_and_return, (void *)i), 0);
	for (int i = 0; i < 20; i++)
		tell(&a, 0); /* beside it */
	for (int i = 0; i < 8; i++)
		assert_int_equal(pthread_join(threads[i], NULL), 0);
	assert_int_equal(tell(&a, 0), 8 * MIB);
	assert_int_equal(notes, 0);
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

TEST(the_limit_is_of_the_sum)
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

/* The memory at the start is all that there is for all of them, however high host.limit is. */
TEST(the_memory_at_start_is_of_the_sum)
{
	uint64_t start = spill_host_available_at_start();
	struct spill_policy policy = limited(SPILL_UNLIMITED);
	struct other a = begin();

	tell(&a, start - 100 * MIB);
	assert_string_equal(spill_host_charge(&policy, 101 * MIB), "host.reserve");
	assert_int_equal(spill_host_refusal()->held, 100 * MIB);
	assert_null(spill_host_charge(&policy, 1 * MIB));
	end(&a, SIGKILL);
	assert_null(spill_host_charge(&policy, 100 * MIB));
}

/* Processes of other jobs have memory of their own. */
TEST(each_job_counts_alone)
{
	struct spill_policy policy = limited(100 * MIB);
	struct other a = begin(), b;

	tell(&a, 60 * MIB);
	for (uint64_t job = 1; job < 200; job++) {
		spill_host_share_use(path, job);
		assert_int_equal(spill_host_share_at_start().held, 0);
		assert_int_equal(others(), 0);
	}
	spill_host_share_use(path, 17);
	b = begin();
	tell(&b, 70 * MIB);
	assert_int_equal(others(), 70 * MIB);
	assert_string_equal(spill_host_charge(&policy, 31 * MIB), "host.limit");
	assert_null(spill_host_charge(&policy, 30 * MIB));
	assert_int_equal(tell(&a, 0), 0);
	assert_int_equal(tell(&b, 0), 30 * MIB);
	spill_host_share_use(path, 17);
	assert_int_equal(spill_host_share_at_start().held, 70 * MIB);
	end(&a, 0);
	end(&b, 0);
}

/* Whatever its number: all locks are at offsets of their own, and the last ones there are. */
TEST(any_number_of_a_job)
{
	for (uint64_t job = 1; job; job <<= 1) {
		spill_host_share_use(path, job);
		add(MIB);
		struct other a = begin();
		assert_int_equal(tell(&a, 2 * MIB), spill_account_host_held());
		assert_int_equal(others(), 2 * MIB);
		end(&a, 0);
	}
	assert_int_equal(notes, 0);
}

/* A job's control group does not count it, so all ranks have to. */
TEST(physical_memory_of_a_job)
{
	struct spill_policy policy = limited(100 * MIB);

	for (uint64_t job = 0; job <= 17; job += 17) {
		spill_host_share_use(path, job);
		assert_null(spill_host_charge(&policy, 10 * MIB));
		assert_null(spill_physical_charge(&policy, 20 * MIB));
		spill_account_physical_add(5 * MIB);
		pid_t pid = begin_child();
		if (pid == 0) {
			struct spill_host_others seen = spill_host_share_begin();
			spill_host_share_end();
			_exit(seen.held != 35 * MIB || seen.physical != (job ? 25 * MIB : 0));
		}
		int status;
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_int_equal(status, 0);
		spill_account_physical_return(25 * MIB);
		pid = begin_child();
		if (pid == 0) {
			spill_host_share_begin();
			spill_host_share_end();
			spill_host_share_use(path, job);
			struct spill_host_others seen = spill_host_share_at_start();
			_exit(seen.held != 10 * MIB || seen.physical != 0);
		}
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_int_equal(status, 0);
		spill_account_host_return(10 * MIB);
	}
}

/* All at once: together they get the limit, no more and no less. */
TEST(of_many_at_once_none_is_over)
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
