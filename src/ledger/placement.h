/*
 * A placement: the memory of an allocation that we made instead of the vendor's plain call. The
 * ledger's entry owns it. The places in memory/ make placements and release them.
 */
#ifndef SPILL_PLACEMENT_H
#define SPILL_PLACEMENT_H

#include <sys/queue.h>

#include "backend.h"
#include "context_end.h"
#include "policy.h"

struct spill_place_request;
struct spill_place_ops;

/* The order of a stream: its context and handle (a name for a thread's default stream). */
struct spill_stream_order {
	const void *stream, *context;
};

/* The struct of each place begins with this one. */
struct spill_placement {
	const struct spill_place_ops *ops;
	const struct spill_backend *backend;
	int device;
	void *context;
	uint64_t generation;     /* of the context, when last given out (context_end.h). */
	uint64_t ptr, bytes;     /* as the program sees it. */
	struct spill_bytes held; /* physical bytes. */
	bool by_vendor;          /* the vendor's free releases it; ours does accounts. */
	/* While its free waits for the device (deferred.c): the event that it waits for. */
	TAILQ_ENTRY(spill_placement) pending;
	void *event, *event_context;
	uint64_t event_generation;       /* of the event's context, when it was recorded. */
	struct spill_stream_order order; /* of the event. */
	int event_device;
	bool owner_ended, event_ended; /* the context of the placement or of the event has ended. */
	/* Whole on the host and no block of a shared chunk: kept for later requests. */
	bool reusable;
	/* Spilled memory in stream order: the pool whose figures have its bytes (ordered_pool.h). */
	struct spill_ordered_pool *counted;
};

/* True while its context ends, or after. A living context may have the same handle. */
static inline bool spill_placement_ending(const struct spill_placement *placement)
{
	return spill_context_ending(placement->backend, placement->device, placement->context,
	                            placement->generation);
}

/* True if it ends with that context. */
static inline bool spill_placement_ends_with(const struct spill_placement *placement,
                                             const struct spill_context_end *end)
{
	return spill_context_end_covers(end, placement->backend, placement->device, placement->context,
	                                placement->generation);
}

struct spill_place_ops {
	enum spill_place place;
	/*
	 * Makes a placement and charges the accounts, after a check of host.limit and host.reserve.
	 * Or returns NULL and sets *error to a static string: the vendor's error name, or the
	 * option that refused.
	 */
	struct spill_placement *(*make)(const struct spill_place_request *want, const char **error);
	/*
	 * Releases the memory and its charges. `context_ended`: the vendor has released what was
	 * made in the context, and another allocation may have the address. pre: no work on the
	 * device uses it
	 */
	void (*release)(struct spill_placement *placement, bool context_ended);
	/*
	 * The addresses to which each further device needs access (backend->vmm->allow). NULL:
	 * none. Either every device may use such memory, or it is a block of a shared chunk, and
	 * the chunk gets the access.
	 */
	void (*range)(const struct spill_placement *placement, uint64_t *va, uint64_t *bytes);
};

/* Releases a placement; NULL is allowed. */
static inline void spill_placement_release(struct spill_placement *placement, bool context_ended)
{
	if (placement)
		placement->ops->release(placement, context_ended);
}

#endif
