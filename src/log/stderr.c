/* The few lines that people see. Everything that a write to fd 2 could do to the host program is avoided. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "log.h"
#include "signal_guard.h"
#include "text.h"

/* A line, as any write of ours, stays below PIPE_BUF, so that a pipe takes it whole or not at all. */
#define LINE_MAX_BYTES 2048
_Static_assert(LINE_MAX_BYTES <= PIPE_BUF, "a pipe could cut the line");

enum known { UNKNOWN, ABSENT, PRESENT };

static struct {
	_Atomic enum known known;
	dev_t dev, rdev;
	ino_t ino;
	mode_t type;
} at_load;

void spill_stderr_remember(void)
{
	struct stat now;
	int error = errno;

	if (fstat(STDERR_FILENO, &now) != 0) {
		atomic_store(&at_load.known, ABSENT);
	} else {
		at_load.dev = now.st_dev;
		at_load.rdev = now.st_rdev;
		at_load.ino = now.st_ino;
		at_load.type = now.st_mode & S_IFMT;
		atomic_store(&at_load.known, PRESENT);
	}
	errno = error;
}

/* A program that closed fd 2 and opened a data file got the same number: that file is not ours to write to. */
static bool still_stderr(void)
{
	struct stat now;

	if (atomic_load(&at_load.known) == UNKNOWN) /* called before our constructor: this is load time */
		spill_stderr_remember();
	return atomic_load(&at_load.known) == PRESENT && fstat(STDERR_FILENO, &now) == 0 &&
	       now.st_dev == at_load.dev && now.st_rdev == at_load.rdev && now.st_ino == at_load.ino &&
	       (now.st_mode & S_IFMT) == at_load.type;
}

static bool has_room(void)
{
	struct pollfd descriptor = {.fd = STDERR_FILENO, .events = POLLOUT};

	return poll(&descriptor, 1, 0) == 1 && (descriptor.revents & POLLOUT) &&
	       !(descriptor.revents & (POLLERR | POLLNVAL));
}

/*
 * One write that does not wait. O_NONBLOCK on fd 2 itself would change it for everyone who shares the open
 * file, so a pipe or terminal is opened a second time; where that is refused, the room that poll saw must do.
 */
static void write_once(const char *line, size_t length)
{
	ssize_t done;
	int own = -1;

	if (S_ISSOCK(at_load.type)) {
		done = send(STDERR_FILENO, line, length, MSG_DONTWAIT | MSG_NOSIGNAL);
		(void)done;
		return;
	}
	if (S_ISFIFO(at_load.type) || (S_ISCHR(at_load.type) && isatty(STDERR_FILENO)))
		own = open("/proc/self/fd/2", O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	done = write(own >= 0 ? own : STDERR_FILENO, line, length);
	(void)done;
	if (own >= 0)
		close(own);
}

/* Paths and names may hold anything; on a terminal a control character is a command. */
static size_t compose(char line[LINE_MAX_BYTES], const char *text)
{
	struct spill_text shown = spill_text_begin(line, LINE_MAX_BYTES);

	spill_text_add(&shown, "spill: ");
	spill_text_plain(&shown, text);
	line[shown.length] = '\n'; /* in place of the end: what is too long is cut before it */
	return shown.length + 1;
}

void spill_stderr_lines(const char *lines, size_t length)
{
	struct spill_signal_guard quiet;

	spill_signal_guard_enter(&quiet);
	if (still_stderr() && has_room())
		write_once(lines, length);
	spill_signal_guard_leave(&quiet);
}

void spill_stderr_line(const char *text)
{
	char line[LINE_MAX_BYTES];

	spill_stderr_lines(line, compose(line, text));
}
