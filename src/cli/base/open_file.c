#include "open_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Beside the values of errno, which are positive. */
enum { NOT_REGULAR = -1, NOT_REGULAR_NOR_PIPE = -2 };

/* 0 if such a file may be opened. */
static int refusal(const struct stat *status, enum cli_files files)
{
	if (S_ISREG(status->st_mode) || (S_ISFIFO(status->st_mode) && files == CLI_REGULAR_OR_PIPE))
		return 0;
	if (S_ISDIR(status->st_mode))
		return EISDIR;
	return files == CLI_REGULAR ? NOT_REGULAR : NOT_REGULAR_NOR_PIPE;
}

/*
 * stat comes first: a device may act when it is opened, and closing a FIFO kills a writer that waited
 * for a reader. The path may name another file by the time of open, so fstat has the last word, and
 * only what was a pipe before is waited for.
 */
int cli_open(const char *path, enum cli_files files, int *error)
{
	struct stat status, opened;
	int fd, wait;

	*error = stat(path, &status) ? errno : refusal(&status, files);
	if (*error)
		return -1;
	wait = S_ISFIFO(status.st_mode) ? 0 : O_NONBLOCK;
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | wait);
	if (fd < 0) {
		*error = errno;
		return -1;
	}
	*error = fstat(fd, &opened) ? errno : refusal(&opened, wait ? CLI_REGULAR : files);
	if (!*error)
		return fd;
	close(fd);
	return -1;
}

const char *cli_open_text(int error)
{
	switch (error) {
	case NOT_REGULAR:
		return "it is not a regular file";
	case NOT_REGULAR_NOR_PIPE:
		return "it is neither a regular file nor a pipe";
	case EISDIR:
		return "it is a folder";
	default:
		return strerror(error);
	}
}
