/*
 * Trials of placements for graphs (placement_trial.h): before a launch, some chunks change sides, and
 * the next launches tell whether that was right.
 */
#ifndef SPILL_TRIAL_H
#define SPILL_TRIAL_H

#include "launch_access.h"
#include "stopwatch.h"

/*
 * Before a launch of a graph that has memory on the host. May move chunks. Returns the name of its
 * placement if the launch shall be timed, else 0. pre: as spill_before_launch
 */
uint64_t spill_trial_before(const struct spill_launch_access *access);

/* A launch was measured. */
void spill_trial_measured(const struct spill_stopwatch_access *access, uint64_t ns);

void spill_trial_reset(void); /* in a forked child */

#endif
