/*
 * Control groups of any form: from /proc/self/cgroup, the list of mounts and the files of the groups to the bytes that are left, and
 * to the group of a job. The figures are computed again here, in another way, for the folders that were found.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cgroup.h"
#include "fuzz.h"
#include "fuzz_number.h"
#include "fuzz_tree.h"
#include "policy.h"

#define CGROUP "/proc/self/cgroup"
#define V2(folder) \
	folder "/cgroup.procs", folder "/memory.max", folder "/memory.high", folder "/memory.current", \
	    folder "/memory.stat"
#define V1(folder) \
	folder "/cgroup.procs", folder "/memory.limit_in_bytes", folder "/memory.usage_in_bytes", \
	    folder "/memory.memsw.limit_in_bytes", folder "/memory.memsw.usage_in_bytes", \
	    folder "/memory.stat"

static const char *const files[] = {
    CGROUP,      "/proc/self/mountinfo", V2("/cg"),        V2("/cg/a"),       V2("/cg/a/b"), V1("/v1"),
    V1("/v1/a"), V1("/v1/a/b"),          V2("/odd\tname"), V2("/odd\tname/a")};

struct version {
	const char *bound[2][2]; /* limit and usage */
	const char *cache;
};

static const struct version versions[] = {
    {{{"memory.limit_in_bytes", "memory.usage_in_bytes"},
      {"memory.memsw.limit_in_bytes", "memory.memsw.usage_in_bytes"}},
     "total_inactive_file "},
    {{{"memory.max", "memory.current"}, {"memory.high", "memory.current"}}, "inactive_file "},
};

/* The beginning of a group's file; "" if it is missing. */
static const char *read_file(const char *folder, const char *name, char text[8064])
{
	char path[6000];
	FILE *file;
	size_t length;

	snprintf(path, sizeof(path), "%s%s/%s", fuzz_tree_root(), folder, name);
	file = fopen(path, "re");
	length = file ? fread(text, 1, 8063, file) : 0;
	text[length] = '\0';
	if (file)
		fclose(file);
	return text;
}

static uint64_t figure(const char *folder, const char *name)
{
	char text[8064];

	return fuzz_number(read_file(folder, name, text));
}

/* 0: there is no such line. */
static uint64_t cache_of(const char *folder, const char *name)
{
	char text[8064], *line = strtok((char *)read_file(folder, "memory.stat", text), "\n");
	uint64_t value;

	while (line && strncmp(line, name, strlen(name)) != 0)
		line = strtok(NULL, "\n");
	value = line ? fuzz_number(line + strlen(name)) : 0;
	return value == SPILL_UNLIMITED ? 0 : value;
}

static uint64_t less(uint64_t from, uint64_t bytes)
{
	return from > bytes ? from - bytes : 0;
}

struct expected {
	uint64_t room, limit;
	ino_t job;
};

/* Of one group. */
static void add_group(const struct version *version, const char *folder, struct expected *expected)
{
	char path[6000];
	struct stat status;
	uint64_t lowest = SPILL_UNLIMITED;

	for (unsigned i = 0; i < 2; i++) {
		uint64_t limit = figure(folder, version->bound[i][0]),
		         used = figure(folder, version->bound[i][1]);
		uint64_t room =
		    less(limit, less(used == SPILL_UNLIMITED ? 0 : used, cache_of(folder, version->cache)));

		if (limit >= (uint64_t)1 << 62) /* as version 1 writes it */
			continue;
		expected->room = room < expected->room ? room : expected->room;
		lowest = limit < lowest ? limit : lowest;
	}
	if (lowest == SPILL_UNLIMITED || lowest > expected->limit)
		return;
	snprintf(path, sizeof(path), "%s%s", fuzz_tree_root(), folder);
	fuzz_require(!stat(path, &status), "a group's folder is there");
	expected->limit = lowest;
	expected->job = status.st_ino;
}

/* Of a group and its ancestors. */
static struct expected expect(const struct version *version, const struct spill_cgroup_home *home)
{
	struct expected expected = {SPILL_UNLIMITED, SPILL_UNLIMITED, 0};
	char folder[SPILL_CGROUP_PATH];

	if (!home->folder[0])
		return expected;
	snprintf(folder, sizeof(folder), "%s", home->folder);
	for (;;) {
		add_group(version, folder, &expected);
		if (strlen(folder) <= home->top)
			return expected;
		*strrchr(folder, '/') = '\0';
	}
}

static void check_home(const struct spill_cgroup_home *home)
{
	char path[6000];

	fuzz_require(memchr(home->folder, '\0', sizeof(home->folder)) &&
	                 memchr(home->path, '\0', sizeof(home->path)),
	             "paths end");
	if (!home->folder[0])
		return;
	fuzz_require(home->top <= strlen(home->folder), "the top is in the path");
	snprintf(path, sizeof(path), "%s%s/cgroup.procs", fuzz_tree_root(), home->folder);
	fuzz_require(!access(path, F_OK), "what was found is a group");
}

static void check_figures(const struct spill_cgroup_homes *homes)
{
	struct expected v1 = expect(&versions[0], &homes->v1), v2 = expect(&versions[1], &homes->v2);
	uint64_t room = v1.room < v2.room ? v1.room : v2.room;

	fuzz_require(spill_cgroup_room(fuzz_tree_root(), homes) == room, "what the groups leave");
	fuzz_require(spill_cgroup_job(fuzz_tree_root(), homes) == (v1.job ? v1.job : v2.job),
	             "the group of the job");
}

/* In another group, then with a list that cannot be read, then back: the same as at once. */
static void check_again(const struct spill_cgroup_homes *right)
{
	static struct spill_cgroup_homes homes;
	size_t length;
	const char *now = fuzz_tree_content(CGROUP, &length);
	char *text = now ? strndup(now, length) : NULL;

	if (!text || strlen(text) != length) {
		free(text);
		return;
	}
	homes = *right;
	fuzz_tree_put(CGROUP, "4:memory:/elsewhere\n0::/elsewhere\n", 34);
	spill_cgroup_find(fuzz_tree_root(), &homes);
	fuzz_tree_put(CGROUP, NULL, 0);
	spill_cgroup_find(fuzz_tree_root(), &homes);
	fuzz_tree_put(CGROUP, text, length);
	spill_cgroup_find(fuzz_tree_root(), &homes);
	fuzz_require(!strcmp(homes.v1.folder, right->v1.folder) && !strcmp(homes.v2.folder, right->v2.folder),
	             "the same group is found again");
	free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct spill_cgroup_homes homes;
	static bool begun;

	if (!begun)
		fuzz_tree_begin(files, sizeof(files) / sizeof(files[0]));
	begun = true;
	fuzz_tree_fill(data, size);
	memset(&homes, 0, sizeof(homes));
	spill_cgroup_find(fuzz_tree_root(), &homes);
	fuzz_require(!homes.lost, "nothing fails here for the moment");
	check_home(&homes.v1);
	check_home(&homes.v2);
	check_figures(&homes);
	check_again(&homes);
	return 0;
}
