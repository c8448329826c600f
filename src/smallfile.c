#include "smallfile.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "policy.h"

bool spill_smallfile_path(const char *root, const char *folder, const char *file, char *path, size_t size)
{
	return (size_t)snprintf(path, size, "%s%s/%s", root, folder, file) < size;
}

bool spill_smallfile_read(const char *path, char *text, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
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

bool spill_smallfile_read_in(const char *root, const char *folder, const char *file, char *text, size_t size)
{
	return spill_smallfile_path(root, folder, file, text, size) && spill_smallfile_read(text, text, size);
}

uint64_t spill_smallfile_number(const char *text)
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
