#include "ld_cache.h"

#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAGIC "glibc-ld.so.cache1.1"
#define MOST_BYTES (16u << 20)

struct header {
	char magic[sizeof(MAGIC) - 1];
	uint32_t entries, strings_size, rest[5];
};

/* Offsets are from the header. */
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

/* Once; without a cache, or with one in another format, there are no entries. */
static void load(void)
{
	static bool done;
	struct header header;
	struct stat status;
	int fd;

	if (done)
		return;
	done = true;
	fd = open("/etc/ld.so.cache", O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return;
	if (!fstat(fd, &status) && status.st_size >= (off_t)sizeof(header) && status.st_size <= MOST_BYTES &&
	    (cache.data = malloc((size_t)status.st_size))) {
		ssize_t got = read(fd, cache.data, (size_t)status.st_size);

		cache.size = got > 0 ? (size_t)got : 0;
	}
	close(fd);
	if (cache.size < sizeof(header))
		return;
	memcpy(&header, cache.data, sizeof(header));
	if (!memcmp(header.magic, MAGIC, sizeof(header.magic)) &&
	    header.entries <= (cache.size - sizeof(header)) / sizeof(struct entry))
		cache.entries = header.entries;
}

static const char *text(uint32_t at)
{
	return at < cache.size && memchr(cache.data + at, '\0', cache.size - at) ? cache.data + at : "";
}

bool ld_cache_find(const char *name, unsigned which, char *path, size_t size)
{
	load();
	for (uint32_t i = 0; i < cache.entries; i++) {
		struct entry entry;

		memcpy(&entry, cache.data + sizeof(struct header) + i * sizeof(entry), sizeof(entry));
		if (strcmp(text(entry.name), name) == 0 && which-- == 0)
			return (size_t)snprintf(path, size, "%s", text(entry.path)) < size;
	}
	return false;
}
