/*
 * trace: recorded runs. Logs are read once from front to back (lines.h), put in the order in
 * which things happened (sorter.h), and told to a visitor who adds them up (summary.h), keeps
 * them over time (story.h) or decides them again (replay/).
 *
 * It prints no result and decides nothing: on stderr it says which line or file could not be
 * read. Memory goes by what is still to be sorted and by how many different names there are, not
 * by how long the log is.
 *
 * Begin with cli_trace_read and struct cli_trace_visitor.
 */
#ifndef SPILL_CLI_TRACE_H
#define SPILL_CLI_TRACE_H

#include <stdbool.h>

#include "names.h"
#include "record_read.h"
#include "sorter.h"

/* How a run's lines were, told at its end. */
struct cli_trace_end {
	unsigned long line;  /* its last */
	unsigned long bad;   /* lines that are no records */
	unsigned long later; /* records of a later version: not looked into */
	unsigned long late;  /* events too late for their order: peaks may be wrong */
	uint64_t missing;    /* lines that are in other files: the log was rotated or truncated */
	bool cut;            /* its last line is cut */
};

/* Names of events live as long as the trace; all else until the call returns. */
struct cli_trace_visitor {
	/* `start` is NULL where a file does not begin with a start line. Not for one that goes on with the run before it. */
	void (*begin)(void *data, const char *path, unsigned long line,
	              const struct spill_record_start *start);
	/* Allocations, frees, moves and out of memory, as they happened. */
	void (*event)(void *data, const struct cli_event *event);
	/*
	 * Each oom, note, drop and exit line, as it is read. Before a drop and an exit all events of the lines before it
	 * were told; an oom's event comes after those that were before it.
	 */
	void (*record)(void *data, const struct spill_record *record);
	void (*end)(void *data, const struct cli_trace_end *end);
};

struct cli_trace {
	const char *command; /* of whom complaints on stderr are */
	const struct cli_trace_visitor *visitor;
	void *data;
	struct cli_names names;
	/* Inside trace.c: */
	struct cli_sorter sorter;
	struct cli_trace_end end;
	const struct cli_name *identity[3]; /* of the run: host, boot, time */
	int pid;
	uint64_t lines;              /* of the run until now, by its own count */
	bool running, broken, fresh; /* fresh: no record of this file was told yet */
	unsigned long told;          /* complaints of this file */
};

/*
 * A log, or all of a folder (pieces.c): there a run whose file was rotated is told as one. False if something could not be read, a line is no
 * record, or there was no log: said on stderr. What could be read was told.
 */
bool cli_trace_read(struct cli_trace *trace, const char *path);

void cli_trace_free(struct cli_trace *trace);

#endif
