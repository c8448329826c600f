/*
 * Tells the ledger and the log how much memory on the host launches used where it is, and the time that
 * it cost (policy/predict/in_place_cost.h). The ledger's totals, the live page and the log then have it.
 */
#ifndef SPILL_IN_PLACE_H
#define SPILL_IN_PLACE_H

#include <stdbool.h>

/*
 * Tells the sums so far. Does nothing if no launch was seen. `last`: the process ends, so launches whose
 * time is not known count in proportion, and no vendor is called. Takes locks of the ledger and the log.
 */
void spill_in_place_tell(bool last);

void spill_in_place_reset(void); /* in a forked child */

#endif
