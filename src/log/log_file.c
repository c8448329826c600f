#include "log_file.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "fd.h"

/* Of a file whose lock somebody has, or that is being removed. Few, as each is some milliseconds where files are on a network. */
#define OPEN_TRIES 10

static const char *refusal(const struct stat *file)
{
	if (!S_ISREG(file->st_mode))
		return "something that is not a regular file is in its place";
	if (file->st_uid != geteuid())
		return "the file in its place belongs to another user";
	if (file->st_nlink > 1)
		return "the file in its place has a second name";
	return NULL;
}

/* What may be done to a file in its place without opening it: opening a device or a FIFO can itself do something. */
static const char *look(const char *path)
{
	struct stat now;

	if (lstat(path, &now) != 0)
		return NULL;
	return S_ISLNK(now.st_mode) ? "a link is in its place" : refusal(&now);
}

const char spill_log_file_taken[] = "another process has it locked";

/*
 * Who writes a log holds its lock, and so does for a moment who looks whether it may be removed (log_keep.c). False if somebody else
 * has the lock, or the file that we opened has been removed. A file system without locks refuses them to all.
 */
static bool stays(int fd, struct stat *now, const char **problem)
{
	bool taken = flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;

	*problem = fstat(fd, now) == 0 ? refusal(now) : strerrordesc_np(errno);
	if (taken && !*problem)
		*problem = spill_log_file_taken;
	return !*problem && now->st_nlink > 0;
}

const char *spill_log_file_open(struct spill_logfile *file, const char *path)
{
	const int flags = O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY;
	struct stat now = {0};
	const char *problem = look(path);
	int fd = -1;

	file->fd = -1;
	if (problem)
		return problem;
	/* Not for ever: who has the lock may be writing its own log. */
	for (unsigned left = OPEN_TRIES; left > 0; left--) {
		fd = spill_fd_open(path, flags, 0600); /* fstat has the last word on what it is */
		if (fd < 0)
			return errno == ELOOP ? "a link is in its place" : strerrordesc_np(errno);
		if (stays(fd, &now, &problem) || (problem && problem != spill_log_file_taken) || left == 1)
			break;
		close(fd);
		sched_yield();
	}
	if (!problem && (now.st_mode & 07777) != 0600 && fchmod(fd, 0600) != 0)
		problem = strerrordesc_np(errno);
	if (problem) {
		close(fd);
		return problem;
	}
	fd = spill_fd_out_of_the_way(fd);
	if (fd < 0)
		return strerrordesc_np(errno);
	*file = (struct spill_logfile){fd, now.st_dev, now.st_ino, now.st_size};
	return NULL;
}

static bool is(const struct spill_logfile *file, const struct stat *now)
{
	return now->st_dev == file->dev && now->st_ino == file->ino && S_ISREG(now->st_mode);
}

enum spill_log_file_state spill_log_file_look(struct spill_logfile *file)
{
	struct stat now;
	bool cut;

	if (file->fd < 0 || fstat(file->fd, &now) != 0 || !is(file, &now))
		return SPILL_LOG_FILE_LOST;
	cut = now.st_size < file->end;
	file->end = now.st_size;
	return cut ? SPILL_LOG_FILE_CUT : SPILL_LOG_FILE_OURS;
}

bool spill_log_file_moved(const struct spill_logfile *file, const char *path)
{
	struct stat now;

	return lstat(path, &now) != 0 || !is(file, &now);
}

void spill_log_file_close(struct spill_logfile *file)
{
	if (spill_log_file_look(file) != SPILL_LOG_FILE_LOST)
		close(file->fd);
	file->fd = -1;
}

size_t spill_log_file_append(struct spill_logfile *file, const char *bytes, size_t count, int *error)
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
			continue; /* not for ever: some file systems say so each time */
		} else {
			*error = wrote < 0 ? errno : EIO;
			break;
		}
	}
	file->end += (off_t)done;
	return done;
}
