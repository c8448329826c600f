/* Descriptors over a socket: names, users, whole messages, and nothing that stays open. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "childtest.h"
#include "fd_pass.h"

static const unsigned char name[SPILL_FD_PASS_NAME] = "a name of tests";
static const unsigned char other[SPILL_FD_PASS_NAME] = "another one    ";

static unsigned open_descriptors(void)
{
	unsigned count = 0;
	DIR *folder = opendir("/proc/self/fd");
	while (readdir(folder))
		count++;
	closedir(folder);
	return count;
}

/* Both ends of a connection. */
static void connected(int *listener, int ends[2])
{
	*listener = spill_fd_pass_listen(name);
	assert_true(*listener >= 0);
	ends[0] = spill_fd_pass_connect(name);
	ends[1] = spill_fd_pass_accept(*listener);
	assert_true(ends[0] >= 0 && ends[1] >= 0);
}

static void disconnected(int listener, const int ends[2])
{
	close(ends[0]);
	close(ends[1]);
	close(listener);
}

TEST(a_message_comes_with_its_descriptor)
{
	unsigned before = open_descriptors();
	int listener, ends[2], pipes[2], got;
	char text[4] = "", byte = 0;
	connected(&listener, ends);
	assert_int_equal(pipe(pipes), 0);
	assert_true(spill_fd_pass_send(ends[0], "one", 4, pipes[1]));
	assert_true(spill_fd_pass_send(ends[0], "two", 4, -1));
	close(pipes[1]);
	assert_true(spill_fd_pass_receive(ends[1], text, 4, &got));
	assert_string_equal(text, "one");
	assert_int_equal(write(got, "x", 1), 1);
	assert_int_equal(read(pipes[0], &byte, 1), 1);
	assert_int_equal(byte, 'x');
	assert_int_equal(fcntl(got, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
	assert_true(got >= 20); /* out of the program's way */
	close(got);
	assert_true(spill_fd_pass_receive(ends[1], text, 4, &got));
	assert_string_equal(text, "two");
	assert_int_equal(got, -1);
	close(pipes[0]);
	disconnected(listener, ends);
	assert_int_equal(open_descriptors(), before);
}

/* The descriptor that came with it is closed. */
TEST(a_message_of_another_size_is_none)
{
	int listener, ends[2], got;
	char text[8];
	connected(&listener, ends);
	unsigned before = open_descriptors();
	for (size_t bytes = 0; bytes < 6; bytes++) {
		if (bytes == 4)
			continue;
		assert_true(spill_fd_pass_send(ends[0], "12345", bytes, listener));
		assert_false(spill_fd_pass_receive(ends[1], text, 4, &got));
		assert_int_equal(got, -1);
		assert_int_equal(open_descriptors(), before);
	}
	disconnected(listener, ends);
}

/* The first one is taken, and the kernel closes the other. */
TEST(two_descriptors_in_a_message)
{
	union {
		struct cmsghdr header;
		char room[CMSG_SPACE(2 * sizeof(int))];
	} control = {0};
	int listener, ends[2], got;
	char text[4] = "two";
	connected(&listener, ends);
	unsigned before = open_descriptors();
	struct iovec part = {text, sizeof(text)};
	struct msghdr all = {
	    .msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control)};
	control.header = (struct cmsghdr){CMSG_LEN(2 * sizeof(int)), SOL_SOCKET, SCM_RIGHTS};
	memcpy(CMSG_DATA(&control.header), (int[]){listener, listener}, 2 * sizeof(int));
	assert_int_equal(sendmsg(ends[0], &all, 0), 4);
	assert_true(spill_fd_pass_receive(ends[1], text, 4, &got));
	assert_true(got >= 0);
	close(got);
	assert_int_equal(open_descriptors(), before);
	disconnected(listener, ends);
}

static void ignore(int signal)
{
}

/* A handler interrupts calls on a socket with a limit of time, even with SA_RESTART. */
TEST(signals_do_not_end_a_call)
{
	const struct sigaction action = {.sa_handler = ignore, .sa_flags = SA_RESTART};
	const struct itimerval often = {{0, 2000}, {0, 2000}}, never = {{0, 0}, {0, 0}};
	struct sigaction old;
	int listener, ends[2], got, status;
	char text[4];
	connected(&listener, ends);
	pid_t child = fork();
	if (!child) {
		usleep(30000);
		_exit(!spill_fd_pass_send(ends[0], "one", 4, -1));
	}
	assert_int_equal(sigaction(SIGALRM, &action, &old), 0);
	assert_int_equal(setitimer(ITIMER_REAL, &often, NULL), 0);
	bool received = spill_fd_pass_receive(ends[1], text, 4, &got);
	setitimer(ITIMER_REAL, &never, NULL);
	sigaction(SIGALRM, &old, NULL);
	assert_true(received);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	disconnected(listener, ends);
}

/* As in a daemon. The program's next file gets the number that it would get without us. */
CHILD_TEST(the_program_has_closed_its_stdin)
{
	int ends[2];
	close(STDIN_FILENO);
	int listener = spill_fd_pass_listen(name);
	CHECK(listener > STDERR_FILENO);
	ends[0] = spill_fd_pass_connect(name);
	ends[1] = spill_fd_pass_accept(listener);
	CHECK(ends[0] > STDERR_FILENO && ends[1] > STDERR_FILENO);
	CHECK(open("/dev/null", O_RDONLY) == STDIN_FILENO);
	disconnected(listener, ends);
}

TEST(an_end_is_noticed)
{
	int listener, ends[2], got;
	char text[4];
	connected(&listener, ends);
	close(ends[0]);
	assert_false(spill_fd_pass_receive(ends[1], text, 4, &got));
	assert_false(spill_fd_pass_send(ends[1], "one", 4, -1)); /* and no SIGPIPE */
	close(ends[1]);
	close(listener);
}

TEST(a_name_is_whole_and_taken_once)
{
	int listener = spill_fd_pass_listen(name);
	assert_int_equal(spill_fd_pass_listen(name), -1);
	assert_int_equal(spill_fd_pass_connect(other), -1);
	close(listener);
	assert_int_equal(spill_fd_pass_connect(name), -1);
}

/* Neither side talks to another user, but a process talks to root. */
TEST(another_user)
{
	int status;
	if (geteuid())
		skip();
	int listener = spill_fd_pass_listen(name);
	pid_t child = fork();
	if (!child) {
		if (setresuid(65534, 65534, 65534))
			_exit(3);
		int of_root = spill_fd_pass_connect(name);
		_exit(of_root >= 0 ? 0 : 1);
	}
	assert_int_equal(spill_fd_pass_accept(listener), -1);
	assert_int_equal(errno, EACCES);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	close(listener);
}

TEST(a_server_of_another_user)
{
	int status, ready[2];
	char byte;
	if (geteuid())
		skip();
	assert_int_equal(pipe(ready), 0);
	pid_t child = fork();
	if (!child) {
		if (setresuid(65534, 65534, 65534) || spill_fd_pass_listen(name) < 0 ||
		    write(ready[1], "r", 1) != 1)
			_exit(3);
		pause();
	}
	close(ready[1]);
	assert_int_equal(read(ready[0], &byte, 1), 1);
	unsigned before = open_descriptors();
	assert_int_equal(spill_fd_pass_connect(name), -1);
	assert_int_equal(open_descriptors(), before);
	close(ready[0]);
	kill(child, 9);
	assert_int_equal(waitpid(child, &status, 0), child);
}
