/* log.keep: which logs are removed from the default folder, and above all which are not. */
#include "fake_libc.h"
#define SETUP make_folder
#define TEARDOWN remove_folder
#include "logtest.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>

#include "old_logs.h"

static const char *removed_under_us; /* what somebody removes while we ask for its lock */

static bool somebody_removes_it(long arguments[6], long *result)
{
	if (removed_under_us && arguments[1] & LOCK_EX) {
		unlink(removed_under_us);
		removed_under_us = NULL;
	}
	return false;
}

TEST(the_oldest_go)
{
	char name[32];

	/* Neither by name nor in the folder's order. */
	for (unsigned i = 0; i < 20; i++) {
		snprintf(name, sizeof(name), "p-%u.jsonl", i);
		make_ended(name, 10 + i * 7 % 20);
	}
	keep(20);
	for (unsigned i = 0; i < 20; i++) {
		snprintf(name, sizeof(name), "p-%u.jsonl", i);
		assert_true(there(name));
	}
	keep(6);
	for (unsigned i = 0; i < 20; i++) {
		snprintf(name, sizeof(name), "p-%u.jsonl", i);
		assert_int_equal(there(name), i * 7 % 20 < 6);
	}
	keep(0);
	for (unsigned i = 0; i < 20; i++) {
		snprintf(name, sizeof(name), "p-%u.jsonl", i);
		assert_false(there(name));
	}
}

/* Made in the same second. */
TEST(of_one_second_the_newest_stays)
{
	static const long parts[] = {5, 900000000, 400000000};
	struct timespec when[2];
	char name[32];

	for (unsigned i = 0; i < 3; i++) {
		snprintf(name, sizeof(name), "p-%u.jsonl", i);
		make_ended(name, 0);
		when[0] = when[1] = (struct timespec){.tv_sec = 1000000000, .tv_nsec = parts[i]};
		assert_int_equal(utimensat(AT_FDCWD, in_folder(name), when, 0), 0);
	}
	keep(2);
	assert_true(!there("p-0.jsonl") && there("p-1.jsonl") && there("p-2.jsonl"));
	keep(1);
	assert_true(there("p-1.jsonl") && !there("p-2.jsonl"));
}

TEST(what_is_not_ours_stays)
{
	static const char *const names[] = {"jsonl",    "x.jsonl",    "x-.jsonl",   "-1.jsonl",
	                                    "x-1.json", "x-1.jsonl~", "x-1a.jsonl", "notes-1.txt"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		make_ended(names[i], 100);
	make_ended("target", 100);
	make_ended("second", 100);
	assert_int_equal(symlink(in_folder("target"), in_folder("link-1.jsonl")), 0);
	assert_int_equal(symlink("nowhere", in_folder("dangling-1.jsonl")), 0);
	assert_int_equal(link(in_folder("second"), in_folder("second-1.jsonl")), 0);
	assert_int_equal(mkdir(in_folder("folder-1.jsonl"), 0700), 0);
	assert_int_equal(mkfifo(in_folder("fifo-1.jsonl"), 0600), 0);
	make("empty-1.jsonl", "", 100);
	make("text-1.jsonl", "somebody's own notes\n" EXIT_LINE, 100);
	make("nostart-1.jsonl", EXIT_LINE, 100);
	make("torn-1.jsonl", "{\"v\":1,\"kind\":\"start\",\"t\":0.000000,\"pid\":1}", 100);
	keep(0);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		assert_true(there(names[i]));
	assert_true(there("target") && there("second"));
	assert_true(there("link-1.jsonl") && there("dangling-1.jsonl") && there("second-1.jsonl"));
	assert_true(there("folder-1.jsonl") && there("fifo-1.jsonl"));
	assert_true(there("empty-1.jsonl") && there("text-1.jsonl"));
	assert_true(there("nostart-1.jsonl") && there("torn-1.jsonl"));
}

TEST(nor_a_folder_of_others)
{
	make_ended("x-1.jsonl", 100);
	assert_int_equal(chmod(folder, 0770), 0);
	keep(0);
	assert_true(there("x-1.jsonl"));
	assert_int_equal(chmod(folder, 0702), 0);
	keep(0);
	assert_true(there("x-1.jsonl"));
	assert_int_equal(chmod(folder, 0755), 0); /* who only reads does not count */
	keep(0);
	assert_false(there("x-1.jsonl"));
}

/* More than are looked at: never one of the newest, and at last all others. */
TEST(a_full_folder)
{
	char name[32];
	unsigned left = 0;

	for (unsigned i = 0; i < 1200; i++) {
		snprintf(name, sizeof(name), "p-%u.jsonl", i);
		make_ended(name, 10 + i * 7 % 1200);
	}
	for (unsigned starts = 0; starts < 4; starts++)
		keep(50);
	for (unsigned i = 0; i < 1200; i++) {
		snprintf(name, sizeof(name), "p-%u.jsonl", i);
		left += there(name);
		if (i * 7 % 1200 < 50)
			assert_true(there(name));
	}
	assert_int_equal(left, 50);
}

/* Its process has not got its lock yet, and must not find it taken. */
TEST(one_that_is_being_begun)
{
	fclose(fopen(in_folder("x-1.jsonl"), "we"));
	fake_libc_fail(FAKE_flock, 0, 0, 0);
	keep(0);
	assert_int_equal(fake_libc[FAKE_flock].calls, 1); /* its own */
	assert_true(there("x-1.jsonl"));
}

/* No more than are kept: none is opened, whose process could miss its lock. */
TEST(few_are_not_looked_at)
{
	for (unsigned i = 0; i < 3; i++)
		make_ended((const char *[]){"a-1.jsonl", "b-1.jsonl", "c-1.jsonl"}[i], 10 + i);
	fake_libc_fail(FAKE_flock, 0, 0, 0);
	keep(3);
	assert_int_equal(fake_libc[FAKE_flock].calls, 1); /* its own */
	keep(2);
	assert_in_range(fake_libc[FAKE_flock].calls, 4, 5);
	assert_true(there("a-1.jsonl") && there("b-1.jsonl") && !there("c-1.jsonl"));
}

TEST(several_at_once)
{
	pid_t starting[4];
	char name[32];

	for (unsigned i = 0; i < 100; i++) {
		snprintf(name, sizeof(name), "p-%u.jsonl", i);
		make_ended(name, 10 + i);
	}
	for (unsigned i = 0; i < 4; i++) {
		starting[i] = fork();
		if (starting[i] == 0) {
			keep(10);
			syscall_exit(0);
		}
	}
	for (unsigned i = 0; i < 4; i++) {
		int status;

		assert_int_equal(waitpid(starting[i], &status, 0), starting[i]);
		assert_int_equal(status, 0);
	}
	/* What one had locked, another took for written: the next start counts anew. */
	keep(10);
	for (unsigned i = 0; i < 100; i++) {
		snprintf(name, sizeof(name), "p-%u.jsonl", i);
		assert_int_equal(there(name), i < 10);
	}
}

/* Between our open and our lock somebody removed it: what is written then has a name. */
TEST(a_file_that_goes_while_it_is_opened)
{
	struct spill_log_file file;
	struct stat now;

	make_ended("x-1.jsonl", 100);
	removed_under_us = in_folder("x-1.jsonl");
	assert_null(spill_log_file_open(&file, in_folder("x-1.jsonl")));
	assert_int_equal(stat(in_folder("x-1.jsonl"), &now), 0);
	assert_int_equal(now.st_ino, file.ino);
	assert_int_equal(now.st_size, 0);
	spill_log_file_close(&file);
}

/* It is another process's log, for all that we know; its lock may never be given back, and we do not wait for it. */
TEST(a_file_that_somebody_keeps_locked)
{
	struct spill_log_file file;
	int fd = open(in_folder("x-1.jsonl"), O_RDWR | O_CREAT, 0600);

	assert_int_equal(flock(fd, LOCK_SH), 0);
	fake_libc_fail(FAKE_flock, 0, 0, 0);
	assert_ptr_equal(spill_log_file_open(&file, in_folder("x-1.jsonl")), spill_log_file_taken);
	assert_in_range(fake_libc[FAKE_flock].calls, 2, 10);
	assert_int_equal(file.fd, -1);
	close(fd);
	assert_null(spill_log_file_open(&file, in_folder("x-1.jsonl")));
	spill_log_file_close(&file);
}

static void start_in_default_body(void)
{
	CHECK(setenv("XDG_STATE_HOME", folder, 1) == 0);
	CHECK(mkdir(in_folder("spill"), 0700) == 0);
	make_ended("spill/old-1.jsonl", 100);
	open_log_at("");
	CHECK(spill_log_active());
	CHECK(!there("spill/old-1.jsonl"));
}

static void start_elsewhere_body(void)
{
	CHECK(mkdir(in_folder("mine"), 0700) == 0);
	make_ended("mine/old-1.jsonl", 100);
	open_log_at(in_folder("mine/"));
	CHECK(spill_log_active());
	CHECK(there("mine/old-1.jsonl"));
}

static void start_as_rank_body(const char *rank, bool tidies)
{
	char path[256];

	CHECK(setenv("XDG_STATE_HOME", in_folder("state"), 1) == 0 && setenv("RANK", rank, 1) == 0);
	CHECK((mkdir(in_folder("state"), 0700) == 0 && mkdir(in_folder("state/spill"), 0700) == 0) ||
	      errno == EEXIST);
	make_ended("state/spill/old-1.jsonl", 100);
	open_log_at("");
	CHECK(spill_log_active());
	snprintf(path, sizeof(path), "-%s-", rank);
	CHECK(strstr(spill_log_path(), path));
	CHECK(there("state/spill/old-1.jsonl") == !tidies);
}

static void start_as_first_rank_body(void)
{
	start_as_rank_body("0", true);
}

static void start_as_other_rank_body(void)
{
	start_as_rank_body("10", false);
}

/* Of thousands of ranks with one home, one looks through the folder. */
TEST(of_ranks_the_first_tidies)
{
	in_child(start_as_first_rank_body);
	in_child(start_as_other_rank_body);
}

/* The policy of logtest.c keeps none. */
TEST(only_the_default_folder_is_tidied)
{
	in_child(start_in_default_body);
	in_child(start_elsewhere_body);
}

int main(void)
{
	fake_libc[FAKE_flock].hook = somebody_removes_it;
	return run_unit_tests(NULL, NULL);
}
