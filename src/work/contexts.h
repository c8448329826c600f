/*
 * Which contexts there are on a device, so that a move can wait for the work of all of them. Those of the vendor's own
 * making (primary contexts) are asked for; those that the program made are remembered from CONTEXT_CREATE on, and any that a
 * memory call finds current.
 */
#ifndef SPILL_CONTEXTS_H
#define SPILL_CONTEXTS_H

#include "backend.h"
#include "context_end.h"

/* More than this on one device are too many to wait for one by one. */
#define SPILL_CONTEXTS 64

/* The program has made a context. Its handle may be one that an ended context had. NULL: nothing. */
void spill_contexts_created(const struct spill_backend *backend, int device, void *context);

/*
 * A context is in use (NULL, of a vendor without contexts or a primary one: nothing). Costs a comparison when it is the one
 * that the calling thread named last.
 */
void spill_contexts_made(const struct spill_backend *backend, int device, void *context);

/* The end's context is gone. One that has the same handle since then stays known, under another birth. */
void spill_contexts_ended(const struct spill_context_end *end);

/*
 * Stores the contexts of `device`, its primary one too while it is active; returns their number. More than SPILL_CONTEXTS:
 * SPILL_CONTEXTS + 1, of which the caller can wait for none. pre: no lock of ours but the mover is held
 */
unsigned spill_contexts_of(const struct spill_backend *backend, int device, void *list[SPILL_CONTEXTS]);

/* A number of the context that no other has had, though handles come back; 0 if it is not known, or not any more. */
uint64_t spill_contexts_birth(const struct spill_backend *backend, const void *context);

void spill_contexts_fork_prepare(void);
void spill_contexts_fork_done(bool child);

#endif
