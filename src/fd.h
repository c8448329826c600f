/* Descriptors of our own among the program's. */
#ifndef SPILL_FD_H
#define SPILL_FD_H

/*
 * Programs hand out meaning by number (fd 0 to 2, select's first 1,024, shells' 3 to 9): moves `fd` above what they name and below
 * the limit. Returns the new descriptor, or the given one if there is no other; -1 with errno if that is 0, 1 or 2, and it is closed.
 */
int spill_fd_out_of_the_way(int fd);

#endif
