/*
 * A block of lines for stderr, each "spill: …", as it is put together in the caller's buffer (mortem.h). A line that does not fit is
 * left out as a whole.
 */
#ifndef SPILL_STDERR_BLOCK_H
#define SPILL_STDERR_BLOCK_H

#include <stdbool.h>

#include "oom_report.h"
#include "text.h"

/* The most of a name that is shown. */
#define SPILL_STDERR_BLOCK_NAME 72

struct spill_stderr_block {
	struct spill_text text;
	size_t line; /* where the last one begins */
	bool cut;    /* one was left out */
};

void spill_stderr_block_begin(struct spill_stderr_block *block, const char *indent);
void spill_stderr_block_end(struct spill_stderr_block *block);

/* All that follows puts its text behind the line. */
void spill_stderr_block_put(struct spill_stderr_block *block, const char *text);
void spill_stderr_block_number(struct spill_stderr_block *block, uint64_t number);
void spill_stderr_block_size(struct spill_stderr_block *block, uint64_t bytes);

/* A text from outside, which may be NULL: the end of what is longer, an offset, a file's name. What could steer a terminal is replaced. */
void spill_stderr_block_name(struct spill_stderr_block *block, const char *name, size_t most);

struct spill_stderr_block_part {
	const char *before;
	uint64_t bytes;
	const char *behind;
};

/* "5.00 GiB device, 2.04 GiB host", what is 0 left out. */
void spill_stderr_block_parts(struct spill_stderr_block *block,
                              const struct spill_stderr_block_part parts[3]);
void spill_stderr_block_sums(struct spill_stderr_block *block, const struct spill_bytes *sums);

/* "3 of 12 allocations" */
void spill_stderr_block_spills(struct spill_stderr_block *block, const struct spill_totals *totals);

/* The line that says where the log is. */
void spill_stderr_block_log(struct spill_stderr_block *block, const struct spill_report_process *mortem);

#endif
