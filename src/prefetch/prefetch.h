/*
 * Brings memory to the device before it is accessed, together with the chunks that are predicted
 * next, in exchange for chunks that are needed last. policy/predict/exchange_choice.h chooses among
 * all chunks of a device. exchange.h carries the choice out when the device is idle.
 */
#ifndef SPILL_PREFETCH_H
#define SPILL_PREFETCH_H

#include "access_model.h"

/*
 * Promotes the chunks of an access; true: some came. May wait for the device, for a bounded time,
 * but for no other mover. pre: as spill_before_launch, with the advice for the access
 */
bool spill_prefetch(const struct spill_launch_access *access, const struct spill_access_advice *advice);

/*
 * Waits until the device is idle, if it has not been waited for in vain lately. `expected_ns`: the
 * time that this may take. pre: the mover is held; as spill_before_launch
 */
bool spill_prefetch_await_idle(const struct spill_backend *backend, int device, uint64_t expected_ns);

/*
 * Counts an access for which no chunk was promoted. If memory is accessed in place again and again
 * without an exchange, the predictions no longer hold. Then the placement of the last exchange is
 * undone (spill_restore). pre: as spill_prefetch
 */
void spill_prefetch_left_in_place(const struct spill_launch_access *access,
                                  const struct spill_access_advice *advice);

/* Notes in the log that exchanges pause from now on, or no longer. pre: advice->pause_change */
void spill_prefetch_note_pause(const struct spill_access_advice *advice);

/* Memory has come by an exchange: from now on others leave the placement alone. pre: the mover is held */
void spill_prefetch_exchanged(void);

/* Chunks that are not at home were moved by others than spill_prefetch. */
void spill_prefetch_displaced(void);

void spill_prefetch_reset(void); /* in a forked child */

#endif
