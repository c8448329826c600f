/*
 * The report on stderr when an out of memory surfaces.
 *
 * log.stderr decides: the first one of a process, each one, or none. By default one is enough: a
 * program may ask until it fails on purpose. A failure of oom.honest_first is never reported,
 * because the program asks again.
 */
#ifndef SPILL_POSTMORTEM_H
#define SPILL_POSTMORTEM_H

#include "oom_report.h"

/* Is this out of memory to be reported? If so, it counts as reported. */
bool spill_postmortem_due(enum spill_refused_by refused_by);

/* Writes the report. `buffer` is its scratch space. No lock of ours is held. */
void spill_postmortem_tell(const struct spill_record_oom *oom, char buffer[SPILL_STDERR_BLOCK]);

/* Adds a spill of `bytes` to the sum of its reason. */
void spill_postmortem_count(enum spill_reason reason, uint64_t bytes);

/*
 * Writes the summary at the end of the process with log.stderr = all, and one line if memory was
 * off the device with `first`. `totals` and `time_us` are those of the exit line. The caller brings
 * the buffer: a signal handler's stack may be small.
 */
void spill_postmortem_exit(const char *how, const struct spill_totals *totals, uint64_t time_us, char *buffer,
                           size_t size);

/* The policy is refused, with this problem, which lives as long as the process. */
void spill_postmortem_policy(const char *problem);

/* For a forked child, which has reported and spilled nothing. */
void spill_postmortem_reset(void);

#endif
