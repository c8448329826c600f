#include "peer.h"

#include <pthread.h>
#include <stdatomic.h>

#include "note.h"
#include "placement.h"

/*
 * Enough for all pairs of 16 devices, twice. A pair keeps its slot, so that a walk by index that
 * releases the lock misses none.
 */
#define PAIRS 512

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* SPILL_RANK_PEER */
static struct spill_peer_pair pairs[PAIRS];
static _Atomic unsigned pair_count;

bool spill_peer_is(const struct spill_peer_side *side, int device, const void *context)
{
	return context && side->context ? side->context == context : side->device == device;
}

/* Finds the next pair, from *index on, whose memory is the owner's. Moves *index behind it. */
static bool next_pair(const struct spill_backend *backend, int device, const void *context, unsigned *index,
                      struct spill_peer_pair *found)
{
	bool hit = false;
	if (!atomic_load(&pair_count))
		return false;
	pthread_mutex_lock(&lock);
	while (*index < PAIRS && !hit) {
		*found = pairs[(*index)++];
		hit = found->backend == backend && spill_peer_is(&found->owner, device, context);
	}
	pthread_mutex_unlock(&lock);
	return hit;
}

static bool is_same(const struct spill_peer_side *one, const struct spill_peer_side *other)
{
	return one->context == other->context && (one->context || one->device == other->device);
}

/* pre: locked. The slot of the pair, or a free one. NULL: all are taken */
static struct spill_peer_pair *slot_for(const struct spill_peer_pair *wanted)
{
	struct spill_peer_pair *unused = NULL;
	for (unsigned i = 0; i < PAIRS; i++) {
		struct spill_peer_pair *pair = &pairs[i];
		if (!pair->backend)
			unused = unused ? unused : pair;
		else if (pair->backend == wanted->backend && is_same(&pair->owner, &wanted->owner) &&
		         is_same(&pair->user, &wanted->user))
			return pair;
	}
	return unused;
}

bool spill_peer_add(const struct spill_peer_pair *pair)
{
	pthread_mutex_lock(&lock);
	struct spill_peer_pair *slot = slot_for(pair);
	if (slot && !slot->backend)
		atomic_fetch_add(&pair_count, 1);
	if (slot)
		*slot = *pair;
	pthread_mutex_unlock(&lock);
	return slot != NULL;
}

static void clear_pair(struct spill_peer_pair *pair)
{
	*pair = (struct spill_peer_pair){0};
	atomic_fetch_sub(&pair_count, 1);
}

void spill_peer_remove(const struct spill_peer_pair *pair)
{
	pthread_mutex_lock(&lock);
	struct spill_peer_pair *slot = slot_for(pair);
	if (slot && slot->backend)
		clear_pair(slot);
	pthread_mutex_unlock(&lock);
}

void spill_peer_grant(const struct spill_backend *backend, uint64_t va, uint64_t bytes, int device)
{
	int result = backend->vmm->allow(va, bytes, device);
	if (result && result != backend->invalid_value)
		spill_note("peer", "a device with peer access could not be given access to spilled memory");
}

void spill_peer_placed(const struct spill_placement *placement)
{
	uint64_t va, bytes;
	struct spill_peer_pair pair;
	if (!atomic_load(&pair_count) || !placement->ops->range)
		return;
	placement->ops->range(placement, &va, &bytes);
	for (unsigned index = 0;
	     next_pair(placement->backend, placement->device, placement->context, &index, &pair);)
		spill_peer_grant(placement->backend, va, bytes, pair.user.device);
}

unsigned spill_peer_devices(const struct spill_backend *backend, int device, int list[SPILL_DEVICES])
{
	unsigned found = 0;
	struct spill_peer_pair pair;
	for (unsigned index = 0; next_pair(backend, device, NULL, &index, &pair) && found < SPILL_DEVICES;) {
		unsigned i = 0;
		while (i < found && list[i] != pair.user.device)
			i++;
		if (i == found)
			list[found++] = pair.user.device;
	}
	return found;
}

int spill_peer_wait(const struct spill_backend *backend, int device, void *context)
{
	struct spill_peer_pair pair;
	int result = backend->devices->wait(device, context);
	for (unsigned index = 0; !result && next_pair(backend, device, context, &index, &pair);)
		if (pair.user.context || !backend->contexts)
			backend->devices->wait(pair.user.device, pair.user.context);
	return result;
}

static bool ends_with(const struct spill_peer_pair *pair, const struct spill_peer_side *side,
                      const struct spill_context_end *end)
{
	return spill_context_end_covers(end, pair->backend, side->device, side->context, pair->generation);
}

void spill_peer_context_ended(const struct spill_context_end *end)
{
	if (!atomic_load(&pair_count))
		return;
	pthread_mutex_lock(&lock);
	for (unsigned i = 0; i < PAIRS; i++)
		if (ends_with(&pairs[i], &pairs[i].owner, end) || ends_with(&pairs[i], &pairs[i].user, end))
			clear_pair(&pairs[i]);
	pthread_mutex_unlock(&lock);
}

/* The child has no GPU. */
static void forget_parent(void)
{
	for (unsigned i = 0; i < PAIRS; i++)
		pairs[i] = (struct spill_peer_pair){0};
	atomic_store(&pair_count, 0);
}

const struct spill_fork_lock spill_peer_fork_lock = {&lock, forget_parent};
