/*
 * Bringing what is about to be used to the device, with what is foreseen next, for what is needed last: the decision of
 * policy/predict/exchange_choice.h over all chunks of a device, carried out by exchange.h when the device is idle.
 */
#ifndef SPILL_BRING_H
#define SPILL_BRING_H

#include "uses.h"

/* True: something came. May wait for the device, bounded; waits for no other mover. pre: as spill_follow_before, with the advice for it */
bool spill_bring(const struct spill_use *use, const struct spill_advice *advice);

/*
 * A use that something was not brought for. Where memory is used in place again and again without an exchange, what was learned
 * no longer holds: the placement that the last exchange left behind is undone (restore.h). pre: as spill_bring
 */
void spill_bring_left_alone(const struct spill_use *use, const struct spill_advice *advice);

/* Something was brought just now. */
bool spill_bring_active(void);

void spill_bring_reset(void); /* in a forked child */

#endif
