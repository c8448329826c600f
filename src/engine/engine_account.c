/*
 * Memory of other kinds that the program itself asked for: managed memory and pinned host memory, made by the vendor or
 * registered. The ledger knows it, the policy does not touch it. What is pinned counts toward host.limit and
 * host.reserve: it is gone for spilled data.
 */
#include "account.h"
#include "admit.h"

static bool prepare(struct spill_request *request, const struct spill_backend *backend)
{
	bool there = request->op == SPILL_OP_REGISTER ? request->ptr != 0 : request->out != NULL;
	return backend && there && request->bytes &&
	       backend->devices->current(&request->device, &request->context);
}

static void keep(struct spill_request *request, const struct spill_backend *backend)
{
	struct spill_allocation allocation = spill_admit_describe(request, backend);
	allocation.ptr = request->op == SPILL_OP_REGISTER ? request->ptr : *(uint64_t *)request->out;
	if (request->op == SPILL_OP_ALLOC_MANAGED) {
		allocation.place = SPILL_PLACE_MANAGED;
		allocation.held.managed = request->bytes;
	} else {
		allocation.place = SPILL_PLACE_HOST;
		allocation.held.host = request->bytes;
		allocation.charged_host = request->bytes;
	}
	spill_account_host_add(allocation.charged_host);
	if (!spill_admit_record(request, &allocation, "asked"))
		spill_account_host_return(allocation.charged_host);
}

bool spill_engine_account(struct spill_request *request)
{
	const struct spill_backend *backend = spill_backend_for(request->domain);
	if (request->step++ == 0) {
		request->pass = !prepare(request, backend);
		if (!request->pass)
			spill_engine_memory_call(backend);
		request->start_us = spill_log_start_us();
		return true;
	}
	if (request->result == 0)
		keep(request, backend);
	return false;
}
