/* The line for people, whatever fd 2 is or has become. */
#include "fake_libc.h"
#include "logtest.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/socket.h>

#include "process.h"

/* fd 2 becomes `fd`, as it would be at load. */
static void loaded_with(int fd)
{
	CHECK(fd >= 0 && dup2(fd, STDERR_FILENO) == STDERR_FILENO);
	spill_stderr_remember();
}

static void check_told(int from, const char *expected)
{
	char told[4096];
	ssize_t length;

	fcntl(from, F_SETFL, O_NONBLOCK);
	length = read(from, told, sizeof(told));
	CHECK(length == (ssize_t)strlen(expected) && memcmp(told, expected, (size_t)length) == 0);
}

static void check_empty(const char *path)
{
	struct stat now;

	CHECK(stat(path, &now) == 0 && now.st_size == 0);
}

CHILD_TEST(one_line_reaches_a_pipe)
{
	int ends[2], flags;

	CHECK(pipe(ends) == 0);
	loaded_with(ends[1]);
	flags = fcntl(STDERR_FILENO, F_GETFL);
	errno = E2BIG;
	spill_stderr_line("one \x1b[2J two\nthree\xc2\x9b"
	                  "2J \x9b \xe2\x80\xae \xe2\x81\xa9 größe");
	CHECK(errno == E2BIG);
	check_told(ends[0], "spill: one ?[2J two?three?2J ? ? ? größe\n");
	CHECK(fcntl(STDERR_FILENO, F_GETFL) == flags);
}

CHILD_TEST(one_line_reaches_a_file)
{
	const char *path = in_folder("errors");
	size_t length;

	loaded_with(open(path, O_RDWR | O_CREAT | O_APPEND, 0600));
	spill_stderr_line("hello");
	CHECK(strcmp(read_all(path, &length), "spill: hello\n") == 0);
}

CHILD_TEST(closed_at_load_is_closed_for_ever)
{
	const char *data = in_folder("data-closed");

	close(STDERR_FILENO);
	spill_stderr_remember();
	spill_stderr_line("nobody hears this");
	CHECK(open(data, O_RDWR | O_CREAT, 0600) == STDERR_FILENO);
	spill_stderr_line("this is data's place");
	check_empty(data);
}

CHILD_TEST(a_data_file_on_fd_2_gets_nothing)
{
	const char *data = in_folder("data-reused");
	int ends[2];

	CHECK(pipe(ends) == 0);
	loaded_with(ends[1]);
	close(STDERR_FILENO);
	spill_stderr_line("nobody hears this");
	CHECK(open(data, O_RDWR | O_CREAT, 0600) == STDERR_FILENO);
	spill_stderr_line("this is data's place");
	check_empty(data);
	CHECK(dup2(ends[1], STDERR_FILENO) == STDERR_FILENO); /* and back, as daemons and shells do */
	spill_stderr_line("again");
	check_told(ends[0], "spill: again\n");
}

/* Which answer about fd 2 is another than at load. */
static enum { NOTHING, DEVICE, NODE, OF_NODE, TYPE } changed;

static bool looked_at(long arguments[6], long *result)
{
	struct stat *now = (struct stat *)arguments[1];

	if (arguments[0] != STDERR_FILENO || changed == NOTHING)
		return false;
	*result = fstatat(STDERR_FILENO, "", now, AT_EMPTY_PATH);
	now->st_dev += changed == DEVICE;
	now->st_ino += changed == NODE;
	now->st_rdev += changed == OF_NODE;
	now->st_mode ^= changed == TYPE ? S_IFMT & (S_IFCHR ^ S_IFIFO) : 0;
	return true;
}

/* By each of the four: one file system's files share the device, two file systems' files can share the number. */
CHILD_TEST(any_other_file_on_fd_2_gets_nothing)
{
	int ends[2];

	CHECK(pipe(ends) == 0);
	loaded_with(ends[1]);
	fake_libc[FAKE_fstat64].hook = looked_at;
	for (changed = DEVICE; changed <= TYPE; changed++)
		spill_stderr_line("nobody hears this");
	changed = NOTHING;
	fake_libc_fail(FAKE_fstat64, 1, 1, ENOMEM);
	spill_stderr_line("it may be another");
	spill_stderr_line("again");
	check_told(ends[0], "spill: again\n");
}

/* Before the constructor ran it is what it was at load. */
CHILD_TEST(a_line_before_the_constructor)
{
	const char *data = in_folder("early-data");
	int ends[2];

	CHECK(pipe(ends) == 0 && dup2(ends[1], STDERR_FILENO) == STDERR_FILENO);
	spill_stderr_line("early");
	check_told(ends[0], "spill: early\n");
	CHECK(dup2(open(data, O_CREAT | O_RDWR, 0600), STDERR_FILENO) == STDERR_FILENO);
	spill_stderr_line("nobody hears this");
	check_empty(data);
}

/* The child's deadline is what tells a write that blocks. */
CHILD_TEST(a_full_pipe_does_not_block)
{
	char junk[4096] = {0};
	int ends[2], flags;

	CHECK(pipe(ends) == 0);
	loaded_with(ends[1]);
	flags = fcntl(STDERR_FILENO, F_GETFL);
	fcntl(STDERR_FILENO, F_SETFL, flags | O_NONBLOCK);
	while (write(STDERR_FILENO, junk, sizeof(junk)) > 0)
		;
	fcntl(STDERR_FILENO, F_SETFL, flags);
	spill_stderr_line("dropped");
	CHECK(read(ends[0], junk, sizeof(junk)) == sizeof(junk));
	spill_stderr_line("heard");
}

/* poll says that there is room, but it is gone when we write: another process shares the pipe. */
static bool fill_after_poll;
static int close_after_poll = -1;

static bool polled(long arguments[6], long *result)
{
	const struct timespec timeout = {.tv_nsec = arguments[2] * 1000000};
	char junk[4096] = {0};

	*result = ppoll((struct pollfd *)arguments[0], (nfds_t)arguments[1], &timeout, NULL);
	if (close_after_poll >= 0)
		close(close_after_poll);
	if (fill_after_poll) {
		int flags = fcntl(STDERR_FILENO, F_GETFL);

		fcntl(STDERR_FILENO, F_SETFL, flags | O_NONBLOCK);
		while (write(STDERR_FILENO, junk, sizeof(junk)) > 0)
			;
		fcntl(STDERR_FILENO, F_SETFL, flags);
	}
	return true;
}

static void filled_pipe_body(void)
{
	int ends[2];

	CHECK(pipe(ends) == 0);
	loaded_with(ends[1]);
	fill_after_poll = true;
	spill_stderr_line("dropped");
}

/* The second open of the pipe has the number 0 then. */
static void filled_pipe_without_stdin_body(void)
{
	int ends[2];

	CHECK(pipe(ends) == 0);
	loaded_with(ends[1]);
	close(STDIN_FILENO);
	fill_after_poll = true;
	spill_stderr_line("dropped");
	CHECK(fcntl(STDIN_FILENO, F_GETFD) == -1);
}

static void filled_socket_body(void)
{
	int ends[2];

	CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
	loaded_with(ends[1]);
	fill_after_poll = true;
	spill_stderr_line("dropped");
}

TEST(which_device_is_full_or_at_its_limit)
{
	char line[64];
	struct spill_text text = spill_text_begin(line, sizeof(line));

	spill_loud_line_device(&text, 3, false);
	assert_string_equal(line, " (device 3 full");
	text = spill_text_begin(line, sizeof(line));
	spill_loud_line_device(&text, 12, true);
	assert_string_equal(line, " (device 12 at its limit");
}

/* What a loud line that is due begins with; "" if none is. */
static const char *loud(uint64_t part, uint64_t whole, uint64_t away)
{
	static char line[512];
	struct spill_text text;

	if (!spill_loud_line_begin(&text, line, sizeof(line), part, whole, away))
		return "";
	spill_loud_line_device(&text, 1, false);
	return line;
}

/* stderr has what ends it, and lines of growth. */
CHILD_TEST(when_a_loud_line_is_due)
{
	static struct spill_policy policy = {.log_stderr = SPILL_STDERR_OFF};
	struct spill_text text;
	char line[512];
	int ends[2];

	CHECK(pipe(ends) == 0);
	loaded_with(ends[1]);
	spill_process_use_policy(&policy);
	CHECK(strcmp(loud(8, 16, 8), "") == 0);
	policy.log_stderr = SPILL_STDERR_ALL;
	for (unsigned i = 0; i < 2 * SPILL_LOUD_LINES; i++)
		CHECK(strcmp(loud(8, 16, 1024), "test_stderr: 8 B of 16 B (device 1 full") == 0);
	policy.log_stderr = SPILL_STDERR_FIRST;
	/* Of the eight bytes some may be freed already. */
	CHECK(strcmp(loud(8, 16, 2), "test_stderr: 8 B of 16 B (device 1 full") == 0);
	CHECK(strcmp(loud(1, 1, 31), "") == 0 && strcmp(loud(31, 31, 1), "") == 0);
	fcntl(ends[0], F_SETFL, O_NONBLOCK);
	CHECK(read(ends[0], line, sizeof(line)) < 0);
	CHECK(strcmp(loud(1, 1, 32), "") == 0);
	check_told(ends[0],
	           "spill: test_stderr: now 32 B is off the card (8 B when last told); expect lower speed\n");
	CHECK(strcmp(loud(1, 1, 127), "") == 0 && strcmp(loud(1, 1, 128), "") == 0 &&
	      strcmp(loud(1, 1, 9), "") == 0);
	check_told(
	    ends[0],
	    "spill: test_stderr: now 128 B is off the card (32 B when last told); expect lower speed\n");
	CHECK(strcmp(loud(1, 1, 512), "") == 0 && strcmp(loud(1, 1, 4096), "") == 0);
	check_told(
	    ends[0],
	    "spill: test_stderr: now 512 B is off the card (128 B when last told); expect lower speed\n");
	spill_loud_line_reset();
	CHECK(strcmp(loud(3, 4, 0), "test_stderr: 3 B of 4 B (device 1 full") == 0);

	policy.log_stderr = SPILL_STDERR_ALL;
	open_log_at(in_folder("loud"));
	CHECK(spill_loud_line_begin(&text, line, sizeof(line), 1, 2, 1));
	spill_text_add(&text, " (x");
	spill_loud_line_end(&text, line);
	snprintf(line, sizeof(line), "spill: test_stderr: 1 B of 2 B (x); expect lower speed; log %s\n",
	         in_folder("loud"));
	check_told(ends[0], line);
}

TEST(room_that_was_taken_meanwhile_does_not_block)
{
	in_child(filled_pipe_body);
	in_child(filled_pipe_without_stdin_body);
	in_child(filled_socket_body);
}

CHILD_TEST(a_socket_is_served)
{
	int ends[2];

	CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
	loaded_with(ends[1]);
	spill_stderr_line("hello");
	check_told(ends[0], "spill: hello\n");
	close(ends[0]);
	spill_stderr_line("nobody");
}

static void write_without_reader(const int *ends, bool closed_late)
{
	sigset_t before = {0}, after = {0}, pending; /* libc fills a part only */

	loaded_with(ends[1]);
	if (closed_late)
		close_after_poll = ends[0];
	else
		close(ends[0]);
	pthread_sigmask(SIG_BLOCK, NULL, &before);
	for (unsigned i = 0; i < 10; i++)
		spill_stderr_line("nobody");
	pthread_sigmask(SIG_BLOCK, NULL, &after);
	sigpending(&pending);
	CHECK(memcmp(&before, &after, sizeof(before)) == 0 && !sigismember(&pending, SIGPIPE));
}

static void no_reader_body(void)
{
	int ends[2];

	CHECK(pipe(ends) == 0);
	write_without_reader(ends, false);
}

static void late_no_reader_body(void)
{
	int ends[2];

	CHECK(pipe(ends) == 0);
	write_without_reader(ends, true);
}

TEST(a_pipe_without_reader_kills_nobody)
{
	in_child(no_reader_body);
	in_child(late_no_reader_body);
}

CHILD_TEST(a_long_line_is_cut_and_ends)
{
	char text[10000];
	size_t length;

	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	loaded_with(open(in_folder("long"), O_RDWR | O_CREAT, 0600));
	spill_stderr_line(text);
	CHECK(read_all(in_folder("long"), &length)[length - 1] == '\n' && length == 2048);
}

/* A block of the largest size, whose lines are told from others' by their letter. */
static void compose_block(char *block, size_t size)
{
	static const char start[] = {'s', 'p', 'i', 'l', 'l', ':', ' '}; /* no text: nothing ends it */

	for (size_t at = 0; at + 64 <= size; at += 64) {
		memset(block + at, 'b', 63);
		memcpy(block + at, start, sizeof(start));
		block[at + 63] = '\n';
	}
}

static _Atomic bool enough;

static void *tell_lines(void *data)
{
	while (!enough)
		spill_stderr_line("of another thread");
	return NULL;
}

/* Whole blocks and whole lines, and nothing else; what found no room in the pipe is not there. */
struct listener {
	char bytes[1 << 17];
	size_t length;
	unsigned between; /* blocks behind a line */
	bool line;
};

static void listen_to(struct listener *listener, int from, const char *block)
{
	static const char line[] = "spill: of another thread\n";
	const size_t line_length = sizeof(line) - 1;
	ssize_t got =
	    read(from, listener->bytes + listener->length, sizeof(listener->bytes) - listener->length);
	size_t at = 0;

	listener->length += got > 0 ? (size_t)got : 0;
	while (listener->length - at >= PIPE_BUF) {
		bool is_line = memcmp(listener->bytes + at, line, line_length) == 0;

		CHECK(is_line || memcmp(listener->bytes + at, block, PIPE_BUF) == 0);
		listener->between += !is_line && listener->line;
		listener->line = is_line;
		at += is_line ? line_length : PIPE_BUF;
	}
	listener->length -= at;
	memmove(listener->bytes, listener->bytes + at, listener->length);
}

CHILD_TEST(a_block_is_not_torn)
{
	static struct listener listener;
	static char block[PIPE_BUF];
	pthread_t threads[3];
	int ends[2];

	compose_block(block, sizeof(block));
	CHECK(pipe(ends) == 0);
	loaded_with(ends[1]);
	fcntl(ends[0], F_SETFL, O_NONBLOCK);
	for (unsigned i = 0; i < 3; i++)
		CHECK(pthread_create(&threads[i], NULL, tell_lines, NULL) == 0);
	while (listener.between < 100) {
		for (unsigned i = 0; i < 4; i++)
			spill_stderr_lines(block, sizeof(block));
		listen_to(&listener, ends[0], block);
	}
	enough = true;
	for (unsigned i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
}

int main(void)
{
	fake_libc[FAKE_poll].hook = polled;
	return run_unit_tests(make_folder, remove_folder);
}
