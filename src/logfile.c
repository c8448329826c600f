#include "logfile.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "fd.h"

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

const char *spill_logfile_open(struct spill_logfile *file, const char *path)
{
	const int flags = O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY;
	struct stat now;
	const char *problem = NULL;
	int fd;

	file->fd = -1;
	/* Asked first because opening a device or a FIFO can itself do something; fstat has the last word. */
	if (lstat(path, &now) == 0) {
		if (S_ISLNK(now.st_mode))
			return "a link is in its place";
		problem = refusal(&now);
		if (problem)
			return problem;
	}
	fd = open(path, flags, 0600);
	if (fd < 0)
		return errno == ELOOP ? "a link is in its place" : strerrordesc_np(errno);
	if (fstat(fd, &now) != 0)
		problem = strerrordesc_np(errno);
	else
		problem = refusal(&now);
	if (!problem && (now.st_mode & 07777) != 0600 && fchmod(fd, 0600) != 0)
		problem = strerrordesc_np(errno);
	if (problem) {
		close(fd);
		return problem;
	}
	fd = spill_fd_out_of_the_way(fd);
	if (fd < 0)
		return strerrordesc_np(errno);
	*file = (struct spill_logfile){fd, now.st_dev, now.st_ino};
	return NULL;
}

bool spill_logfile_ours(const struct spill_logfile *file)
{
	struct stat now;

	return file->fd >= 0 && fstat(file->fd, &now) == 0 && now.st_dev == file->dev &&
	       now.st_ino == file->ino && S_ISREG(now.st_mode);
}

void spill_logfile_close(struct spill_logfile *file)
{
	if (spill_logfile_ours(file))
		close(file->fd);
	file->fd = -1;
}

size_t spill_logfile_append(const struct spill_logfile *file, const char *bytes, size_t count, int *error)
{
	size_t done = 0;

	*error = 0;
	while (done < count) {
		ssize_t wrote = write(file->fd, bytes + done, count - done);

		if (wrote > 0) {
			done += (size_t)wrote;
		} else if (wrote < 0 && errno == EINTR) {
			continue;
		} else {
			*error = wrote < 0 ? errno : EIO;
			break;
		}
	}
	return done;
}
