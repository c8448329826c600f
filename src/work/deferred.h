/*
 * Deferred frees: they wait for the device without making the program wait. Memory that libspill
 * placed is freed so if the program frees it in stream order, or during a capture, which forbids
 * waiting. The ledger no longer has these placements. Their accounts are returned together with
 * their memory. Later calls of libspill poll them; there is no thread.
 *
 * Pinning costs a quarter of a second a GiB (shared/design/facts.md). So a reusable placement is
 * kept for the next request in stream order, as the vendor's pools do. It is dropped when a request
 * is refused host memory (engine/trim.h).
 */
#ifndef SPILL_DEFERRED_H
#define SPILL_DEFERRED_H

#include "context_end.h"
#include "placement.h"

/*
 * Waits until no work on the device uses memory of `context`. Memory without a context is waited
 * for in the current context. Every free that waits calls this. Returns the vendor's error. pre: no
 * lock of ours is held, no capture is active
 */
int spill_deferred_wait(const struct spill_backend *backend, int device, void *context);

/*
 * Takes ownership of a placement that all work of placement->event_context may use: marks the end of that work, if a mark can
 * be placed now. pre: the context is known (contexts.h), or ends at this moment
 */
void spill_deferred_add_behind(struct spill_placement *placement);

/*
 * Takes ownership of a placement. If it has an event (placement->event…), it is released when the
 * event has passed. Without an event, but with the context of one, a mark behind the work of that
 * context is placed as soon as possible. Without both, it is released after a wait for its owner, when
 * no capture is active.
 */
void spill_deferred_add(struct spill_placement *placement);

/* What a placement has to be like to be used again, and for which work. */
struct spill_deferred_wanted {
	const struct spill_place_ops *ops;
	const struct spill_backend *backend;
	int device;
	const void *context; /* its owner. */
	uint64_t bytes;
	struct spill_stream_order order;
};

/*
 * Such a placement that work in that order may use: one that was kept, or freed earlier in the same
 * order. The caller owns it, with `bytes` set. NULL: none fits.
 */
struct spill_placement *spill_deferred_reuse(const struct spill_deferred_wanted *wanted);

/*
 * A stream is about to end. A later stream may have the same handle, and no order with its frees.
 */
void spill_deferred_stream_ended(const struct spill_backend *backend, const void *stream);

/* Takes ownership of a placement that no work uses. It is kept if it is reusable, else released. */
void spill_deferred_give(struct spill_placement *placement);

/*
 * Releases the kept placements of a device; -1: of all devices. Those whose memory is the process's
 * outlive contexts, so this is also called behind the end of a device's last context.
 */
void spill_deferred_drop(const struct spill_backend *backend, int device);

/*
 * Polls a few deferred frees. Those without an event are polled only if the caller may wait. Does
 * nothing while a capture is active. Costs one load if nothing is deferred.
 */
void spill_deferred_poll(const struct spill_backend *backend, bool may_wait);

/* Polls all of them. Returns the released bytes of `device`, and those of the host. */
struct spill_bytes spill_deferred_collect(const struct spill_backend *backend, int device, bool may_wait);

/* The bytes of `device`, and of the host, that still wait. */
struct spill_bytes spill_deferred_pending(const struct spill_backend *backend, int device);

/*
 * The vendor has ended a context (NULL, without contexts: the device), with all its work and
 * memory.
 */
void spill_deferred_context_ended(const struct spill_context_end *end);

extern const struct spill_fork_lock spill_deferred_fork_lock;

#endif
