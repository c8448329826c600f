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
/* Longer lines are read in pieces. libspill never writes one: arguments end at 64 KiB. */
#define LONGEST ((size_t)16 << 20)

/* Begin of a start line. Texts never contain it: their quotes have backslashes. */
static const char START_LINE[] = "{\"v\":1,\"kind\":\"start\"";

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
	struct stat ours, current;

	if (fstat(lines->fd, &ours))
		return false;
	if (ours.st_size < lseek(lines->fd, 0, SEEK_CUR))
		return true;
	return !stat(lines->path, &current) && current.st_size > 0 && !cli_is_same_file(&current, &ours);
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

/* Makes room for another block behind `end`. Drops the lines that were read. */
static bool make_room_for_block(struct cli_lines *lines)
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

static bool read_block(struct cli_lines *lines)
{
	unsigned left = SPILL_FD_TRIES;
	ssize_t count;

	if (lines->at_end || lines->error || !make_room_for_block(lines))
		return false;
	do
		count = read(lines->fd, lines->buffer + lines->end, BLOCK);
	while (count < 0 && errno == EINTR && --left > 0);
	if (count < 0)
		lines->error = errno;
	lines->at_end = count <= 0;
	lines->end += count > 0 ? (size_t)count : 0;
	return count > 0;
}

/* Sets `text`, `length` and `whole`. False: the end. A line over LONGEST comes in pieces. */
static bool next_line(struct cli_lines *lines)
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
		if (!read_block(lines))
			break;
	}
	if (!newline && lines->following && !lines->error) {
		lines->at_end = false;
		return false;
	}
	lines->whole = newline != NULL;
	lines->text = lines->buffer + lines->begin;
	lines->length = newline ? (size_t)(newline - lines->text) : lines->end - lines->begin;
	lines->begin += lines->length + (newline ? 1 : 0);
	return newline || lines->length;
}

static bool grow_scratch(struct cli_lines *lines)
{
	size_t size = SPILL_RECORD_SCRATCH(lines->length);

	if (size <= lines->scratch_size)
		return true;
	free(lines->scratch);
	lines->scratch = malloc(size);
	lines->scratch_size = lines->scratch ? size : 0;
	return lines->scratch != NULL;
}

/* Cuts the line of a killed writer before the next run's start line. */
static bool cut_at_start_line(struct cli_lines *lines)
{
	char *start = lines->length
	                  ? memmem(lines->text + 1, lines->length - 1, START_LINE, sizeof(START_LINE) - 1)
	                  : NULL;

	if (!start)
		return false;
	lines->next_run_bytes = lines->length - (size_t)(start - lines->text);
	lines->length -= lines->next_run_bytes;
	return true;
}

/* True: the file is compressed, as logrotate leaves old logs. What follows is no line. */
static bool is_compressed(const struct cli_lines *lines)
{
	static const char *const begins[] = {"\x1f\x8b", "\x28\xb5\x2f\xfd", "\xfd\x37zXZ", "BZh"};

	if (lines->number != 1)
		return false;
	for (size_t i = 0; i < sizeof(begins) / sizeof(begins[0]); i++)
		if (lines->length >= strlen(begins[i]) && !memcmp(lines->text, begins[i], strlen(begins[i])))
			return true;
	return false;
}

/* The rest of the file counts as read. */
static enum cli_line refuse_compressed(struct cli_lines *lines)
{
	lines->reason = "the file is compressed; decompress it first";
	lines->error_offset = 0;
	lines->begin = lines->end;
	lines->at_end = true;
	return CLI_LINE_BAD;
}

enum cli_line cli_lines_next(struct cli_lines *lines, struct spill_record *record)
{
	if (lines->next_run_bytes) {
		lines->text += lines->length;
		lines->length = lines->next_run_bytes;
		lines->next_run_bytes = 0;
	} else {
		if (!next_line(lines))
			return CLI_LINE_END;
		lines->number++;
	}
	lines->error_offset = 0;
	lines->reason = "no memory for it";
	if (grow_scratch(lines))
		lines->reason = spill_record_read(lines->text, lines->length, lines->scratch,
		                                  lines->scratch_size, record, &lines->error_offset);
	if (!lines->reason)
		return CLI_LINE_RECORD;
	if (is_compressed(lines))
		return refuse_compressed(lines);
	return cut_at_start_line(lines) || !lines->whole ? CLI_LINE_CUT : CLI_LINE_BAD;
}

void cli_lines_complain(const char *command, const struct cli_lines *lines, enum cli_line line)
{
	cli_fprintf(stderr, "spill %s: %s:%lu: ", command, lines->path, lines->number);
	if (line == CLI_LINE_BAD)
		cli_fprintf(stderr, "not a record: %s (byte %zu)\n", lines->reason, lines->error_offset + 1);
	else if (lines->next_run_bytes)
		fputs("the line is cut, and another run begins in it\n", stderr);
	else
		fputs("the last line is cut\n", stderr);
}
