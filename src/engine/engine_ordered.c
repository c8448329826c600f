#include "engine_ordered.h"

#include <stdatomic.h>

#include "exporting.h"
#include "gate.h"
#include "minmax.h"
#include "movable.h"
#include "ordered_pool.h"
#include "peer.h"
#include "rule.h"
#include "unpark.h"

/*
 * A segment's number in the ledger, whose buckets are of 512. The ranges in it have addresses, and
 * the first of them has the segment's. Chunk sets have other numbers (chunk_set.h).
 */
#define SEGMENT_TAG 0x5e80000000000000ull

/* -- which requests ---------------------------------------------------------------------------- */

/* Another pool without a record of ours can be an imported one, from which nothing is allocated. */
struct spill_ordered_pool *spill_ordered_beside(const struct spill_request *request,
                                                const struct spill_backend *backend)
{
	void *handle = request->pool, *own = NULL;
	if (!backend->pools->outlive_contexts ||
	    (!handle && backend->pools->current(request->device, &handle)))
		return NULL;
	struct spill_ordered_pool *pool = spill_ordered_pool_of(backend, handle);
	if (!pool && !backend->pools->device_default(request->device, &own) && own == handle)
		pool = spill_ordered_pool_made(backend, request->device, handle);
	return pool;
}

static struct spill_ordered_pool *pool_of(const struct spill_request *request,
                                          const struct spill_backend *backend)
{
	struct spill_ordered_pool *pool = spill_ordered_beside(request, backend);
	return pool && !spill_ordered_pool_is_closed(pool) ? pool : NULL;
}

/*
 * A rule acts on the requests that it matches, and a segment serves others, too. So only a rule that
 * asks for movable memory, and has no cap, lets segments serve them.
 */
static bool is_ruled_out(const struct spill_rule *rule)
{
	return rule && ((rule->set & SPILL_RULE_HAS_CAP) || !(rule->set & SPILL_RULE_HAS_PLACE) ||
	                rule->place != SPILL_RULE_MOVABLE);
}

static struct spill_stream_order order_of(const struct spill_request *request)
{
	return (struct spill_stream_order){spill_engine_stream(request), request->admission.stream_context};
}

/*
 * movable.min is about the segment, movable.above about the request. Asked before the policy has
 * decided, too. A rule that is not ruled out wants movable memory.
 */
static bool is_segment_wanted(const struct spill_request *request, const struct spill_backend *backend)
{
	uint64_t least = spill_process_policy()->movable_min.value;
	enum spill_switch chunks = request->admission.applied ? SPILL_SWITCH_ON : SPILL_SWITCH_AUTO;
	return spill_ordered_segment_bytes(request->bytes) >= least &&
	       spill_movable_wanted(backend, request->device, spill_max(request->bytes, least), chunks);
}

static bool can_be_served(const struct spill_request *request, const struct spill_backend *backend)
{
	return backend->moves && !spill_process_observes() &&
	       spill_process_policy()->movable_enable != SPILL_SWITCH_OFF &&
	       !is_ruled_out(request->admission.applied) && !spill_engine_in_capture(request);
}

/* The vendor is asked for its pool last: the call takes longer than the rest. */
static struct spill_ordered_pool *choose_pool(const struct spill_request *request,
                                              const struct spill_backend *backend)
{
	bool fresh = !spill_ordered_any(NULL);
	if (!can_be_served(request, backend) || (fresh && !is_segment_wanted(request, backend)))
		return NULL;
	struct spill_ordered_pool *pool = pool_of(request, backend);
	return pool && (fresh || spill_ordered_any(pool) || is_segment_wanted(request, backend)) ? pool
	                                                                                         : NULL;
}

bool spill_ordered_wanted(struct spill_request *request, const struct spill_backend *backend)
{
	struct spill_ordered_pool *pool = choose_pool(request, backend);
	request->admission.ordered = pool && !spill_exporting_stays_plain(request) ? pool : NULL;
	return request->admission.ordered != NULL;
}

/* -- serving ----------------------------------------------------------------------------------- */

/* Enters a range in the ledger and gives it to the program. Its bytes are the segment's. */
static bool hand_out_range(struct spill_request *request, struct spill_placement *range)
{
	struct spill_allocation allocation = spill_admit_describe(request, range->backend, range->ptr);
	allocation.place = SPILL_PLACE_MOVABLE;
	allocation.placement = range;
	allocation.ordered = allocation.outlives = allocation.part = true;
	allocation.pool = spill_ordered_handle(request->admission.ordered);
	if (!spill_unpark(spill_ordered_segment(range), range->ptr, range->bytes) ||
	    !spill_admit_record(request, &allocation, SPILL_REASON_FITS)) {
		spill_placement_release(range, false);
		return false;
	}
	*spill_engine_out(request) = range->ptr;
	return true;
}

static bool serve_free_range(struct spill_request *request, bool anywhere)
{
	struct spill_stream_order order = order_of(request);
	struct spill_placement *range =
	    spill_ordered_take(request->admission.ordered, request->bytes, &order, anywhere);
	return range && hand_out_range(request, range);
}

/* Returns the device bytes that come back. Its chunks may move until it is delisted. */
static uint64_t end_segment(struct spill_chunked *segment)
{
	struct spill_request request = {.start_us = spill_log_start_us()};
	spill_chunked_delist(segment);
	uint64_t given = segment->base.held.device;
	struct spill_allocation *entry = spill_ledger_take_handle(segment->name, segment->seq);
	if (entry)
		spill_engine_end(&request, entry, SPILL_REASON_FREE);
	else
		spill_placement_release(&segment->base, false);
	return given;
}

/* Enters a new segment in the ledger and the log. */
static bool record_segment(struct spill_request *request, struct spill_chunked *segment)
{
	static _Atomic uint64_t last_number;
	struct spill_allocation allocation =
	    spill_admit_describe(request, segment->base.backend, SEGMENT_TAG | ++last_number << 9);
	allocation.bytes = segment->range;
	allocation.handle = true;
	allocation.place = SPILL_PLACE_MOVABLE;
	allocation.held = segment->base.held;
	allocation.placement = &segment->base;
	if (!spill_ledger_add(&allocation))
		return false;
	segment->name = allocation.ptr;
	segment->seq = allocation.seq;
	segment->api = allocation.api;
	segment->caller = allocation.caller;
	segment->priority = spill_rule_priority(request->admission.applied);
	spill_request_log_alloc(request, &allocation, SPILL_REASON_FITS);
	return true;
}

/* For spill_admit_substitute. */
static bool hand_out(struct spill_request *request, struct spill_placement *placement,
                     enum spill_reason reason, const char **error)
{
	struct spill_chunked *segment = spill_chunked_of(placement);
	struct spill_stream_order order = order_of(request);
	(void)reason;
	*error = "no memory for bookkeeping";
	if (!record_segment(request, segment)) {
		spill_placement_release(placement, false);
		return false;
	}
	if (!spill_ordered_add(request->admission.ordered, segment, request->bytes)) {
		end_segment(segment);
		return false;
	}
	spill_peer_placed(placement);
	spill_chunked_enlist(segment);
	struct spill_placement *range = spill_ordered_open(segment, request->bytes, &order);
	if (!range)
		end_segment(segment);
	spill_gate_want_maintenance();
	return range && hand_out_range(request, range);
}

static enum spill_substitute serve_from_new(struct spill_request *request,
                                            const struct spill_backend *backend, uint64_t bytes,
                                            const char **error)
{
	struct spill_place_request wanted = spill_admit_place_request(request, backend, SPILL_UNLIMITED);
	wanted.bytes = bytes;
	wanted.most_chunk = SPILL_ORDERED_CHUNK;
	return spill_admit_substitute(request, &spill_place_movable, &wanted, hand_out, error);
}

/*
 * A free range on the host comes to the device when a launch uses it, without a copy of dead bytes.
 * So it is better than a new segment, which other memory has to make room for. Without movable.follow
 * it would be used in place.
 */
static bool serve_old_range(struct spill_request *request)
{
	return serve_free_range(request, spill_process_policy()->movable_follow != SPILL_FOLLOW_OFF);
}

enum spill_substitute spill_ordered_serve(struct spill_request *request, const struct spill_backend *backend,
                                          const char **error)
{
	uint64_t bytes = spill_ordered_segment_bytes(request->bytes);
	if (serve_old_range(request))
		return SPILL_SUBSTITUTE_SERVED;
	if (!is_segment_wanted(request, backend))
		return SPILL_SUBSTITUTE_NONE;
	enum spill_substitute result = serve_from_new(request, backend, bytes, error);
	/* The place rounds it up to whole chunks. */
	if ((result == SPILL_SUBSTITUTE_FULL || result == SPILL_SUBSTITUTE_LIMIT) && request->bytes < bytes)
		result = serve_from_new(request, backend, request->bytes, error);
	return result;
}

bool spill_ordered_serve_on_host(struct spill_request *request, const struct spill_backend *backend)
{
	return backend && request->admission.ordered && serve_free_range(request, true);
}

/* -- giving back ------------------------------------------------------------------------------- */

uint64_t spill_ordered_trim(const struct spill_backend *backend, int device, uint64_t bytes)
{
	struct spill_chunked *segment;
	uint64_t given = 0;
	while (given < bytes && (segment = spill_ordered_empty(backend, device, NULL, false)) != NULL)
		given += end_segment(segment);
	return given;
}

void spill_ordered_trim_host(const struct spill_backend *backend, int device)
{
	struct spill_chunked *segment;
	while ((segment = spill_ordered_empty(backend, device, NULL, true)) != NULL)
		end_segment(segment);
}

void spill_ordered_trim_pool(const struct spill_backend *backend, struct spill_ordered_pool *pool,
                             uint64_t keep)
{
	struct spill_chunked *segment;
	int device = spill_ordered_device(pool);
	while (spill_ordered_figures(pool).reserved > keep &&
	       (segment = spill_ordered_empty(backend, device, pool, false)) != NULL)
		end_segment(segment);
}

/*
 * The driver's pools give back what exceeds their release threshold after a synchronisation (CUDA
 * Driver API, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD).
 */
void spill_ordered_give_back(const struct spill_backend *backend)
{
	for (struct spill_ordered_pool *pool = spill_ordered_next(NULL); pool;
	     pool = spill_ordered_next(pool)) {
		bool lives = spill_ordered_handle(pool) != NULL;
		spill_ordered_trim_pool(backend, pool, lives ? spill_ordered_kept(pool) : 0);
	}
}
