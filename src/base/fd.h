/* Descriptors of our own among the program's. */
#ifndef SPILL_FD_H
#define SPILL_FD_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* So often a call is made again that a signal interrupts each time; then EINTR is its error. */
#define SPILL_FD_TRIES 100

/* open(2), which a signal can interrupt where files are on a network. */
int spill_fd_open(const char *path, int flags, mode_t mode);

/* Reads to the end of the file, at most `size` bytes. -1 with errno. */
ssize_t spill_fd_read(int fd, void *buffer, size_t size);

/* True for errors that say nothing about the file: the same call may succeed a moment later. */
bool spill_fd_momentary(int error);

/*
 * Calls run(data) in a child that shares our memory and has a copy of our descriptors, one of them
 * closed. So it can open a file when this process has used them all. posix_spawn makes such a child,
 * too. The calling thread waits. `run` may take no lock and little stack. False: it was not called.
 */
bool spill_fd_elsewhere(void (*run)(void *data), void *data);

/*
 * Programs hand out meaning by number (fd 0 to 2, select's first 1,024, shells' 3 to 9): moves `fd` above what they name and below
 * the limit. Returns the new descriptor, or the given one if there is no other; -1 with errno if that is 0, 1 or 2, and it is closed.
 */
int spill_fd_out_of_the_way(int fd);

#endif
