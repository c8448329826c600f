/*
 * A policy file that cannot be read for the moment is not a bad policy: signals that interrupt,
 * descriptors and memory that have run out. Host memory and a process's name are read from files as
 * well.
 */
#define SETUP setup
#define TEARDOWN teardown
#include "unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <errno.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "clock.h"
#include "config.h"
#include "fake_libc.h"
#include "fd.h"
#include "host_available.h"
#include "policy.h"
#include "small_file.h"

#define TEXT "[device]\nlimit = 6GiB\n"

static char path[] = "/tmp/spill-configfile-XXXXXX";
static char problem[256];
static char *data;
static size_t size;

static unsigned naps;

static void nap(uint64_t ns)
{
	naps++;
}

/* From now on so many calls fail with that error. */
static void opens_fail(unsigned count, int error)
{
	fake_libc_fail(FAKE_open64, 1, count, error);
}

static void reads_fail(unsigned count, int error)
{
	fake_libc_fail(FAKE_read, 1, count, error);
}

static int setup(void **state)
{
	strcpy(path + strlen(path) - 6, "XXXXXX");
	int fd = mkstemp(path);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, TEXT, strlen(TEXT)), strlen(TEXT));
	close(fd);
	static const struct spill_clock clock = {.sleep = nap};
	spill_clock_use(&clock);
	naps = 0;
	strcpy(problem, "");
	return 0;
}

static int teardown(void **state)
{
	fake_libc_reset();
	return unlink(path);
}

static enum spill_config_found read_policy(void)
{
	return spill_config_file_read(path, &data, &size, problem, sizeof(problem));
}

static void it_is_read(void)
{
	assert_int_equal(read_policy(), SPILL_CONFIG_FILE_READ);
	assert_string_equal(problem, "");
	assert_int_equal(size, strlen(TEXT));
	assert_memory_equal(data, TEXT, size);
	free(data);
}

/*
 * The first test: what there was at the start is remembered. If it counted as no limit, the OOM
 * killer would end the program.
 */
TEST(host_memory_that_cannot_be_read_is_not_there)
{
	static const int errors[] = {EINTR, EMFILE, ENFILE, ENOMEM};

	for (unsigned i = 0; i < 4; i++) {
		fake_libc_reset();
		opens_fail(FAKE_LIBC_FOR_EVER, errors[i]);
		assert_int_equal(spill_host_available(), 0);
		fake_libc_reset();
		reads_fail(FAKE_LIBC_FOR_EVER, errors[i]);
		assert_int_equal(spill_host_available(), 0);
		assert_int_equal(spill_host_available_at_start(), 0);
	}
	fake_libc_reset();
	assert_true(spill_host_available() > 0);
	assert_true(spill_host_available_at_start() > 0); /* it was not remembered */
}

TEST(signals_only_interrupt)
{
	opens_fail(3, EINTR);
	reads_fail(3, EINTR);
	it_is_read();
	assert_int_equal(naps, 0);
}

TEST(what_is_missing_for_a_moment_is_waited_for)
{
	static const int errors[] = {EMFILE, ENFILE, ENOMEM};

	for (unsigned i = 0; i < 3; i++) {
		opens_fail(5, errors[i]);
		it_is_read();
	}
	fake_libc_fail(FAKE_malloc, 1, 5, ENOMEM);
	it_is_read();
	reads_fail(5, ENOMEM);
	it_is_read();
	assert_true(naps > 0);
}

TEST(but_not_for_ever)
{
	static const int errors[] = {EINTR, EMFILE, ENFILE, ENOMEM};

	for (unsigned i = 0; i < 4; i++) {
		fake_libc_reset();
		opens_fail(FAKE_LIBC_FOR_EVER, errors[i]);
		assert_int_equal(read_policy(), SPILL_CONFIG_FILE_BAD);
		assert_non_null(strstr(problem, path));
		fake_libc_reset();
		reads_fail(FAKE_LIBC_FOR_EVER, errors[i]);
		assert_int_equal(read_policy(), SPILL_CONFIG_FILE_BAD);
		assert_non_null(strstr(problem, path));
	}
}

TEST(what_the_file_itself_refuses_is_told_at_once)
{
	assert_int_equal(chmod(path, 0666), 0);
	assert_int_equal(read_policy(), SPILL_CONFIG_FILE_BAD);
	assert_non_null(strstr(problem, "chmod"));
	opens_fail(FAKE_LIBC_FOR_EVER, ENOENT);
	assert_int_equal(read_policy(), SPILL_CONFIG_FILE_ABSENT);
	assert_int_equal(naps, 0);
}

/* All descriptors that the process may have. Returns the last. */
static int use_all(struct rlimit *before)
{
	int last = -1, fd;
	struct rlimit few;

	assert_int_equal(getrlimit(RLIMIT_NOFILE, before), 0);
	few = *before;
	few.rlim_cur = 64;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
	while ((fd = dup(STDIN_FILENO)) >= 0)
		last = fd;
	assert_int_equal(errno, EMFILE);
	return last;
}

static void give_back(int last, const struct rlimit *before)
{
	for (int fd = 63; fd > STDERR_FILENO && last >= 0; fd--)
		close(fd);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, before), 0);
}

TEST(a_path_that_does_not_fit_is_none)
{
	char whole[16];
	assert_true(spill_small_file_path("/a", "/bc", "d", whole, sizeof("/a/bc/d")));
	assert_string_equal(whole, "/a/bc/d");
	assert_false(spill_small_file_path("/a", "/bc", "d", whole, sizeof("/a/bc/d") - 1));
	assert_false(
	    spill_small_file_read_in("/proc", "/self", "comm", whole, sizeof("/proc/self/comm") - 1));
	assert_int_equal(errno, ENAMETOOLONG);
	assert_true(spill_small_file_read_in("/proc", "/self", "comm", whole, sizeof("/proc/self/comm")));
	assert_string_equal(whole, "test_config_fil");
}

TEST(with_all_descriptors_in_use_files_are_read_all_the_same)
{
	struct rlimit before;
	char name[64];
	int last = use_all(&before);

	it_is_read();
	assert_int_equal(naps, 0);
	assert_true(spill_small_file_read("/proc/self/comm", name, sizeof(name)));
	assert_string_equal(name, "test_config_fil\n"); /* of a name the kernel keeps 15 bytes */
	uint64_t available = spill_host_available();
	assert_true(available > 0 && available < SPILL_UNLIMITED);
	/* No descriptor has changed. */
	for (int fd = 0; fd < 64; fd++)
		assert_true(fcntl(fd, F_GETFD) >= 0);
	give_back(last, &before);
	assert_true(last > STDERR_FILENO);
}
