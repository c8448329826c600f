/*
 * Bringing what is about to be used to the device, with what is foreseen next, for what is needed last: the decision of
 * policy/predict/exchange_choice.h over all chunks of a device, carried out by exchange.h when the device is idle.
 */
#ifndef SPILL_PREFETCH_H
#define SPILL_PREFETCH_H

#include "access_model.h"

/* True: something came. May wait for the device, bounded; waits for no other mover. pre: as spill_follow_before, with the advice for it */
bool spill_prefetch(const struct spill_launch_access *use, const struct spill_advice *advice);

/*
 * A use that something was not brought for. Where memory is used in place again and again without an exchange, what was learned
 * no longer holds: the placement that the last exchange left behind is undone (restore.h). pre: as spill_prefetch
 */
void spill_prefetch_left_in_place(const struct spill_launch_access *use, const struct spill_advice *advice);

void spill_prefetch_reset(void); /* in a forked child */

#endif
