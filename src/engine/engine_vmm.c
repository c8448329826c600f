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

#include "abi/cuda.h"
#include "account.h"
#include "admit.h"
#include "chunk_map.h"
#include "chunk_set.h"
#include "exporting.h"
#include "movable.h"
#include "note.h"
#include "retry_state.h"
#include "promote.h"
#include "reserve_keeper.h"
#include "rule.h"
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
	physical->exportable = physical->exportable && !spill_exporting_keeps(request);
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
	    .set = spill_chunk_set_is(allocation->ptr) ? allocation->placement : NULL,
	    .exportable = physical->exportable,
	    .site = allocation->site,
	    .bytes = allocation->bytes,
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

/* Physical memory belongs to no context. The copies of its moves need one. */
static bool prepare_create(struct spill_request *request, const struct spill_backend *backend)
{
	struct spill_physical physical;
	if (!describe_physical(request, backend, &physical) || physical.where != SPILL_LOCATION_DEVICE)
		return false;
	int device;
	backend->devices->current(&device, &request->context);
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

/* As enlist_chunks in engine_alloc.c. A set may move once the program has access to it. */
static void prepare_set(const struct spill_request *request, struct spill_chunked *set,
                        const struct spill_allocation *allocation)
{
	const struct spill_rule *rule = request->admission.applied;
	set->properties = NULL;
	set->seq = allocation->seq;
	set->api = allocation->api;
	set->caller = allocation->caller;
	set->priority = spill_rule_priority(rule);
	if (spill_rule_room(rule, 0) != SPILL_UNLIMITED)
		set->stays_from = set->base.held.device;
	set->owed = spill_chunked_away(set) > 0;
}

/* Enters the placement in the table and the ledger, and gives its handle to the program. */
static bool hand_out(struct spill_request *request, struct spill_placement *placement,
                     enum spill_reason reason, const char **error)
{
	struct spill_chunked *set = spill_chunked_of(placement);
	struct spill_physical physical = {0};
	struct spill_allocation allocation =
	    spill_admit_describe(request, placement->backend, set ? set->handle : placement->ptr);
	describe_physical(request, placement->backend, &physical);
	allocation.place = placement->ops->place;
	allocation.held = placement->held;
	allocation.placement = placement;
	if (!record_memory(request, &allocation, &physical, reason)) {
		spill_placement_release(placement, false);
		*error = "no memory for bookkeeping";
		return false;
	}
	if (set)
		prepare_set(request, set, &allocation);
	*spill_engine_out(request) = allocation.ptr;
	return true;
}

/*
 * Is the request one for a chunk set? Memory for the device only may be nothing else. Exportable
 * memory is one chunk, and a large one would take long to move.
 */
static bool is_for_set(struct spill_request *request, const struct spill_backend *backend,
                       const struct spill_physical *physical)
{
	uint64_t unit = backend->moves ? spill_chunked_granularity(backend, request->device) : 0;
	return unit && request->bytes % unit == 0 && !physical->device_only &&
	       !(physical->exportable && request->bytes > SPILL_CHUNK_SET_EXPORTABLE) &&
	       spill_movable_wanted(backend, request->device, request->bytes,
	                            request->admission.decision.chunks) &&
	       !spill_exporting_stays_plain(request);
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
	struct spill_place_request wanted = *place_request;
	wanted.properties = physical.exportable ? request->properties : NULL;
	bool is_set = step == SPILL_STEP_SPLIT && is_for_set(request, backend, &physical);
	const struct spill_place_ops *ops = is_set ? &spill_place_split_set : &spill_place_handle;
	struct spill_placement *placement = ops->make(&wanted, error);
	return placement && hand_out(request, placement, spill_admit_place_reason(request), error);
}

/* Chunks instead of the driver's memory, so that they can be demoted later. As for plain memory. */
static enum spill_substitute make_set(struct spill_request *request, const struct spill_backend *backend,
                                      const char **error)
{
	struct spill_physical physical = {0};
	if (spill_engine_in_capture(request) || !describe_physical(request, backend, &physical) ||
	    !is_for_set(request, backend, &physical))
		return SPILL_SUBSTITUTE_NONE;
	struct spill_place_request wanted = spill_admit_place_request(request, backend, SPILL_UNLIMITED);
	wanted.properties = physical.exportable ? request->properties : NULL;
	return spill_admit_substitute(request, &spill_place_movable_set, &wanted, hand_out, error);
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
	static const struct spill_alloc_kind_ops physical_kind = {.prepare = prepare_create,
	                                                          .substitute = make_set,
	                                                          .served = record_served,
	                                                          .place = place_handle,
	                                                          .whole = true};
	const struct spill_backend *backend = spill_backend_for(request->domain);
	struct spill_physical physical;
	if (describe_physical(request, backend, &physical) && physical.where == SPILL_LOCATION_HOST)
		return create_on_host(request, backend, &physical);
	return spill_admit(request, &physical_kind);
}

/* -- the life of a handle ---------------------------------------------------------------------- */

/* A handle of ours that has ended. The vendor must not see it: it takes a handle for an address. */
static bool is_stale_set(struct spill_request *request)
{
	if (request->memory || !spill_chunk_set_is(request->handle))
		return false;
	request->result = spill_backend_for(request->domain)->invalid_value;
	return true;
}

/* The handle of a chunk set is released here: the vendor does not know it. */
bool spill_engine_release(struct spill_request *request)
{
	if (request->step++ == 0) {
		request->start_us = spill_log_start_us();
		request->memory = spill_vmm_releasing(request->handle);
		if (!is_stale_set(request) && !spill_chunk_set_is(request->handle))
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
		struct spill_chunked *set = request->memory ? spill_chunked_of(request->memory->set) : NULL;
		if (!set && !is_stale_set(request))
			return true;
		if (set)
			request->result = spill_chunk_set_map(set, request->ptr, request->bytes);
	}
	uint64_t mapped = request->result == 0 ? request->bytes : 0;
	if (request->result == 0)
		spill_retry_state_mapped(request);
	if (request->memory)
		finish_ended(request, spill_vmm_mapped(request->memory, request->ptr, mapped));
	return false;
}

/*
 * Sets in these mappings stay where they are from now on. False: the range covers a part of one. The
 * vendor would unmap single chunks.
 */
static bool prepare_unmapping(const struct spill_request *request)
{
	bool whole = true;
	for (const struct spill_vmm_mapping *mapping = request->mappings; mapping; mapping = mapping->next) {
		struct spill_chunked *set = spill_chunked_of(mapping->memory->set);
		if (!set)
			continue;
		whole = whole && request->ptr <= mapping->va &&
		        mapping->va + mapping->bytes <= request->ptr + request->bytes;
		spill_chunk_set_unmapping(set);
	}
	return whole;
}

static void finish_unmapping(const struct spill_request *request)
{
	for (const struct spill_vmm_mapping *mapping = request->mappings; mapping; mapping = mapping->next) {
		struct spill_chunked *set = spill_chunked_of(mapping->memory->set);
		if (set)
			spill_chunk_set_unmapped(set, mapping->va, request->result == 0);
	}
}

bool spill_engine_unmap(struct spill_request *request)
{
	if (request->step++ == 0) {
		request->start_us = spill_log_start_us();
		request->mappings = spill_vmm_unmapping(request->ptr, request->bytes);
		if (prepare_unmapping(request))
			return true;
		request->result = spill_backend_for(request->domain)->invalid_value;
	}
	finish_unmapping(request);
	if (request->mappings)
		finish_ended(request, spill_vmm_unmapped(request->mappings, request->result == 0));
	return false;
}

/* Only for the set's own device, to read and write? CUDA only: HIP has no sets. */
static bool is_own_access(const struct spill_request *request, int device)
{
	const CUmemAccessDesc *access = request->properties;
	return request->mode == 1 && access->location.type == CU_MEM_LOCATION_TYPE_DEVICE &&
	       access->location.id == device && access->flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
}

/*
 * The program has access to its mappings: sets among them may move. Sets that may move already do
 * not during the call, because a chunk is not mapped for a moment.
 */
bool spill_engine_access(struct spill_request *request)
{
	struct spill_vmm_range range;
	if (request->step++ == 0) {
		if (spill_chunked_any())
			spill_mover_lock();
		return true;
	}
	if (spill_mover_is_mine())
		spill_mover_unlock();
	if (request->result || !request->properties)
		return false;
	for (uint64_t at = request->ptr, end = at + request->bytes; at < end;) {
		bool found = spill_vmm_spilled_at(at, &range);
		struct spill_vmm_memory *memory = found ? spill_vmm_retaining(at) : NULL;
		struct spill_chunked *set = memory ? spill_chunked_of(memory->set) : NULL;
		if (set) {
			spill_chunk_set_accessed(set, request->ptr, request->bytes,
			                         is_own_access(request, set->base.device));
			spill_gate_want_maintenance();
			if (set->owed)
				spill_promote_wanted();
		}
		if (memory)
			finish_ended(request, spill_vmm_retained(memory, 0));
		at = found ? range.va + range.bytes : at + SPILL_CHUNK_MAP_UNIT;
	}
	return false;
}

/*
 * The program must not get one of our handles behind a split or movable allocation. The vendor has
 * no handle for plain memory, which the program takes it for, so the answer is the vendor's error.
 * Of a chunk set the program gets its own handle.
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
		struct spill_chunked *set = request->memory ? spill_chunked_of(request->memory->set) : NULL;
		if (!set || !request->out)
			return true;
		*spill_engine_out(request) = set->handle;
	}
	uint64_t handle = request->result == 0 && request->out ? *spill_engine_out(request) : 0;
	if (request->memory || handle)
		finish_ended(request, spill_vmm_retained(request->memory, handle));
	return false;
}

/* The vendor does not know the handle of a chunk set. */
bool spill_engine_properties(struct spill_request *request)
{
	if (request->step++ == 0 && !spill_chunk_set_is(request->handle))
		return true;
	if (spill_chunk_set_is(request->handle) &&
	    (!request->out || !spill_vmm_spilled(request->handle, request->out)))
		request->result = spill_backend_for(request->domain)->invalid_value;
	else if (request->result == 0 && request->out)
		spill_vmm_spilled(request->handle, request->out);
	return false;
}

static void note_not_exported(const struct spill_vmm_memory *memory)
{
	spill_exporting_learn(memory->site, memory->bytes);
	spill_note("export", "physical memory cannot be exported, because libspill had made it of chunks and "
	                     "moved them. Later requests of this size from there stay plain. A rule with "
	                     "api = cuMemCreate and place = device, or movable.enable = off, keeps all of "
	                     "them plain");
}

/*
 * The vendor exports its own handle only, as it was created for the program. It must not see ours: it
 * takes a handle for an address.
 */
bool spill_engine_use_real_handle(struct spill_request *request)
{
	if (!spill_chunk_set_is(request->handle))
		return true;
	struct spill_vmm_memory *memory = spill_vmm_mapping(request->handle);
	struct spill_chunked *set = memory ? spill_chunked_of(memory->set) : NULL;
	uint64_t real = 0;
	if (set) {
		spill_chunk_set_pin(set);
		real = spill_chunk_set_real(set);
	}
	if (real)
		request->handle = real;
	else
		request->result = spill_backend_for(request->domain)->invalid_value;
	if (set && !real && memory->exportable)
		note_not_exported(memory);
	if (memory)
		finish_ended(request, spill_vmm_mapped(memory, 0, 0));
	return real;
}
