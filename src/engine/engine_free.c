/*
 * Giving back: one allocation, or all that a context or device held. What the vendor made the vendor frees; what
 * we placed we release, after the work that may use it: the vendor's own free waits, so ours does (pitfall 9).
 */
#include "account.h"
#include "capture.h"
#include "contexts.h"
#include "deferred.h"
#include "engine.h"
#include "exchange.h"
#include "follow.h"
#include "gate.h"
#include "graph_access.h"
#include "host_chunks.h"
#include "vendor_pool.h"
#include "move.h"
#include "peer.h"
#include "chunked.h"
#include "shared_chunks.h"
#include "promote.h"

static void end(struct spill_request *request, struct spill_allocation *allocation, const char *reason)
{
	/* The line first: whoever takes the room that this gives back comes behind it in the log. */
	spill_report_free(request, allocation, reason);
	spill_account_device_return(allocation->device, allocation->charged);
	spill_account_host_return(allocation->charged_host);
	if (allocation->mempool)
		spill_vendor_pool_freed(allocation->mempool, allocation->bytes);
	spill_ledger_end(allocation);
	spill_promote_later();
	spill_follow_maintain();
}

/* From here on its bytes stay where they are. */
static void stay(struct spill_placement *placement)
{
	struct spill_chunked *chunked = spill_chunked_of(placement);
	if (chunked)
		spill_chunked_delist(chunked);
}

/* It is not freed after all. Chunks may have moved while the ledger did not have it. */
static void put_back(struct spill_allocation *allocation)
{
	struct spill_chunked *chunked = spill_chunked_of(allocation->placement);
	stay(allocation->placement);
	if (chunked)
		allocation->held = chunked->base.held;
	spill_ledger_put_back(allocation);
	if (chunked) {
		chunked->grows = false; /* this is no new request from there */
		spill_chunked_enlist(chunked);
	}
}

/* Gives back what we placed. The entry takes over its device charge, so that end() returns it behind the log line. */
static void release(struct spill_allocation *allocation, bool context_ended)
{
	if (!allocation->placement)
		return;
	stay(allocation->placement);
	allocation->charged += allocation->placement->held.device;
	allocation->placement->held.device = 0;
	spill_placement_release(allocation->placement, context_ended);
}

/* The program has given it back; its memory is the caller's to defer. */
static struct spill_placement *hand_over(struct spill_request *request, struct spill_allocation *allocation)
{
	struct spill_placement *placement = allocation->placement;
	stay(placement);
	spill_report_free(request, allocation, "free");
	spill_ledger_end(allocation);
	return placement;
}

/*
 * Releases memory of ours as the vendor's free would: behind all work that may use it, or, of memory in stream order, at
 * once, for what comes next to use (docs/measurements.md). A wait that fails (a dead context) is the answer the vendor's
 * free would give. Waiting would break a capture, which the vendor's free need not.
 */
static void free_placed(struct spill_request *request, struct spill_allocation *allocation)
{
	if (allocation->ordered && allocation->backend->pools->outlive_contexts) {
		spill_deferred_give(hand_over(request, allocation));
		return;
	}
	if (spill_capture_any()) {
		spill_deferred_add(hand_over(request, allocation));
		return;
	}
	request->result = spill_deferred_wait(allocation->backend, allocation->device, allocation->context);
	if (request->result) {
		put_back(allocation);
		return;
	}
	release(allocation, false);
	end(request, allocation, "free");
}

/* The same in stream order: behind what is on that stream now. */
static void free_placed_in_order(struct spill_request *request, struct spill_allocation *allocation)
{
	const struct spill_backend *backend = allocation->backend;
	struct spill_placement *placement = allocation->placement;
	if (!backend->events) {
		free_placed(request, allocation);
		return;
	}
	request->result =
	    backend->streams->owner(request->stream, &placement->event_device, &placement->event_context);
	if (!request->result)
		request->result =
		    backend->events->record(placement->event_device, placement->event_context,
		                            request->stream, request->per_thread, &placement->event);
	placement->order =
	    (struct spill_stream_order){spill_engine_stream(request), placement->event_context};
	placement->event_generation = spill_context_generation();
	if (request->result)
		put_back(allocation);
	else
		spill_deferred_add(hand_over(request, allocation));
}

/* Not the vendor's to give back, but ours. */
static bool ours(const struct spill_allocation *allocation)
{
	return allocation->placement && !allocation->placement->by_vendor;
}

/* The vendor was asked. */
static bool freed_by_vendor(struct spill_request *request)
{
	if (!request->entry)
		return false;
	if (request->result) {
		spill_ledger_put_back(request->entry);
	} else {
		release(request->entry, true); /* a placement of ours, too, if the vendor has taken it */
		end(request, request->entry, "free");
	}
	return false;
}

bool spill_engine_free(struct spill_request *request)
{
	const struct spill_backend *backend = spill_backend_for(request->domain);
	if (request->step++ == 0) {
		request->start_us = spill_log_start_us();
		if (backend)
			spill_deferred_poll(backend, request->op == SPILL_OP_FREE);
		request->entry = request->ptr ? spill_ledger_take(request->ptr) : NULL;
		if (!request->entry || !ours(request->entry))
			return true;
		if (request->op != SPILL_OP_FREE_ASYNC)
			free_placed(request, request->entry);
		else if (spill_engine_in_capture(request))
			return true; /* the vendor's own answer is the right one */
		else
			free_placed_in_order(request, request->entry);
		return false;
	}
	return freed_by_vendor(request);
}

/* The vendor has ended the context, and with it all work and its own allocations; ours are released here. */
static void end_all(struct spill_request *request, const struct spill_context_end *end_of, const char *reason)
{
	const struct spill_backend *backend = end_of->backend;
	struct spill_allocation *allocation;
	void *others[SPILL_CONTEXTS];
	spill_move_context_ended(end_of);
	if (backend->contexts)
		backend->contexts->ended(end_of);
	while ((allocation = spill_ledger_take_of(end_of)) != NULL) {
		release(allocation, true);
		end(request, allocation, reason);
	}
	spill_deferred_context_ended(end_of);
	spill_shared_chunks_context_ended(end_of);
	if (!backend->pools || !backend->pools->outlive_contexts)
		spill_vendor_pool_device_ended(backend, end_of->device);
	spill_capture_context_ended(end_of);
	spill_peer_context_ended(end_of);
	spill_graph_access_forget_all();
	if (!spill_contexts_of(backend, end_of->device, others)) {
		spill_exchange_forget(backend, end_of->device);
		spill_host_chunks_forget(backend, end_of->device);
	}
}

/* Finds what is about to end, before the vendor forgets it. False: nothing. */
static bool identify(struct spill_request *request, const struct spill_backend *backend)
{
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
 * While the vendor ends a context nobody may ask it to mark its work or to copy in it, as the mover does: the end passes the gate,
 * like work. It begins inside: until then a move may make things in the context, which are to end with it.
 */
static void begin_end(struct spill_request *request, const struct spill_backend *backend)
{
	if (!identify(request, backend))
		return;
	/* What moves use in it is given up while it still lives. A release may be one of many: end_all says so in time. */
	if (request->op != SPILL_OP_PRIMARY_RELEASE)
		spill_move_give_up(backend, request->device, request->context);
	request->gated = spill_gate_enter_request();
	request->end = spill_context_end_begin(backend, request->device, request->context);
	request->end.id = backend->contexts ? backend->contexts->id(request->context) : 0;
}

/* The vendor has ended it, and not only one of several references. */
static bool has_ended(const struct spill_request *request, const struct spill_backend *backend)
{
	void *now;
	if (request->result || request->op != SPILL_OP_PRIMARY_RELEASE)
		return !request->result;
	/* Another thread may have made it anew, under the same handle. */
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
	if (ended)
		spill_contexts_ended(&request->end);
	if (request->gated)
		spill_gate_leave(spill_gate_self);
	if (ended)
		end_all(request, &request->end, destroyed ? "context" : "reset");
	spill_context_end_finish(&request->end, !ended);
	return false;
}
