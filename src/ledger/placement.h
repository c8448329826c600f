/*
 * A placement: what backs an allocation other than the vendor's plain call. The ledger's entry owns it. The places of
 * memory/place make placements and release them.
 */
#ifndef SPILL_PLACEMENT_H
#define SPILL_PLACEMENT_H

#include <sys/queue.h>

#include "backend.h"
#include "context_end.h"
#include "policy.h"

struct spill_place_request;
struct spill_place_ops;

/* A stream, as its order is told from others': the handle, or a name for a thread's own default stream, and its context. */
struct spill_stream_order {
	const void *stream, *context;
};

/* What was made. A place's own struct begins with this. Owned by the ledger's entry. */
struct spill_placement {
	const struct spill_place_ops *ops;
	const struct spill_backend *backend;
	int device;
	void *context;
	uint64_t generation;     /* in which it was made, or given out again (context_end.h) */
	uint64_t ptr, bytes;     /* as the program sees it */
	struct spill_bytes held; /* physical */
	bool by_vendor;          /* the vendor's own free gives it back; the release is bookkeeping only */
	/* While its free waits for the device (deferred.c): what it waits for, and the stream's owner. */
	TAILQ_ENTRY(spill_placement) pending;
	void *event, *event_context;
	uint64_t event_generation;       /* in which the event was recorded */
	struct spill_stream_order order; /* of that event */
	int event_device;
	bool owner_ended, event_ended; /* its context, or the event's, has ended meanwhile */
	bool reusable; /* whole on host, and not a block of a shared chunk: kept for the next such request */
};

/* Its context may have ended although a living one has the handle. */
static inline bool spill_placement_ending(const struct spill_placement *placement)
{
	return spill_context_ending(placement->backend, placement->device, placement->context,
	                            placement->generation);
}

/* It ends with that context. */
static inline bool spill_placement_ends_with(const struct spill_placement *placement,
                                             const struct spill_context_end *end)
{
	return spill_context_end_covers(end, placement->backend, placement->device, placement->context,
	                                placement->generation);
}

struct spill_place_ops {
	enum spill_place place;
	/*
	 * Makes a placement, or returns NULL with *error set to a static string: the vendor's error name or the option
	 * that refused. Charges the accounts; checks host.limit and host.reserve first.
	 */
	struct spill_placement *(*make)(const struct spill_place_request *want, const char **error);
	/*
	 * Gives all back, accounts too. pre: no work on the device uses it any more. `context_ended`: what the vendor made in
	 * the context went with it, and its address may be another allocation's by now.
	 */
	void (*release)(struct spill_placement *placement, bool context_ended);
	/*
	 * The addresses that each further device must be given access to (backend->vmm->allow). NULL: none, because every device may
	 * use such memory, or, for a block of a shared chunk, because the chunk is what access is given to.
	 */
	void (*range)(const struct spill_placement *placement, uint64_t *va, uint64_t *bytes);
};

/* Ends a placement; NULL is allowed. `context_ended` as above. */
static inline void spill_placement_release(struct spill_placement *placement, bool context_ended)
{
	if (placement)
		placement->ops->release(placement, context_ended);
}

#endif
