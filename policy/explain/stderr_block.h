/*
 * Inside explain/: builds a block of lines for stderr, each "spill: …", in the caller's buffer. A
 * line that does not fit is left out as a whole.
 */
#ifndef SPILL_STDERR_BLOCK_H
#define SPILL_STDERR_BLOCK_H

#include <stdbool.h>

#include "oom_report.h"
#include "text.h"

struct spill_block {
	struct spill_text text;
	size_t line; /* where the last line begins */
	bool cut;    /* a line was left out */
};

void spill_block_begin(struct spill_block *block);
void spill_block_end(struct spill_block *block);

/* Appends to the line, as spill_text_format. */
void spill_block_put(struct spill_block *block, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* A whole line. */
void spill_block_line(struct spill_block *block, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/*
 * A name from outside for %s, or NULL. It has only its last bytes, because they have the offset and
 * the file's name. Characters that steer a terminal are replaced.
 */
struct spill_word spill_block_name(const char *name);

/* "up to 2.04 GiB was in host memory (…); moves held the program up for 0.30 s, …" */
void spill_block_story(struct spill_block *block, const struct spill_report_process *process);

/* Adds the path of the log, or a part of it. */
void spill_block_path(struct spill_block *block, const char *path);

/* The line with the path of the log. */
void spill_block_log(struct spill_block *block, const struct spill_report_process *process);

#endif
