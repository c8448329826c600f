/*
 * log: `spill log`. Records of one or several logs as lines for people or as one JSON array, read
 * once or as they are written.
 *
 * It puts nothing in order and adds nothing up, but for counting the requests of each rule: sums
 * are the report's. It never writes to a log.
 *
 * Begin with cli_log in log.c; text.c prints one record.
 */
#ifndef SPILL_CLI_LOG_READER_H
#define SPILL_CLI_LOG_READER_H

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>

#include "lines.h"

/* One log. */
struct log_reading {
	struct cli_lines lines;
	unsigned long records, later; /* read; of them of a later version */
	bool ended;                   /* the last record is an exit line */
	/* Of the last start line: */
	int pid; /* 0: there was none */
	enum { LOG_HERE, LOG_OTHER_HOST, LOG_OTHER_BOOT } where;
};

/* What is printed of all of them. */
struct log_output {
	bool json;
	bool many;             /* of several logs each says which it is, where another was before */
	bool counting;         /* of rules: one run after the other */
	int pid;               /* the process that was asked for, as it is numbered here; 0: none */
	unsigned long records; /* printed */
	const char *last;      /* the log of the one printed last */
	int status;
};

/* False if it cannot be opened. Closed by log_end in any case, which says so. */
bool log_begin(struct log_reading *reading, const char *path, enum cli_files files);

/* Prints what there is up to the end. */
void log_read(struct log_output *output, struct log_reading *reading);

/* The last words on that log. */
void log_end(struct log_output *output, struct log_reading *reading);

/*
 * Prints what there is and what comes, of a log or of all in a folder, also of those that are begun meanwhile: until each run has come to
 * its end and its process is gone, or until SIGINT or SIGTERM.
 */
void log_follow(struct log_output *output, const char *path, bool folder);

/* text.c: one record as a line for people. */
void cli_print_record(FILE *out, const struct spill_record *record);

/*
 * rules.c: counts the requests of each rule, record by record; a start line begins anew. Prints a line a rule, behind all
 * records of a run; nothing if not every request has its line (log.level, log.max).
 */
void cli_rules_take(const struct spill_record *record);
void cli_rules_print(FILE *out);

/* find.c: the log of a process that runs or ran; false if there is none. */
bool log_find(int pid, char path[PATH_MAX]);

/* Does that process have the log open? */
bool log_is_open_in(int pid, int fd);

#endif
