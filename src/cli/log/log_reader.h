/*
 * log: `spill log`. It prints the records of logs as lines for people or as one JSON array, once or
 * while they are written.
 *
 * It never sorts, and never writes to a log. It counts only the requests of each rule; other sums
 * are in `spill report`.
 *
 * Begin with cli_log in log.c; text.c prints one record.
 */
#ifndef SPILL_CLI_LOG_READER_H
#define SPILL_CLI_LOG_READER_H

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>

#include "files.h"
#include "filter.h"
#include "life.h"
#include "lines.h"

struct log_reading {
	struct cli_lines lines;
	unsigned long records, later; /* records read, and those of a later version */
	struct cli_run_files files;   /* of callers */
	bool ended;                   /* the last record is an exit line */
	/* From the last start line: */
	int pid;         /* 0: none yet */
	bool gone;       /* its process had ended before its lines were read */
	bool follow_off; /* movable.follow is off */
	enum { LOG_HERE, LOG_OTHER_HOST, LOG_OTHER_BOOT } where;
};

struct log_output {
	bool json;
	bool many; /* print each log's name where it changes */
	bool counting;
	struct log_filter filter;
	bool matched;          /* the filter showed a record. */
	int pid;               /* pid from the command line; 0: none */
	unsigned long records; /* records printed */
	const char *last;      /* log of the last printed record */
	int status;
};

/* Opens a log. False: it cannot be opened. Call log_end in any case. */
bool log_begin(struct log_reading *reading, const char *path, enum cli_files files);

/* Prints the records up to the end of the file. */
void log_read(struct log_output *output, struct log_reading *reading);

/* Prints the summary or the error of a log, and closes it. */
void log_end(struct log_output *output, struct log_reading *reading);

/* Prints records of a log or folder until every run has ended, or SIGINT or SIGTERM comes. */
void log_follow(struct log_output *output, const char *path, bool folder);

/* text.c: prints a record as a line for people, with the functions of callers. `follow_off`: of the run. */
void cli_print_record(FILE *out, const struct spill_record *record, const struct cli_run_files *files,
                      bool follow_off);

/* rules.c: counts requests by rule, and prints them unless lines are missing. */
void cli_rules_take(const struct spill_record *record);
void cli_rules_print(FILE *out);

#endif
