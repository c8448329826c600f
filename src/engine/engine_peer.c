/*
 * Calls that let a context use another context's memory. The access also holds for memory that
 * libspill placed (peer.h).
 */
#include "engine.h"
#include "ipc.h"
#include "vendor_pool.h"
#include "note.h"
#include "ordered_pool.h"
#include "peer.h"
#include "chunked.h"
#include "shared_chunks.h"

/*
 * Ranges of an owner, collected under the locks of their tables and granted without them. They are
 * granted in batches, by address, because a list of all of them may find no memory. A range that is
 * left out is a fault in the program's next kernel.
 */
#define RANGES 64

struct range {
	uint64_t va, bytes;
};

struct ranges {
	const struct spill_peer_pair *pair;
	uint64_t from; /* ranges below this address are granted */
	unsigned length;
	struct range list[RANGES];
};

/* Keeps the list sorted, and full of the lowest addresses. */
static void insert_range(struct ranges *ranges, struct range range)
{
	unsigned index = ranges->length;
	if (index < RANGES)
		ranges->length++;
	else if (range.va > ranges->list[--index].va)
		return;
	for (; index > 0 && ranges->list[index - 1].va > range.va; index--)
		ranges->list[index] = ranges->list[index - 1];
	ranges->list[index] = range;
}

static bool is_of_pair(const struct spill_peer_pair *pair, const struct spill_backend *backend, int device,
                       const void *context)
{
	return backend == pair->backend && spill_peer_is(&pair->owner, device, context);
}

static void collect_range(const struct spill_placement *placement, void *data)
{
	struct ranges *ranges = data;
	struct range range;
	if (!placement->ops->range ||
	    !is_of_pair(ranges->pair, placement->backend, placement->device, placement->context))
		return;
	placement->ops->range(placement, &range.va, &range.bytes);
	if (range.va >= ranges->from)
		insert_range(ranges, range);
}

/* Memory of another process is memory of the context that has opened it. */
static void collect_import(const struct spill_ipc_range *range, uint64_t mapped, void *data)
{
	struct ranges *ranges = data;
	if (is_of_pair(ranges->pair, range->backend, range->device, range->context) &&
	    range->ptr >= ranges->from)
		insert_range(ranges, (struct range){range->ptr, mapped});
}

/* False after the last batch. spill_peer_placed grants memory that is made meanwhile. */
static bool grant_batch(struct ranges *ranges)
{
	const struct spill_peer_pair *pair = ranges->pair;
	ranges->length = 0;
	spill_ledger_each_placed(collect_range, ranges);
	spill_shared_chunks_each(collect_range, ranges);
	spill_ordered_each(collect_range, ranges);
	spill_ipc_each(collect_import, ranges);
	/*
	 * A range has a hole while one of its chunks moves. Later moves grant their chunk to the
	 * pair.
	 */
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
	while (grant_batch(&ranges))
		;
}

/*
 * The user of the memory is the current context. CUDA names the owner's context, HIP its device.
 * HIP's deprecated calls with a context are ignored: memory belongs to a device there.
 */
static bool describe_pair(const struct spill_request *request, const struct spill_backend *backend,
                          struct spill_peer_pair *pair)
{
	*pair = (struct spill_peer_pair){.backend = backend,
	                                 .owner = {request->device, request->context},
	                                 .generation = spill_context_generation()};
	if (request->context &&
	    (!backend->contexts || !backend->contexts->device(request->context, &pair->owner.device)))
		return false;
	if (request->context)
		pair->owner.context = backend->contexts->owner(request->context);
	return backend->devices->current(&pair->user.device, &pair->user.context);
}

/*
 * The program's call succeeded, so it sees no last error of the calls that we make for it. One of these
 * fails if a range is freed meanwhile.
 */
static bool add_pair(const struct spill_peer_pair *pair)
{
	const struct spill_vendor_last_error *last_error = pair->backend->last_error;
	int before = last_error ? last_error->peek() : 0;
	bool added = spill_peer_add(pair);
	if (added) {
		grant_existing(pair);
		spill_vendor_pool_allow(pair->backend, pair->owner.device, pair->user.device);
	} else {
		spill_note("peer",
		           "too many pairs of peer devices: this access does not include spilled memory");
	}
	if (last_error && !before)
		last_error->forget();
	return added;
}

bool spill_engine_pool_shared(const struct spill_backend *backend, int owner, int user)
{
	return add_pair(&(struct spill_peer_pair){.backend = backend,
	                                          .owner = {owner, NULL},
	                                          .user = {user, NULL},
	                                          .generation = spill_context_generation()});
}

bool spill_engine_peer(struct spill_request *request)
{
	const struct spill_backend *backend = spill_backend_for(request->domain);
	struct spill_peer_pair pair;
	if (request->step++ == 0) {
		request->pass = !backend;
		return true;
	}
	if (request->result || !describe_pair(request, backend, &pair))
		return false;
	if (request->mode)
		add_pair(&pair);
	else
		spill_peer_remove(&pair);
	return false;
}
