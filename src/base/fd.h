/* Descriptors of our own among the program's, used without harm to the program. */
#ifndef SPILL_FD_H
#define SPILL_FD_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>
#include <sys/types.h>

/*
 * The text of an errno: static, and in English for any locale. strerror may allocate and translate.
 * Never NULL, because a caller takes NULL for success.
 */
const char *spill_error_text(int error);

/* Limit of attempts for a call that signals keep interrupting. The call then fails with EINTR. */
#define SPILL_FD_TRIES 100

/* open(2), repeated after EINTR, which happens on network file systems. */
int spill_fd_open(const char *path, int flags, mode_t mode);

/* Reads at most `size` bytes, or to the end of the file. -1 with errno. */
ssize_t spill_fd_read(int fd, void *buffer, size_t size);

/* True for errors that say nothing about the file: the same call may succeed a moment later. */
bool spill_fd_momentary(int error);

/*
 * Calls run(data) in a child that shares our memory and has copies of our descriptors, one of them
 * closed. So `run` can open a file even if this process has used up all descriptors. posix_spawn
 * makes such a child too. The calling thread waits. `run` must take no lock and need little stack.
 * False: `run` was not called.
 */
bool spill_fd_elsewhere(void (*run)(void *data), void *data);

/*
 * NULL if the file can be one of ours: a regular file of the effective user with one name at most.
 * Otherwise the reason, as a static text.
 */
const char *spill_fd_refusal(const struct stat *file);

/*
 * Moves `fd` to a high number. Low numbers have a meaning for programs: 0 to 2 are standard, select
 * takes 1,024, shells use 3 to 9. Returns the new descriptor, or `fd` itself if no other number is
 * free. If that is 0, 1 or 2, closes it and returns -1 with errno.
 */
int spill_fd_out_of_the_way(int fd);

/*
 * A guarded section: the code between enter and leave may write to a descriptor. The thread is not
 * cancelled there, gets no SIGPIPE or SIGXFSZ from our write, and finds its errno unchanged.
 */
struct spill_signal_guard {
	sigset_t mask;    /* the thread's own */
	sigset_t pending; /* signals that were pending before us: they stay pending */
	int cancel, error;
};

/* At most five system calls for the pair. Sections nest. As async-signal-safe as glibc. */
void spill_signal_guard_enter(struct spill_signal_guard *guard);
void spill_signal_guard_leave(struct spill_signal_guard *guard);

#endif
