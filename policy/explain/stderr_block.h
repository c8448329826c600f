/*
 * Inside explain/: builds a block of lines for stderr, each "spill: …", in the caller's buffer. A
 * line that does not fit is left out as a whole.
 */
#ifndef SPILL_STDERR_BLOCK_H
#define SPILL_STDERR_BLOCK_H

#include <stdbool.h>

#include "oom_report.h"
#include "text.h"

/* Bytes of a name that are shown. */
#define SPILL_BLOCK_NAME 72

struct spill_block {
	struct spill_text text;
	size_t line; /* where the last line begins */
	bool cut;    /* a line was left out */
};

void spill_block_begin(struct spill_block *block, const char *indent);
void spill_block_end(struct spill_block *block);

/* The other functions append to the line. */
void spill_block_put(struct spill_block *block, const char *text);
void spill_block_number(struct spill_block *block, uint64_t number);
void spill_block_size(struct spill_block *block, uint64_t bytes);

/*
 * A name from outside, or NULL. Only its last `most` bytes are shown, because they have the offset
 * and the file's name. Characters that steer a terminal are replaced.
 */
void spill_block_name(struct spill_block *block, const char *name, size_t most);

struct spill_block_part {
	const char *before;
	uint64_t bytes;
	const char *behind;
};

/* "5.00 GiB device, 2.04 GiB host". Parts of 0 bytes are left out. */
void spill_block_parts(struct spill_block *block, const struct spill_block_part parts[3]);
void spill_block_sums(struct spill_block *block, const struct spill_bytes *sums);

/* "3 of 12 allocations" */
void spill_block_spills(struct spill_block *block, const struct spill_totals *totals);

/* The line with the path of the log. */
void spill_block_log(struct spill_block *block, const struct spill_report_process *process);

#endif
