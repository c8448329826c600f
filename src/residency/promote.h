/*
 * Promotion: chunks that had to leave come back when there is room again, hottest first, a bounded time a call, never into
 * device.reserve, and not while the room is wanted (a quiet time after the last demotion, longer each time it was in vain).
 */
#ifndef SPILL_PROMOTE_H
#define SPILL_PROMOTE_H

#include "backend.h"

/* How long nothing has to have left the device before something comes back; twice as long each time it was too soon. */
#define SPILL_PROMOTE_QUIET_MS 20
/* How often the driver is asked for what others have given back. */
#define SPILL_PROMOTE_LOOK_MS 250

/* Something is on host that would be better on the device. */
void spill_promote_wanted(void);

/* Device memory may be free again: it is looked at in later calls. Cheap. */
void spill_promote_later(void);

/* Called from gates (maintenance.h): costs one load when nothing is on host. False: there is nothing to come back. pre: as spill_demote */
bool spill_promote_maintain(void);

/* A demotion has happened: what is put back soon would be in the way. pre: the mover is held */
void spill_promote_hold(void);

void spill_promote_reset(void); /* in a forked child */

#endif
