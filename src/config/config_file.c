#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "clock.h"
#include "config.h"
#include "fd.h"
#include "ini_file.h"
#include "text.h"

/* Attempts for a file that cannot be read for the moment: some tenths of a second together. */
#define TRIES 200
#define PAUSE_NS 1000000

/* The text for an errno value. strerror would follow the host program's language. */
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

static enum spill_config_found bad_file(const char *path, const char *why, char *problem, size_t size)
{
	struct spill_text text = spill_text_begin(problem, size);

	spill_text_add(&text, path);
	spill_text_add(&text, ": ");
	spill_text_add(&text, why);
	return SPILL_CONFIG_FILE_BAD;
}

/* NULL if the file can be trusted, else the reason. */
static const char *distrust_reason(const struct stat *status)
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
 * A file in a folder that we may not enter counts as absent (HOME of another user after sudo). An
 * existing file that we may not read is a problem, because a user meant it as the policy.
 */
static enum spill_config_found open_failed(const char *path, int error, char *problem, size_t size)
{
	struct stat status;

	if (error == ENOENT || error == ENOTDIR)
		return SPILL_CONFIG_FILE_ABSENT;
	if (error == EACCES && stat(path, &status))
		return SPILL_CONFIG_FILE_ABSENT;
	return bad_file(path, error_text(error), problem, size);
}

/* One byte more than allowed, so that the reader refuses a file that grew. */
#define CONTENT (SPILL_INI_FILE + 1)

struct read_attempt {
	const char *path;
	char *problem;
	size_t problem_size;
	char *content; /* NULL: no memory */
	size_t size;
	int error; /* of the last call */
	enum spill_config_found result;
};

static enum spill_config_found read_open(int fd, struct read_attempt *attempt)
{
	struct stat status;
	ssize_t length = fstat(fd, &status);
	const char *why = length ? NULL : distrust_reason(&status);

	if (why)
		return bad_file(attempt->path, why, attempt->problem, attempt->problem_size);
	if (!length)
		length = attempt->content ? spill_fd_read(fd, attempt->content, CONTENT) : -1;
	if (length < 0) {
		attempt->error = attempt->content ? errno : ENOMEM;
		return bad_file(attempt->path, error_text(attempt->error), attempt->problem,
		                attempt->problem_size);
	}
	attempt->size = (size_t)length;
	return SPILL_CONFIG_FILE_READ;
}

static void try_read(void *data)
{
	struct read_attempt *attempt = data;
	/* Not blocking: a FIFO must not hang the host program before fstat refuses it. */
	int fd = spill_fd_open(attempt->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0);

	attempt->error = 0;
	attempt->problem[0] = '\0';
	if (fd < 0) {
		attempt->error = errno;
		attempt->result = open_failed(attempt->path, errno, attempt->problem, attempt->problem_size);
		return;
	}
	attempt->result = read_open(fd, attempt);
	close(fd);
}

/* Reads once, or again in a child if this process has no descriptor left. */
static void try_all_ways(struct read_attempt *attempt)
{
	if (!attempt->content)
		attempt->content = malloc(CONTENT); /* not in the child: malloc locks */
	try_read(attempt);
	if (attempt->error == EMFILE)
		spill_fd_elsewhere(try_read, attempt);
}

/*
 * The policy is read only once, and a lack of descriptors or memory may pass. So this waits: a late
 * start is better than a run under the wrong policy.
 */
enum spill_config_found spill_config_file_read(const char *path, char **data, size_t *size, char *problem,
                                               size_t problem_size)
{
	struct read_attempt attempt = {.path = path, .problem = problem, .problem_size = problem_size};

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
