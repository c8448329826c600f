/* Files of /proc and control groups below a folder of the test's, and what they leave of the machine's memory. */
#ifndef SPILL_TEST_CGROUP_FILES_H
#define SPILL_TEST_CGROUP_FILES_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cgroup.h"
#include "host_available.h"
#include "unit.h"

#define MACHINE (800 * 1024)

static char root[] = "/tmp/spill-hostmem-XXXXXX";
static struct spill_cgroup_homes homes;

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

static void gone(const char *path)
{
	char command[8192];
	snprintf(command, sizeof(command), "rm -r '%s%s'", root, path);
	assert_int_equal(system(command), 0);
}

/* A folder of a control group, which is told by this file. */
static void group(const char *folder)
{
	char path[4096];
	snprintf(path, sizeof(path), "%s/cgroup.procs", folder);
	file(path, "");
}

static void limit(const char *folder, const char *name, const char *value)
{
	char path[4096];
	snprintf(path, sizeof(path), "%s/%s", folder, name);
	file(path, value);
}

static uint64_t available(void)
{
	return spill_host_available_under(root, &homes, 0);
}

static int setup(void **state)
{
	strcpy(root, "/tmp/spill-hostmem-XXXXXX");
	assert_non_null(mkdtemp(root));
	memset(&homes, 0, sizeof(homes));
	file("/proc/meminfo", "MemTotal:       1000 kB\nMemFree:          10 kB\nMemAvailable:    800 kB\n");
	return 0;
}

static int teardown(void **state)
{
	char command[4096];
	snprintf(command, sizeof(command), "rm -rf '%s'", root);
	return system(command);
}

static void unified(void)
{
	file("/proc/self/mountinfo", "22 27 0:21 / /proc rw - proc proc rw\n"
	                             "31 23 0:28 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw\n");
	file("/proc/self/cgroup", "0::/a/b\n");
	group("/sys/fs/cgroup");
	group("/sys/fs/cgroup/a");
	group("/sys/fs/cgroup/a/b");
}

#endif
