#include "log_file.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "fd.h"
#include "text.h"

/* Attempts for a file that is locked or being removed. Few, as networks are slow. */
#define OPEN_TRIES 10

/* Checks a file before opening it, because opening a device or FIFO may have an effect. */
static const char *path_refusal(const char *path)
{
	struct stat now;

	if (lstat(path, &now) != 0)
		return NULL;
	return S_ISLNK(now.st_mode) ? "the file is a symbolic link" : spill_fd_refusal(&now);
}

const char spill_log_file_taken[] = "another process has locked the file";

static bool is_same_file(const struct stat *left, const struct stat *right)
{
	return left->st_dev == right->st_dev && left->st_ino == right->st_ino;
}

/* A lack of memory often ends at once. */
static int look_at(int fd, struct stat *now)
{
	int result = fstat(fd, now);

	return result && errno != EBADF ? fstat(fd, now) : result;
}

/*
 * Locks the opened file. The writer of a log holds its lock. log_keep.c holds it for a moment to
 * see whether a log can be removed. False if another process has the lock, or if the path does not
 * name the file any more. A file system without locks is no problem: only EWOULDBLOCK means that
 * another process has the lock.
 *
 * In a folder of several users another one may have linked a file of ours there, and have removed
 * that name again. The file then has one name, but not this one. So both are asked at once.
 */
static bool lock_opened(int fd, const char *path, struct stat *now, const char **problem)
{
	bool taken = flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
	struct stat named;

	*problem = look_at(fd, now) == 0 ? spill_fd_refusal(now) : spill_error_text(errno);
	if (taken && !*problem)
		*problem = spill_log_file_taken;
	return !*problem && lstat(path, &named) == 0 && is_same_file(&named, now) && named.st_nlink == 1;
}

const char *spill_log_file_open(struct spill_log_file *file, const char *path)
{
	const int flags = O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY;
	struct stat now = {0};
	const char *problem = path_refusal(path);
	int fd = -1;

	file->fd = -1;
	if (problem)
		return problem;
	/* Limited attempts: the owner of the lock may keep it for its own log. */
	for (unsigned left = OPEN_TRIES; left > 0; left--) {
		fd = spill_fd_open(path, flags, 0600); /* lock_opened checks it again */
		if (fd < 0)
			return errno == ELOOP ? "the file is a symbolic link" : spill_error_text(errno);
		if (lock_opened(fd, path, &now, &problem) || (problem && problem != spill_log_file_taken))
			break;
		if (left == 1) {
			problem = spill_log_file_taken;
			break;
		}
		close(fd);
		sched_yield();
	}
	if (!problem && (now.st_mode & 07777) != 0600 && fchmod(fd, 0600) != 0)
		problem = spill_error_text(errno);
	if (problem) {
		close(fd);
		return problem;
	}
	fd = spill_fd_out_of_the_way(fd);
	if (fd < 0)
		return spill_error_text(errno);
	*file = (struct spill_log_file){fd, now.st_dev, now.st_ino, now.st_size};
	return NULL;
}

static bool is_file(const struct spill_log_file *file, const struct stat *now)
{
	return now->st_dev == file->dev && now->st_ino == file->ino && S_ISREG(now->st_mode);
}

enum spill_log_file_state spill_log_file_look(struct spill_log_file *file)
{
	struct stat now;
	bool cut;

	if (file->fd < 0)
		return SPILL_LOG_FILE_LOST;
	if (look_at(file->fd, &now) != 0)
		return errno == EBADF ? SPILL_LOG_FILE_LOST : SPILL_LOG_FILE_UNKNOWN;
	if (!is_file(file, &now))
		return SPILL_LOG_FILE_LOST;
	cut = now.st_size < file->end;
	file->end = now.st_size;
	return cut ? SPILL_LOG_FILE_CUT : SPILL_LOG_FILE_OURS;
}

bool spill_log_file_moved(const struct spill_log_file *file, const char *path)
{
	struct stat now;

	return lstat(path, &now) != 0 || !is_file(file, &now);
}

void spill_log_file_close(struct spill_log_file *file)
{
	if (spill_log_file_look(file) < SPILL_LOG_FILE_LOST)
		close(file->fd);
	file->fd = -1;
}

size_t spill_log_file_append(struct spill_log_file *file, const char *bytes, size_t count, int *error)
{
	unsigned left = SPILL_FD_TRIES;
	size_t done = 0;

	*error = 0;
	while (done < count) {
		ssize_t wrote = write(file->fd, bytes + done, count - done);

		if (wrote > 0) {
			done += (size_t)wrote;
			left = SPILL_FD_TRIES;
		} else if (wrote < 0 && errno == EINTR && --left > 0) {
			continue; /* limited: some file systems fail like this each time */
		} else {
			*error = wrote < 0 ? errno : EIO;
			break;
		}
	}
	file->end += (off_t)done;
	return done;
}

/* Limit of processes that share one name. */
#define NAMES 256

/* NAME.jsonl for the first process, else NAME-2.jsonl and so on. False: too long. */
static bool compose_path(char path[SPILL_LOG_NAME], const char *first, unsigned number)
{
	static const char suffix[] = ".jsonl";
	struct spill_text text = spill_text_begin(path, SPILL_LOG_NAME);
	size_t length = strlen(first), end = sizeof(suffix) - 1;
	bool has_suffix = number > 1 && length > end && strcmp(first + length - end, suffix) == 0;

	spill_text_bytes(&text, first, length - (has_suffix ? end : 0));
	if (number > 1) {
		spill_text_add(&text, "-");
		spill_text_number(&text, number);
	}
	if (has_suffix)
		spill_text_add(&text, suffix);
	return text.length < text.size - 1;
}

/* A run never continues in another run's file: readers would mix up their lines. */
static const char *open_for_run(const struct spill_log_name *name, const struct spill_log_file *before,
                                const char *path, struct spill_log_file *file)
{
	const char *problem = spill_log_file_open(file, path);

	if (problem || !name->path || !file->end || (file->dev == before->dev && file->ino == before->ino))
		return problem;
	spill_log_file_close(file);
	return spill_log_file_taken;
}

const char *spill_log_name_open(struct spill_log_name *name, struct spill_log_file *file)
{
	const struct spill_log_file before = *file;
	char *path = name->paths[name->path == name->paths[0]];
	const char *problem =
	    name->path ? open_for_run(name, &before, name->path, file) : spill_log_file_taken;

	if (problem != spill_log_file_taken)
		return problem;
	for (unsigned number = 1; problem == spill_log_file_taken && number <= NAMES; number++) {
		if (!compose_path(path, name->name, number))
			return problem;
		problem = open_for_run(name, &before, path, file);
	}
	if (!problem)
		name->path = path;
	return problem;
}
