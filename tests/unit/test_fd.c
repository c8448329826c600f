/* Words about errors of the system, and descriptors that leave the program's numbers alone. */
#include "childtest.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/resource.h>
#include <unistd.h>

#include "fd.h"

TEST(every_error_has_a_text)
{
	static const int unknown[] = {-1, 4095, INT_MAX, INT_MIN};

	assert_string_equal(spill_error_text(ENOSPC), "No space left on device");
	assert_string_equal(spill_error_text(EPERM), "Operation not permitted");
	for (unsigned i = 0; i < sizeof(unknown) / sizeof(unknown[0]); i++)
		assert_string_equal(spill_error_text(unknown[i]), "an unknown error");
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
	CHECK(spill_fd_out_of_the_way(STDIN_FILENO) == -1);
	CHECK(errno == EMFILE);
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
	assert_true(fcntl(STDIN_FILENO, F_GETFD) >= 0);
	assert_true(fcntl(STDOUT_FILENO, F_GETFD) >= 0);
}
