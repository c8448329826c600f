/* Calls that let a context use another one's memory: access holds for memory that libspill placed, too (peer.h). */
#include "engine.h"
#include "vendor_pool.h"
#include "note.h"
#include "peer.h"
#include "chunked.h"
#include "shared_chunks.h"

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
	const struct spill_peer_pair *pair;
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
	    !spill_peer_is(&ranges->pair->owner, placement->device, placement->context))
		return;
	placement->ops->range(placement, &range.va, &range.bytes);
	if (range.va >= ranges->from)
		insert(ranges, range);
}

/* False after the last batch. Memory that is made meanwhile is granted by spill_peer_placed. */
static bool grant_some(struct ranges *ranges)
{
	const struct spill_peer_pair *pair = ranges->pair;
	ranges->length = 0;
	spill_ledger_each_placed(collect, ranges);
	spill_shared_chunks_each(collect, ranges);
	/* A range with a chunk on the move has a hole. Later moves grant their chunk with the pair. */
	spill_mover_lock();
	for (unsigned i = 0; i < ranges->length; i++)
		spill_peer_grant(pair->backend, ranges->list[i].va, ranges->list[i].bytes, pair->user.device);
	spill_mover_unlock();
	if (ranges->length < RANGES)
		return false;
	ranges->from = ranges->list[RANGES - 1].va + 1;
	return true;
}

static void grant_existing(const struct spill_peer_pair *pair)
{
	struct ranges ranges = {.pair = pair};
	if (!pair->backend->vmm)
		return;
	while (grant_some(&ranges))
		;
}

/*
 * The current context is the one that may use memory: CUDA names the owner's context, HIP its device. HIP's own calls with
 * a context, deprecated, are ignored here: its devices are what memory belongs to.
 */
static bool describe(const struct spill_request *request, const struct spill_backend *backend,
                     struct spill_peer_pair *pair)
{
	*pair = (struct spill_peer_pair){.backend = backend,
	                                 .owner = {request->device, request->context},
	                                 .generation = spill_context_generation()};
	if (request->context &&
	    (!backend->contexts || !backend->contexts->device(request->context, &pair->owner.device)))
		return false;
	return backend->devices->current(&pair->user.device, &pair->user.context);
}

bool spill_engine_peer(struct spill_request *request)
{
	const struct spill_backend *backend = spill_backend_for(request->domain);
	struct spill_peer_pair pair;
	if (request->step++ == 0) {
		request->pass = !backend;
		return true;
	}
	if (request->result || !describe(request, backend, &pair))
		return false;
	if (!request->mode) {
		spill_peer_remove(&pair);
	} else if (spill_peer_add(&pair)) {
		grant_existing(&pair);
		spill_vendor_pool_allow(pair.backend, pair.owner.device, pair.user.device);
	} else {
		spill_note("peer", "too many pairs of peers: access does not hold for spilled memory");
	}
	return false;
}
