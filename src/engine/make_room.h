/*
 * Room for calls that take device memory and allocate no buffer: modules, streams, graphs, contexts, the first launch
 * of a function. They fail when the device is full to the brim, and few programs survive that; so something gives way.
 */
#ifndef SPILL_MAKE_ROOM_H
#define SPILL_MAKE_ROOM_H

#include "backend.h"

/* The most often that room is made for one call. */
#define SPILL_ROOM_ATTEMPTS 4

/*
 * The vendor has refused such a call with out of memory for the `attempt`-th time, from 0 on. True: something has been
 * given back, and the vendor is to be asked again. False in a capture, when nothing can give way, or after the last
 * attempt. `caller`: the return address, for the log. pre: the calling thread is not inside the gate (gate.h), and holds no lock of ours
 */
bool spill_make_room(const struct spill_backend *backend, int device, const char *api, const void *caller,
                     unsigned attempt);

/*
 * The same for a GATE row, whose stub knows only the result: of the current context's device, of CUDA. `whole`:
 * the call needs so much, and to ask again without all of it costs memory. All is made free, or nothing moves.
 * 0: the call has no such need.
 */
typedef bool spill_make_room_fn(enum spill_domain domain, int result, const char *api, const void *caller,
                                unsigned attempt, uint64_t whole);
spill_make_room_fn spill_make_room_for;

/* Another that is asked in its place; NULL: none. For tests. */
void spill_make_room_use(spill_make_room_fn *other);

#endif
