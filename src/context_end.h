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
};

/* The present generation: what is made now keeps this number. One load. */
uint64_t spill_context_generation(void);

/* Begins an end, before the vendor is asked. What is made from here on is of a newer generation. */
struct spill_context_end spill_context_end_begin(const struct spill_backend *backend, int device,
                                                 const void *context);

/* The vendor did not end the context after all: it failed, or gave up one reference of several. */
void spill_context_end_undo(const struct spill_context_end *end);

/* True if a thing of that context (and device), made in `generation`, ends with it. */
bool spill_context_end_covers(const struct spill_context_end *end, const struct spill_backend *backend,
                              int device, const void *context, uint64_t generation);

/*
 * True if some end covers such a thing: it is dead, or about to be, although its handle may be a living context's. Then nobody
 * may use it or hand it out again. One load while no context ends.
 */
bool spill_context_ending(const struct spill_backend *backend, int device, const void *context,
                          uint64_t generation);

void spill_context_end_fork_prepare(void);
void spill_context_end_fork_done(bool child);

#endif
