/*
 * memory: makes and releases the memory of an allocation that the vendor's plain call does not
 * serve. A place is one way to do so, and each has a file (place_*.c). The engine asks the places
 * of oom.chain in order. This room does not choose the place, and moves no chunk. Begin with this
 * header, then chunked.h.
 */
#ifndef SPILL_PLACE_H
#define SPILL_PLACE_H

#include "memory_limit.h"
#include "placement.h"

/* A request for a placement. */
struct spill_place_request {
	const struct spill_backend *backend;
	const struct spill_policy *policy;
	int device;
	void *context;
	uint64_t bytes;
	uint64_t device_room;               /* free device bytes, less device.reserve */
	uint64_t device_limit;              /* device.limit, or SPILL_UNLIMITED */
	struct spill_managed_advice advice; /* for managed memory: of the policy, or of a rule */
	const void *properties;             /* for an exportable chunk set: the vendor's structure */
	bool exportable;                    /* for a handle: the program may export it */
	uint64_t most_chunk;                /* largest chunk; 0: only movable.chunk counts */
};

extern const struct spill_place_ops spill_place_movable, spill_place_split, spill_place_managed,
    spill_place_host;

/*
 * A handle of host memory, without an address, which the program maps itself. `ptr` is the handle.
 * If the context has ended, a release only returns the charge, because the program has released the
 * handle.
 */
extern const struct spill_place_ops spill_place_handle;

/* The same as movable and split, without addresses (chunk_set.h). */
extern const struct spill_place_ops spill_place_movable_set, spill_place_split_set;

/* The table's row of a place, or NULL for DEVICE. */
const struct spill_place_ops *spill_place_of(enum spill_place place);

/*
 * Makes a placement at the place of `ops`. Small requests share chunks (shared_chunks.h), others
 * get memory of their own. `error` as for spill_chunked_reserve.
 */
struct spill_placement *spill_place_make(const struct spill_place_ops *ops,
                                         const struct spill_place_request *want, const char **error);

/* A placement of `ptr` for the request. The caller adds what it holds. */
struct spill_placement spill_placement_of(const struct spill_place_ops *ops,
                                          const struct spill_place_request *want, uint64_t ptr);

/*
 * Charges up to `bytes` of device memory, in multiples of `unit`, within room and limit. Returns
 * the charged bytes. Two placements at once cannot exceed the limit together.
 */
uint64_t spill_device_charge(const struct spill_place_request *want, uint64_t bytes, uint64_t unit);

/* The shared chunks' lock, for fork. */
extern const struct spill_fork_lock spill_shared_chunks_fork_lock;

#endif
