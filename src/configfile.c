#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "configfile.h"
#include "ini_file.h"
#include "text.h"

/* Errors that a person meets with a file's path; strerror would follow the host program's language. */
static const char *error_text(int error)
{
	switch (error) {
	case EACCES:
	case EPERM:
		return "permission denied";
	case ENOENT:
	case ENOTDIR:
		return "no such file";
	case EISDIR:
		return "it is a folder";
	case ELOOP:
		return "too many symbolic links";
	case ENAMETOOLONG:
		return "the path is too long";
	case EMFILE:
	case ENFILE:
		return "too many open files";
	case ENXIO:
		return "it is not a regular file";
	case ENOMEM:
		return "no memory";
	default:
		return "it cannot be read";
	}
}

static enum spill_configfile bad(const char *path, const char *why, char *problem, size_t size)
{
	struct spill_text text = spill_text_begin(problem, size);

	spill_text_add(&text, path);
	spill_text_add(&text, ": ");
	spill_text_add(&text, why);
	return SPILL_CONFIGFILE_BAD;
}

/* NULL if the file can be trusted, else why not. */
static const char *distrust(const struct stat *status)
{
	if (S_ISDIR(status->st_mode))
		return "it is a folder";
	if (!S_ISREG(status->st_mode))
		return "it is not a regular file";
	if (status->st_uid != geteuid() && status->st_uid != 0)
		return "it belongs to another user; a policy must belong to you or root";
	if (status->st_mode & (S_IWGRP | S_IWOTH))
		return "others can write it; chmod go-w";
	if (status->st_size > SPILL_INI_FILE)
		return "the file is too long";
	return NULL;
}

/* Reads to the end, also of a file that grows or shrinks meanwhile: at most `room` bytes. -1 and errno. */
static ssize_t read_all(int fd, char *data, size_t room)
{
	size_t length = 0;

	while (length < room) {
		ssize_t got = read(fd, data + length, room - length);

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return -1;
		if (!got)
			break;
		length += (size_t)got;
	}
	return (ssize_t)length;
}

/*
 * A file in a folder that we may not enter (HOME of another user after sudo) is as good as absent; one
 * that is there and refuses us is a policy that somebody meant.
 */
static enum spill_configfile not_open(const char *path, int error, char *problem, size_t size)
{
	struct stat status;

	if (error == ENOENT || error == ENOTDIR)
		return SPILL_CONFIGFILE_ABSENT;
	if (error == EACCES && stat(path, &status))
		return SPILL_CONFIGFILE_ABSENT;
	return bad(path, error_text(error), problem, size);
}

enum spill_configfile spill_configfile_read(const char *path, char **data, size_t *size, char *problem,
                                            size_t problem_size)
{
	/* Not blocking: a FIFO must not hang the host program before fstat can refuse it. */
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	enum spill_configfile result = SPILL_CONFIGFILE_READ;
	struct stat status;
	const char *why;
	ssize_t length;

	if (fd < 0)
		return not_open(path, errno, problem, problem_size);
	why = fstat(fd, &status) ? error_text(errno) : distrust(&status);
	*data = why ? NULL : malloc(SPILL_INI_FILE + 1);
	if (why) {
		result = bad(path, why, problem, problem_size);
	} else if (!*data) {
		result = bad(path, error_text(ENOMEM), problem, problem_size);
	} else {
		/* One byte more than allowed, for the reader to refuse. */
		length = read_all(fd, *data, SPILL_INI_FILE + 1);
		*size = length < 0 ? 0 : (size_t)length;
		if (length < 0) {
			result = bad(path, error_text(errno), problem, problem_size);
			free(*data);
		}
	}
	close(fd);
	return result;
}
