/*
 * Physical memory that the program makes, maps and releases itself: pools that grow by pieces (llama.cpp's),
 * segments that are mapped and unmapped (PyTorch's). A piece that does not fit gets a handle of host memory,
 * which the program maps and uses by the calls it would have made anyway. The vendor is asked first for each,
 * so pieces are on the device again as soon as there is room. Its life is vmm.h.
 */
#include <stdlib.h>
#include <string.h>

#include "account.h"
#include "admit.h"
#include "retry_state.h"
#include "promote.h"
#include "reserve_keeper.h"
#include "vmm.h"

/* Closes the books on what has been given back. */
static void finish(struct spill_request *request, struct spill_vmm_memory *ended)
{
	while (ended) {
		struct spill_vmm_memory *memory = ended;
		ended = memory->next;
		struct spill_allocation *entry = spill_ledger_take_handle(memory->handle, memory->seq);
		if (entry) {
			/* The line first, as for every free. */
			spill_report_free(request, entry, "free");
			spill_account_device_return(entry->device, entry->charged);
			spill_account_physical_return(entry->charged_host);
			spill_placement_release(entry->placement, true);
			spill_ledger_end(entry);
			spill_promote_later();
		}
		free(memory);
	}
}

static bool describe(const struct spill_request *request, const struct spill_backend *backend,
                     struct spill_physical *physical)
{
	if (!backend || !backend->physical || !request->out || !request->properties || !request->bytes)
		return false;
	backend->physical->describe(request->properties, physical);
	return true;
}

/* Enters new memory in table and ledger; false if there is no room for that: it is then not accounted. */
static bool keep(struct spill_request *request, struct spill_allocation *allocation,
                 const struct spill_physical *physical, const char *reason)
{
	struct spill_vmm_memory *ended = NULL;
	struct spill_vmm_memory memory = {
	    .handle = allocation->ptr,
	    .device = allocation->device,
	    .spilled = allocation->placement != NULL,
	};
	allocation->handle = true;
	memcpy(memory.asked, physical->asked, sizeof(memory.asked));
	struct spill_vmm_memory *kept = spill_vmm_add(&memory, &ended);
	finish(request, ended);
	if (!kept)
		return false;
	if (spill_admit_record(request, allocation, reason)) {
		kept->seq = allocation->seq; /* the program does not know the handle yet */
		return true;
	}
	finish(request, spill_vmm_released(spill_vmm_releasing(memory.handle), true));
	return false;
}

/* -- CREATE ---------------------------------------------------------------------------------------------- */

static uint64_t *handle_of(struct spill_request *request)
{
	return request->out;
}

/*
 * Its size is the vendor's to judge; only where a limit, a rule or the reserve may refuse first must a wrong one not be called out of
 * memory.
 */
static bool sound(const struct spill_request *request, const struct spill_backend *backend)
{
	uint64_t granule;
	bool first = spill_process_policy()->rules || spill_reserve_is_kept(request->device) ||
	             spill_device_limit(backend, request->device) != SPILL_UNLIMITED;
	if (!first || !backend->physical)
		return true;
	return !backend->physical->granularity(request->device, false, &granule) && granule &&
	       request->bytes % granule == 0;
}

static bool prepare(struct spill_request *request, const struct spill_backend *backend)
{
	struct spill_physical physical;
	if (!describe(request, backend, &physical) || physical.where != SPILL_LOCATION_DEVICE)
		return false;
	request->device = physical.device;
	request->weight = request->bytes;
	return sound(request, backend); /* it belongs to no context, and so does the request */
}

static void served(struct spill_request *request, const struct spill_backend *backend)
{
	struct spill_physical physical = {0};
	struct spill_allocation allocation = spill_admit_describe(request, backend);
	describe(request, backend, &physical);
	allocation.ptr = *handle_of(request);
	allocation.place = SPILL_PLACE_DEVICE;
	allocation.charged = request->charged;
	allocation.held.device = request->bytes;
	if (!keep(request, &allocation, &physical, request->over_limit ? "limit" : "fits"))
		spill_account_device_return(request->device, request->charged);
}

static bool place(struct spill_request *request, enum spill_step step, const struct spill_place_request *want,
                  const char **error)
{
	struct spill_physical physical = {0};
	describe(request, want->backend, &physical);
	if (step != SPILL_STEP_SPLIT && step != SPILL_STEP_HOST)
		*error = "not for physical memory";
	else if (physical.device_only)
		*error = "its use is for the device only";
	if (*error)
		return false;
	struct spill_placement *placement = spill_place_handle.make(want, error);
	if (!placement)
		return false;
	struct spill_allocation allocation = spill_admit_describe(request, want->backend);
	allocation.ptr = placement->ptr;
	allocation.place = SPILL_PLACE_HOST;
	allocation.held = placement->held;
	allocation.placement = placement;
	if (!keep(request, &allocation, &physical, spill_admit_reason(request))) {
		spill_placement_release(placement, false);
		*error = "no memory for bookkeeping";
		return false;
	}
	*handle_of(request) = placement->ptr;
	return true;
}

/* Host memory that the program wants as such. */
static bool create_on_host(struct spill_request *request, const struct spill_backend *backend,
                           const struct spill_physical *physical)
{
	if (request->step++ == 0) {
		spill_engine_memory_call(backend);
		request->start_us = spill_log_start_us();
		return true;
	}
	if (request->result)
		return false;
	request->device = physical->device;
	struct spill_allocation allocation = spill_admit_describe(request, backend);
	allocation.ptr = *handle_of(request);
	allocation.place = SPILL_PLACE_HOST;
	allocation.held.host = allocation.charged_host = request->bytes;
	spill_account_physical_add(request->bytes);
	if (!keep(request, &allocation, physical, "asked"))
		spill_account_physical_return(request->bytes);
	return false;
}

/* Without a `refused`: the vendor leaves the program's handle alone when it refuses. */
bool spill_engine_create(struct spill_request *request)
{
	static const struct spill_alloc_kind_ops demand = {
	    .prepare = prepare, .served = served, .place = place, .whole = true};
	const struct spill_backend *backend = spill_backend_for(request->domain);
	struct spill_physical physical;
	if (describe(request, backend, &physical) && physical.where == SPILL_LOCATION_HOST)
		return create_on_host(request, backend, &physical);
	return spill_admit(request, &demand);
}

/* -- its life -------------------------------------------------------------------------------------------- */

bool spill_engine_release(struct spill_request *request)
{
	if (request->step++ == 0) {
		request->start_us = spill_log_start_us();
		request->memory = spill_vmm_releasing(request->handle);
		return true;
	}
	if (request->memory)
		finish(request, spill_vmm_released(request->memory, request->result == 0));
	return false;
}

bool spill_engine_map(struct spill_request *request)
{
	if (request->step++ == 0) {
		request->start_us = spill_log_start_us();
		request->memory = spill_vmm_mapping(request->handle);
		return true;
	}
	if (request->result == 0)
		spill_retry_state_mapped(request);
	if (request->memory)
		finish(request, spill_vmm_mapped(request->memory, request->ptr,
		                                 request->result == 0 ? request->bytes : 0));
	return false;
}

bool spill_engine_unmap(struct spill_request *request)
{
	if (request->step++ == 0) {
		request->start_us = spill_log_start_us();
		request->mappings = spill_vmm_unmapping(request->ptr, request->bytes);
		return true;
	}
	if (request->mappings)
		finish(request, spill_vmm_unmapped(request->mappings, request->result == 0));
	return false;
}

/*
 * The handles behind a split are ours: the program must not get one, and the vendor has none for the plain
 * memory that it takes this for.
 */
bool spill_engine_retain(struct spill_request *request)
{
	struct spill_allocation placed;
	if (request->step++ == 0) {
		if (request->ptr && spill_ledger_placed(request->ptr, &placed) &&
		    (placed.place == SPILL_PLACE_SPLIT || placed.place == SPILL_PLACE_MOVABLE)) {
			request->result = placed.backend->invalid_value;
			return false;
		}
		request->start_us = spill_log_start_us();
		request->memory = spill_vmm_retaining(request->ptr);
		return true;
	}
	uint64_t handle = request->result == 0 && request->out ? *handle_of(request) : 0;
	if (request->memory || handle)
		finish(request, spill_vmm_retained(request->memory, handle));
	return false;
}

bool spill_engine_properties(struct spill_request *request)
{
	if (request->step++ == 0)
		return true;
	if (request->result == 0 && request->out)
		spill_vmm_spilled(request->handle, request->out);
	return false;
}
