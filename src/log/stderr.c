#include "stderr.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "at_start.h"
#include "fd.h"
#include "log.h"
#include "process.h"

/* Below PIPE_BUF, so that a pipe takes a line whole or not at all. */
#define LINE_MAX_BYTES 2048
_Static_assert(LINE_MAX_BYTES <= PIPE_BUF, "a pipe could cut the line");

enum stderr_state { UNKNOWN, ABSENT, PRESENT };

static struct {
	_Atomic enum stderr_state state;
	dev_t dev, rdev;
	ino_t ino;
	mode_t type;
} at_load SPILL_AT_START_DATA;

SPILL_AT_START_CODE void spill_stderr_remember(void)
{
	struct stat now;
	int error = errno;

	if (fstat(STDERR_FILENO, &now) != 0) {
		atomic_store(&at_load.state, ABSENT);
	} else {
		at_load.dev = now.st_dev;
		at_load.rdev = now.st_rdev;
		at_load.ino = now.st_ino;
		at_load.type = now.st_mode & S_IFMT;
		atomic_store(&at_load.state, PRESENT);
	}
	errno = error;
}

/* False if the program closed fd 2 and opened another file under that number. */
static bool still_stderr(void)
{
	struct stat now;

	if (atomic_load(&at_load.state) == UNKNOWN) /* before our constructor, so still at load */
		spill_stderr_remember();
	return atomic_load(&at_load.state) == PRESENT && fstat(STDERR_FILENO, &now) == 0 &&
	       now.st_dev == at_load.dev && now.st_rdev == at_load.rdev && now.st_ino == at_load.ino &&
	       (now.st_mode & S_IFMT) == at_load.type;
}

static bool stderr_has_room(void)
{
	struct pollfd descriptor = {.fd = STDERR_FILENO, .events = POLLOUT};

	return poll(&descriptor, 1, 0) == 1 && (descriptor.revents & POLLOUT) &&
	       !(descriptor.revents & (POLLERR | POLLNVAL));
}

/*
 * One write that does not wait. O_NONBLOCK on fd 2 itself would affect all processes that share the
 * open file. So a pipe or terminal is opened a second time. If that fails, the room that poll saw
 * must suffice.
 */
static void write_stderr_once(const char *line, size_t length)
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

/* Hides control characters: paths may contain them, and a terminal obeys them. */
static size_t compose_line(char line[LINE_MAX_BYTES], const char *text)
{
	struct spill_text shown = spill_text_begin(line, LINE_MAX_BYTES);

	spill_text_add(&shown, "spill: ");
	spill_text_plain(&shown, text);
	line[shown.length] = '\n'; /* replaces the NUL; a longer text was cut before it */
	return shown.length + 1;
}

void spill_stderr_lines(const char *lines, size_t length)
{
	struct spill_signal_guard guard;

	spill_signal_guard_enter(&guard);
	if (still_stderr() && stderr_has_room())
		write_stderr_once(lines, length);
	spill_signal_guard_leave(&guard);
}

void spill_stderr_line(const char *text)
{
	char line[LINE_MAX_BYTES];

	spill_stderr_lines(line, compose_line(line, text));
}

/* Bytes off the device in the last line, and the number of lines. */
static _Atomic uint64_t told_away;
static _Atomic unsigned told_lines;

void spill_loud_line_reset(void)
{
	atomic_store(&told_away, 0);
	atomic_store(&told_lines, 0);
}

static void begin_line(struct spill_text *text, char *line, size_t size)
{
	char program[256];
	spill_program_name(program, sizeof(program));
	*text = spill_text_begin(line, size);
	spill_text_add(text, program);
	spill_text_add(text, ": ");
}

/* "now 8.16 GiB is off the card (2.04 GiB when last told); expect lower speed; log …" */
static void write_growth(struct spill_text *text, char *line, size_t size, uint64_t away, uint64_t before)
{
	begin_line(text, line, size);
	spill_text_add(text, "now ");
	spill_text_size(text, away);
	spill_text_add(text, " is off the card (");
	spill_text_size(text, before);
	spill_text_add(text, " when last told");
	spill_loud_line_end(text, line);
}

/* True for the thread that writes the line. *before: the bytes in the line before. */
static bool is_due(uint64_t away, uint64_t *before)
{
	*before = atomic_load(&told_away);
	return away / 4 >= *before && atomic_load(&told_lines) < SPILL_LOUD_LINES &&
	       atomic_compare_exchange_strong(&told_away, before, away) &&
	       atomic_fetch_add(&told_lines, 1) < SPILL_LOUD_LINES;
}

bool spill_loud_line_begin(struct spill_text *text, char *line, size_t size, uint64_t part, uint64_t whole,
                           uint64_t away)
{
	enum spill_log_stderr mode = spill_process_policy()->log_stderr;
	uint64_t before = 0;
	away = away > part ? away : part; /* some of it may be freed already */
	if (mode == SPILL_STDERR_OFF || (mode == SPILL_STDERR_FIRST && !is_due(away, &before)))
		return false;
	if (before) {
		write_growth(text, line, size, away, before);
		return false;
	}
	begin_line(text, line, size);
	spill_text_size(text, part);
	spill_text_add(text, " of ");
	spill_text_size(text, whole);
	return true;
}

void spill_loud_line_device(struct spill_text *text, int device, bool at_limit)
{
	spill_text_add(text, " (device ");
	spill_text_number(text, (uint64_t)device);
	spill_text_add(text, at_limit ? " at its limit" : " full");
}

void spill_loud_line_end(struct spill_text *text, const char *line)
{
	spill_text_add(text, "); expect lower speed");
	if (spill_log_path()[0]) {
		spill_text_add(text, "; log ");
		spill_text_add(text, spill_log_path());
	}
	spill_stderr_line(line);
}
