/*
 * What people are told on stderr when out of memory surfaces, by log.stderr: the first of a process, each, or none. A program that
 * asks for memory until it fails means no harm by it, so by default it is told once; those of oom.honest_first, which are asked
 * again, never.
 */
#ifndef SPILL_POSTMORTEM_H
#define SPILL_POSTMORTEM_H

#include "oom_report.h"

/* True if it is to be told; then it counts as told. */
bool spill_postmortem_due(const struct spill_record_oom *oom);

/* Tells it; `buffer` is room for the block. No lock of ours is held. */
void spill_postmortem_tell(const struct spill_record_oom *oom, char buffer[SPILL_STDERR_BLOCK]);

/* Counts a spill of so many bytes by its reason. */
void spill_postmortem_count(const char *reason, uint64_t bytes);

/*
 * The summary at the end of the process, with log.stderr = all; the totals are the exit line's. May be called on a signal handler's
 * small stack, hence the room.
 */
void spill_postmortem_exit(const char *how, const struct spill_totals *totals, char *buffer, size_t size);

/* A forked child has told nothing, and nothing of it spilled. */
void spill_postmortem_reset(void);

#endif
