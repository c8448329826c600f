#include "peer.h"

#include <pthread.h>
#include <stdatomic.h>

#include "ledger.h"
#include "mempool.h"
#include "note.h"
#include "place/chunked.h"
#include "place/pool.h"
#include "runtime.h"

/* One side of a pair. HIP has no contexts here: NULL. */
struct side {
	int device;
	void *context;
};

struct pair {
	const struct spill_backend *backend; /* NULL: free */
	struct side owner, user;
	uint64_t generation; /* in which it was made (context_end.h) */
};

/* 16 devices, each with each, twice over. A pair keeps its slot, so that a walk by index that lets go of the lock misses none. */
#define PAIRS 512

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* SPILL_RANK_PEER */
static struct pair pairs[PAIRS];
static _Atomic unsigned count;

static bool same(const struct side *side, int device, const void *context)
{
	return context ? side->context == context : side->device == device;
}

/* The next pair from *at on whose memory is the owner's; moves *at behind it. */
static bool next(const struct spill_backend *backend, int device, const void *context, unsigned *at,
                 struct pair *found)
{
	bool hit = false;
	if (!atomic_load(&count))
		return false;
	pthread_mutex_lock(&lock);
	while (*at < PAIRS && !hit) {
		*found = pairs[(*at)++];
		hit = found->backend == backend && same(&found->owner, device, context);
	}
	pthread_mutex_unlock(&lock);
	return hit;
}

/* pre: locked. The slot of the pair, or a free one, or NULL if all are taken. */
static struct pair *slot_of(const struct pair *wanted)
{
	struct pair *unused = NULL;
	for (unsigned i = 0; i < PAIRS; i++) {
		struct pair *pair = &pairs[i];
		if (!pair->backend)
			unused = unused ? unused : pair;
		else if (pair->backend == wanted->backend &&
		         same(&pair->owner, wanted->owner.device, wanted->owner.context) &&
		         same(&pair->user, wanted->user.device, wanted->user.context))
			return pair;
	}
	return unused;
}

static bool add(const struct pair *pair)
{
	pthread_mutex_lock(&lock);
	struct pair *slot = slot_of(pair);
	if (slot && !slot->backend)
		atomic_fetch_add(&count, 1);
	if (slot)
		*slot = *pair;
	pthread_mutex_unlock(&lock);
	return slot != NULL;
}

static void drop(struct pair *pair)
{
	*pair = (struct pair){0};
	atomic_fetch_sub(&count, 1);
}

static void remove_pair(const struct pair *pair)
{
	pthread_mutex_lock(&lock);
	struct pair *slot = slot_of(pair);
	if (slot && slot->backend)
		drop(slot);
	pthread_mutex_unlock(&lock);
}

/* A range that was freed meanwhile is refused by the driver, which harms nobody. */
static void grant(const struct spill_backend *backend, uint64_t va, uint64_t bytes, int device)
{
	int result = backend->allow(va, bytes, device);
	if (result && result != backend->invalid_value)
		spill_note("peer", "a device with peer access could not be given access to spilled memory");
}

void spill_peer_placed(const struct spill_placement *placement)
{
	uint64_t va, bytes;
	struct pair pair;
	if (!atomic_load(&count) || !placement->ops->range)
		return;
	placement->ops->range(placement, &va, &bytes);
	for (unsigned at = 0; next(placement->backend, placement->device, placement->context, &at, &pair);)
		grant(placement->backend, va, bytes, pair.user.device);
}

/*
 * Ranges of an owner, collected under the locks of their tables and granted without them. They are
 * granted in batches, by address, because a list of all could fail for want of memory. A range that
 * is left out is a fault in the program's next kernel.
 */
#define RANGES 64

struct range {
	uint64_t va, bytes;
};

struct ranges {
	const struct pair *pair;
	uint64_t from; /* those below have been granted */
	unsigned length;
	struct range list[RANGES];
};

/* Keeps the lowest ones. */
static void insert(struct ranges *ranges, struct range range)
{
	unsigned at = ranges->length;
	if (at < RANGES)
		ranges->length++;
	else if (range.va > ranges->list[--at].va)
		return;
	for (; at > 0 && ranges->list[at - 1].va > range.va; at--)
		ranges->list[at] = ranges->list[at - 1];
	ranges->list[at] = range;
}

static void collect(const struct spill_placement *placement, void *data)
{
	struct ranges *ranges = data;
	struct range range;
	if (placement->backend != ranges->pair->backend || !placement->ops->range ||
	    !same(&ranges->pair->owner, placement->device, placement->context))
		return;
	placement->ops->range(placement, &range.va, &range.bytes);
	if (range.va >= ranges->from)
		insert(ranges, range);
}

/* False after the last batch. Memory that is made meanwhile is granted by spill_peer_placed. */
static bool grant_some(struct ranges *ranges)
{
	const struct pair *pair = ranges->pair;
	ranges->length = 0;
	spill_ledger_each_placed(collect, ranges);
	spill_pool_each(collect, ranges);
	/* A range with a chunk on the move has a hole. Later moves grant their chunk with the pair. */
	spill_mover_lock();
	for (unsigned i = 0; i < ranges->length; i++)
		grant(pair->backend, ranges->list[i].va, ranges->list[i].bytes, pair->user.device);
	spill_mover_unlock();
	if (ranges->length < RANGES)
		return false;
	ranges->from = ranges->list[RANGES - 1].va + 1;
	return true;
}

static void grant_existing(const struct pair *pair)
{
	struct ranges ranges = {.pair = pair};
	if (!pair->backend->allow)
		return;
	while (grant_some(&ranges))
		;
}

/*
 * The current context is the one that may use memory: CUDA names the owner's context, HIP its device. HIP's own calls with
 * a context, deprecated, are ignored here: its devices are what memory belongs to.
 */
static bool describe(const struct spill_request *request, const struct spill_backend *backend,
                     struct pair *pair)
{
	*pair = (struct pair){.backend = backend,
	                      .owner = {request->device, request->context},
	                      .generation = spill_context_generation()};
	if (request->context &&
	    (!backend->context_device || !backend->context_device(request->context, &pair->owner.device)))
		return false;
	return backend->current(&pair->user.device, &pair->user.context);
}

bool spill_engine_peer(struct spill_request *request)
{
	const struct spill_backend *backend = spill_runtime_backend(request->domain);
	struct pair pair;
	if (request->step++ == 0) {
		request->pass = !backend;
		return true;
	}
	if (request->result || !describe(request, backend, &pair))
		return false;
	if (!request->mode) {
		remove_pair(&pair);
	} else if (add(&pair)) {
		grant_existing(&pair);
		spill_mempool_allow(pair.backend, pair.owner.device, pair.user.device);
	} else {
		spill_note("peer", "too many pairs of peers: access does not hold for spilled memory");
	}
	return false;
}

unsigned spill_peer_devices(const struct spill_backend *backend, int device, int list[SPILL_DEVICES])
{
	unsigned found = 0;
	struct pair pair;
	for (unsigned at = 0; next(backend, device, NULL, &at, &pair) && found < SPILL_DEVICES;) {
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
	struct pair pair;
	int result = backend->wait(device, context);
	for (unsigned at = 0; !result && next(backend, device, context, &at, &pair);)
		backend->wait(pair.user.device, pair.user.context);
	return result;
}

static bool ends_with(const struct pair *pair, const struct side *side, const struct spill_context_end *end)
{
	return spill_context_end_covers(end, pair->backend, side->device, side->context, pair->generation);
}

void spill_peer_context_ended(const struct spill_context_end *end)
{
	if (!atomic_load(&count))
		return;
	pthread_mutex_lock(&lock);
	for (unsigned i = 0; i < PAIRS; i++)
		if (ends_with(&pairs[i], &pairs[i].owner, end) || ends_with(&pairs[i], &pairs[i].user, end))
			drop(&pairs[i]);
	pthread_mutex_unlock(&lock);
}

void spill_peer_fork_prepare(void)
{
	pthread_mutex_lock(&lock);
}

/* The child has no GPU. */
void spill_peer_fork_done(bool child)
{
	for (unsigned i = 0; child && i < PAIRS; i++)
		pairs[i] = (struct pair){0};
	if (child)
		atomic_store(&count, 0);
	pthread_mutex_unlock(&lock);
}
