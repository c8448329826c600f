/*
 * What people are told at once when out of memory surfaces, and when the process ends: a block of lines for stderr, in the
 * order in which they ask: what happened, did anything spill, how much, where, why, what would have helped, where is the log.
 * Pure: by value, into the caller's buffer.
 */
#ifndef SPILL_MORTEM_H
#define SPILL_MORTEM_H

#include "record.h"

/* A block is one write that a pipe takes whole: PIPE_BUF of Linux, pipe(7). */
#define SPILL_BLOCK 4096

struct spill_mortem {
	const char *program;
	const char *log; /* its path; "": there is none */
	const struct spill_totals *totals;
};

/*
 * Whole lines, each "spill: …" with its newline, into buffer[size]; returns their length. Texts from outside are cut and
 * their control characters replaced; with SPILL_BLOCK bytes all lines but some of the callers always fit.
 */
size_t spill_mortem_oom(const struct spill_mortem *mortem, const struct spill_record_oom *oom, char *buffer,
                        size_t size);

/* Why it spilled: bytes by reason of the alloc line. */
struct spill_why {
	uint64_t oom, limit, rule;
};

/* The same at the end of the process; `how` is the exit line's, and its figures are there to the byte. */
size_t spill_mortem_exit(const struct spill_mortem *mortem, const char *how, const struct spill_why *why,
                         char *buffer, size_t size);

#endif
