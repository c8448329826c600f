#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "clock.h"
#include "config_file.h"
#include "fd.h"
#include "ini_file.h"
#include "text.h"

/* Of a file that cannot be read for the moment: together some tenths of a second. */
#define TRIES 200
#define PAUSE_NS 1000000

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
	case EINTR:
		return "signals interrupt each attempt to read it";
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

static enum spill_config_found bad(const char *path, const char *why, char *problem, size_t size)
{
	struct spill_text text = spill_text_begin(problem, size);

	spill_text_add(&text, path);
	spill_text_add(&text, ": ");
	spill_text_add(&text, why);
	return SPILL_CONFIG_FILE_BAD;
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

/*
 * A file in a folder that we may not enter (HOME of another user after sudo) is as good as absent; one
 * that is there and refuses us is a policy that somebody meant.
 */
static enum spill_config_found not_open(const char *path, int error, char *problem, size_t size)
{
	struct stat status;

	if (error == ENOENT || error == ENOTDIR)
		return SPILL_CONFIG_FILE_ABSENT;
	if (error == EACCES && stat(path, &status))
		return SPILL_CONFIG_FILE_ABSENT;
	return bad(path, error_text(error), problem, size);
}

/* One more byte than allowed, for the reader to refuse. */
#define CONTENT (SPILL_INI_FILE + 1)

struct attempt {
	const char *path;
	char *problem;
	size_t problem_size;
	char *content; /* NULL: no memory */
	size_t size;
	int error; /* of the last call */
	enum spill_config_found result;
};

static enum spill_config_found read_open(int fd, struct attempt *attempt)
{
	struct stat status;
	ssize_t length = fstat(fd, &status);
	const char *why = length ? NULL : distrust(&status);

	if (why)
		return bad(attempt->path, why, attempt->problem, attempt->problem_size);
	if (!length)
		length = attempt->content ? spill_fd_read(fd, attempt->content, CONTENT) : -1;
	if (length < 0) {
		attempt->error = attempt->content ? errno : ENOMEM;
		return bad(attempt->path, error_text(attempt->error), attempt->problem,
		           attempt->problem_size);
	}
	attempt->size = (size_t)length;
	return SPILL_CONFIG_FILE_READ;
}

static void try(void *data)
{
	struct attempt *attempt = data;
	/* Not blocking: a FIFO must not hang the host program before fstat can refuse it. */
	int fd = spill_fd_open(attempt->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0);

	attempt->error = 0;
	attempt->problem[0] = '\0';
	if (fd < 0) {
		attempt->error = errno;
		attempt->result = not_open(attempt->path, errno, attempt->problem, attempt->problem_size);
		return;
	}
	attempt->result = read_open(fd, attempt);
	close(fd);
}

/* Once, or a second time where a descriptor is to be had. */
static void try_all_ways(struct attempt *attempt)
{
	if (!attempt->content)
		attempt->content = malloc(CONTENT); /* here: what runs elsewhere may take no lock */
	try(attempt);
	if (attempt->error == EMFILE)
		spill_fd_elsewhere(try, attempt);
}

/*
 * What fails for want of a descriptor or of memory says nothing about the policy, and it is read
 * once: a program under another policy than its user's is worse than one that begins a moment
 * later.
 */
enum spill_config_found spill_config_file_read(const char *path, char **data, size_t *size, char *problem,
                                               size_t problem_size)
{
	struct attempt attempt = {.path = path, .problem = problem, .problem_size = problem_size};

	try_all_ways(&attempt);
	for (unsigned left = TRIES; left > 0 && spill_fd_momentary(attempt.error); left--) {
		spill_clock_sleep(PAUSE_NS);
		try_all_ways(&attempt);
	}
	if (attempt.result != SPILL_CONFIG_FILE_READ)
		free(attempt.content);
	*data = attempt.result == SPILL_CONFIG_FILE_READ ? attempt.content : NULL;
	*size = attempt.size;
	return attempt.result;
}
