/*
 * Host memory from fixture trees: MemAvailable alone, a version 2 group and its ancestors, a version 1 group.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "hostmem.h"

static char root[] = "/tmp/spill-hostmem-XXXXXX";

static void file(const char *path, const char *text)
{
	char full[4096], command[8192];
	snprintf(full, sizeof(full), "%s%s", root, path);
	snprintf(command, sizeof(command), "mkdir -p \"$(dirname '%s')\"", full);
	assert_int_equal(system(command), 0);
	FILE *out = fopen(full, "w");
	assert_non_null(out);
	fputs(text, out);
	fclose(out);
}

static int setup(void **state)
{
	strcpy(root, "/tmp/spill-hostmem-XXXXXX");
	assert_non_null(mkdtemp(root));
	file("/proc/meminfo", "MemTotal:       1000 kB\nMemFree:          10 kB\nMemAvailable:    800 kB\n");
	return 0;
}

static int teardown(void **state)
{
	char command[4096];
	snprintf(command, sizeof(command), "rm -rf '%s'", root);
	return system(command);
}

static void the_machine_alone(void **state)
{
	assert_int_equal(spill_hostmem_available_under(root), 800 * 1024);
}

static void version_2_and_its_ancestors(void **state)
{
	file("/proc/self/cgroup", "0::/a/b\n");
	file("/sys/fs/cgroup/a/b/memory.max", "max\n");
	file("/sys/fs/cgroup/a/memory.max", "500000\n");
	file("/sys/fs/cgroup/a/memory.current", "300000\n");
	file("/sys/fs/cgroup/a/memory.stat", "anon 200000\ninactive_file 100000\nactive_file 7\n");
	assert_int_equal(spill_hostmem_available_under(root), 300000);
	file("/sys/fs/cgroup/a/b/memory.max", "400000\n");
	file("/sys/fs/cgroup/a/b/memory.current", "399999\n");
	assert_int_equal(spill_hostmem_available_under(root), 1);
}

static void version_1(void **state)
{
	file("/proc/self/cgroup", "5:cpu,cpuacct:/x\n4:memory:/job\n");
	file("/sys/fs/cgroup/memory/job/memory.limit_in_bytes", "600000\n");
	file("/sys/fs/cgroup/memory/job/memory.usage_in_bytes", "700000\n");
	assert_int_equal(spill_hostmem_available_under(root), 0);
	file("/sys/fs/cgroup/memory/job/memory.limit_in_bytes", "9223372036854771712\n");
	assert_int_equal(spill_hostmem_available_under(root), 800 * 1024);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(the_machine_alone, setup, teardown),
	    cmocka_unit_test_setup_teardown(version_2_and_its_ancestors, setup, teardown),
	    cmocka_unit_test_setup_teardown(version_1, setup, teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
