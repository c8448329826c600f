/*
 * Host memory from fixture trees: MemAvailable alone; groups of version 1 and 2, their ancestors, where they are mounted; memory
 * pressure.
 */
#define SETUP setup
#define TEARDOWN teardown
#include "unit.h"

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysinfo.h>

#include "fake_libc.h"
#include "host_available.h"
#include "policy.h"

#include "cgroup_files.h"

static bool pressed(void)
{
	return spill_host_pressed_under(root, &homes);
}

TEST(the_machine_alone)
{
	assert_int_equal(available(), MACHINE);
}

TEST(version_2_and_its_ancestors)
{
	unified();
	file("/sys/fs/cgroup/a/b/memory.max", "max\n");
	file("/sys/fs/cgroup/a/memory.max", "500000\n");
	file("/sys/fs/cgroup/a/memory.current", "300000\n");
	file("/sys/fs/cgroup/a/memory.stat", "anon 200000\ninactive_file 100000\nactive_file 7\n");
	assert_int_equal(available(), 300000);
	file("/sys/fs/cgroup/a/b/memory.max", "400000\n");
	file("/sys/fs/cgroup/a/b/memory.current", "399999\n");
	assert_int_equal(available(), 1);
}

/* Each of the files in turn, before and after the groups are known. What is not known is not free. */
TEST(a_file_that_cannot_be_read_for_the_moment_gives_no_room)
{
	unified();
	file("/sys/fs/cgroup/a/b/memory.max", "max\n");
	file("/sys/fs/cgroup/a/memory.max", "500000\n");
	file("/sys/fs/cgroup/a/memory.current", "300000\n");
	file("/sys/fs/cgroup/a/memory.stat", "inactive_file 100000\n");
	for (unsigned known = 0; known < 2; known++) {
		unsigned calls = 0;
		for (unsigned which = 1; which == 1 || which <= calls; which++) {
			if (!known)
				memset(&homes, 0, sizeof(homes));
			fake_libc_fail(FAKE_open64, which, 1, ENFILE);
			uint64_t room = available();
			calls = fake_libc[FAKE_open64].calls;
			fake_libc_fail(FAKE_open64, 0, 0, 0);
			assert_true(room < 300000 || which > calls);
			assert_int_equal(available(), 300000); /* again */
		}
		assert_true(calls > 5);
	}
}

/* The kernel takes memory back above memory.high, and what is pinned it cannot have. */
TEST(memory_high_counts_like_max)
{
	unified();
	file("/sys/fs/cgroup/a/memory.current", "300000\n");
	file("/sys/fs/cgroup/a/memory.max", "700000\n");
	file("/sys/fs/cgroup/a/memory.high", "310000\n");
	assert_int_equal(available(), 10000);
	file("/sys/fs/cgroup/a/memory.high", "max\n");
	assert_int_equal(available(), 400000);
	file("/sys/fs/cgroup/a/memory.high", "299999\n");
	assert_int_equal(available(), 0);
}

#define V1 "/sys/fs/cgroup/memory"

/* What a driver hands out as physical memory is in no group's figure, but in MemAvailable (docs/measurements.md). */
TEST(what_groups_do_not_count)
{
	assert_int_equal(spill_host_available_under(root, &homes, 500000), MACHINE);
	unified();
	assert_int_equal(spill_host_available_under(root, &homes, 500000), MACHINE);
	file("/sys/fs/cgroup/a/memory.max", "500000\n");
	file("/sys/fs/cgroup/a/memory.current", "300000\n");
	assert_int_equal(spill_host_available_under(root, &homes, 150000), 50000);
	assert_int_equal(spill_host_available_under(root, &homes, 200000), 0);
	assert_int_equal(spill_host_available_under(root, &homes, 200001), 0);
	file("/sys/fs/cgroup/a/memory.max", "5000000000\n");
	assert_int_equal(spill_host_available_under(root, &homes, 4000000000), MACHINE);
	/* A kernel that tells nothing at all: nothing is taken off that. */
	gone("/proc/meminfo");
	file("/sys/fs/cgroup/a/memory.max", "max\n");
	assert_int_equal(spill_host_available_under(root, &homes, 5), SPILL_UNLIMITED);
}

TEST(version_1)
{
	file("/proc/self/mountinfo",
	     "35 31 0:32 / " V1 " rw,relatime - cgroup cgroup rw,memory\n"
	     "36 31 0:31 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset,memory_like\n");
	file("/proc/self/cgroup", "5:cpu,cpuacct:/x\n4:memory:/job\n3:name=memory:/y\n");
	group("/sys/fs/cgroup/cpuset/job");
	group(V1 "/job");
	limit(V1 "/job", "memory.limit_in_bytes", "600000\n");
	limit(V1 "/job", "memory.usage_in_bytes", "700000\n");
	assert_int_equal(available(), 0);
	limit(V1 "/job", "memory.limit_in_bytes", "9223372036854771712\n");
	assert_int_equal(available(), MACHINE);
	/* Memory and swap together. */
	limit(V1 "/job", "memory.memsw.usage_in_bytes", "750000\n");
	limit(V1 "/job", "memory.memsw.limit_in_bytes", "760000\n");
	limit(V1 "/job", "memory.stat", "cache 5\ntotal_inactive_file 2000\n");
	assert_int_equal(available(), 12000);
}

/* Version 2 is there, without the memory controller, beside the version 1 that has it. */
TEST(hybrid)
{
	file("/proc/self/mountinfo", "35 31 0:32 / /groups/mem\\040ory rw - cgroup cgroup rw,cpu,memory\n"
	                             "41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n");
	file("/proc/self/cgroup", "4:cpu,memory:/job\n0::/session\n");
	group("/sys/fs/cgroup/unified/session");
	group("/groups/mem ory/job");
	limit("/groups/mem ory/job", "memory.limit_in_bytes", "600000\n");
	assert_int_equal(available(), 600000);
	limit("/sys/fs/cgroup/unified/session", "memory.max", "500000\n");
	assert_int_equal(available(), 500000);
}

/* A container sees its own group as the mount's top, and may be told the whole path or its own. */
TEST(a_part_of_the_hierarchy)
{
	file("/proc/self/mountinfo",
	     "35 31 0:32 /docker/abc " V1 " ro master:11 - cgroup cgroup rw,memory\n");
	file("/proc/self/cgroup", "4:memory:/docker/abc/inner\n");
	group(V1);
	group(V1 "/inner");
	limit(V1, "memory.limit_in_bytes", "500000\n");
	assert_int_equal(available(), 500000);
	limit(V1 "/inner", "memory.limit_in_bytes", "400000\n");
	assert_int_equal(available(), 400000);
	/* Not below what is mounted: its top is all there is to see. */
	file("/proc/self/cgroup", "4:memory:/docker/abcdef\n");
	group(V1 "def");
	limit(V1 "def", "memory.limit_in_bytes", "1\n");
	assert_int_equal(available(), 500000);
}

/* The same hierarchy twice: the mount that shows more ancestors has more limits. */
TEST(of_two_mounts_the_one_that_shows_more)
{
	static const char *const lines[] = {"35 31 0:32 / /all rw - cgroup2 cgroup2 rw\n",
	                                    "36 31 0:32 /a /part rw - cgroup2 cgroup2 rw\n"};
	file("/proc/self/cgroup", "0::/a/b\n");
	group("/all/a/b");
	group("/part/b");
	limit("/all", "memory.max", "300000\n");
	limit("/part", "memory.max", "400000\n");
	for (int first = 0; first < 2; first++) {
		char both[256];
		snprintf(both, sizeof(both), "%s%s", lines[first], lines[!first]);
		file("/proc/self/mountinfo", both);
		memset(&homes, 0, sizeof(homes));
		assert_int_equal(available(), 300000);
	}
}

/* With room for its files' paths, for its own as the kernel tells it, and for neither: the mount's limit, then none. */
TEST(a_group_with_a_long_path)
{
	static char path[SPILL_CGROUP_PATH + 1], folder[4096], line[4096];
	const size_t fits = SPILL_CGROUP_PATH - 1 - strlen("/cgroup.procs") - strlen(root) - strlen("/mnt");
	const struct {
		size_t length;
		uint64_t room;
	} cases[] = {{fits, 1000},
	             {fits + 1, 5000},
	             {SPILL_CGROUP_PATH - 1 - strlen("/mnt"), 5000},
	             {SPILL_CGROUP_PATH - strlen("/mnt"), 5000},
	             {SPILL_CGROUP_PATH - 1, 5000},
	             {SPILL_CGROUP_PATH, MACHINE}};
	file("/proc/self/mountinfo", "31 23 0:28 / /mnt rw - cgroup2 cgroup2 rw\n");
	group("/mnt");
	limit("/mnt", "memory.max", "5000\n");
	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		for (size_t at = 0; at < cases[i].length; at++)
			path[at] = at % 200 ? 'g' : '/';
		path[cases[i].length] = '\0';
		snprintf(folder, sizeof(folder), "/mnt%s", path);
		group(folder);
		limit(folder, "memory.max", "1000\n");
		snprintf(line, sizeof(line), "0::%s\n", path);
		file("/proc/self/cgroup", line);
		memset(&homes, 0, sizeof(homes));
		assert_int_equal(available(), cases[i].room);
	}
}

/* What a container's layers make of a mount's options is longer than any buffer. */
TEST(a_line_too_long_is_left_out)
{
	static char text[40000];
	char *end = text + sprintf(text, "35 31 0:32 / /right rw - cgroup2 cgroup2 rw\n"
	                                 "1 1 0:1 / / rw - overlay overlay rw,lowerdir=");
	memset(end, 'x', 30000);
	strcpy(end + 30000, " 31 0:32 / /wrong rw - cgroup2 cgroup2 rw\n36 31 0:33 /");
	file("/proc/self/mountinfo", text);
	file("/proc/self/cgroup", "0::/\n");
	group("/wrong");
	limit("/wrong", "memory.max", "1\n");
	group("/right");
	limit("/right", "memory.max", "5000\n");
	assert_int_equal(available(), 5000);
}

/* At every place where the buffer of 8,064 bytes can end within it. */
TEST(a_line_that_is_read_in_two_parts)
{
	static const char right[] = "35 31 0:32 / /right rw - cgroup2 cgroup2 rw\n";
	static char text[9000];
	file("/proc/self/cgroup", "0::/\n");
	group("/right");
	limit("/right", "memory.max", "5000\n");
	for (int before = 8064 - (int)sizeof(right); before <= 8064; before++) {
		int first = sprintf(text, "%0*d 1 0:1 / / rw - proc proc rw\n", 4000, 1);
		sprintf(text + first, "%0*d 1 0:1 / / rw - proc proc rw\n%s", before - first - 29, 2, right);
		assert_int_equal(strstr(text, right) - text, before);
		file("/proc/self/mountinfo", text);
		memset(&homes, 0, sizeof(homes));
		assert_int_equal(available(), 5000);
	}
}

TEST(found_once_and_again_when_gone)
{
	unified();
	limit("/sys/fs/cgroup/a/b", "memory.max", "500000\n");
	assert_int_equal(available(), 500000);
	/* Not looked for again: nobody reads a list of mounts for each spill. */
	file("/proc/self/mountinfo", "31 23 0:28 / /else rw - cgroup2 cgroup2 rw\n");
	group("/else/a/b");
	limit("/else/a/b", "memory.max", "400000\n");
	assert_int_equal(available(), 500000);
	gone("/sys/fs/cgroup");
	assert_int_equal(available(), 400000);
	/* Moved to another group. */
	file("/proc/self/cgroup", "0::/c\n");
	group("/else/c");
	limit("/else/c", "memory.max", "300000\n");
	assert_int_equal(available(), 300000);
	gone("/else");
	assert_int_equal(available(), MACHINE);
}

/* A list of groups that could not be read once. */
TEST(found_again_when_it_is_told_again)
{
	unified();
	limit("/sys/fs/cgroup/a/b", "memory.max", "500000\n");
	assert_int_equal(available(), 500000);
	gone("/proc/self/cgroup");
	assert_int_equal(available(), MACHINE);
	file("/proc/self/cgroup", "0::/a/b\n");
	assert_int_equal(available(), 500000);
	/* A hierarchy that is not told any more has no say. */
	file("/proc/self/cgroup", "4:memory:/a/b\n");
	assert_int_equal(available(), MACHINE);
}

/* The number of the group with the lowest limit, which a job's processes have in common. */
static uint64_t job(void)
{
	spill_cgroup_find(root, &homes);
	return spill_cgroup_job(root, &homes);
}

static uint64_t number(const char *folder)
{
	char full[4096];
	struct stat now;
	snprintf(full, sizeof(full), "%s%s", root, folder);
	assert_int_equal(stat(full, &now), 0);
	return now.st_ino;
}

/* As Slurm makes them: limits of the job and its step, none of the task. */
TEST(the_group_of_a_job)
{
	file("/proc/self/mountinfo", "31 23 0:28 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
	file("/proc/self/cgroup", "0::/slurm/job_17/step_0/task_3\n");
	group("/sys/fs/cgroup/slurm/job_17/step_0/task_3");
	assert_int_equal(job(), 0);
	limit("/sys/fs/cgroup/slurm", "memory.max", "900000\n");
	assert_int_equal(job(), number("/sys/fs/cgroup/slurm"));
	limit("/sys/fs/cgroup/slurm/job_17", "memory.max", "500000\n");
	limit("/sys/fs/cgroup/slurm/job_17/step_0", "memory.max", "500000\n");
	limit("/sys/fs/cgroup/slurm/job_17/step_0/task_3", "memory.max", "max\n");
	assert_int_equal(job(), number("/sys/fs/cgroup/slurm/job_17"));
	/* Use changes, and the group stays. */
	limit("/sys/fs/cgroup/slurm", "memory.current", "899999\n");
	assert_int_equal(job(), number("/sys/fs/cgroup/slurm/job_17"));
	limit("/sys/fs/cgroup/slurm/job_17/step_0", "memory.high", "400000\n");
	assert_int_equal(job(), number("/sys/fs/cgroup/slurm/job_17/step_0"));
	/* Version 1 too, whose largest number is no limit. */
	file("/proc/self/mountinfo", "32 23 0:29 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n");
	file("/proc/self/cgroup", "4:memory:/slurm/uid_1000/job_18/step_0\n0::/\n");
	group("/sys/fs/cgroup/memory/slurm/uid_1000/job_18/step_0");
	limit("/sys/fs/cgroup/memory/slurm/uid_1000/job_18/step_0", "memory.limit_in_bytes",
	      "9223372036854771712\n");
	assert_int_equal(job(), 0);
	limit("/sys/fs/cgroup/memory/slurm/uid_1000/job_18", "memory.limit_in_bytes", "500000\n");
	assert_int_equal(job(), number("/sys/fs/cgroup/memory/slurm/uid_1000/job_18"));
}

/* What other ranks hold uncounted is theirs in the group, and nothing of the machine's. */
TEST(uncounted_memory_of_others)
{
	assert_int_equal(spill_host_memory_least((struct spill_host_memory){100, 70}, 0), 70);
	assert_int_equal(spill_host_memory_least((struct spill_host_memory){100, 70}, 30), 40);
	assert_int_equal(spill_host_memory_least((struct spill_host_memory){100, 170}, 50), 100);
	assert_int_equal(spill_host_memory_least((struct spill_host_memory){100, 70}, 80), 0);
	assert_int_equal(spill_host_memory_least((struct spill_host_memory){100, SPILL_UNLIMITED}, 80), 100);
}

TEST(pressure_of_the_machine)
{
	static const struct {
		const char *full;
		bool on;
	} cases[] = {{"20.00", false}, {"20.01", true}, {"20.1", true}, {"99", true},    {"19.99", false},
	             {"100.00", true}, {"", false},     {"x", false},   {"2000", false}, {"20.9", true}};
	assert_false(pressed()); /* a kernel without it */
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char text[512];
		snprintf(text, sizeof(text),
		         "some avg10=90.00 avg60=90.00 avg300=90.00 total=9\n"
		         "full avg10=%s avg60=80.00 avg300=80.00 total=9\n",
		         cases[i].full);
		file("/proc/pressure/memory", text);
		assert_int_equal(pressed(), cases[i].on);
	}
	file("/proc/pressure/memory", "some avg10=90.00 avg60=90.00 avg300=90.00 total=9\n");
	assert_false(pressed());
	file("/proc/pressure/memory", "full avg10=99"); /* the end is missing */
	assert_true(pressed());
}

TEST(pressure_of_the_group)
{
	unified();
	file("/proc/pressure/memory", "some avg10=0.00 avg60=0.00\nfull avg10=0.00 avg60=0.00\n");
	assert_false(pressed());
	file("/sys/fs/cgroup/a/b/memory.pressure",
	     "some avg10=50.00 avg60=0.00\nfull avg10=33.33 avg60=0.00\n");
	assert_true(pressed());
	file("/proc/self/cgroup", "0::/a\n");
	assert_false(pressed());
}

TEST(the_largest_machine)
{
	file("/proc/meminfo", "MemAvailable: 18014398509481983 kB\n");
	assert_int_equal(available(), 0 - (uint64_t)1024);
	file("/proc/meminfo", "MemAvailable: 18014398509481984 kB\n");
	assert_int_equal(available(), SPILL_UNLIMITED);
}

/* -- this machine ------------------------------------------------------------------------------- */

static sem_t entered, go;
static __thread bool blocks;
static _Atomic unsigned looks; /* for control groups */

/* A thread stands still while it opens a file. Each search for control groups opens the list of mounts. */
static bool stand_still(long arguments[6], long *result)
{
	looks += strstr((const char *)arguments[0], "mountinfo") != NULL;
	if (blocks) {
		blocks = false;
		sem_post(&entered);
		while (sem_wait(&go))
			;
	}
	return false;
}

static void *look_slowly(void *unused)
{
	blocks = true;
	spill_host_memory();
	return unused;
}

static unsigned looks_of_a_call(void)
{
	unsigned before = looks;
	spill_host_memory();
	return looks - before;
}

/* Whichever question found the groups, the next ones know them. */
TEST(groups_are_found_by_the_first_question)
{
	fake_libc[FAKE_open64].hook = stand_still;
	for (unsigned first = 0; first < 3; first++) {
		spill_host_available_fork_child();
		if (first == 0)
			spill_host_pressed();
		else if (first == 1)
			spill_host_job();
		else
			spill_host_memory();
		assert_int_equal(looks_of_a_call(), 0);
	}
	fake_libc_reset();
}

static const char *hidden; /* a file that cannot be opened for the moment */

static bool hide(long arguments[6], long *result)
{
	errno = ENFILE;
	return strstr((const char *)arguments[0], hidden) != NULL;
}

static bool hide_for_ever(long arguments[6], long *result)
{
	errno = ENOENT;
	return strstr((const char *)arguments[0], hidden) != NULL;
}

/* The memory at the start is looked for until both figures could be read, and then remembered. */
TEST(memory_at_the_start_is_read_once)
{
	fake_libc[FAKE_open64].hook = hide;
	hidden = "meminfo";
	assert_int_equal(spill_host_memory_at_start().machine, 0);
	hidden = "self/cgroup";
	assert_int_equal(spill_host_memory_at_start().group, 0);
	fake_libc_reset();
	struct spill_host_memory found = spill_host_memory_at_start();
	assert_true(found.machine && found.group);
	fake_libc_fail(FAKE_open64, 1, FAKE_LIBC_FOR_EVER, ENFILE);
	struct spill_host_memory again = spill_host_memory_at_start();
	unsigned calls = fake_libc[FAKE_open64].calls;
	fake_libc_reset();
	assert_int_equal(calls, 0);
	assert_true(again.machine == found.machine && again.group == found.group);
}

/* Without /proc/meminfo the kernel tells what nobody uses, with buffers. */
TEST(a_machine_without_meminfo)
{
	struct sysinfo info;
	fake_libc[FAKE_open64].hook = hide_for_ever;
	hidden = "meminfo";
	uint64_t machine = spill_host_memory().machine;
	fake_libc_reset();
	assert_int_equal(sysinfo(&info), 0);
	assert_true(machine > 0 && machine != SPILL_UNLIMITED);
	assert_true(machine <= (uint64_t)info.totalram * info.mem_unit);
}

/* A child whose parent's other thread was just looking: it looks once itself, and then knows. */
TEST(a_fork_while_a_thread_looks)
{
	pthread_t thread;
	assert_int_equal(sem_init(&entered, 0, 0) + sem_init(&go, 0, 0), 0);
	fake_libc[FAKE_open64].hook = stand_still;
	spill_host_memory();
	assert_int_equal(looks_of_a_call(), 0);
	assert_int_equal(pthread_create(&thread, NULL, look_slowly, NULL), 0);
	while (sem_wait(&entered))
		;
	assert_true(looks_of_a_call() > 0); /* the thread has what is known */
	spill_host_available_fork_child();
	assert_true(looks_of_a_call() > 0);
	assert_int_equal(looks_of_a_call(), 0);
	sem_post(&go);
	pthread_join(thread, NULL);
	fake_libc_reset();
}

static void *look_again_and_again(void *unused)
{
	for (unsigned i = 0; i < 300; i++)
		spill_host_memory();
	return NULL;
}

/* Only one at a time has what is known of the groups. The others look with memory of their own, and give it back. */
TEST(threads_that_look_at_the_same_time)
{
	pthread_t threads[3];
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, look_again_and_again, NULL), 0);
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(pthread_join(threads[i], NULL), 0);
}
