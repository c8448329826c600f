/*
 * Promotion: chunks that had to leave come back when there is room again, in the opposite of
 * eviction order. A call takes a bounded time. device.reserve stays free. After a demotion there is
 * a quiet time, because the room is wanted. It gets longer each time a promotion was too soon.
 */
#ifndef SPILL_PROMOTE_H
#define SPILL_PROMOTE_H

#include "backend.h"

/* The quiet time after a demotion; twice as long after each promotion that was too soon. */
#define SPILL_PROMOTE_QUIET_MS 20
/* How often the driver is asked for room that other processes have freed. */
#define SPILL_PROMOTE_LOOK_MS 250

/*
 * Bytes promoted at a time: 5 ms of the link and as much for mapping (docs/measurements.md), so 10
 * ms a call. A larger chunk moves whole.
 */
#define SPILL_PROMOTE_SLICE (256ull << 20)

/* Device bytes that may be used: free, less device.reserve, within device.limit. */
uint64_t spill_promote_room(const struct spill_backend *backend, int device);

/* A placement on the host would be better on the device. */
void spill_promote_wanted(void);

/* Device memory may be free again: a later call looks. Cheap. */
void spill_promote_later(void);

/*
 * Called by maintenance.h. Costs one load if no chunk is on the host. False: no chunk can come
 * back. pre: as spill_demote
 */
bool spill_promote_maintain(void);

/* Starts the quiet time after a demotion. pre: the mover is held */
void spill_promote_hold(void);

void spill_promote_reset(void); /* in a forked child */

#endif
