/*
 * Memory in stream order. What fits is the vendor's, from the pool that the program uses; what does not is placed as plain
 * memory is, whole on host, and its free waits behind an event and not the program (deferred.h). The step `managed` takes
 * it from a managed pool of ours, which the vendor's own free gives it back to (docs/adr/0010). In a capture everything
 * is passed through: there it is a node of the graph, not memory yet.
 */
#include <pthread.h>
#include <stdlib.h>

#include "account.h"
#include "admit.h"
#include "ask.h"
#include "capture.h"
#include "clock.h"
#include "deferred.h"
#include "vendor_pool.h"
#include "peer.h"
#include "reserve_keeper.h"

/* For a stream to pass what was taken back; some steps of a program take as long. */
#define STREAM_NS 50000000ull
#define POLL_NS 20000

static uint64_t *out(struct spill_request *request)
{
	return request->out;
}

/* The pool that the program asks, by name or by the device; NULL if the vendor does not say. */
static void *asked(const struct spill_request *request, const struct spill_backend *backend)
{
	void *handle = request->pool;
	if (!handle && backend->pools->current(request->device, &handle))
		return NULL;
	return handle;
}

/* A stream that is none is the vendor's to judge; asking about one costs less than the request. */
static bool prepare(struct spill_request *request, const struct spill_backend *backend)
{
	return request->out && request->bytes && backend->pools &&
	       !backend->streams->owner(request->stream, &request->device, &request->context);
}

/*
 * With a limit, what counts is what the pool has to grow by; without one nobody asks about pools: the vendor's call
 * takes a quarter of a microsecond.
 */
static bool admit(struct spill_request *request, struct spill_ask *ask, const struct spill_backend *backend)
{
	uint64_t limit = spill_device_limit(backend, request->device);
	void *handle = limit == SPILL_UNLIMITED ? NULL : asked(request, backend);
	request->mempool = handle ? spill_vendor_pool_of(backend, handle, request->device) : NULL;
	if (!request->mempool)
		return spill_ask_weight(request, ask, SPILL_UNLIMITED);
	bool fits = spill_vendor_pool_admit(request->mempool, request, ask, limit);
	if (!fits)
		request->mempool = NULL;
	return fits;
}

/*
 * What of it the pool has not: that is what the device has to give. A pool that has enough, but in pieces, grows all the same. So what
 * it has reserved is compared behind the request.
 */
static uint64_t growth(struct spill_request *request, const struct spill_backend *backend)
{
	void *handle = asked(request, backend);
	uint64_t unused = 0;
	if (handle && !spill_reserve_is_closed(request->device))
		backend->pools->unused(handle, &unused);
	uint64_t bytes = spill_vendor_pool_growth(request->bytes, unused, SPILL_UNLIMITED);
	if (!bytes && handle && backend->pools->reserved(handle, &request->reserved_before))
		request->reserved_before = 0;
	return bytes;
}

static void retract(struct spill_request *request, const struct spill_backend *backend)
{
	if (request->mempool)
		spill_vendor_pool_retract(request->mempool, request->bytes, request->charged);
	request->mempool = NULL;
}

static bool is_over_limit(struct spill_request *request, const struct spill_backend *backend)
{
	return request->mempool && spill_vendor_pool_settle(request->mempool) &&
	       spill_account_device_held(request->device) > spill_device_limit(backend, request->device);
}

/* What was freed on the stream can be given back to the device only when the stream has passed it. Bounded. */
static void wait_for_stream(struct spill_request *request, const struct spill_backend *backend)
{
	void *event = NULL;
	uint64_t end = spill_clock_ns() + STREAM_NS;
	int cancel;
	if (!backend->events || backend->events->record(request->device, request->context, request->stream,
	                                                request->per_thread, &event))
		return;
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE,
	                       &cancel); /* the vendor's call is no cancellation point */
	while (!backend->events->passed(request->device, request->context, event) && spill_clock_ns() < end)
		spill_clock_sleep(POLL_NS);
	pthread_setcancelstate(cancel, NULL);
	backend->events->destroy(request->device, request->context, event);
}

/* The pool has grown although it was to have enough, and the device has less left than its reserve. */
static bool took_of_reserve(struct spill_request *request, const struct spill_backend *backend)
{
	uint64_t reserved = 0, before = request->reserved_before;
	void *handle = before ? asked(request, backend) : NULL;
	request->reserved_before = 0;
	return handle && !spill_capture_any() && !backend->pools->reserved(handle, &reserved) &&
	       reserved > before && spill_reserve_fell(backend, request->device);
}

/* A pool may have to grow although it has room enough in pieces, and by more than was asked. */
static bool keep(struct spill_request *request, const struct spill_backend *backend)
{
	bool over_limit = is_over_limit(request, backend);
	request->short_of_reserve = !over_limit && took_of_reserve(request, backend);
	if ((!over_limit && !request->short_of_reserve) || spill_process_observes())
		return true;
	backend->pools->free(*out(request), request->stream, request->per_thread);
	if (request->mempool)
		spill_vendor_pool_freed(request->mempool, request->bytes);
	if (request->short_of_reserve)
		wait_for_stream(request, backend);
	if (!spill_capture_any())
		spill_vendor_pool_trim(backend, request->device, false);
	request->mempool = NULL;
	*out(request) = 0;
	return false;
}

static struct spill_allocation describe(struct spill_request *request, const struct spill_backend *backend,
                                        uint64_t ptr)
{
	struct spill_allocation allocation = spill_admit_describe(request, backend);
	allocation.ptr = ptr;
	allocation.ordered = true;
	allocation.outlives = backend->pools->outlive_contexts;
	return allocation;
}

static void served(struct spill_request *request, const struct spill_backend *backend)
{
	struct spill_allocation allocation = describe(request, backend, *out(request));
	allocation.place = SPILL_PLACE_DEVICE;
	allocation.mempool = request->mempool;
	allocation.held.device = request->bytes;
	if (!spill_admit_record(request, &allocation, request->over_limit ? "limit" : "fits") &&
	    allocation.mempool)
		spill_vendor_pool_freed(allocation.mempool, request->bytes);
}

/* Bookkeeping about a piece of a pool of ours: the vendor frees it. */
struct piece {
	struct spill_placement base;
	struct spill_vendor_pool *mempool;
};

static void release(struct spill_placement *placement, bool context_ended)
{
	spill_vendor_pool_freed(((struct piece *)placement)->mempool, placement->bytes);
	free(placement);
}

static const struct spill_place_ops pieces = {SPILL_PLACE_MANAGED, NULL, release};

/* A piece of our managed pool, taken in stream order. NULL with *error. */
static struct spill_placement *take(const struct spill_request *request, struct spill_vendor_pool *mempool,
                                    const struct spill_place_request *want, const char **error)
{
	const struct spill_backend *backend = want->backend;
	struct piece *piece = calloc(1, sizeof(*piece));
	uint64_t charged, ptr;
	if (!piece) {
		*error = "no memory for bookkeeping";
		return NULL;
	}
	*error = spill_vendor_pool_charge(mempool, want->bytes, want->policy, &charged);
	if (*error) {
		free(piece);
		return NULL;
	}
	int result = backend->pools->alloc(spill_vendor_pool_handle(mempool), want->bytes, request->stream,
	                                   request->per_thread, &ptr);
	if (result) {
		spill_vendor_pool_retract(mempool, want->bytes, charged);
		free(piece);
		*error = backend->error_name(result);
		return NULL;
	}
	spill_vendor_pool_settle(mempool);
	piece->mempool = mempool;
	piece->base = (struct spill_placement){
	    .ops = &pieces,
	    .backend = backend,
	    .device = want->device,
	    .context = want->context,
	    .ptr = ptr,
	    .bytes = want->bytes,
	    .held = {.managed = want->bytes},
	    .by_vendor = true,
	};
	return &piece->base;
}

/*
 * Whole on host, whatever is free on the device: so it can serve another such request when it is free (managed memory does
 * not). Virtual memory belongs to the process as the vendor's pools do, and so outlives contexts (docs/measurements.md).
 */
static struct spill_placement *make_plain(const struct spill_request *request, enum spill_step step,
                                          const struct spill_place_request *want, const char **error)
{
	const struct spill_place_ops *ops = spill_place_of(spill_step_place(step));
	struct spill_place_request whole = *want;
	if (step != SPILL_STEP_MANAGED)
		whole.device_room = 0;
	if (step == SPILL_STEP_SPLIT)
		whole.context = NULL;
	struct spill_stream_order order = {spill_engine_stream(request), request->context};
	struct spill_placement *placement = NULL;
	/* Nor is managed memory what was host memory before. */
	if (step != SPILL_STEP_MANAGED)
		placement =
		    spill_deferred_reuse(want->backend, want->device, whole.context, want->bytes, &order);
	if (placement)
		return placement;
	placement = spill_place_make(ops, &whole, error);
	if (placement)
		placement->reusable =
		    placement->ops == ops && placement->held.host && !placement->held.device;
	return placement;
}

/* A pool can be told where its memory prefers to be, and nothing else of what may be wanted of managed memory. */
static bool is_pooled(const struct spill_managed_advice *advice)
{
	return !advice->accessed_by_host && !advice->read_mostly;
}

/* Gives a placement back that nobody has seen yet. */
static void undo(const struct spill_request *request, struct spill_placement *placement)
{
	if (placement->by_vendor)
		placement->backend->pools->free(placement->ptr, request->stream, request->per_thread);
	spill_placement_release(placement, false);
}

static bool place(struct spill_request *request, enum spill_step step, const struct spill_place_request *want,
                  const char **error)
{
	const struct spill_backend *backend = want->backend;
	struct spill_vendor_pool *mempool = NULL;
	struct spill_placement *placement = NULL;
	if (step == SPILL_STEP_MANAGED && is_pooled(&want->advice))
		mempool = spill_vendor_pool_ours(backend, want->device, SPILL_PLACE_MANAGED,
		                                 want->advice.preferred, error);
	if (mempool)
		placement = take(request, mempool, want, error);
	else if (!*error)
		placement = make_plain(request, step, want, error);
	if (!placement)
		return false;
	struct spill_allocation allocation = describe(request, backend, placement->ptr);
	allocation.place = spill_step_place(step);
	allocation.held = placement->held;
	allocation.placement = placement;
	allocation.context = placement->context;
	allocation.outlives = allocation.outlives && (placement->by_vendor || !placement->context);
	allocation.pool = asked(request, backend);
	if (!spill_admit_record(request, &allocation, spill_admit_reason(request))) {
		undo(request, placement);
		*error = "no memory for bookkeeping";
		return false;
	}
	spill_peer_placed(placement);
	*out(request) = placement->ptr;
	return true;
}

/* As the driver leaves it after an out of memory (docs/measurements.md). */
static void refused(struct spill_request *request)
{
	if (spill_backend_for(request->domain)->clears_pointer)
		*out(request) = 0;
}

/* From a pool of the program's that is not on a device: it asked for that, so it gets the vendor's answer. */
static bool elsewhere(struct spill_request *request, const struct spill_backend *backend,
                      enum spill_place place)
{
	if (request->step++ == 0) {
		request->pass = !prepare(request, backend);
		if (!request->pass)
			spill_engine_memory_call(backend);
		request->start_us = spill_log_start_us();
		return true;
	}
	if (request->result)
		return false;
	struct spill_allocation allocation = describe(request, backend, *out(request));
	allocation.place = place;
	*(place == SPILL_PLACE_MANAGED ? &allocation.held.managed : &allocation.held.host) = request->bytes;
	allocation.charged_host = place == SPILL_PLACE_HOST ? request->bytes : 0;
	spill_account_host_add(allocation.charged_host);
	if (!spill_admit_record(request, &allocation, "asked"))
		spill_account_host_return(allocation.charged_host);
	return false;
}

/* Graphs take their memory when they are launched, where nobody asks us, and only on the device: it is counted. */
static void graph_memory(struct spill_request *request, const struct spill_backend *backend)
{
	if (backend && backend->devices->current(&request->device, &request->context))
		spill_vendor_pool_graphs(backend, request->device);
}

bool spill_engine_graph(struct spill_request *request)
{
	if (request->step++ == 0)
		return true;
	if (request->result == 0)
		graph_memory(request, spill_backend_for(request->domain));
	return false;
}

bool spill_engine_alloc_async(struct spill_request *request)
{
	static const struct spill_alloc_kind_ops ordered = {.prepare = prepare,
	                                                    .admit = admit,
	                                                    .retract = retract,
	                                                    .growth = growth,
	                                                    .keep = keep,
	                                                    .served = served,
	                                                    .place = place,
	                                                    .refused = refused,
	                                                    .whole = true};
	const struct spill_backend *backend = spill_backend_for(request->domain);
	if (request->step == 0 && spill_engine_in_capture(request)) {
		graph_memory(request, backend);
		request->pass = true;
		return spill_engine_pass(request);
	}
	enum spill_place at =
	    backend && request->pool ? spill_vendor_pool_place(backend, request->pool) : SPILL_PLACE_DEVICE;
	if (at == SPILL_PLACES) { /* only the vendor knows what this pool gives */
		request->pass = true;
		return spill_engine_pass(request);
	}
	return at == SPILL_PLACE_DEVICE ? spill_admit(request, &ordered) : elsewhere(request, backend, at);
}

/* The program's own pools are known so that they can be trimmed, and for where their memory is. */
bool spill_engine_pool(struct spill_request *request)
{
	const struct spill_backend *backend = spill_backend_for(request->domain);
	if (request->step++ == 0) {
		request->pass = !backend || !backend->pools;
		/* It leaves the list before it ends: behind that, another pool may have its handle. */
		if (!request->pass && request->op == SPILL_OP_POOL_DESTROY)
			request->mempool = spill_vendor_pool_destroyed(backend, request->pool);
		return true;
	}
	if (request->op == SPILL_OP_POOL_CREATE && request->result == 0 && request->properties) {
		int device = 0;
		backend->devices->current(&device, &request->context);
		enum spill_place at = backend->pools->place(request->properties, &device);
		spill_vendor_pool_created(backend, *(void **)request->out, at, device);
	} else if (request->op == SPILL_OP_POOL_DESTROY && request->result) {
		spill_vendor_pool_alive(request->mempool, request->pool);
	} else if (request->op == SPILL_OP_POOL_TRIM && request->result == 0) {
		spill_vendor_pool_trimmed(backend, request->pool);
	}
	return false;
}
