/*
 * Descriptors that go from one process to another of the same user, over a socket with a name that
 * is in no file system (unix(7), "Abstract"). Every user can see such names. So each side asks the
 * kernel for the other's user. Messages are whole (SOCK_SEQPACKET). A call gives up after
 * SPILL_FD_PASS_NS: the other process can be stopped. One that a signal interrupts goes on.
 */
#ifndef SPILL_FD_PASS_H
#define SPILL_FD_PASS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SPILL_FD_PASS_NS 10000000000ull
/* So long spill_fd_pass_accept waits for a connection. */
#define SPILL_FD_PASS_LISTEN_NS 1000000000ull

/* Bytes of a name. */
#define SPILL_FD_PASS_NAME 16

/* A socket of this name for spill_fd_pass_accept, or a connection to it. -1: there is none. */
int spill_fd_pass_listen(const unsigned char name[SPILL_FD_PASS_NAME]);
int spill_fd_pass_connect(const unsigned char name[SPILL_FD_PASS_NAME]);

/* The next connection. -1 with errno: EACCES if it was another user's, EAGAIN if there was none. */
int spill_fd_pass_accept(int listener);

/* Sends a message, with a descriptor unless it is -1, which stays the caller's. */
bool spill_fd_pass_send(int socket, const void *message, size_t bytes, int descriptor);

/*
 * Receives a message of exactly `bytes`. *descriptor is the caller's to close; -1: none came. `false`:
 * the other side has ended, takes too long, or sent something else.
 */
bool spill_fd_pass_receive(int socket, void *message, size_t bytes, int *descriptor);

#endif
