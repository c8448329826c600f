/* The lines of one log file, each read as a record, in big blocks: a log may have millions of lines. */
#ifndef SPILL_CLI_LINES_H
#define SPILL_CLI_LINES_H

#include <stdbool.h>
#include <stddef.h>

#include "cli.h"
#include "record_read.h"

enum cli_line {
	CLI_LINE_RECORD,
	CLI_LINE_CUT, /* its writer was killed while it wrote: the file ends in it, or another run begins in it */
	CLI_LINE_BAD,
	CLI_LINE_END, /* of the file, or it cannot be read: `error` */
};

struct cli_lines {
	const char *path; /* not owned */
	enum cli_files files;
	int fd;
	int error;            /* of open or read, for cli_open_text; 0 */
	unsigned long number; /* of the line, from 1 */
	const char *text;     /* the line without its newline, until the next one is asked for */
	size_t length;
	bool
	    following; /* the caller's: END is not for good, and a line without its newline is not told yet */
	const char *reason; /* of CUT and BAD: static text */
	size_t at;          /* and the offset of the byte that is wrong */
	/* Inside lines.c: */
	char *buffer, *scratch;
	size_t size, begin, end, scratch_size;
	bool over;     /* the file has been read to its end */
	bool whole;    /* the line has its newline */
	size_t behind; /* bytes of a run that begins in the line: the next to be read */
};

/* False if it cannot be opened: `error`. Closed by cli_lines_close in any case. */
bool cli_lines_open(struct cli_lines *lines, const char *path, enum cli_files files);

/* Of the record nothing is kept beyond the next call. */
enum cli_line cli_lines_next(struct cli_lines *lines, struct spill_record *record);

/* Says on stderr, for that subcommand, which line is no record, and why. */
void cli_lines_complain(const char *command, const struct cli_lines *lines, enum cli_line line);

/*
 * At END: has somebody put another file in its place, in which something is already, or made it shorter than what was read? Then
 * reopen begins with what the path names now.
 */
bool cli_lines_is_replaced(const struct cli_lines *lines);
bool cli_lines_reopen(struct cli_lines *lines);

void cli_lines_close(struct cli_lines *lines);

/* pieces.c: the logs of a folder, in reading order. A run whose file was rotated lies in several. */
struct cli_pieces {
	char **paths;
	size_t count;
	int error; /* errno value of a folder that cannot be read; 0 */
};

/*
 * All *.jsonl, and what becomes of their names when they are rotated (x.jsonl.1, x.jsonl-20261121): by name, with numbers in their
 * order; those of one name (x.jsonl, x-2.jsonl, too) by their first start lines, so that the piece that goes on comes behind what it
 * continues.
 */
struct cli_pieces cli_pieces_find(const char *folder);

void cli_pieces_free(struct cli_pieces *pieces);

#endif
