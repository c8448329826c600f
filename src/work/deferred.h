/*
 * Frees that wait for the device without making the program wait: of memory that we placed and the program gives back
 * in stream order, and of any such memory while a capture forbids waiting. They have left the ledger; their accounts
 * are returned with the memory. Polled at later calls of ours, no thread.
 *
 * Pinning costs a quarter of a second a GiB (shared/design/facts.md), so what is reusable is kept for the next request
 * in stream order, as the vendor's pools keep theirs; whoever is refused host memory drops it (trim.h).
 */
#ifndef SPILL_DEFERRED_H
#define SPILL_DEFERRED_H

#include "context_end.h"
#include "placement.h"

/*
 * Waits until nothing on the device uses memory of that owner; memory of no context is waited for in the current one. THE
 * wait of every free that waits; returns the vendor's error. pre: no lock of ours is held, no capture is active
 */
int spill_deferred_wait(const struct spill_backend *backend, int device, void *context);

/*
 * Takes over a placement. With an event set (placement->event…): until that has passed; without: until no capture is
 * active, then its owner is waited for.
 */
void spill_deferred_add(struct spill_placement *placement);

/*
 * A placement of that owner for `bytes`, at the device's disposal for work in that order: kept, or freed earlier in it. It
 * is the caller's, with `bytes` set; NULL if there is none that fits.
 */
struct spill_placement *spill_deferred_reuse(const struct spill_backend *backend, int device,
                                             const void *context, uint64_t bytes,
                                             const struct spill_stream_order *order);

/* A stream that is about to end: what was freed on it is in no order with another of that handle. */
void spill_deferred_stream_ended(const struct spill_backend *backend, const void *stream);

/* Takes over a placement that nothing waits for: kept if it is reusable, else released. */
void spill_deferred_give(struct spill_placement *placement);

/* Gives back what is kept. */
void spill_deferred_drop(const struct spill_backend *backend);

/*
 * Looks at a few of them, at those without an event only if the caller may wait; costs one load if there are none. Nothing
 * happens while a capture is active.
 */
void spill_deferred_poll(const struct spill_backend *backend, bool may_wait);

/* The same for all of them. Returns what was given back on `device` and on host. */
struct spill_bytes spill_deferred_collect(const struct spill_backend *backend, int device, bool may_wait);

/* What still waits, likewise. */
struct spill_bytes spill_deferred_pending(const struct spill_backend *backend, int device);

/* The vendor has ended a context (NULL, where there are none: the device), and with it all its work and memory. */
void spill_deferred_context_ended(const struct spill_context_end *end);

void spill_deferred_fork_prepare(void);
void spill_deferred_fork_done(bool child);

#endif
