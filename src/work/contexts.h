/*
 * The contexts of each device, so that a move can wait for the work of all of them. The vendor is
 * asked for primary contexts. Contexts of the program are remembered from CONTEXT_CREATE on. So is
 * any context that is current in a memory call.
 */
#ifndef SPILL_CONTEXTS_H
#define SPILL_CONTEXTS_H

#include "backend.h"
#include "context_end.h"

/* With more contexts on a device, a move does not wait for them one by one: nothing moves. */
#define SPILL_CONTEXTS 64

/*
 * The program has made a context. An ended context may have had the same handle. NULL: does
 * nothing.
 */
void spill_contexts_created(const struct spill_backend *backend, int device, void *context);

/*
 * A context is in use. NULL (a vendor without contexts, or the primary context): does nothing. If
 * this thread named the same context last, the cost is a comparison.
 */
void spill_contexts_made(const struct spill_backend *backend, int device, void *context);

/* The context has ended. A new context with the same handle stays, with another birth. */
void spill_contexts_ended(const struct spill_context_end *end);

/*
 * Stores the contexts of `device`, with its primary context if that is active. Returns their
 * number, or SPILL_CONTEXTS + 1 if not all are known: then the caller can wait for none. pre: no
 * lock of ours but the mover is held
 */
unsigned spill_contexts_of(const struct spill_backend *backend, int device, void *list[SPILL_CONTEXTS]);

/*
 * Stores each device that has a context, and `device` itself. Returns their number. pre: as
 * spill_contexts_of
 */
unsigned spill_contexts_devices(const struct spill_backend *backend, int device, int list[SPILL_DEVICES]);

/*
 * The context of `device`, if the process has no other one on any device: then a mark in it is behind all work.
 * NULL: there are none, or several. pre: as spill_contexts_of
 */
void *spill_contexts_only(const struct spill_backend *backend, int device);

/*
 * The context's birth: a number that no other context has had, although handles come back. 0: the
 * context is not known, or has ended.
 */
uint64_t spill_contexts_birth(const struct spill_backend *backend, const void *context);

extern const struct spill_fork_lock spill_contexts_fork_lock;

#endif
