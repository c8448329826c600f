#include "fd_pass.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "clock.h"
#include "fd.h"

#define PREFIX "libspill-"

/* Sockets with a limit of time are interrupted by each handler, and when the process was stopped. */
#define REPEATED(result, call) \
	do { \
		uint64_t until = spill_clock_ns() + SPILL_FD_PASS_NS; \
		do \
			result = (call); \
		while (result < 0 && errno == EINTR && spill_clock_ns() < until); \
	} while (0)

/* The kernel takes the first byte, 0, for "no file". */
static socklen_t address_of(struct sockaddr_un *address, const unsigned char name[SPILL_FD_PASS_NAME])
{
	static const char digits[] = "0123456789abcdef";
	char *at = address->sun_path + 1;
	memset(address, 0, sizeof(*address));
	address->sun_family = AF_UNIX;
	memcpy(at, PREFIX, sizeof(PREFIX) - 1);
	at += sizeof(PREFIX) - 1;
	for (size_t i = 0; i < SPILL_FD_PASS_NAME; i++) {
		*at++ = digits[name[i] >> 4];
		*at++ = digits[name[i] & 15];
	}
	return (socklen_t)(at - (char *)address);
}

/* Limits the time of each call. The program's own numbers of descriptors stay as they were. */
static int prepared(int socket, uint64_t most_ns)
{
	const struct timeval most = {.tv_sec = (time_t)(most_ns / 1000000000)};
	if (socket < 0)
		return -1;
	socket = spill_fd_out_of_the_way(socket);
	if (socket >= 0 && (setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &most, sizeof(most)) ||
	                    setsockopt(socket, SOL_SOCKET, SO_SNDTIMEO, &most, sizeof(most)))) {
		close(socket);
		return -1;
	}
	return socket;
}

static int new_socket(uint64_t most_ns)
{
	return prepared(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0), most_ns);
}

int spill_fd_pass_listen(const unsigned char name[SPILL_FD_PASS_NAME])
{
	struct sockaddr_un address;
	socklen_t length = address_of(&address, name);
	int listener = new_socket(SPILL_FD_PASS_LISTEN_NS);
	if (listener >= 0 &&
	    (bind(listener, (const struct sockaddr *)&address, length) || listen(listener, SOMAXCONN))) {
		close(listener);
		return -1;
	}
	return listener;
}

/* Root may serve, as after sudo. */
static bool is_of_this_user(int socket)
{
	struct ucred other;
	socklen_t size = sizeof(other);
	return !getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &other, &size) &&
	       (other.uid == geteuid() || other.uid == 0);
}

static int of_this_user(int socket)
{
	if (socket >= 0 && !is_of_this_user(socket)) {
		close(socket);
		errno = EACCES;
		return -1;
	}
	return socket;
}

int spill_fd_pass_connect(const unsigned char name[SPILL_FD_PASS_NAME])
{
	struct sockaddr_un address;
	socklen_t length = address_of(&address, name);
	int result = 0, connection = new_socket(SPILL_FD_PASS_NS);
	if (connection >= 0)
		REPEATED(result, connect(connection, (const struct sockaddr *)&address, length));
	if (result) {
		close(connection);
		return -1;
	}
	return of_this_user(connection);
}

int spill_fd_pass_accept(int listener)
{
	int socket;
	REPEATED(socket, accept4(listener, NULL, NULL, SOCK_CLOEXEC));
	return of_this_user(prepared(socket, SPILL_FD_PASS_NS));
}

union control {
	struct cmsghdr header;
	char room[CMSG_SPACE(sizeof(int))];
};

bool spill_fd_pass_send(int socket, const void *message, size_t bytes, int descriptor)
{
	union control control = {0};
	struct iovec part = {(void *)message, bytes};
	struct msghdr all = {.msg_iov = &part, .msg_iovlen = 1};
	if (descriptor >= 0) {
		all.msg_control = &control;
		all.msg_controllen = sizeof(control);
		struct cmsghdr *header = CMSG_FIRSTHDR(&all);
		header->cmsg_level = SOL_SOCKET;
		header->cmsg_type = SCM_RIGHTS;
		header->cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(header), &descriptor, sizeof(int));
	}
	ssize_t sent;
	REPEATED(sent, sendmsg(socket, &all, MSG_NOSIGNAL));
	return sent == (ssize_t)bytes;
}

/* There is room for one descriptor, without padding: the kernel closes further ones. */
bool spill_fd_pass_receive(int socket, void *message, size_t bytes, int *descriptor)
{
	union control control = {0};
	struct iovec part = {message, bytes};
	struct msghdr all = {.msg_iov = &part,
	                     .msg_iovlen = 1,
	                     .msg_control = &control,
	                     .msg_controllen = CMSG_LEN(sizeof(int))};
	ssize_t got;
	REPEATED(got, recvmsg(socket, &all, MSG_CMSG_CLOEXEC));
	struct cmsghdr *header = got < 0 ? NULL : CMSG_FIRSTHDR(&all);
	*descriptor = -1;
	if (header && header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_RIGHTS &&
	    header->cmsg_len == CMSG_LEN(sizeof(int)))
		memcpy(descriptor, CMSG_DATA(header), sizeof(int));
	if (*descriptor >= 0)
		*descriptor = spill_fd_out_of_the_way(*descriptor);
	if (got == (ssize_t)bytes && !(all.msg_flags & MSG_TRUNC))
		return true;
	if (*descriptor >= 0)
		close(*descriptor);
	*descriptor = -1;
	return false;
}
