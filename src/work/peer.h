/*
 * Peer access: the program lets a context (HIP: a device) use another's memory. Spilled memory
 * follows: its ranges are granted to each such device, and a free waits for all users. Ranges keep
 * access that the program takes back later, until they are freed.
 */
#ifndef SPILL_PEER_H
#define SPILL_PEER_H

#include "backend.h"
#include "context_end.h"

struct spill_placement;

/* One side of a pair. The context is NULL on HIP, and where a pool is shared. */
struct spill_peer_side {
	int device;
	void *context;
};

struct spill_peer_pair {
	const struct spill_backend *backend; /* NULL: an empty slot of the table */
	struct spill_peer_side owner, user;
	uint64_t generation; /* when the pair was made */
};

/* True if this side is `context`; if it or the side has no context, that device. */
bool spill_peer_is(const struct spill_peer_side *side, int device, const void *context);

/* False: the table is full. A pair that is already there counts once. */
bool spill_peer_add(const struct spill_peer_pair *pair);
void spill_peer_remove(const struct spill_peer_pair *pair);

/*
 * Gives a device access to a range. If the range was freed meanwhile, the driver refuses, and that
 * does no harm.
 */
void spill_peer_grant(const struct spill_backend *backend, uint64_t va, uint64_t bytes, int device);

/*
 * Gives access to a new placement to all devices with peer access to its owner's memory. pre:
 * spill_ledger_each_placed or spill_shared_chunks_each finds the placement, so that a device that
 * gains access now is not missed; no thread can free it yet
 */
void spill_peer_placed(const struct spill_placement *placement);

/*
 * Stores each device with peer access to the memory of any context of `device` once. Returns their
 * number.
 */
unsigned spill_peer_devices(const struct spill_backend *backend, int device, int list[SPILL_DEVICES]);

/*
 * Waits for all work of the owner, and of the contexts with peer access to its memory. Returns the
 * vendor's error of the owner's wait. A peer that cannot be waited for is dead and runs no work.
 * pre: nothing captures (spill_capture_any)
 */
int spill_peer_wait(const struct spill_backend *backend, int device, void *context);

/* Forgets a context (NULL, without contexts: the device) on either side. */
void spill_peer_context_ended(const struct spill_context_end *end);

extern const struct spill_fork_lock spill_peer_fork_lock;

#endif
