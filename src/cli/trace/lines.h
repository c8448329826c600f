/* Reads a log's lines as records, in big blocks, because there may be millions. */
#ifndef SPILL_CLI_LINES_H
#define SPILL_CLI_LINES_H

#include <stdbool.h>
#include <stddef.h>

#include "cli.h"
#include "record_read.h"

enum cli_line {
	CLI_LINE_RECORD,
	/* the writer was killed: the file ends here, or another run begins in the line */
	CLI_LINE_CUT,
	CLI_LINE_BAD,
	CLI_LINE_END, /* end of the file, or `error` is set */
};

struct cli_lines {
	const char *path; /* owned by the caller */
	enum cli_files files;
	int fd;
	int error;            /* of open or read, for cli_open_text; 0: none */
	unsigned long number; /* number of the line, from 1 */
	const char *text;     /* the line without its newline, valid until the next call */
	size_t length;
	/* set by the caller: the file may still grow */
	bool following;
	const char *reason;  /* of CUT and BAD; static */
	size_t error_offset; /* offset of the bad byte */
	/* Private to lines.c: */
	char *buffer, *scratch;
	size_t size, begin, end, scratch_size;
	bool at_end;           /* read to the end of the file */
	bool whole;            /* the line has its newline */
	size_t next_run_bytes; /* length of the next run's first line, which is inside this one */
};

/* Opens a log. False: see `error`. Call cli_lines_close in any case. */
bool cli_lines_open(struct cli_lines *lines, const char *path, enum cli_files files);

/* Reads the next line. The record is valid until the next call. */
enum cli_line cli_lines_next(struct cli_lines *lines, struct spill_record *record);

/* Reports on stderr that a line is no record. */
void cli_lines_complain(const char *command, const struct cli_lines *lines, enum cli_line line);

/*
 * At END: true if the path names another file that is not empty, or the file became shorter than
 * the part that was read. cli_lines_reopen then begins with the path's current file.
 */
bool cli_lines_is_replaced(const struct cli_lines *lines);
bool cli_lines_reopen(struct cli_lines *lines);

void cli_lines_close(struct cli_lines *lines);

/* pieces.c: finds a folder's logs in reading order. A rotated run has several files. */
struct cli_pieces {
	char **paths;
	size_t count;
	int error;         /* errno if the folder cannot be read; 0 */
	size_t compressed; /* logs that are compressed, which nobody reads */
	char *one_of_them; /* its name; NULL */
};

/*
 * Finds *.jsonl and rotated names (x.jsonl.1, x.jsonl-20261121). They are sorted by name, with
 * numbers in their order. Files of one name (x.jsonl, x-2.jsonl) are sorted by their first start
 * line, so that a piece follows the one that it continues.
 */
struct cli_pieces cli_pieces_find(const char *folder);

/* NULL, or the reason why there is none. */
const char *cli_pieces_problem(const struct cli_pieces *pieces);

/* Reports on stderr that compressed logs are left out, if there are any. */
void cli_pieces_complain(const char *command, const char *folder, const struct cli_pieces *pieces);

void cli_pieces_free(struct cli_pieces *pieces);

#endif
