#include "small_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "fd.h"
#include "policy.h"

bool spill_small_file_path(const char *root, const char *folder, const char *file, char *path, size_t size)
{
	return (size_t)snprintf(path, size, "%s%s/%s", root, folder, file) < size;
}

struct whole_file {
	const char *path;
	char *buffer;
	size_t size;
	ssize_t length;
	int error;
};

static void read_whole_file(void *data)
{
	struct whole_file *file = data;
	int fd = spill_fd_open(file->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0);
	file->length = fd < 0 ? -1 : spill_fd_read(fd, file->buffer, file->size);
	file->error = file->length < 0 ? errno : 0;
	if (fd >= 0)
		close(fd);
}

size_t spill_small_file_bytes(const char *path, char *buffer, size_t size)
{
	struct whole_file file = {.path = path, .buffer = buffer, .size = size};
	read_whole_file(&file);
	if (file.error == EMFILE)
		spill_fd_elsewhere(read_whole_file, &file);
	errno = file.error;
	return file.length > 0 ? (size_t)file.length : 0;
}

bool spill_small_file_read(const char *path, char *text, size_t size)
{
	size_t length = spill_small_file_bytes(path, text, size - 1);
	text[length] = '\0';
	return length > 0;
}

bool spill_small_file_read_in(const char *root, const char *folder, const char *file, char *text, size_t size)
{
	if (spill_small_file_path(root, folder, file, text, size))
		return spill_small_file_read(text, text, size);
	errno = ENAMETOOLONG;
	return false;
}

uint64_t spill_small_file_number(const char *text)
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
