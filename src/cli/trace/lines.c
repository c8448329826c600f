#include "lines.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fd.h"
#include "put.h"

#define BLOCK ((size_t)1 << 20)
/* No writer of ours makes such a line (arguments end at 64 KiB); of what is longer no more than this is held. */
#define LONGEST ((size_t)16 << 20)

/* How each start line begins. Elsewhere in a line it cannot be: a quote within a text has a backslash before it. */
static const char START[] = "{\"v\":1,\"kind\":\"start\"";

bool cli_lines_open(struct cli_lines *lines, const char *path, enum cli_files files)
{
	*lines = (struct cli_lines){.path = path, .files = files};
	lines->fd = cli_open(path, files, &lines->error);
	if (lines->fd < 0)
		return false;
	posix_fadvise(lines->fd, 0, 0, POSIX_FADV_SEQUENTIAL);
	return true;
}

bool cli_lines_is_replaced(const struct cli_lines *lines)
{
	struct stat ours, there;

	if (fstat(lines->fd, &ours))
		return false;
	if (ours.st_size < lseek(lines->fd, 0, SEEK_CUR))
		return true;
	return !stat(lines->path, &there) && there.st_size > 0 &&
	       (there.st_dev != ours.st_dev || there.st_ino != ours.st_ino);
}

bool cli_lines_reopen(struct cli_lines *lines)
{
	const struct cli_lines old = *lines;

	cli_lines_close(lines);
	return cli_lines_open(lines, old.path, old.files);
}

void cli_lines_close(struct cli_lines *lines)
{
	if (lines->fd >= 0)
		close(lines->fd);
	free(lines->buffer);
	free(lines->scratch);
	lines->buffer = lines->scratch = NULL;
	lines->fd = -1;
}

/* Room for another block behind `end`: what was told is forgotten first. */
static bool make_room(struct cli_lines *lines)
{
	size_t left = lines->end - lines->begin;
	char *larger;

	if (lines->begin) {
		memmove(lines->buffer, lines->buffer + lines->begin, left);
		lines->begin = 0;
		lines->end = left;
	}
	if (lines->size - left >= BLOCK)
		return true;
	larger = realloc(lines->buffer, lines->size + BLOCK + left);
	if (!larger) {
		lines->error = ENOMEM;
		return false;
	}
	lines->buffer = larger;
	lines->size += BLOCK + left;
	return true;
}

/* True if there is more in the buffer than before. */
static bool fill(struct cli_lines *lines)
{
	unsigned left = SPILL_FD_TRIES;
	ssize_t count;

	if (lines->over || lines->error || !make_room(lines))
		return false;
	do
		count = read(lines->fd, lines->buffer + lines->end, BLOCK);
	while (count < 0 && errno == EINTR && --left > 0);
	if (count < 0)
		lines->error = errno;
	lines->over = count <= 0;
	lines->end += count > 0 ? (size_t)count : 0;
	return count > 0;
}

/* Sets `text`, `length` and `whole`; false at the end. A line that is longer than any may be is told in pieces. */
static bool take_line(struct cli_lines *lines)
{
	size_t seen = 0;
	char *newline;

	for (;;) {
		size_t left = lines->end - lines->begin;

		newline = left > seen ? memchr(lines->buffer + lines->begin + seen, '\n', left - seen) : NULL;
		if (newline)
			break;
		seen = left;
		if (left > LONGEST) {
			newline = lines->buffer + lines->begin + left - 1;
			break;
		}
		if (!fill(lines))
			break;
	}
	if (!newline && lines->following && !lines->error) {
		lines->over = false;
		return false;
	}
	lines->whole = newline != NULL;
	lines->text = lines->buffer + lines->begin;
	lines->length = newline ? (size_t)(newline - lines->text) : lines->end - lines->begin;
	lines->begin += lines->length + (newline ? 1 : 0);
	return newline || lines->length;
}

static bool room_to_decode(struct cli_lines *lines)
{
	size_t size = SPILL_RECORD_SCRATCH(lines->length);

	if (size <= lines->scratch_size)
		return true;
	free(lines->scratch);
	lines->scratch = malloc(size);
	lines->scratch_size = lines->scratch ? size : 0;
	return lines->scratch != NULL;
}

/* The line without a newline of somebody who was killed, and in it the start line of who came next. */
static bool cut_by_start(struct cli_lines *lines)
{
	char *start =
	    lines->length ? memmem(lines->text + 1, lines->length - 1, START, sizeof(START) - 1) : NULL;

	if (!start)
		return false;
	lines->behind = lines->length - (size_t)(start - lines->text);
	lines->length -= lines->behind;
	return true;
}

enum cli_line cli_lines_next(struct cli_lines *lines, struct spill_record *record)
{
	if (lines->behind) {
		lines->text += lines->length;
		lines->length = lines->behind;
		lines->behind = 0;
	} else {
		if (!take_line(lines))
			return CLI_LINE_END;
		lines->number++;
	}
	lines->at = 0;
	lines->reason = "no memory for it";
	if (room_to_decode(lines))
		lines->reason = spill_record_read(lines->text, lines->length, lines->scratch,
		                                  lines->scratch_size, record, &lines->at);
	if (!lines->reason)
		return CLI_LINE_RECORD;
	return cut_by_start(lines) || !lines->whole ? CLI_LINE_CUT : CLI_LINE_BAD;
}

void cli_lines_complain(const char *command, const struct cli_lines *lines, enum cli_line line)
{
	cli_fprintf(stderr, "spill %s: %s:%lu: ", command, lines->path, lines->number);
	if (line == CLI_LINE_BAD)
		cli_fprintf(stderr, "not a record: %s (byte %zu)\n", lines->reason, lines->at + 1);
	else if (lines->behind)
		fputs("the line is cut, and another run begins in it\n", stderr);
	else
		fputs("the last line is cut\n", stderr);
}
