/*
 * log.max: the size that is left for the log, and the sums of the lines that are left out. After
 * the first such line all others are left out too. So the lines in the file are the beginning of
 * the run, and the sums are the rest. The memory has a fixed size. The caller, log.c, holds the
 * lock.
 */
#ifndef SPILL_LOG_MAX_H
#define SPILL_LOG_MAX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "record.h"

struct spill_log_max {
	uint64_t max, room; /* bytes: the limit, and the part that is left */
	bool full;          /* a line was left out */
	bool pending;       /* the sums are not in the log yet */
	struct spill_record_drop dropped;
};

/* The longest drop line or note. */
#define SPILL_LOG_MAX_LINE 1280

void spill_log_max_begin(struct spill_log_max *max, uint64_t bytes);

/* Subtracts a line that the queue or the file has taken. */
void spill_log_max_spend(struct spill_log_max *max, size_t length);

/* Called when a line finds no room: no later line does. True the first time: a note is due. */
bool spill_log_max_fill(struct spill_log_max *max);

/* Composes the note as `line`, and its words as `text`. */
size_t spill_log_max_note(const struct spill_log_max *max, char *text, size_t text_size, char *line,
                          size_t size);

/* Counts events whose line was left out. `totals`: of the run until now, including them. */
void spill_log_max_count(struct spill_log_max *max, enum spill_drop kind, const struct spill_sum *sum,
                         const struct spill_totals *totals);

/* Composes the drop line. `told` resets the sums when the log has taken that line. pre: pending */
size_t spill_log_max_line(struct spill_log_max *max, char *line, size_t size);
void spill_log_max_told(struct spill_log_max *max);

#endif
