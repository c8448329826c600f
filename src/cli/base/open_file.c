#include "cli.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Values beside those of errno, which are positive. */
enum { NOT_REGULAR = -1, NOT_REGULAR_NOR_PIPE = -2 };

/* 0: the file may be opened. */
static int refusal(const struct stat *status, enum cli_files files)
{
	if (S_ISREG(status->st_mode) || (S_ISFIFO(status->st_mode) && files == CLI_REGULAR_OR_PIPE))
		return 0;
	if (S_ISDIR(status->st_mode))
		return EISDIR;
	return files == CLI_REGULAR ? NOT_REGULAR : NOT_REGULAR_NOR_PIPE;
}

/*
 * stat comes first: opening a device may have effects, and closing a FIFO kills a writer that
 * waited for a reader. The path may change before open, so fstat decides. open waits only for a
 * pipe.
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
