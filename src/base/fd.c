#include "fd.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "scratch.h"

int spill_fd_open(const char *path, int flags, mode_t mode)
{
	int fd = -1;

	for (unsigned left = SPILL_FD_TRIES; left > 0; left--) {
		fd = open(path, flags, mode);
		if (fd >= 0 || errno != EINTR)
			break;
	}
	return fd;
}

ssize_t spill_fd_read(int fd, void *buffer, size_t size)
{
	unsigned left = SPILL_FD_TRIES;
	size_t length = 0;

	while (length < size) {
		ssize_t got = read(fd, (char *)buffer + length, size - length);

		if (got < 0 && errno == EINTR && --left > 0)
			continue;
		if (got < 0)
			return -1;
		if (!got)
			break;
		length += (size_t)got;
		left = SPILL_FD_TRIES;
	}
	return (ssize_t)length;
}

bool spill_fd_momentary(int error)
{
	return error == EINTR || error == EMFILE || error == ENFILE || error == ENOMEM;
}

struct errand {
	void (*run)(void *data);
	void *data;
};

/* What it closes is its own copy. */
static int run_errand(void *data)
{
	const struct errand *errand = data;

	close(STDIN_FILENO);
	errand->run(errand->data);
	return 0;
}

/* No signal of the program's may be handled in the child, and its end sends none. */
bool spill_fd_elsewhere(void (*run)(void *data), void *data)
{
	char *stack = spill_scratch_take();
	struct errand errand = {run, data};
	sigset_t all, before;
	pid_t child = -1;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	if (stack)
		child = clone(run_errand, stack + SPILL_SCRATCH, CLONE_VM | CLONE_VFORK, &errand);
	if (child > 0)
		waitpid(child, NULL, __WALL);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	spill_scratch_give_back(stack);
	return child > 0;
}

int spill_fd_out_of_the_way(int fd)
{
	static const int floors[] = {200, 100, 20, 3};

	for (unsigned i = 0; i < sizeof(floors) / sizeof(floors[0]); i++) {
		int high = fcntl(fd, F_DUPFD_CLOEXEC, floors[i]);

		if (high >= 0) {
			close(fd);
			return high;
		}
	}
	if (fd > STDERR_FILENO)
		return fd;
	close(fd); /* as 0, 1 or 2 the program's own output would land in our file */
	errno = EMFILE;
	return -1;
}
