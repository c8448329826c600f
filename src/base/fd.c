#include "fd.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "scratch.h"
#include "signals.h"

/* glibc before 2.32 has the list itself, for binaries that need no newer glibc. */
const char *spill_error_text(int error)
{
	const char *text = NULL;

#if __GLIBC_PREREQ(2, 32)
	text = strerrordesc_np(error);
#else
	if (error >= 0 && error < sys_nerr)
		text = sys_errlist[error];
#endif
	return text ? text : "an unknown error";
}

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

/* The child has copies of our descriptors: closing one leaves ours open. */
static int run_errand(void *data)
{
	const struct errand *errand = data;

	close(STDIN_FILENO);
	errand->run(errand->data);
	return 0;
}

/* Blocks all signals, so no handler of the program runs in the child. Its end sends none. */
bool spill_fd_elsewhere(void (*run)(void *data), void *data)
{
	char *stack = spill_scratch_take();
	struct errand errand = {run, data};
	sigset_t before;
	pid_t child = -1;

	spill_signals_block(&before);
	if (stack)
		child = clone(run_errand, stack + SPILL_SCRATCH, CLONE_VM | CLONE_VFORK, &errand);
	if (child > 0)
		waitpid(child, NULL, __WALL);
	spill_signals_restore(&before);
	spill_scratch_give_back(stack);
	return child > 0;
}

const char *spill_fd_refusal(const struct stat *file)
{
	if (!S_ISREG(file->st_mode))
		return "the file is not a regular file";
	if (file->st_uid != geteuid())
		return "the file belongs to another user";
	if (file->st_nlink > 1)
		return "the file has a second name";
	return NULL;
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
	close(fd); /* the program would print into our file */
	errno = EMFILE;
	return -1;
}

static void guarded_signals(sigset_t *set)
{
	sigemptyset(set);
	sigaddset(set, SIGPIPE);
	sigaddset(set, SIGXFSZ);
}

void spill_signal_guard_enter(struct spill_signal_guard *guard)
{
	sigset_t ours;

	guard->error = errno;
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &guard->cancel);
	guarded_signals(&ours);
	sigpending(&guard->pending);
	pthread_sigmask(SIG_BLOCK, &ours, &guard->mask);
}

/* The kernel sends both signals to the thread that wrote, so we never consume another thread's. */
static void consume_new_signal(const struct spill_signal_guard *guard, const sigset_t *now, int number)
{
	static const struct timespec at_once;
	sigset_t only;

	if (!sigismember(now, number) || sigismember(&guard->pending, number))
		return;
	sigemptyset(&only);
	sigaddset(&only, number);
	/* This loop ends: the signal is pending, and no other thread can take it. */
	while (sigtimedwait(&only, NULL, &at_once) < 0 && errno == EINTR)
		;
}

void spill_signal_guard_leave(struct spill_signal_guard *guard)
{
	sigset_t now;

	sigpending(&now);
	consume_new_signal(guard, &now, SIGPIPE);
	consume_new_signal(guard, &now, SIGXFSZ);
	pthread_sigmask(SIG_SETMASK, &guard->mask, NULL);
	errno = guard->error;
	pthread_setcancelstate(guard->cancel, NULL);
}
