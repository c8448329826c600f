/*
 * trace: recorded runs. It reads logs from front to back (lines.h) and puts events into their real
 * order (sorter.h). A visitor gets them: it sums them up (summary.h), keeps them over time
 * (story.h), or decides them again (replay/).
 *
 * It prints no result and decides nothing. On stderr it reports lines and files that cannot be
 * read. Memory grows with the events to sort and the different names, not with the length of the
 * log.
 *
 * Begin with cli_trace_read and struct cli_trace_visitor.
 */
#ifndef SPILL_CLI_TRACE_H
#define SPILL_CLI_TRACE_H

#include <stdbool.h>

#include "names.h"
#include "record_read.h"
#include "sorter.h"

/* A run's lines. Late events make peaks wrong; missing lines are in other files. */
struct cli_trace_end {
	const char *path;    /* the file with its last line; valid during the call */
	unsigned long line;  /* its last line */
	unsigned long bad;   /* not records */
	unsigned long later; /* records of a later version */
	unsigned long late;
	uint64_t missing;
	bool cut;
	bool last; /* no other run follows in that file */
};

/* Names in events are valid as long as the trace, all else during the call. */
struct cli_trace_visitor {
	/* `start`: NULL if the file has none. Not called if the run continues. */
	void (*begin)(void *data, const char *path, unsigned long line,
	              const struct spill_record_start *start);
	/* Allocations, frees, moves and out of memory, in their real order. */
	void (*event)(void *data, const struct cli_event *event);
	/* Every file, oom, note, drop and exit line. A drop or exit follows all events before it. */
	void (*record)(void *data, const struct spill_record *record);
	void (*end)(void *data, const struct cli_trace_end *end);
};

struct cli_trace {
	const char *command; /* name for messages on stderr */
	const struct cli_trace_visitor *visitor;
	void *data;
	struct cli_names names;
	/* Private to trace.c: */
	struct cli_sorter sorter;
	struct cli_trace_end end;
	const struct cli_name *identity[3]; /* host, boot and time of the run */
	int pid;
	uint64_t lines;              /* lines of the run so far, by its own count */
	bool running, broken, fresh; /* fresh: this file gave no record yet */
	unsigned long complaints;    /* reported lines of this file */
};

/*
 * Reads a log, or all logs of a folder with rotated files as one run (pieces.c). False: a file
 * could not be read, a line is no record, or there is no log. Each is reported on stderr, and the
 * rest is delivered.
 */
bool cli_trace_read(struct cli_trace *trace, const char *path);

void cli_trace_free(struct cli_trace *trace);

#endif
