/*
 * Room for calls that take device memory but allocate no buffer: modules, streams, graphs,
 * contexts, the first launch of a function. They fail when the device is full, and few programs
 * survive that. So other memory makes way (engine_room.c).
 */
#ifndef SPILL_MAKE_ROOM_H
#define SPILL_MAKE_ROOM_H

#include "backend.h"

/* How often room is made for one call. */
#define SPILL_ROOM_ATTEMPTS 4

/*
 * The vendor refused such a call with out of memory for the `attempt`-th time, counted from 0.
 * True: memory was freed, ask the vendor again. False in a capture, if no memory can make way, or
 * after the last attempt. `caller`: the return address, for the log. pre: the calling thread is not
 * inside the gate (gate.h), and holds no lock of ours
 */
bool spill_make_room(const struct spill_backend *backend, int device, const char *api, const void *caller,
                     unsigned attempt);

/*
 * The same for a GATE row, whose stub knows only the result: for the current context's device.
 * `whole`: the call needs this many bytes at once, and an attempt with less costs memory. So either
 * all of it is made free, or nothing moves. 0: the call has no such need.
 */
typedef bool spill_make_room_fn(enum spill_domain domain, int result, const char *api, const void *caller,
                                unsigned attempt, uint64_t whole);
spill_make_room_fn spill_make_room_for;

/* For tests: a function that replaces spill_make_room_for; NULL: none. */
void spill_make_room_use(spill_make_room_fn *other);

#endif
