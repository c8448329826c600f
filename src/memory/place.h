/*
 * memory: makes and releases what backs an allocation other than the vendor's plain call. One file a place (place_*.c); each makes
 * a placement and releases it. The engine asks the places of oom.chain in order.
 *
 * It does not choose the place, and moves nothing. Begin with this header, then chunked.h.
 */
#ifndef SPILL_PLACE_H
#define SPILL_PLACE_H

#include "charge.h"
#include "placement.h"

/* What is wanted. */
struct spill_place_request {
	const struct spill_backend *backend;
	const struct spill_policy *policy;
	int device;
	void *context;
	uint64_t bytes;
	uint64_t device_room;               /* device bytes that are free now, less device.reserve */
	uint64_t device_limit;              /* device.limit, or SPILL_UNLIMITED */
	struct spill_managed_advice advice; /* for managed memory: the policy's, or a rule's */
};

extern const struct spill_place_ops spill_place_movable, spill_place_split, spill_place_managed,
    spill_place_host;

/*
 * Not memory at an address but a handle of host memory, which the program maps itself: `ptr` is the handle. Released with
 * context_ended, it only returns the account: the program has released the handle.
 */
extern const struct spill_place_ops spill_place_handle;

/* The table's row of a place, or NULL for DEVICE. */
const struct spill_place_ops *spill_place_of(enum spill_place place);

/*
 * Makes a placement at `ops`' place: small requests share chunks (pool.c), others get their own.
 * `error` as above.
 */
struct spill_placement *spill_place_make(const struct spill_place_ops *ops,
                                         const struct spill_place_request *want, const char **error);

/*
 * Charges up to `bytes` of device memory, in whole multiples of `unit`, as far as room and limit allow; returns what was
 * charged. Two placements at once cannot pass the limit together.
 */
uint64_t spill_device_charge(const struct spill_place_request *want, uint64_t bytes, uint64_t unit);

/* The shared chunks' lock, for fork. */
void spill_shared_chunks_fork_prepare(void);
void spill_shared_chunks_fork_done(bool child);

#endif
