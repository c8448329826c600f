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
	data[got] = '\0'; /* so that no string goes on behind it */
	*size = (size_t)got;
	return data;
}

void ld_cache_read(struct ld_cache *cache, const char *root)
{
	struct header header;
	char path[4096];
	int fd, error;

	*cache = (struct ld_cache){0};
	fd = spill_small_file_path(root, "/etc", "ld.so.cache", path, sizeof(path))
	         ? cli_open(path, CLI_REGULAR, &error)
	         : -1;
	if (fd < 0)
		return;
	cache->data = read_whole(fd, &cache->size);
	close(fd);
	if (!cache->data)
		return;
	memcpy(&header, cache->data, sizeof(header));
	if (!memcmp(header.magic, MAGIC, sizeof(header.magic)) &&
	    header.entries <= (cache->size - sizeof(header)) / sizeof(struct entry))
		cache->entries = header.entries;
}

static const char *string_at(const struct ld_cache *cache, uint32_t offset)
{
	return offset < cache->size ? cache->data + offset : "";
}

bool ld_cache_find(const struct ld_cache *cache, const char *name, uint32_t *from, char *path, size_t size)
{
	while (*from < cache->entries) {
		const char *found;
		struct entry entry;

		memcpy(&entry, cache->data + sizeof(struct header) + (size_t)*from * sizeof(entry),
		       sizeof(entry));
		++*from;
		if (strcmp(string_at(cache, entry.name), name) != 0)
			continue;
		found = string_at(cache, entry.path);
		/* Not cut by the end of the file. */
		return found + strlen(found) != cache->data + cache->size &&
		       (size_t)snprintf(path, size, "%s", found) < size;
	}
	return false;
}

void ld_cache_free(struct ld_cache *cache)
{
	free(cache->data);
	*cache = (struct ld_cache){0};
}
