#include "hostmem.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "policy.h"

/* Reads a small file whole; false if there is none. Raw calls: no stdio buffer in the host's heap. */
static bool slurp(const char *root, const char *path, char *text, size_t size)
{
	char full[4096];
	if ((size_t)snprintf(full, sizeof(full), "%s%s", root, path) >= sizeof(full))
		return false;
	int fd = open(full, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	size_t used = 0;
	ssize_t got;
	while (used + 1 < size && (got = read(fd, text + used, size - used - 1)) > 0)
		used += (size_t)got;
	close(fd);
	text[used] = '\0';
	return used > 0;
}

/* The number at the start of `text`; "max" and nonsense are no limit. */
static uint64_t number(const char *text)
{
	uint64_t value = 0;
	while (*text == ' ' || *text == '\t')
		text++;
	if (*text < '0' || *text > '9')
		return SPILL_UNLIMITED;
	for (; *text >= '0' && *text <= '9'; text++) {
		if (value > (UINT64_MAX - 9) / 10)
			return SPILL_UNLIMITED;
		value = value * 10 + (uint64_t)(*text - '0');
	}
	return value;
}

static uint64_t file_number(const char *root, const char *folder, const char *file)
{
	char path[4096], text[64];
	if ((size_t)snprintf(path, sizeof(path), "%s/%s", folder, file) >= sizeof(path))
		return SPILL_UNLIMITED;
	return slurp(root, path, text, sizeof(text)) ? number(text) : SPILL_UNLIMITED;
}

/* A line `name value` of a file such as memory.stat; 0 if it is not there. */
static uint64_t field(const char *root, const char *folder, const char *file, const char *name)
{
	char path[4096], text[8192];
	if ((size_t)snprintf(path, sizeof(path), "%s/%s", folder, file) >= sizeof(path) ||
	    !slurp(root, path, text, sizeof(text)))
		return 0;
	size_t length = strlen(name);
	for (const char *line = text; line; line = strchr(line, '\n')) {
		line += *line == '\n';
		if (strncmp(line, name, length) == 0 && line[length] == ' ') {
			uint64_t value = number(line + length);
			return value == SPILL_UNLIMITED ? 0 : value;
		}
	}
	return 0;
}

struct version {
	const char *limit, *usage,
	    *cache; /* files, and the stat field of page cache that the kernel can drop */
};

static const struct version v1 = {"memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"};
static const struct version v2 = {"memory.max", "memory.current", "inactive_file"};

static uint64_t folder_room(const char *root, const char *folder, const struct version *version)
{
	uint64_t limit = file_number(root, folder, version->limit);
	if (limit == SPILL_UNLIMITED)
		return SPILL_UNLIMITED;
	uint64_t usage = file_number(root, folder, version->usage);
	uint64_t cache = field(root, folder, "memory.stat", version->cache);
	if (usage == SPILL_UNLIMITED)
		usage = 0;
	usage = usage > cache ? usage - cache : 0;
	return limit > usage ? limit - usage : 0;
}

/* The smallest room of the cgroup `path` under `mount` and its ancestors. */
static uint64_t tree_room(const char *root, const char *mount, const char *path,
                          const struct version *version)
{
	char folder[4096];
	uint64_t least = SPILL_UNLIMITED;
	if ((size_t)snprintf(folder, sizeof(folder), "%s%s", mount, strcmp(path, "/") == 0 ? "" : path) >=
	    sizeof(folder))
		return least;
	size_t top = strlen(mount);
	for (;;) {
		uint64_t room = folder_room(root, folder, version);
		least = room < least ? room : least;
		char *slash = strrchr(folder, '/');
		if (strlen(folder) <= top || !slash)
			return least;
		*slash = '\0';
	}
}

/* /proc/self/cgroup has lines `ID:CONTROLLERS:PATH`; version 2 is `0::PATH` (cgroups(7)). */
static uint64_t cgroup_room(const char *root)
{
	char text[8192];
	uint64_t least = SPILL_UNLIMITED;
	if (!slurp(root, "/proc/self/cgroup", text, sizeof(text)))
		return least;
	char *save = NULL;
	for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		char *controllers = strchr(line, ':');
		char *path = controllers ? strchr(controllers + 1, ':') : NULL;
		if (!path)
			continue;
		*path++ = '\0';
		uint64_t room = SPILL_UNLIMITED;
		if (controllers[1] == '\0')
			room = tree_room(root, "/sys/fs/cgroup", path, &v2);
		else if (strstr(controllers, "memory"))
			room = tree_room(root, "/sys/fs/cgroup/memory", path, &v1);
		least = room < least ? room : least;
	}
	return least;
}

static uint64_t mem_available(const char *root)
{
	char text[4096];
	if (!slurp(root, "/proc/meminfo", text, sizeof(text)))
		return SPILL_UNLIMITED;
	const char *line = strstr(text, "MemAvailable:");
	uint64_t kib = line ? number(line + strlen("MemAvailable:")) : SPILL_UNLIMITED;
	return kib > UINT64_MAX / 1024 ? SPILL_UNLIMITED : kib * 1024;
}

uint64_t spill_hostmem_available_under(const char *root)
{
	uint64_t machine = mem_available(root), group = cgroup_room(root);
	return machine < group ? machine : group;
}

uint64_t spill_hostmem_available(void)
{
	return spill_hostmem_available_under("");
}

uint64_t spill_hostmem_at_start(void)
{
	static _Atomic uint64_t first;
	uint64_t value = atomic_load(&first);
	if (!value) {
		uint64_t now = spill_hostmem_available();
		atomic_compare_exchange_strong(&first, &value, now ? now : 1);
		value = atomic_load(&first);
	}
	return value;
}
