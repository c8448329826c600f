/*
 * residency: moves chunks between device and host while the program's pointers stay: demote.h, promote.h, exchange.h. This header:
 * whether allocations of this process are made movable: what the user says (movable.*), what the device can do, and what
 * stands against it (hazards.def). Each reason against it is noted once, and only where memory would have been made
 * movable, or moved.
 *
 * `on` believes the user that nothing uses the memory but the functions of the table; what forbid says holds all the same.
 *
 * It does not decide what the program is going to use (prefetch/). Begin with demote.h, then move_batch.h.
 */
#ifndef SPILL_MOVABLE_H
#define SPILL_MOVABLE_H

#include "backend.h"

/*
 * Shall a plain device allocation of `bytes` be made movable? `chunks` as the decision says (policy.h); ON: however empty the device
 * is. movable.enable = off and movable.min hold for all. Asks the driver for free memory only now and then, and never
 * for what is smaller than movable.min; a program that stays below movable.above sees no other call of ours.
 * pre: a context is current; the request is charged to the device's account already; no lock of ours is held
 */
bool spill_movable_wanted(const struct spill_backend *backend, int device, uint64_t bytes,
                          enum spill_switch chunks);

/*
 * May chunks move at this moment? False also when something was mapped since that submits work around the gate.
 * pre: no lock of ours but the mover is held
 */
bool spill_movable_may_move(const struct spill_backend *backend, int device);

/* From now on nothing is made movable or moved, for this reason (static): a green context, an export … */
void spill_movable_forbid(const char *reason);

/* After a fork, in the child: nothing is known. */
void spill_movable_reset(void);

#endif
