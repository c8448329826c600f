/*
 * Physical memory that the program creates, maps and releases itself: pools that grow by pieces
 * (llama.cpp), and segments that are mapped and unmapped (PyTorch).
 *
 * A piece that does not fit gets a handle of host memory. The program maps and uses it by the same
 * calls. The vendor is asked first for each piece, so new pieces are on the device again as soon as
 * there is room. vmm.h follows handles and mappings.
 */
#include <stdlib.h>
#include <string.h>

#include "account.h"
#include "admit.h"
#include "retry_state.h"
#include "promote.h"
#include "reserve_keeper.h"
#include "vmm.h"

/* Closes the accounts of memory that has been given back. */
static void finish_ended(struct spill_request *request, struct spill_vmm_memory *ended)
{
	while (ended) {
		struct spill_vmm_memory *memory = ended;
		ended = memory->next;
		struct spill_allocation *entry = spill_ledger_take_handle(memory->handle, memory->seq);
		if (entry) {
			/* The line is first, as for every free. */
			spill_request_log_free(request, entry, SPILL_REASON_FREE);
			spill_account_device_return(entry->device, entry->charged);
			spill_account_physical_return(entry->charged_host);
			spill_placement_release(entry->placement, true);
			spill_ledger_end(entry);
			spill_promote_later();
		}
		free(memory);
	}
}

static bool describe_physical(const struct spill_request *request, const struct spill_backend *backend,
                              struct spill_physical *physical)
{
	if (!backend || !backend->physical || !request->out || !request->properties || !request->bytes)
		return false;
	backend->physical->describe(request->properties, physical);
	return true;
}

/* Enters new memory in the table and the ledger. False without room: it is then not accounted. */
static bool record_memory(struct spill_request *request, struct spill_allocation *allocation,
                          const struct spill_physical *physical, enum spill_reason reason)
{
	struct spill_vmm_memory *ended = NULL;
	struct spill_vmm_memory memory = {
	    .handle = allocation->ptr,
	    .device = allocation->device,
	    .spilled = allocation->placement != NULL,
	};
	allocation->handle = true;
	memcpy(memory.asked, physical->asked, sizeof(memory.asked));
	struct spill_vmm_memory *added = spill_vmm_add(&memory, &ended);
	finish_ended(request, ended);
	if (!added)
		return false;
	if (spill_admit_record(request, allocation, reason)) {
		added->seq = allocation->seq; /* the program does not know the handle yet */
		return true;
	}
	finish_ended(request, spill_vmm_released(spill_vmm_releasing(memory.handle), true));
	return false;
}

/* -- CREATE ------------------------------------------------------------------------------------ */

/*
 * The vendor refuses a wrong size itself. But a limit, a rule or the reserve may refuse before the
 * vendor is asked: a wrong size must not be called out of memory then.
 */
static bool has_valid_size(const struct spill_request *request, const struct spill_backend *backend)
{
	uint64_t granule;
	bool refuses_first = spill_process_policy()->rules || spill_reserve_is_kept(request->device) ||
	                     spill_device_limit(backend, request->device) != SPILL_UNLIMITED;
	if (!refuses_first || !backend->physical)
		return true;
	return !backend->physical->granularity(request->device, false, &granule) && granule &&
	       request->bytes % granule == 0;
}

/* Sets no context: physical memory belongs to none. */
static bool prepare_create(struct spill_request *request, const struct spill_backend *backend)
{
	struct spill_physical physical;
	if (!describe_physical(request, backend, &physical) || physical.where != SPILL_LOCATION_DEVICE)
		return false;
	request->device = physical.device;
	request->admission.weight = request->bytes;
	return has_valid_size(request, backend);
}

static void record_served(struct spill_request *request, const struct spill_backend *backend)
{
	struct spill_physical physical = {0};
	struct spill_allocation allocation =
	    spill_admit_describe(request, backend, *spill_engine_out(request));
	describe_physical(request, backend, &physical);
	allocation.place = SPILL_PLACE_DEVICE;
	allocation.charged = request->admission.charged;
	allocation.held.device = request->bytes;
	if (!record_memory(request, &allocation, &physical, spill_admit_driver_reason(request)))
		spill_account_device_return(request->device, request->admission.charged);
}

static bool place_handle(struct spill_request *request, enum spill_step step,
                         const struct spill_place_request *place_request, const char **error)
{
	const struct spill_backend *backend = place_request->backend;
	struct spill_physical physical = {0};
	describe_physical(request, backend, &physical);
	if (step != SPILL_STEP_SPLIT && step != SPILL_STEP_HOST)
		*error = "not for physical memory";
	else if (physical.device_only)
		*error = "its use is for the device only";
	if (*error)
		return false;
	struct spill_placement *placement = spill_place_handle.make(place_request, error);
	if (!placement)
		return false;
	struct spill_allocation allocation = spill_admit_describe(request, backend, placement->ptr);
	allocation.place = SPILL_PLACE_HOST;
	allocation.held = placement->held;
	allocation.placement = placement;
	if (!record_memory(request, &allocation, &physical, spill_admit_place_reason(request))) {
		spill_placement_release(placement, false);
		*error = "no memory for bookkeeping";
		return false;
	}
	*spill_engine_out(request) = placement->ptr;
	return true;
}

/* The program itself asks for host memory. */
static bool create_on_host(struct spill_request *request, const struct spill_backend *backend,
                           const struct spill_physical *physical)
{
	if (request->step++ == 0)
		return spill_admit_count_begin(request, backend, true);
	if (request->result)
		return false;
	request->device = physical->device;
	struct spill_allocation allocation =
	    spill_admit_describe(request, backend, *spill_engine_out(request));
	allocation.place = SPILL_PLACE_HOST;
	allocation.held.host = allocation.charged_host = request->bytes;
	spill_account_physical_add(request->bytes);
	if (!record_memory(request, &allocation, physical, SPILL_REASON_ASKED))
		spill_account_physical_return(request->bytes);
	return false;
}

/* `refused` is NULL: the vendor leaves the program's handle alone when it refuses. */
bool spill_engine_create(struct spill_request *request)
{
	static const struct spill_alloc_kind_ops physical_kind = {
	    .prepare = prepare_create, .served = record_served, .place = place_handle, .whole = true};
	const struct spill_backend *backend = spill_backend_for(request->domain);
	struct spill_physical physical;
	if (describe_physical(request, backend, &physical) && physical.where == SPILL_LOCATION_HOST)
		return create_on_host(request, backend, &physical);
	return spill_admit(request, &physical_kind);
}

/* -- the life of a handle ---------------------------------------------------------------------- */

bool spill_engine_release(struct spill_request *request)
{
	if (request->step++ == 0) {
		request->start_us = spill_log_start_us();
		request->memory = spill_vmm_releasing(request->handle);
		return true;
	}
	if (request->memory)
		finish_ended(request, spill_vmm_released(request->memory, request->result == 0));
	return false;
}

bool spill_engine_map(struct spill_request *request)
{
	if (request->step++ == 0) {
		request->start_us = spill_log_start_us();
		request->memory = spill_vmm_mapping(request->handle);
		return true;
	}
	uint64_t mapped = request->result == 0 ? request->bytes : 0;
	if (request->result == 0)
		spill_retry_state_mapped(request);
	if (request->memory)
		finish_ended(request, spill_vmm_mapped(request->memory, request->ptr, mapped));
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
		finish_ended(request, spill_vmm_unmapped(request->mappings, request->result == 0));
	return false;
}

/*
 * The program must not get one of our handles behind a split or movable allocation. The vendor has
 * no handle for plain memory, which the program takes it for, so the answer is the vendor's error.
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
	uint64_t handle = request->result == 0 && request->out ? *spill_engine_out(request) : 0;
	if (request->memory || handle)
		finish_ended(request, spill_vmm_retained(request->memory, handle));
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
