/* Words about errors of the system, and descriptors that leave the program's numbers alone. */
#define CHILD_SECONDS 60
#include "childtest.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "fake_libc.h"
#include "fd.h"

TEST(every_error_has_a_text)
{
	static const int unknown[] = {-1, 4095, INT_MAX, INT_MIN};

	assert_string_equal(spill_error_text(ENOSPC), "No space left on device");
	assert_string_equal(spill_error_text(EPERM), "Operation not permitted");
	for (unsigned i = 0; i < sizeof(unknown) / sizeof(unknown[0]); i++)
		assert_string_equal(spill_error_text(unknown[i]), "an unknown error");
}

static int open_null(int *error)
{
	errno = EINTR; /* of a call before */
	int fd = spill_fd_open("/dev/null", O_RDONLY | O_CLOEXEC, 0);
	*error = errno;
	if (fd >= 0)
		close(fd);
	return fd;
}

TEST(only_an_interrupted_open_is_tried_again)
{
	static const struct {
		int error;
		unsigned failures, calls;
	} cases[] = {{EINTR, 0, 1},
	             {EINTR, SPILL_FD_TRIES - 1, SPILL_FD_TRIES},
	             {EINTR, SPILL_FD_TRIES, SPILL_FD_TRIES},
	             {ENOENT, 1, 1}};
	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		int error;
		fake_libc_fail(FAKE_open64, 1, cases[i].failures, cases[i].error);
		int fd = open_null(&error);
		assert_int_equal(fake_libc[FAKE_open64].calls, cases[i].calls);
		fake_libc_reset();
		assert_int_equal(fd >= 0, cases[i].failures < cases[i].calls);
		assert_int_equal(error, cases[i].error);
	}
}

/* Of the tries for each byte, the last is answered. */
static bool interrupt_all_but_the_last(long arguments[6], long *result)
{
	static unsigned tries;
	arguments[2] = 1;
	errno = EINTR;
	return ++tries % SPILL_FD_TRIES;
}

static ssize_t read_three(char *buffer)
{
	int ends[2];
	assert_int_equal(pipe(ends), 0);
	assert_int_equal(write(ends[1], "abc", 3), 3);
	ssize_t got = spill_fd_read(ends[0], buffer, 3);
	close(ends[0]);
	close(ends[1]);
	return got;
}

TEST(only_an_interrupted_read_is_tried_again)
{
	char buffer[] = "...";
	fake_libc[FAKE_read].hook = interrupt_all_but_the_last;
	assert_int_equal(read_three(buffer), 3);
	assert_string_equal(buffer, "abc");
	fake_libc_fail(FAKE_read, 1, SPILL_FD_TRIES, EINTR);
	assert_int_equal(read_three(buffer), -1);
	assert_int_equal(fake_libc[FAKE_read].calls, SPILL_FD_TRIES);
	fake_libc_fail(FAKE_read, 1, 1, EIO);
	assert_int_equal(read_three(buffer), -1);
	assert_int_equal(fake_libc[FAKE_read].calls, 1);
	fake_libc_reset();
}

static void limit_descriptors(rlim_t most)
{
	struct rlimit limit;
	CHECK(getrlimit(RLIMIT_NOFILE, &limit) == 0);
	limit.rlim_cur = most;
	CHECK(setrlimit(RLIMIT_NOFILE, &limit) == 0);
}

/* As far as the program's limit allows. */
CHILD_TEST(out_of_the_way_is_far_up)
{
	static const struct {
		rlim_t limit;
		int least;
	} cases[] = {{201, 200}, {200, 100}, {101, 100}, {100, 20}, {21, 20}};
	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		limit_descriptors(cases[i].limit);
		int fd = open("/dev/null", O_RDONLY), high = spill_fd_out_of_the_way(fd);
		CHECK(high == cases[i].least);
		CHECK(fcntl(high, F_GETFD) == FD_CLOEXEC);
		CHECK(fcntl(fd, F_GETFD) == -1);
		close(high);
	}
}

/* Where no other number is left, it keeps its own, but for those that the program prints to. */
CHILD_TEST(out_of_the_way_where_no_number_is_left)
{
	int last = -1, fd;
	limit_descriptors(20);
	while ((fd = dup(STDIN_FILENO)) >= 0)
		last = fd;
	CHECK(last > STDERR_FILENO);
	CHECK(spill_fd_out_of_the_way(last) == last);
	CHECK(fcntl(last, F_GETFD) >= 0);
	errno = 0;
	CHECK(spill_fd_out_of_the_way(STDERR_FILENO) == -1);
	CHECK(errno == EMFILE);
	CHECK(fcntl(STDERR_FILENO, F_GETFD) == -1);
	CHECK(dup2(last, STDERR_FILENO) == STDERR_FILENO);
	CHECK(spill_fd_out_of_the_way(STDIN_FILENO) == -1);
	CHECK(fcntl(STDIN_FILENO, F_GETFD) == -1);
	CHECK(dup2(last, STDIN_FILENO) == STDIN_FILENO);
	for (fd = STDERR_FILENO + 1; fd <= last; fd++)
		close(fd);
	fd = dup(STDIN_FILENO);
	CHECK(spill_fd_out_of_the_way(fd) == STDERR_FILENO + 2);
	close(STDERR_FILENO + 2);
}

/* What a child of ours is asked for is done here, and its descriptors are not. */
static void set_and_close(void *data)
{
	*(bool *)data = close(STDOUT_FILENO) == 0;
}

TEST(an_errand_shares_memory_and_no_descriptors)
{
	bool done = false;
	assert_true(spill_fd_elsewhere(set_and_close, &done));
	assert_true(done);
	assert_int_equal(waitpid(-1, NULL, __WALL), -1); /* no child is left */
	assert_int_equal(errno, ECHILD);
	assert_true(fcntl(STDIN_FILENO, F_GETFD) >= 0);
	assert_true(fcntl(STDOUT_FILENO, F_GETFD) >= 0);
}

/* A read may give less than it could. */
TEST(a_file_is_read_to_its_end)
{
	char text[8] = "........";
	int ends[2];
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
	assert_int_equal(write(ends[0], "ab", 2) + write(ends[0], "cde", 3) + write(ends[0], "fg", 2), 7);
	assert_int_equal(spill_fd_read(ends[1], text, 5), 5);
	assert_memory_equal(text, "abcde...", 8);
	assert_int_equal(write(ends[0], "hijklm", 6), 6);
	assert_int_equal(spill_fd_read(ends[1], text, 4), 4); /* and no more, whatever there is */
	assert_memory_equal(text, "fghie...", 8);
	assert_int_equal(write(ends[0], "no", 2), 2);
	close(ends[0]);
	assert_int_equal(spill_fd_read(ends[1], text, 8), 2);
	assert_memory_equal(text, "nohie...", 8);
	close(ends[1]);
	assert_int_equal(spill_fd_read(ends[1], text, 8), -1);
	assert_int_equal(errno, EBADF);
}

static bool can_be_cancelled(void)
{
	int state, ours;
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	pthread_setcancelstate(state, &ours);
	return state == PTHREAD_CANCEL_ENABLE;
}

static bool is_pending(int signal)
{
	sigset_t pending;
	sigpending(&pending);
	return sigismember(&pending, signal);
}

/* The write would end the process. */
static void write_to_nobody(void)
{
	int ends[2];
	CHECK(pipe(ends) == 0);
	close(ends[0]);
	CHECK(write(ends[1], "x", 1) == -1 && errno == EPIPE);
	close(ends[1]);
}

CHILD_TEST(a_guarded_write_has_no_effect_on_its_thread)
{
	struct spill_signal_guard guard, inner;
	signal(SIGPIPE, SIG_DFL);
	errno = EEXIST;
	spill_signal_guard_enter(&guard);
	CHECK(!can_be_cancelled());
	spill_signal_guard_enter(&inner);
	write_to_nobody();
	CHECK(is_pending(SIGPIPE));
	spill_signal_guard_leave(&inner);
	CHECK(!is_pending(SIGPIPE) && !can_be_cancelled());
	write_to_nobody();
	errno = EINTR; /* of a later call of ours */
	spill_signal_guard_leave(&guard);
	CHECK(!is_pending(SIGPIPE) && can_be_cancelled());
	CHECK(errno == EEXIST);
}

CHILD_TEST(a_guarded_write_to_a_file_that_is_too_long)
{
	const struct rlimit one = {1, 1};
	struct spill_signal_guard guard;
	int file = memfd_create("file", MFD_CLOEXEC);
	signal(SIGXFSZ, SIG_DFL);
	CHECK(file >= 0 && write(file, "x", 1) == 1 && setrlimit(RLIMIT_FSIZE, &one) == 0);
	spill_signal_guard_enter(&guard);
	CHECK(write(file, "y", 1) == -1 && errno == EFBIG);
	spill_signal_guard_leave(&guard);
	CHECK(!is_pending(SIGXFSZ));
	close(file);
}

/* So that whoever uses this part of the stack next begins with a set of all signals. */
__attribute__((noinline)) static void fill_stack(void)
{
	volatile char used[4096];
	for (size_t i = 0; i < sizeof(used); i++)
		used[i] = -1;
}

/* Those of a write alone are taken. */
CHILD_TEST(another_signal_that_comes_meanwhile_stays)
{
	struct spill_signal_guard guard;
	sigset_t others, before;
	sigemptyset(&others);
	sigaddset(&others, SIGHUP);
	pthread_sigmask(SIG_BLOCK, &others, &before);
	spill_signal_guard_enter(&guard);
	write_to_nobody();
	pthread_kill(pthread_self(), SIGHUP);
	fill_stack();
	spill_signal_guard_leave(&guard);
	CHECK(is_pending(SIGHUP) && !is_pending(SIGPIPE));
	int taken;
	CHECK(sigwait(&others, &taken) == 0 && taken == SIGHUP);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
}

/* It waits for the program to let it in. */
CHILD_TEST(a_signal_that_was_pending_stays_so)
{
	struct spill_signal_guard guard;
	sigset_t pipes, before;
	sigemptyset(&pipes);
	sigaddset(&pipes, SIGPIPE);
	pthread_sigmask(SIG_BLOCK, &pipes, &before);
	pthread_kill(pthread_self(), SIGPIPE);
	spill_signal_guard_enter(&guard);
	write_to_nobody();
	spill_signal_guard_leave(&guard);
	CHECK(is_pending(SIGPIPE));
	int taken;
	CHECK(sigwait(&pipes, &taken) == 0 && taken == SIGPIPE);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
}
