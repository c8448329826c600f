/* The log that a user means who names a process, or nothing. */
#define SETUP setup
#define TEARDOWN teardown
#include "unit.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "find_log.h"

#define ENDED 999999999 /* no process has this number */

static char folder[] = "/tmp/spill-unit-XXXXXX";
static char found[PATH_MAX];
static int pid;

static int setup(void **state)
{
	setenv("XDG_STATE_HOME", folder, 1);
	pid = -1;
	return mkdir("spill", 0700);
}

static int teardown(void **state)
{
	DIR *logs = opendir("spill");
	struct dirent *entry;

	while ((entry = readdir(logs)))
		unlinkat(dirfd(logs), entry->d_name, 0);
	closedir(logs);
	return rmdir("spill");
}

/* A log of the process, last changed then. 0: it has no start line. */
static void log_of(int process, const char *name, long seconds, long nanoseconds)
{
	const struct timespec times[2] = {{seconds, nanoseconds}, {seconds, nanoseconds}};
	char path[PATH_MAX];
	FILE *file;

	snprintf(path, sizeof(path), "spill/%s", name);
	file = fopen(path, "w");
	assert_non_null(file);
	if (process)
		fprintf(file, "{\"v\":1,\"kind\":\"start\",\"t\":0.0,\"pid\":%d}\n", process);
	else
		fputs("{\"v\":1,\"kind\":\"later\",\"t\":0.0}\n", file);
	fclose(file);
	assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
}

static void is_found(const char *operand, const char *name, int process)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/spill/%s", folder, name);
	assert_string_equal(cli_find_log("log", operand, &pid, found), path);
	assert_int_equal(pid, process);
}

TEST(the_newest)
{
	log_of(7, "a-7.jsonl", 100, 1);
	is_found(NULL, "a-7.jsonl", 0);
	log_of(8, "b-8.jsonl", 100, 2);
	is_found(NULL, "b-8.jsonl", 0);
	log_of(9, "c-9.jsonl", 99, 9);
	is_found(NULL, "b-8.jsonl", 0);
	log_of(9, "d-9.jsonl", 101, 0);
	is_found(NULL, "d-9.jsonl", 0);
	/* By name, with numbers as numbers, if they are of one time. */
	log_of(9, "d-10.jsonl", 101, 0);
	log_of(9, "e-1.jsonl", 101, 0);
	is_found(NULL, "d-9.jsonl", 0);
	/* What begins with another line is no log of ours. */
	log_of(0, "f-1.jsonl", 200, 0);
	is_found(NULL, "d-9.jsonl", 0);
}

TEST(none_is_there)
{
	assert_null(cli_find_log("log", NULL, &pid, found));
	assert_int_equal(pid, 0);
	log_of(0, "f-1.jsonl", 200, 0);
	assert_null(cli_find_log("log", NULL, &pid, found));
	assert_null(cli_find_log("log", "999999999", &pid, found));
	assert_int_equal(pid, ENDED);
	unsetenv("XDG_STATE_HOME");
	unsetenv("HOME");
	assert_null(cli_find_log("log", NULL, &pid, found));
	assert_null(cli_find_log("log", "999999999", &pid, found));
}

TEST(of_a_process_that_has_ended)
{
	log_of(ENDED, "p-999999999.jsonl", 100, 0);
	log_of(5, "q-999999999.jsonl", 200, 0);    /* of another, in a container */
	log_of(ENDED, "r999999999.jsonl", 300, 0); /* another name */
	log_of(ENDED, "p-999999999-1.jsonl", 300, 0);
	log_of(0, "s-999999999.jsonl", 300, 0);
	is_found("999999999", "p-999999999.jsonl", ENDED);
	log_of(ENDED, "-999999999.jsonl", 150, 0);
	is_found("999999999", "-999999999.jsonl", ENDED);
}

/* Anything but a number of at most nine digits is a path, and so is a number that names a file. */
TEST(a_path_is_taken_as_it_is)
{
	static const char *const paths[] = {"x.jsonl", "", "1x", "-1", "9999999999", "/tmp", "77"};

	log_of(77, "p-77.jsonl", 100, 0);
	close(open("77", O_WRONLY | O_CREAT, 0600));
	for (unsigned i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		assert_ptr_equal(cli_find_log("log", paths[i], &pid, found), paths[i]);
		assert_int_equal(pid, 0);
	}
	assert_int_equal(unlink("77"), 0);
}

/* This process has it open for writing. A rotation of it can be followed by its name, as long as that is there. */
TEST(of_a_process_that_runs)
{
	char own[16], descriptor[64], path[PATH_MAX];
	int reader, writer, other;

	snprintf(own, sizeof(own), "%d", getpid());
	log_of(getpid(), "any name", 100, 0);
	log_of(0, "other", 100, 0);
	snprintf(path, sizeof(path), "%s/spill/any name", folder);
	reader = open(path, O_RDONLY | O_CLOEXEC);
	assert_null(cli_find_log("log", own, &pid, found));
	assert_false(cli_log_is_open_in(getpid(), reader));
	other = open("spill/other", O_WRONLY | O_CLOEXEC);
	assert_null(cli_find_log("log", own, &pid, found));
	assert_false(cli_log_is_open_in(getpid(), reader));
	writer = open(path, O_WRONLY | O_CLOEXEC);
	is_found(own, "any name", getpid());
	assert_true(cli_log_is_open_in(getpid(), reader));
	assert_false(cli_log_is_open_in(ENDED, reader));
	assert_int_equal(unlink(path), 0);
	snprintf(descriptor, sizeof(descriptor), "/proc/%d/fd/%d", getpid(), writer);
	assert_string_equal(cli_find_log("log", own, &pid, found), descriptor);
	log_of(getpid(), "any name", 100, 0); /* another file of that name */
	assert_string_equal(cli_find_log("log", own, &pid, found), descriptor);
	close(writer);
	close(other);
	close(reader);
	assert_false(cli_log_is_open_in(getpid(), reader));
}

int main(void)
{
	return run_unit_tests_in(folder);
}
