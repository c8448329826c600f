/*
 * Peer access: which contexts (HIP: devices) may use another's memory, because the program said so. It holds for what we
 * placed, too: mapped ranges must be granted to each device, and a free waits for all who may use them. Access that is
 * taken back ends for what is placed later; ranges that have it keep it until they are freed.
 */
#ifndef SPILL_PEER_H
#define SPILL_PEER_H

#include "backend.h"
#include "context_end.h"

struct spill_placement;

/* One side of a pair. HIP has no contexts here: NULL. */
struct spill_peer_side {
	int device;
	void *context;
};

struct spill_peer_pair {
	const struct spill_backend *backend; /* NULL: an empty slot of the table */
	struct spill_peer_side owner, user;
	uint64_t generation; /* in which it was made (context_end.h) */
};

/* True if that context, or where there are no contexts that device, is this side. */
bool spill_peer_is(const struct spill_peer_side *side, int device, const void *context);

/* False if the table is full. A pair that is there already is one. */
bool spill_peer_add(const struct spill_peer_pair *pair);
void spill_peer_remove(const struct spill_peer_pair *pair);

/* Gives a device access to a range. The driver refuses a range that was freed meanwhile, which harms nobody. */
void spill_peer_grant(const struct spill_backend *backend, uint64_t va, uint64_t bytes, int device);

/*
 * Grants a new placement to all who have peer access to its owner's memory. pre: spill_ledger_each_placed or spill_shared_chunks_each
 * finds it, so that who gains access at the same moment is not missed; nobody can free it yet
 */
void spill_peer_placed(const struct spill_placement *placement);

/* Stores the devices with peer access to the memory of any context of `device`, each once; returns their number. */
unsigned spill_peer_devices(const struct spill_backend *backend, int device, int list[SPILL_DEVICES]);

/*
 * Waits for all work of the owner, and of those with peer access to its memory. Returns the vendor's error of the owner's
 * wait; a peer that cannot be waited for (it is dead) runs nothing. pre: nothing captures (spill_capture_any)
 */
int spill_peer_wait(const struct spill_backend *backend, int device, void *context);

/* Forgets a context (NULL, where there are no contexts: the device) on either side. */
void spill_peer_context_ended(const struct spill_context_end *end);

void spill_peer_fork_prepare(void);
void spill_peer_fork_done(bool child);

#endif
