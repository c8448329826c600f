/*
 * Control groups by odd means: paths, lines and limits at their bounds, descriptors and memory that there are not.
 * test_host_available.c has what is common.
 */
#define SETUP setup
#define TEARDOWN teardown
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "cgroup_files.h"
#include "fake_libc.h"
#include "policy.h"
#include "scratch.h"

/* The kernel writes some bytes of a path as three octal digits. Others that look so are not. */
TEST(paths_with_any_bytes)
{
	file(
	    "/proc/self/mountinfo",
	    "35 31 0:32 /\\101\\075 /m\\101\\377\\075\\067\\400\\080\\008 - shared:1 - cgroup2 cgroup2 rw\n");
	file("/proc/self/cgroup", "0::/A=/b\n");
	group("/mA\377=7\\400\\080\\008/b");
	limit("/mA\377=7\\400\\080\\008/b", "memory.max", "5000\n");
	assert_int_equal(available(), 5000);
}

/* Lines that have not all fields tell of no mount, nor do they hide the next one. */
TEST(lines_that_are_cut)
{
	file("/proc/self/mountinfo",
	     "\n31\n31 23 0:28 /\n31 23 0:28 / /wrong\n31 23 0:28 / /wrong rw -\n"
	     "31 23 0:28 / /wrong rw - cgroup2\n31 23 0:28 / /wrong rw - cgroup2 cgroup2\n"
	     "31 23 0:28 / /wrong rw cgroup2 cgroup2 rw\n"
	     "31 23 0:28 / /right rw - cgroup2 cgroup2 rw\n");
	file("/proc/self/cgroup", "0::/\n");
	group("/wrong");
	limit("/wrong", "memory.max", "1\n");
	assert_int_equal(available(), MACHINE);
	group("/right");
	limit("/right", "memory.max", "5000\n");
	memset(&homes, 0, sizeof(homes));
	assert_int_equal(available(), 5000);
}

/* A mount that does not show our group counts only where no other does. */
TEST(a_mount_without_the_group)
{
	static const char *const lines[] = {"35 31 0:32 /other /wrong rw - cgroup2 cgroup2 rw\n",
	                                    "36 31 0:32 /a /right rw - cgroup2 cgroup2 rw\n"};
	file("/proc/self/cgroup", "0::/a\n");
	group("/wrong");
	group("/right");
	limit("/wrong", "memory.max", "1\n");
	limit("/right", "memory.max", "5000\n");
	for (int first = 0; first < 2; first++) {
		char both[256];
		snprintf(both, sizeof(both), "%s%s", lines[first], lines[!first]);
		file("/proc/self/mountinfo", both);
		memset(&homes, 0, sizeof(homes));
		assert_int_equal(available(), 5000);
	}
}

/* What is above the mount is no group. */
TEST(the_top_of_a_mount)
{
	unified();
	limit("/sys/fs", "memory.max", "1\n");
	limit("/sys/fs/cgroup", "memory.max", "5000\n");
	assert_int_equal(available(), 5000);
}

TEST(a_line_behind_one_that_is_too_long)
{
	static char text[40000];
	int length = sprintf(text, "%030000d 1 0:1 / / rw - overlay overlay rw\n", 1);
	strcpy(text + length, "35 31 0:32 / /right rw - cgroup2 cgroup2 rw\n");
	file("/proc/self/mountinfo", text);
	file("/proc/self/cgroup", "0::/\n");
	group("/right");
	limit("/right", "memory.max", "5000\n");
	assert_int_equal(available(), 5000);
}

/* Version 1 writes a number that is at least so large where there is no limit. */
TEST(the_least_number_that_is_no_limit)
{
	unified();
	gone("/proc/meminfo");
	limit("/sys/fs/cgroup/a", "memory.max", "4611686018427387904\n");
	assert_int_equal(available(), SPILL_UNLIMITED);
	assert_int_equal(spill_cgroup_job(root, &homes), 0);
	limit("/sys/fs/cgroup/a", "memory.max", "4611686018427387903\n");
	assert_int_equal(available(), 4611686018427387903);
	assert_true(spill_cgroup_job(root, &homes));
}

/* A field of the same length is another one. */
TEST(the_cache_by_its_name)
{
	unified();
	limit("/sys/fs/cgroup/a", "memory.max", "5000\n");
	limit("/sys/fs/cgroup/a", "memory.current", "3000\n");
	limit("/sys/fs/cgroup/a", "memory.stat", "kernel_stack_ 700\ninactive_file 50\n");
	assert_int_equal(available(), 2050);
}

/* Version 1 is told no more, or nothing is. */
TEST(a_version_that_is_told_no_more)
{
	file("/proc/self/mountinfo", "32 23 0:29 / /memory rw - cgroup cgroup rw,memory\n");
	group("/memory/a");
	limit("/memory/a", "memory.limit_in_bytes", "5000\n");
	for (unsigned i = 0; i < 2; i++) {
		file("/proc/self/cgroup", "4:memory:/a\n");
		assert_int_equal(available(), 5000);
		if (i)
			gone("/proc/self/cgroup");
		else
			file("/proc/self/cgroup", "0::/a\n");
		assert_int_equal(available(), MACHINE);
	}
}

static bool leave_an_error(long arguments[6], long *result)
{
	errno = ENFILE; /* as calls may that succeed */
	return false;
}

TEST(errors_of_calls_that_worked)
{
	unified();
	limit("/sys/fs/cgroup/a", "memory.max", "5000\n");
	fake_libc[FAKE_read].hook = leave_an_error;
	uint64_t room = available();
	fake_libc_reset();
	assert_int_equal(room, 5000);
}

/* The program has used up its descriptors, and its standard input may be closed. */
TEST(any_descriptor)
{
	unified();
	limit("/sys/fs/cgroup/a", "memory.max", "5000\n");
	unsigned calls = 1;
	for (unsigned which = 1; which <= calls; which++) {
		memset(&homes, 0, sizeof(homes));
		fake_libc_fail(FAKE_open64, which, 1, EMFILE);
		uint64_t room = available();
		calls = fake_libc[FAKE_open64].calls;
		fake_libc_reset();
		assert_int_equal(room, 5000);
	}
	memset(&homes, 0, sizeof(homes));
	int input = fcntl(0, F_DUPFD_CLOEXEC, 20);
	close(0);
	uint64_t room = available();
	dup2(input, 0);
	close(input);
	assert_int_equal(room, 5000);
}

/* What cannot be looked at is not free. */
TEST(without_memory_for_paths)
{
	void *rooms[32];
	unified();
	limit("/sys/fs/cgroup/a", "memory.max", "5000\n");
	assert_int_equal(available(), 5000);
	for (unsigned free = 0; free < 3; free++) {
		for (unsigned i = free; i < 32; i++)
			rooms[i] = spill_scratch_take();
		fake_libc_fail(FAKE_mmap64, 1, FAKE_LIBC_FOR_EVER, ENOMEM);
		uint64_t room = free == 2 ? available() : spill_cgroup_room(root, &homes);
		fake_libc_reset();
		for (unsigned i = free; i < 32; i++)
			spill_scratch_give_back(rooms[i]);
		assert_int_equal(room, free ? 5000 : 0);
	}
}
