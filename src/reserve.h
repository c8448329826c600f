/*
 * device.reserve, kept free while something can make way for it. Code that the vendor loads at the first launch of a kernel
 * cannot be given room afterwards: a kernel that did not find it fails for good, whatever is freed then (docs/
 * measurements.md: 2, then 999). So the room must be there before, and every allocation takes some of it.
 */
#ifndef SPILL_RESERVE_H
#define SPILL_RESERVE_H

#include "backend.h"

/* How often it is looked at by the clock: a question for free memory costs 4 us; and after one that could not be made whole. */
#define SPILL_RESERVE_LOOK_MS 10
#define SPILL_RESERVE_VAIN_MS 1000
/* What may be given out between two looks that the clock allows. */
#define SPILL_RESERVE_TAKEN ((uint64_t)8 << 20)

/*
 * Looks, now and then, whether less than half of the reserve is free, and demotes until it is whole. Cheap while nothing is
 * movable. pre: as spill_demote (demote.h)
 */
void spill_reserve_keep(const struct spill_backend *backend, int device, const char *api, const void *caller);

/* The same for a call that may load code: looks once a millisecond, and makes the whole of it free. */
void spill_reserve_whole(const struct spill_backend *backend, int device, const char *api,
                         const void *caller);

/* The driver has given out so many bytes: it will be looked at soon. Cheap. */
void spill_reserve_taken(uint64_t bytes);

/* The same from gates (tick.h), for the current context's device. False: nothing is movable. */
bool spill_reserve_tick(void);

#endif
