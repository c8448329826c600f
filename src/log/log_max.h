/*
 * log.max: how much more the log may take, and the sums of what found no room. From the first line that is left out on
 * all others are, so that the lines in the file are the beginning of what happened and the sums are the rest. Memory
 * of fixed size. Not locked: log.c does that.
 */
#ifndef SPILL_LOG_MAX_H
#define SPILL_LOG_MAX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "record.h"

struct spill_logmax {
	uint64_t max, room; /* bytes; all, and what is left of it */
	bool full;          /* a line was left out */
	bool pending;       /* the sums have something to tell */
	struct spill_record_drop dropped;
};

/* What a drop line and the note may take. */
#define SPILL_LOG_MAX_LINE 1280

void spill_log_max_begin(struct spill_logmax *max, uint64_t bytes);

/* A line that is in the file, or on its way there. */
void spill_log_max_spend(struct spill_logmax *max, size_t length);

/* True the first time that there is no room: then a note is due. From then on there is none. */
bool spill_log_max_fill(struct spill_logmax *max);

/* The note, and what it says. */
size_t spill_log_max_note(const struct spill_logmax *max, char *text, size_t text_size, char *line,
                          size_t size);

/* `peak`: of the run until now, the line that is counted included. */
void spill_log_max_count(struct spill_logmax *max, enum spill_drop kind, const struct spill_bytes *bytes,
                         const struct spill_bytes *peak);

/* The drop line; then, if it was taken, the sums begin anew. pre: pending */
size_t spill_log_max_line(struct spill_logmax *max, char *line, size_t size);
void spill_log_max_told(struct spill_logmax *max);

#endif
