/* The log's first line: who ran, where, on what, with which policy (docs/log-format.md). */
#ifndef SPILL_START_H
#define SPILL_START_H

#include <stddef.h>

struct spill_log_start;

struct spill_start_line {
	const char *text; /* with its newline */
	size_t length;
	void *pages; /* ours until spill_start_release */
	size_t pages_size;
};

/* Never fails: what does not fit or cannot be found is left out, the arguments first ("cut":true). */
void spill_start_compose(struct spill_start_line *line, const struct spill_log_start *start,
                         const char *program);
void spill_start_release(struct spill_start_line *line);

#endif
