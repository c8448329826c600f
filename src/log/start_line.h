/* The log's first line: who ran, where, on what, with which policy (docs/log-format.md). */
#ifndef SPILL_START_LINE_H
#define SPILL_START_LINE_H

#include <stddef.h>
#include <stdint.h>

struct spill_log_start;

/* {0} is none. */
struct spill_start_line {
	char *text; /* with its newline; NULL: there was no memory for it */
	size_t length;
	size_t first; /* its length as it was composed */
	void *pages;  /* ours until spill_start_release */
	size_t pages_size;
};

/* Never fails: what does not fit or cannot be found is left out, the arguments first ("cut":true). */
void spill_start_compose(struct spill_start_line *line, const struct spill_log_start *start,
                         const char *program);

/* Makes it the line of a further file of the same run, `lines` of which are in those before. pre: text */
void spill_start_continue(struct spill_start_line *line, uint64_t lines);

void spill_start_release(struct spill_start_line *line);

#endif
