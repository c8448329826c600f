/*
 * Memory in stream order.
 *
 * On a device that fills up it comes from segments that can move (engine_ordered.h), before that from
 * the pool that the program uses. Memory that finds no room is placed as plain memory is, all of it
 * on the host. Its free waits for an event, and the program does not (deferred.h). The step `managed`
 * takes memory from a managed pool of ours, and the vendor's own free gives it back to that pool
 * (docs/adr/0010). In a capture every call is passed through: there it adds a node to the graph, and
 * takes no memory yet.
 */
#include <stdlib.h>

#include "account.h"
#include "admit.h"
#include "capture.h"
#include "contexts.h"
#include "deferred.h"
#include "movable.h"
#include "engine_ordered.h"
#include "ordered_pool.h"
#include "vendor_pool.h"
#include "peer.h"
#include "reserve_keeper.h"
#include "reserve_pieces.h"
#include "trim.h"

/* The pool of the request, or the device's current one; NULL if the vendor does not say. */
static void *pool_of(const struct spill_request *request, const struct spill_backend *backend)
{
	void *handle = request->pool;
	if (!handle && backend->pools->current(request->device, &handle))
		return NULL;
	return handle;
}

/*
 * A pool also serves streams of other devices (CUDA Driver API, cuMemAllocFromPoolAsync). Its memory
 * is the pool's device's, so that is the device of the request. False: the device has no context.
 */
static bool enter_pool_device(struct spill_request *request, const struct spill_backend *backend)
{
	void *contexts[SPILL_CONTEXTS];
	int device = spill_vendor_pool_device(backend, request->pool, request->device);
	if (device == request->device)
		return true;
	unsigned count = spill_contexts_of(backend, device, contexts);
	request->device = device;
	request->context = count ? contexts[0] : NULL;
	return count && count <= SPILL_CONTEXTS;
}

/* A wrong stream is the vendor's to refuse. To look up its owner costs less than the request. */
static bool enter_stream_device(struct spill_request *request, const struct spill_backend *backend)
{
	return request->out && request->bytes && backend->pools &&
	       !backend->streams->owner(request->stream, &request->device, &request->context);
}

static bool prepare_ordered(struct spill_request *request, const struct spill_backend *backend)
{
	if (!enter_stream_device(request, backend))
		return false;
	request->admission.stream_context = request->context;
	return !request->pool || enter_pool_device(request, backend);
}

/*
 * With a limit, the growth of the vendor's pool is charged. Without one it is not asked for its
 * figures: that call takes a quarter of a microsecond.
 */
static bool charge_growth(struct spill_request *request, struct spill_ask *ask,
                          const struct spill_backend *backend)
{
	struct spill_admission *admission = &request->admission;
	uint64_t limit = spill_device_limit(backend, request->device);
	bool no_segments = admission->no_segments;
	admission->pool = NULL;
	admission->ordered = NULL;
	admission->no_segments = false;
	/* A segment is charged when it is made. */
	if (!no_segments && spill_ordered_wanted(request, backend))
		return spill_admit_charge(request, ask, SPILL_UNLIMITED);
	void *handle = limit == SPILL_UNLIMITED ? NULL : pool_of(request, backend);
	admission->pool = handle ? spill_vendor_pool_of(backend, handle, request->device) : NULL;
	if (!admission->pool)
		return spill_admit_charge(request, ask, SPILL_UNLIMITED);
	bool fits = spill_vendor_pool_admit(admission->pool, request, ask, limit);
	if (!fits)
		admission->pool = NULL;
	return fits;
}

/*
 * Device bytes that the pool lacks for the request. A pool can have enough memory, but in pieces,
 * and then it grows. So its reserved bytes are noted here, and compared after the request.
 */
static uint64_t find_growth(struct spill_request *request, const struct spill_backend *backend)
{
	struct spill_admission *admission = &request->admission;
	void *handle = pool_of(request, backend);
	struct spill_pool_request asked = {handle, request->bytes, 0, 0};
	if (handle && (backend->pools->unused(handle, &asked.unused) ||
	               backend->pools->reserved(handle, &asked.reserved)))
		asked.unused = asked.reserved = 0;
	admission->reserve_in_pool = spill_reserve_is_in_pool(backend, request->device, &asked);
	uint64_t unused = admission->reserve_in_pool ? 0 : spill_reserve_unused(request->device, &asked);
	uint64_t bytes = spill_vendor_pool_growth(request->bytes, unused, SPILL_UNLIMITED);
	admission->unused_before = asked.unused;
	admission->reserved_before = bytes ? 0 : asked.reserved;
	return bytes;
}

/* If there can be no segment after all, the driver's pool is charged before the driver is asked. */
static enum spill_substitute take_range(struct spill_request *request, const struct spill_backend *backend,
                                        const char **error)
{
	struct spill_admission *admission = &request->admission;
	if (!admission->ordered)
		return SPILL_SUBSTITUTE_NONE;
	enum spill_substitute result = spill_ordered_serve(request, backend, error);
	if (result != SPILL_SUBSTITUTE_NONE)
		return result;
	admission->no_segments = true;
	if (spill_admit_decide(request))
		return SPILL_SUBSTITUTE_NONE;
	*error = spill_refused_by_name(SPILL_REFUSED_BY_DEVICE_LIMIT);
	return SPILL_SUBSTITUTE_LIMIT;
}

static void retract_growth(struct spill_request *request, const struct spill_backend *backend)
{
	if (request->admission.pool)
		spill_vendor_pool_retract(request->admission.pool, request->bytes,
		                          request->admission.charged);
	request->admission.pool = NULL;
}

static bool is_over_limit(struct spill_request *request, const struct spill_backend *backend)
{
	return request->admission.pool && spill_vendor_pool_settle(request->admission.pool) &&
	       spill_account_device_held(request->device) > spill_device_limit(backend, request->device);
}

/* Did the pool grow although it had enough, so that the device has less free than its reserve? */
static bool took_from_reserve(struct spill_request *request, const struct spill_backend *backend)
{
	uint64_t reserved = 0, before = request->admission.reserved_before;
	void *handle = before ? pool_of(request, backend) : NULL;
	request->admission.reserved_before = 0;
	if (!handle || spill_capture_any() || backend->pools->reserved(handle, &reserved) ||
	    reserved <= before)
		return false;
	const struct spill_pool_request grown = {
	    handle, request->bytes, request->admission.unused_before + (reserved - before), reserved};
	return spill_reserve_fell(backend, request->device, &grown);
}

/* Gives the memory back if its pool grew past device.limit, or into device.reserve. */
static bool accept_growth(struct spill_request *request, const struct spill_backend *backend)
{
	struct spill_admission *admission = &request->admission;
	bool over_limit = is_over_limit(request, backend);
	admission->short_of_reserve = !over_limit && took_from_reserve(request, backend);
	if ((!over_limit && !admission->short_of_reserve) || spill_process_observes())
		return true;
	backend->pools->free(*spill_engine_out(request), request->stream, request->per_thread);
	if (admission->pool)
		spill_vendor_pool_freed(admission->pool, request->bytes);
	if (admission->short_of_reserve)
		spill_trim(backend, request->device, spill_reserve_size(request->device), false);
	else if (!spill_capture_any())
		spill_vendor_pool_trim(backend, request->device, false);
	admission->pool = NULL;
	*spill_engine_out(request) = 0;
	return false;
}

static struct spill_allocation describe_ordered(struct spill_request *request,
                                                const struct spill_backend *backend, uint64_t ptr)
{
	struct spill_allocation allocation = spill_admit_describe(request, backend, ptr);
	allocation.ordered = true;
	allocation.outlives = backend->pools->outlive_contexts;
	return allocation;
}

static void record_served(struct spill_request *request, const struct spill_backend *backend)
{
	struct spill_allocation allocation = describe_ordered(request, backend, *spill_engine_out(request));
	spill_movable_pool_served(request->device, request->bytes);
	allocation.place = SPILL_PLACE_DEVICE;
	allocation.mempool = request->admission.pool;
	allocation.held.device = request->bytes;
	if (!spill_admit_record(request, &allocation, spill_admit_driver_reason(request)) &&
	    allocation.mempool)
		spill_vendor_pool_freed(allocation.mempool, request->bytes);
}

/* The record of a piece of a pool of ours. The vendor frees the piece. */
struct pool_piece {
	struct spill_placement base;
	struct spill_vendor_pool *pool;
};

static void release_piece(struct spill_placement *placement, bool context_ended)
{
	spill_vendor_pool_freed(((struct pool_piece *)placement)->pool, placement->bytes);
	free(placement);
}

static const struct spill_place_ops pool_pieces = {SPILL_PLACE_MANAGED, NULL, release_piece};

/* Takes a piece of our managed pool in stream order. NULL with *error. */
static struct spill_placement *take_piece(const struct spill_request *request, struct spill_vendor_pool *pool,
                                          const struct spill_place_request *place_request, const char **error)
{
	const struct spill_backend *backend = place_request->backend;
	struct pool_piece *piece = calloc(1, sizeof(*piece));
	uint64_t charged, ptr;
	if (!piece) {
		*error = "no memory for bookkeeping";
		return NULL;
	}
	*error = spill_vendor_pool_charge(pool, place_request->bytes, place_request->policy, &charged);
	if (*error) {
		free(piece);
		return NULL;
	}
	int result = backend->pools->alloc(spill_vendor_pool_handle(pool), place_request->bytes,
	                                   request->stream, request->per_thread, &ptr);
	if (result) {
		spill_vendor_pool_retract(pool, place_request->bytes, charged);
		free(piece);
		*error = backend->error_name(result);
		return NULL;
	}
	spill_vendor_pool_settle(pool);
	piece->pool = pool;
	piece->base = spill_placement_of(&pool_pieces, place_request, ptr);
	piece->base.held.managed = place_request->bytes;
	piece->base.by_vendor = true;
	return &piece->base;
}

/*
 * All of it on the host, even if the device has some room. So it can serve another such request
 * after its free; managed memory cannot. Virtual memory belongs to the process, as the vendor's
 * pools do, so it outlives contexts (docs/measurements.md).
 */
static struct spill_placement *make_on_host(const struct spill_request *request, enum spill_step step,
                                            const struct spill_place_request *place_request,
                                            const char **error)
{
	const struct spill_place_ops *ops = spill_place_of(spill_step_place(step));
	struct spill_place_request whole = *place_request;
	struct spill_placement *placement = NULL;
	if (step == SPILL_STEP_SPLIT)
		whole.context = NULL;
	if (step != SPILL_STEP_MANAGED) {
		whole.device_room = 0;
		placement = spill_deferred_reuse(&(const struct spill_deferred_wanted){
		    ops,
		    whole.backend,
		    whole.device,
		    whole.context,
		    whole.bytes,
		    {spill_engine_stream(request), request->admission.stream_context}});
	}
	if (placement)
		return placement;
	placement = spill_place_make(ops, &whole, error);
	if (placement)
		placement->reusable =
		    placement->ops == ops && placement->held.host && !placement->held.device;
	return placement;
}

/* A pool can be told its preferred location, and no other managed.* option. */
static bool can_come_from_pool(const struct spill_managed_advice *advice)
{
	return !advice->accessed_by_host && !advice->read_mostly;
}

/* Gives a placement back that the program has not got yet. */
static void undo_placement(const struct spill_request *request, struct spill_placement *placement)
{
	if (placement->by_vendor)
		placement->backend->pools->free(placement->ptr, request->stream, request->per_thread);
	spill_placement_release(placement, false);
}

static bool place_ordered(struct spill_request *request, enum spill_step step,
                          const struct spill_place_request *place_request, const char **error)
{
	const struct spill_backend *backend = place_request->backend;
	struct spill_vendor_pool *pool = NULL;
	struct spill_placement *placement = NULL;
	if (step == SPILL_STEP_SPLIT && spill_ordered_serve_on_host(request, backend))
		return true;
	if (step == SPILL_STEP_MANAGED && can_come_from_pool(&place_request->advice))
		pool = spill_vendor_pool_ours(backend, place_request->device, SPILL_PLACE_MANAGED,
		                              place_request->advice.preferred, error);
	if (pool)
		placement = take_piece(request, pool, place_request, error);
	else if (!*error)
		placement = make_on_host(request, step, place_request, error);
	if (!placement)
		return false;
	struct spill_allocation allocation = describe_ordered(request, backend, placement->ptr);
	allocation.place = spill_step_place(step);
	allocation.held = placement->held;
	allocation.placement = placement;
	allocation.context = placement->context;
	allocation.outlives = allocation.outlives && (placement->by_vendor || !placement->context);
	allocation.pool = pool_of(request, backend);
	if (!spill_admit_record(request, &allocation, spill_admit_place_reason(request))) {
		undo_placement(request, placement);
		*error = "no memory for bookkeeping";
		return false;
	}
	placement->event_device = request->device;
	placement->event_context = request->admission.stream_context; /* for a free without a stream */
	spill_peer_placed(placement);
	struct spill_ordered_pool *beside = spill_ordered_beside(request, backend);
	if (beside)
		spill_ordered_count(beside, placement);
	*spill_engine_out(request) = placement->ptr;
	return true;
}

/* As the driver leaves the pointer after an out of memory (docs/measurements.md). */
static void store_refused(struct spill_request *request)
{
	if (spill_backend_for(request->domain)->clears_pointer)
		*spill_engine_out(request) = 0;
}

/*
 * The program's own pool is not on a device. It gets the vendor's answer, and the memory is
 * counted.
 */
static bool count_off_device(struct spill_request *request, const struct spill_backend *backend,
                             enum spill_place place)
{
	if (request->step++ == 0)
		return spill_admit_count_begin(request, backend, enter_stream_device(request, backend));
	if (request->result == 0) {
		struct spill_allocation allocation =
		    describe_ordered(request, backend, *spill_engine_out(request));
		spill_admit_count(request, &allocation, place);
	}
	return false;
}

/* Graphs take their memory at launch, on the device, by no hooked call. So it is only counted. */
static void count_graph_memory(struct spill_request *request, const struct spill_backend *backend)
{
	if (backend && backend->devices->current(&request->device, &request->context))
		spill_vendor_pool_graphs(backend, request->device);
}

bool spill_engine_graph(struct spill_request *request)
{
	if (spill_engine_gated(request))
		return true;
	if (request->result == 0)
		count_graph_memory(request, spill_backend_for(request->domain));
	return false;
}

static bool pass_through(struct spill_request *request)
{
	request->pass = true;
	return spill_engine_pass(request);
}

bool spill_engine_alloc_async(struct spill_request *request)
{
	static const struct spill_alloc_kind_ops ordered = {.prepare = prepare_ordered,
	                                                    .charge = charge_growth,
	                                                    .retract = retract_growth,
	                                                    .substitute = take_range,
	                                                    .growth = find_growth,
	                                                    .accept = accept_growth,
	                                                    .served = record_served,
	                                                    .place = place_ordered,
	                                                    .refused = store_refused,
	                                                    .whole = true};
	const struct spill_backend *backend = spill_backend_for(request->domain);
	if (request->step == 0 && spill_engine_in_capture(request)) {
		count_graph_memory(request, backend);
		return pass_through(request);
	}
	if (request->mode) /* no pool at all: the vendor refuses it */
		return pass_through(request);
	enum spill_place place =
	    backend && request->pool ? spill_vendor_pool_place(backend, request->pool) : SPILL_PLACE_DEVICE;
	if (place == SPILL_PLACES) /* only the vendor knows where the memory of this pool is */
		return pass_through(request);
	if (place == SPILL_PLACE_DEVICE)
		return spill_admit(request, &ordered);
	return count_off_device(request, backend, place);
}
