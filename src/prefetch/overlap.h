/*
 * movable.follow = overlap: memory is brought to the device beside running work (flight.h). The user promises that
 * kernels reach memory through their parameters. So a flight takes chunks that no launch names whose work is not
 * done, and a launch that names a chunk in flight waits for it.
 */
#ifndef SPILL_OVERLAP_H
#define SPILL_OVERLAP_H

#include "access_model.h"

bool spill_overlap_wanted(void); /* by the policy. */

/*
 * A launch is going to access these chunks. Lands a flight that has any of them, or has arrived. True: memory has
 * moved since the access was read. pre: as spill_before_launch; the launch may name no chunk
 */
bool spill_overlap_look(const struct spill_launch_access *access);

/* The launch needs memory that is on the host: has it flown in, and waits for it. True: some came. */
bool spill_overlap_bring(const struct spill_launch_access *access, const struct spill_access_advice *advice);

/* Is memory without a mapping? */
bool spill_overlap_away(void);

/*
 * The last look of a launch: from now on its thread submits it, and nothing that it uses flies. Begins a flight
 * of what is used next, if that is possible now.
 */
void spill_overlap_ahead(const struct spill_launch_access *access, const struct spill_access_advice *advice);

/* The same for a launch without a chunk. */
void spill_overlap_names_nothing(const struct spill_launch_access *access);

void spill_overlap_reset(void); /* in a forked child */

#endif
