/*
 * The end of a context, and the objects that end with it: events, timers, streams, memory. A driver
 * may give an ended context's handle to the next one at once, while the ending thread still tidies
 * up. So an object also keeps the generation in which it was made. An end covers only objects of
 * its own generation or an older one.
 *
 * This file never calls a vendor. Begin with spill_context_end_begin.
 */
#ifndef SPILL_CONTEXT_END_H
#define SPILL_CONTEXT_END_H

#include <stdbool.h>
#include <stdint.h>

#include "lock.h"

struct spill_backend;

/* From before the vendor's call until all objects that the end covers are gone. */
struct spill_context_end {
	const struct spill_backend *backend;
	int device;
	const void *context; /* NULL for a vendor without contexts: everything of the device ends */
	uint64_t generation; /* of the newest objects that the end covers */
	uint64_t id;         /* the driver's number for the context (backend.h), or 0 */
	unsigned slot;       /* private to context_end.c */
};

/* The present generation, for objects that are made now. One load. */
uint64_t spill_context_generation(void);

/*
 * Begins an end, before the vendor's call. Objects made from here on are of a newer generation. Waits
 * for threads that hold the context, at most 5 s.
 * pre: libspill makes no more objects in the context (the caller is inside the gate)
 */
struct spill_context_end spill_context_end_begin(const struct spill_backend *backend, int device,
                                                 const void *context);

struct spill_context_hold {
	const void *context;
	int cancel; /* the thread is not cancelled meanwhile */
};

/*
 * Holds a context for calls of the vendor with an object in it that was made in `generation`, or is
 * made now (UINT64_MAX): the end of the context waits for spill_context_release. False: the context is
 * ending, the object may be gone, and nothing is held. A look alone is not enough, because another
 * thread may begin and finish the end after it. pre: this thread does not end a context meanwhile
 */
bool spill_context_hold(struct spill_context_hold *hold, const struct spill_backend *backend, int device,
                        const void *context, uint64_t generation);
void spill_context_release(const struct spill_context_hold *hold);

/* `undone`: the vendor refused, or the reference was not the last one. */
void spill_context_end_finish(const struct spill_context_end *end, bool undone);

/* True if an object of that context and device, made in `generation`, ends with this end. */
bool spill_context_end_covers(const struct spill_context_end *end, const struct spill_backend *backend,
                              int device, const void *context, uint64_t generation);

/*
 * True if an end in progress covers such an object. It may be dead although its handle looks alive,
 * so libspill neither uses it nor keeps it for later. One load while no context ends.
 */
bool spill_context_ending(const struct spill_backend *backend, int device, const void *context,
                          uint64_t generation);

/* Also true if one of the latest ends covered it, for a late thread. Searches a table. */
bool spill_context_dead(const struct spill_backend *backend, int device, const void *context,
                        uint64_t generation);

extern const struct spill_fork_lock spill_context_end_fork_lock;

#endif
