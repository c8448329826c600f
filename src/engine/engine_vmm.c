/*
 * Physical memory that the program creates, maps and releases itself: pools that grow by pieces
 * (llama.cpp), and segments that are mapped and unmapped (PyTorch). Here it is created. The life of
 * its handles is in engine_handle.c.
 *
 * On a device that fills up a piece is a chunk set (chunk_set.h). Elsewhere the vendor is asked
 * first, and a piece that does not fit gets a handle of host memory. The program maps and uses each
 * of them by the same calls.
 */
#include <string.h>

#include "account.h"
#include "admit.h"
#include "chunk_set.h"
#include "exporting.h"
#include "movable.h"
#include "reserve_keeper.h"
#include "rule.h"
#include "vmm.h"

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
	const struct spill_chunked *set = spill_chunked_of(allocation->placement);
	struct spill_vmm_memory memory = {
	    .handle = allocation->ptr,
	    .device = allocation->device,
	    .spilled = allocation->placement != NULL,
	    .set = set ? allocation->placement : NULL,
	    .exportable = set && set->properties,
	    .site = allocation->site,
	    .bytes = allocation->bytes,
	};
	allocation->handle = true;
	memcpy(memory.asked, physical->asked, sizeof(memory.asked));
	struct spill_vmm_memory *added = spill_vmm_add(&memory, &ended);
	spill_engine_finish_ended(request, ended);
	if (!added)
		return false;
	if (spill_admit_record(request, allocation, reason)) {
		added->seq = allocation->seq; /* the program does not know the handle yet */
		return true;
	}
	spill_engine_finish_ended(request, spill_vmm_released(spill_vmm_releasing(memory.handle), true));
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
	    spill_admit_describe(request, placement->backend, set ? set->name : placement->ptr);
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
 * memory is one chunk, and a large one would take long to move. Sets wanted->properties for it.
 */
static bool is_for_set(struct spill_request *request, const struct spill_physical *physical,
                       struct spill_place_request *wanted)
{
	const struct spill_backend *backend = wanted->backend;
	uint64_t unit = backend->moves ? spill_chunked_granularity(backend, request->device) : 0;
	if (physical->exportable && !spill_exporting_keeps(request))
		wanted->properties = request->properties;
	return unit && request->bytes % unit == 0 && !physical->device_only &&
	       !(wanted->properties && request->bytes > SPILL_CHUNK_SET_EXPORTABLE) &&
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
	wanted.exportable = physical.exportable;
	bool is_set = step == SPILL_STEP_SPLIT && is_for_set(request, &physical, &wanted);
	const struct spill_place_ops *ops = is_set ? &spill_place_split_set : &spill_place_handle;
	struct spill_placement *placement = ops->make(&wanted, error);
	return placement && hand_out(request, placement, spill_admit_place_reason(request), error);
}

/* Chunks instead of the driver's memory, so that they can be demoted later. As for plain memory. */
static enum spill_substitute make_set(struct spill_request *request, const struct spill_backend *backend,
                                      const char **error)
{
	struct spill_physical physical = {0};
	struct spill_place_request wanted = spill_admit_place_request(request, backend, SPILL_UNLIMITED);
	if (spill_engine_in_capture(request) || !describe_physical(request, backend, &physical) ||
	    !is_for_set(request, &physical, &wanted))
		return SPILL_SUBSTITUTE_NONE;
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
