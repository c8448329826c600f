/*
 * Frees: of one allocation, or of all that a context or device holds.
 *
 * The vendor frees memory that the vendor made. We release memory that we placed, after all work
 * that may use it: the vendor's own free waits, so ours does, too.
 */
#include "account.h"
#include "capture.h"
#include "contexts.h"
#include "deferred.h"
#include "engine.h"
#include "engine_ordered.h"
#include "exchange.h"
#include "launch_access.h"
#include "gate.h"
#include "graph_access.h"
#include "host_chunks.h"
#include "ipc.h"
#include "vendor_pool.h"
#include "copier.h"
#include "ordered_pool.h"
#include "parking.h"
#include "peer.h"
#include "chunked.h"
#include "shared_chunks.h"
#include "promote.h"

static void finish_free(struct spill_request *request, struct spill_allocation *allocation,
                        enum spill_reason reason)
{
	/* The line is first: a request that takes the freed room has a later line. */
	spill_request_log_free(request, allocation, reason);
	spill_account_device_return(allocation->device, allocation->charged);
	spill_account_host_return(allocation->charged_host);
	if (allocation->mempool)
		spill_vendor_pool_freed(allocation->mempool, allocation->bytes);
	spill_ledger_end(allocation);
	spill_promote_later();
	spill_launch_access_maintain();
}

/* The chunks stay where they are from here on. */
static void stop_moving(struct spill_placement *placement)
{
	struct spill_chunked *chunked = spill_chunked_of(placement);
	if (chunked)
		spill_chunked_delist(chunked);
}

/* Undoes the removal from the ledger. Chunks may have moved meanwhile. */
static void put_back(struct spill_allocation *allocation)
{
	struct spill_chunked *chunked = spill_chunked_of(allocation->placement);
	stop_moving(allocation->placement);
	if (chunked)
		allocation->held = chunked->base.held;
	spill_ledger_put_back(allocation);
	if (chunked) {
		chunked->grows = false; /* not a new request of its call site */
		spill_chunked_enlist(chunked);
	}
}

/*
 * Releases our placement. Its device charge moves to the entry, so that it is returned after the
 * log line.
 */
static void release_placement(struct spill_allocation *allocation, bool context_ended)
{
	if (!allocation->placement)
		return;
	stop_moving(allocation->placement);
	spill_ordered_uncount(allocation->placement);
	allocation->charged += allocation->placement->held.device;
	allocation->placement->held.device = 0;
	spill_placement_release(allocation->placement, context_ended);
}

void spill_engine_end(struct spill_request *request, struct spill_allocation *allocation,
                      enum spill_reason reason)
{
	release_placement(allocation, false);
	finish_free(request, allocation, reason);
}

/* The program has freed the allocation. The caller defers the release of the returned placement. */
static struct spill_placement *take_for_deferral(struct spill_request *request,
                                                 struct spill_allocation *allocation)
{
	struct spill_placement *placement = allocation->placement;
	stop_moving(placement);
	spill_ordered_uncount(placement);
	spill_request_log_free(request, allocation, SPILL_REASON_FREE);
	spill_ledger_end(allocation);
	return placement;
}

/*
 * The vendor's free of memory in stream order does not wait, and no later request gets the memory
 * before the work of the context whose stream it was made for (docs/measurements.md). Without a mark,
 * a later call places one.
 */
static void free_behind_context(struct spill_request *request, struct spill_allocation *allocation)
{
	struct spill_placement *placement = take_for_deferral(request, allocation);
	if (spill_contexts_birth(placement->backend, placement->event_context))
		spill_deferred_add_behind(placement);
	else
		spill_deferred_give(placement); /* its work has ended with it */
}

/*
 * Releases our memory after all work that may use it, as the vendor's free would. If the wait fails
 * (a dead context), the vendor's free would fail with the same error. In a capture the release is
 * deferred: a wait would break the capture, and the vendor's free need not. On HIP a capture may begin
 * between the look and the wait (docs/limits.md, "AMD").
 */
static void free_now(struct spill_request *request, struct spill_allocation *allocation)
{
	if (spill_ordered_is(allocation->placement)) {
		/* The stream may be another device's than the pool. */
		const struct spill_stream_order order = {NULL, allocation->placement->order.context};
		int device = allocation->device;
		spill_ordered_free(take_for_deferral(request, allocation), &order, device);
		return;
	}
	if (allocation->ordered && allocation->backend->pools->outlive_contexts) {
		free_behind_context(request, allocation);
		return;
	}
	int result = 0;
	bool captures = spill_capture_any();
	if (!captures)
		result = spill_deferred_wait(allocation->backend, allocation->device, allocation->context);
	if (captures || spill_capture_refused(result)) {
		spill_deferred_add(take_for_deferral(request, allocation));
	} else if (result) {
		request->result = result;
		put_back(allocation);
	} else {
		spill_engine_end(request, allocation, SPILL_REASON_FREE);
	}
}

/* The same in stream order: after the work that is on the stream now. */
static void free_in_order(struct spill_request *request, struct spill_allocation *allocation)
{
	const struct spill_backend *backend = allocation->backend;
	struct spill_placement *placement = allocation->placement;
	request->result =
	    backend->streams->owner(request->stream, &placement->event_device, &placement->event_context);
	if (!request->result && spill_ordered_is(placement)) {
		const struct spill_stream_order order = {spill_engine_stream(request),
		                                         placement->event_context};
		int device = placement->event_device;
		spill_ordered_free(take_for_deferral(request, allocation), &order, device);
		return;
	}
	placement->event_generation = spill_context_generation(); /* first: the context may end meanwhile */
	if (!request->result)
		request->result =
		    backend->events->record(placement->event_device, placement->event_context,
		                            request->stream, request->per_thread, &placement->event);
	placement->order =
	    (struct spill_stream_order){spill_engine_stream(request), placement->event_context};
	if (request->result)
		put_back(allocation);
	else
		spill_deferred_add(take_for_deferral(request, allocation));
}

/* Do we free it, and not the vendor? */
static bool is_ours(const struct spill_allocation *allocation)
{
	return allocation->placement && !allocation->placement->by_vendor;
}

/* Follows the vendor's answer. */
static bool freed_by_vendor(struct spill_request *request)
{
	if (!request->freed)
		return false;
	if (request->result) {
		spill_ledger_put_back(request->freed);
	} else {
		/* The vendor frees a piece of a pool of ours. Its record ends here. */
		release_placement(request->freed, true);
		finish_free(request, request->freed, SPILL_REASON_FREE);
	}
	return false;
}

/* False: the vendor is to be asked. */
static bool free_ours(struct spill_request *request)
{
	if (request->op != SPILL_OP_FREE_ASYNC)
		free_now(request, request->freed);
	else if (spill_engine_in_capture(request))
		return false; /* the vendor's own answer is the right one */
	else
		free_in_order(request, request->freed);
	return true;
}

/* The program's free succeeded, so it sees no last error of the calls that we made for it. */
static bool free_quietly(struct spill_request *request, const struct spill_backend *backend)
{
	const struct spill_vendor_last_error *last_error = backend->last_error;
	int before = last_error ? last_error->peek() : 0;
	bool done = free_ours(request);
	if (last_error && done && !request->result && !before)
		last_error->forget();
	return done;
}

bool spill_engine_free(struct spill_request *request)
{
	const struct spill_backend *backend = spill_backend_for(request->domain);
	if (request->step++ == 0) {
		request->start_us = spill_log_start_us();
		if (backend)
			spill_deferred_poll(backend, request->op == SPILL_OP_FREE);
		request->freed = request->ptr ? spill_ledger_take(request->ptr) : NULL;
		if (!request->freed || !is_ours(request->freed))
			return true;
		return !free_quietly(request, request->freed->backend);
	}
	return freed_by_vendor(request);
}

/*
 * The vendor has ended the context with all its work and its own allocations. Ours are released
 * here.
 */
static void end_all(struct spill_request *request, const struct spill_context_end *context_end,
                    enum spill_reason reason)
{
	const struct spill_backend *backend = context_end->backend;
	struct spill_allocation *allocation;
	void *others[SPILL_CONTEXTS];
	spill_copier_context_ended(context_end);
	if (backend->contexts)
		backend->contexts->ended(context_end);
	while ((allocation = spill_ledger_take_of(context_end)) != NULL) {
		release_placement(allocation, true);
		finish_free(request, allocation, reason);
	}
	spill_ipc_context_ended(context_end);
	spill_deferred_context_ended(context_end);
	spill_ordered_context_ended(context_end);
	if (!spill_capture_any())
		spill_ordered_give_back(backend);
	spill_shared_chunks_context_ended(context_end);
	if (!backend->pools || !backend->pools->outlive_contexts)
		spill_vendor_pool_device_ended(backend, context_end->device);
	spill_capture_context_ended(context_end);
	spill_peer_context_ended(context_end);
	spill_graph_access_forget_all();
	if (!spill_contexts_of(backend, context_end->device, others)) {
		spill_exchange_forget(backend, context_end->device);
		spill_parking_forget(backend, context_end->device);
		spill_host_chunks_forget(backend, context_end->device);
		spill_deferred_drop(backend, context_end->device);
		/* Managed memory that our pool keeps can be on the device. */
		if (!spill_capture_any())
			spill_vendor_pool_trim(backend, context_end->device, true);
		spill_shared_chunks_trim(backend, context_end->device, NULL);
	}
}

/* A green context releases its primary one. */
static bool is_green_end(const struct spill_request *request)
{
	return request->op == SPILL_OP_PRIMARY_RELEASE && request->mode;
}

/* Finds the context that the call ends, before the vendor forgets it. False: none. */
static bool identify(struct spill_request *request, const struct spill_backend *backend)
{
	if (is_green_end(request) && !backend->contexts->green_ends(request->green, &request->device))
		return false;
	switch (request->op) {
	case SPILL_OP_PRIMARY_RELEASE:
	case SPILL_OP_PRIMARY_RESET:
		return backend->contexts && backend->contexts->primary(request->device, &request->context);
	case SPILL_OP_DEVICE_RESET:
		return backend->devices->current(&request->device, &request->context);
	default:
		return request->context != NULL;
	}
}

/*
 * The default stream of a green context ends with it. The vendor does not wait for its work, and the next green
 * context may have the same handle (measured, H200).
 */
static void end_default_stream(const struct spill_request *request, const struct spill_backend *backend)
{
	spill_deferred_stream_ended(backend, request->green);
	spill_ordered_stream_ended(backend, request->green);
}

/*
 * While the vendor ends a context, the mover must not mark work or copy in it. So the end passes
 * the gate, like work. It begins inside the gate: until then a move may create objects in the
 * context, and they end with it.
 */
static void begin_end(struct spill_request *request, const struct spill_backend *backend)
{
	if (!identify(request, backend))
		return;
	if (is_green_end(request))
		end_default_stream(request, backend);
	/*
	 * Objects that moves use in the context end first. PRIMARY_RELEASE may drop only one of
	 * several references, so end_all does it then.
	 */
	if (request->op != SPILL_OP_PRIMARY_RELEASE)
		spill_copier_give_up(backend, request->device, request->context);
	request->gated = spill_gate_enter_request();
	request->end = spill_context_end_begin(backend, request->device, request->context);
	request->end.id = backend->contexts ? backend->contexts->id(request->context) : 0;
}

/* Has the context ended? A release may have dropped only one of several references. */
static bool has_ended(const struct spill_request *request, const struct spill_backend *backend)
{
	void *now;
	if (request->result || request->op != SPILL_OP_PRIMARY_RELEASE)
		return !request->result;
	/* Another thread may have created it again, with the same handle. */
	return !backend->contexts->primary(request->device, &now) || now != request->context ||
	       (request->end.id && backend->contexts->id(now) != request->end.id);
}

bool spill_engine_context(struct spill_request *request)
{
	const struct spill_backend *backend = spill_backend_for(request->domain);
	bool destroyed = request->op == SPILL_OP_CONTEXT_DESTROY || request->op == SPILL_OP_PRIMARY_RELEASE;
	if (request->step++ == 0) {
		request->start_us = spill_log_start_us();
		if (backend)
			begin_end(request, backend);
		return true;
	}
	if (!request->end.backend)
		return false;
	bool ended = has_ended(request, backend);
	if (is_green_end(request) && request->result)
		backend->contexts->green_made(request->green, request->device);
	if (ended)
		spill_contexts_ended(&request->end);
	spill_gate_leave_request(request->gated);
	if (ended)
		end_all(request, &request->end, destroyed ? SPILL_REASON_CONTEXT : SPILL_REASON_RESET);
	spill_context_end_finish(&request->end, !ended);
	return false;
}
