/*
 * The end of a context, and which things ended with it. A driver may give an ended context's handle to the next one at once,
 * while the thread that ended it still tidies up. So a handle alone does not say whose a thing is: a thing also keeps the
 * generation in which it was made, and an end covers only things of its own generation or an older one.
 *
 * This file never calls a vendor. Begin with spill_context_end_begin.
 */
#ifndef SPILL_CONTEXT_END_H
#define SPILL_CONTEXT_END_H

#include <stdbool.h>
#include <stdint.h>

struct spill_backend;

/* One end, from before the vendor's call until all that it covers is gone. */
struct spill_context_end {
	const struct spill_backend *backend;
	int device;
	const void *context; /* NULL, where there are no contexts: all of the device */
	uint64_t generation; /* the newest that it covers */
	uint64_t id;         /* the vendor's own number of the context (backend.h), 0: it has none */
	unsigned slot;       /* of context_end.c */
};

/* The present generation: what is made now keeps this number. One load. */
uint64_t spill_context_generation(void);

/*
 * Begins an end, before the vendor is asked. What is made from here on is of a newer generation. pre: nothing of ours is made in
 * the context any more (the caller is inside the gate)
 */
struct spill_context_end spill_context_end_begin(const struct spill_backend *backend, int device,
                                                 const void *context);

/* The end is over: what it covers is gone, or, if `undone`, the vendor did not end the context (one reference of several, an error). */
void spill_context_end_finish(const struct spill_context_end *end, bool undone);

/* True if a thing of that context (and device), made in `generation`, ends with it. */
bool spill_context_end_covers(const struct spill_context_end *end, const struct spill_backend *backend,
                              int device, const void *context, uint64_t generation);

/*
 * True if an end in progress covers such a thing: nobody knows whether it lives although its handle may be a living context's. So
 * nobody uses it or hands it out. One load while no context ends.
 */
bool spill_context_ending(const struct spill_backend *backend, int device, const void *context,
                          uint64_t generation);

/* The same, or one of the latest ends covered it: for threads that come late with something of a context. Looks through a table. */
bool spill_context_dead(const struct spill_backend *backend, int device, const void *context,
                        uint64_t generation);

void spill_context_end_fork_prepare(void);
void spill_context_end_fork_done(bool child);

#endif
