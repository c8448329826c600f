#include "doctor.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli.h"
#include "small_file.h"

#define MAGIC "glibc-ld.so.cache1.1"
#define MOST_BYTES (16u << 20)

struct header {
	char magic[sizeof(MAGIC) - 1];
	uint32_t entries, strings_size, rest[5];
};

/* Offsets count from the header. */
struct entry {
	int32_t flags;
	uint32_t name, path, unused[3];
};

_Static_assert(sizeof(struct header) == 48 && sizeof(struct entry) == 24, "as dl-cache.h has them");

static struct {
	char *data;
	size_t size;
	uint32_t entries;
} cache;

/* Reads the file. NULL: it cannot be a cache. */
static char *read_whole(int fd, size_t *size)
{
	struct stat status;
	char *data;
	ssize_t got;

	if (fstat(fd, &status) || !S_ISREG(status.st_mode) || status.st_size > MOST_BYTES)
		return NULL;
	data = malloc((size_t)status.st_size + 1);
	got = data ? read(fd, data, (size_t)status.st_size) : -1;
	if (got < (ssize_t)sizeof(struct header)) {
		free(data);
		return NULL;
	}
	*size = (size_t)got;
	return data;
}

/* Loads the cache once. A missing cache or another format gives no entries. */
static void load_cache(const char *root)
{
	static bool done;
	struct header header;
	char path[4096];
	int fd, error;

	if (done)
		return;
	done = true;
	fd = spill_small_file_path(root, "/etc", "ld.so.cache", path, sizeof(path))
	         ? cli_open(path, CLI_REGULAR, &error)
	         : -1;
	if (fd < 0)
		return;
	cache.data = read_whole(fd, &cache.size);
	close(fd);
	if (!cache.data)
		return;
	memcpy(&header, cache.data, sizeof(header));
	if (!memcmp(header.magic, MAGIC, sizeof(header.magic)) &&
	    header.entries <= (cache.size - sizeof(header)) / sizeof(struct entry))
		cache.entries = header.entries;
}

static const char *string_at(uint32_t offset)
{
	return offset < cache.size && memchr(cache.data + offset, '\0', cache.size - offset)
	           ? cache.data + offset
	           : "";
}

bool ld_cache_find(const char *root, const char *name, unsigned which, char *path, size_t size)
{
	load_cache(root);
	for (uint32_t i = 0; i < cache.entries; i++) {
		struct entry entry;

		memcpy(&entry, cache.data + sizeof(struct header) + i * sizeof(entry), sizeof(entry));
		if (strcmp(string_at(entry.name), name) == 0 && which-- == 0)
			return (size_t)snprintf(path, size, "%s", string_at(entry.path)) < size;
	}
	return false;
}
