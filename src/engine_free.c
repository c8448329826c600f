/*
 * Giving back: one allocation, or all that a context or device held. What the vendor made the vendor frees; what
 * we placed we release, after the work that may use it: the vendor's own free waits, so ours does (pitfall 9).
 */
#include "account.h"
#include "engine.h"
#include "place/pool.h"

static void end(struct spill_request *request, struct spill_allocation *allocation, const char *reason)
{
	/* The line first: whoever takes the room that this gives back comes behind it in the log. */
	spill_report_free(request, allocation, reason);
	spill_account_device_return(allocation->device, allocation->charged);
	spill_ledger_end(allocation);
}

/* Gives back what we placed. The entry takes over its device charge, so that end() returns it behind the log line. */
static void release(struct spill_allocation *allocation, bool context_ended)
{
	if (!allocation->placement)
		return;
	allocation->charged += allocation->placement->held.device;
	allocation->placement->held.device = 0;
	spill_place_release(allocation->placement, context_ended);
}

/* Releases memory of ours. A wait that fails (a dead context, a capture) is the answer the vendor's free would give. */
static void free_placed(struct spill_request *request, struct spill_allocation *allocation)
{
	const struct spill_backend *backend = allocation->backend;
	request->result = backend->wait(allocation->device, allocation->context);
	if (request->result) {
		spill_ledger_put_back(allocation);
		return;
	}
	release(allocation, false);
	end(request, allocation, "free");
}

bool spill_engine_free(struct spill_request *request)
{
	if (request->step++ == 0) {
		request->start_us = spill_log_now_us();
		request->entry = request->ptr ? spill_ledger_take(request->ptr) : NULL;
		if (!request->entry || !request->entry->placement)
			return true;
		free_placed(request, request->entry);
		return false;
	}
	if (!request->entry)
		return false;
	if (request->result)
		spill_ledger_put_back(request->entry);
	else
		end(request, request->entry, "free");
	return false;
}

/* The vendor has ended the context, and with it all work and its own allocations; ours are released here. */
static void end_all(struct spill_request *request, const struct spill_backend *backend, int device,
                    void *context, const char *reason)
{
	struct spill_allocation *allocation;
	while ((allocation = spill_ledger_take_of(backend, device, context)) != NULL) {
		release(allocation, true);
		end(request, allocation, reason);
	}
	spill_pool_trim(backend, device, context, true);
}

/* Finds what is about to end, before the vendor forgets it. */
static void identify(struct spill_request *request, const struct spill_backend *backend)
{
	switch (request->op) {
	case SPILL_OP_PRIMARY_RELEASE:
	case SPILL_OP_PRIMARY_RESET:
		request->ends = backend->primary && backend->primary(request->device, &request->context);
		break;
	case SPILL_OP_DEVICE_RESET:
		request->ends = backend->current(&request->device, &request->context);
		break;
	default:
		request->ends = request->context != NULL;
		break;
	}
}

bool spill_engine_context(struct spill_request *request)
{
	const struct spill_backend *backend = spill_runtime_backend(request->domain);
	if (request->step++ == 0) {
		request->start_us = spill_log_now_us();
		if (backend)
			identify(request, backend);
		return true;
	}
	void *still;
	if (!request->ends || request->result)
		return false;
	if (request->op == SPILL_OP_PRIMARY_RELEASE && backend->primary(request->device, &still))
		return false; /* others hold it */
	end_all(request, backend, request->device, request->context,
	        request->op == SPILL_OP_CONTEXT_DESTROY || request->op == SPILL_OP_PRIMARY_RELEASE ? "context"
	                                                                                           : "reset");
	return false;
}
