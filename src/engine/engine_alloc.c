/*
 * Plain device memory. What fits costs one decision
 * without lock or system call; nothing is spilled that the driver can serve within the limits.
 */
#include <string.h>

#include "account.h"
#include "admit.h"
#include "capture.h"
#include "demote.h"
#include "exporting.h"
#include "gate.h"
#include "growth_state.h"
#include "movable.h"
#include "peer.h"
#include "chunked.h"
#include "promote.h"
#include "rule.h"

static uint64_t *out(struct spill_request *request)
{
	return request->out;
}

/* Rows padded by the vendor: what they take in all; no rows, or more than there are addresses for, are its own matter. */
static bool prepare_rows(struct spill_request *request, const struct spill_backend *backend)
{
	uint64_t pitch = backend->memory->pitch(request->width);
	return pitch >= request->width && !__builtin_mul_overflow(pitch, request->height, &request->bytes) &&
	       !__builtin_mul_overflow(request->bytes, request->depth, &request->bytes);
}

static bool prepare(struct spill_request *request, const struct spill_backend *backend)
{
	if (!request->out || (request->out_pitch && !prepare_rows(request, backend)) || !request->bytes ||
	    !backend->devices->current(&request->device, &request->context))
		return false;
	request->weight = backend->memory->footprint(request->bytes);
	return true;
}

/* The driver served it. */
static void served(struct spill_request *request, const struct spill_backend *backend)
{
	struct spill_allocation allocation = spill_admit_describe(request, backend);
	allocation.ptr = *out(request);
	allocation.place = SPILL_PLACE_DEVICE;
	allocation.charged = request->charged;
	allocation.held.device = request->bytes;
	if (!spill_admit_record(request, &allocation, request->over_limit ? "limit" : "fits"))
		spill_account_device_return(request->device, request->charged);
}

static void deliver(struct spill_request *request, const struct spill_backend *backend, uint64_t ptr)
{
	*out(request) = ptr;
	if (request->out_pitch)
		*request->out_pitch = backend->memory->pitch(request->width);
	if (request->out_width)
		*request->out_width = request->width;
	if (request->out_height)
		*request->out_height = request->height;
}

/* Made of chunks: it may move from now on. */
static void enlist(struct spill_request *request, const struct spill_allocation *allocation)
{
	struct spill_chunked *chunked = spill_chunked_of(allocation->placement);
	if (!chunked)
		return;
	chunked->seq = allocation->seq;
	struct spill_growth_answer growth = spill_growth_state_served(request);
	chunked->run = growth.run;
	chunked->grows = growth.grows;
	chunked->priority = spill_rule_priority(request->applied);
	if (spill_rule_room(request->applied, 0) != SPILL_UNLIMITED)
		chunked->stays_from = chunked->base.held.device;
	bool owed = chunked->owed = spill_chunked_away(chunked) > 0;
	spill_chunked_enlist(chunked);
	spill_gate_want_maintenance();
	if (owed)
		spill_promote_wanted();
}

/* Enters what was made in the ledger and hands it to the program. */
static bool hand_out(struct spill_request *request, struct spill_placement *placement, const char *reason,
                     const char **error)
{
	struct spill_allocation allocation = spill_admit_describe(request, placement->backend);
	allocation.ptr = placement->ptr;
	allocation.place = placement->ops->place;
	allocation.held = placement->held;
	allocation.placement = placement;
	if (!spill_admit_record(request, &allocation, reason)) {
		spill_placement_release(placement, false);
		*error = "no memory for bookkeeping";
		return false;
	}
	spill_peer_placed(placement);
	enlist(request, &allocation);
	deliver(request, placement->backend, placement->ptr);
	return true;
}

static bool place(struct spill_request *request, enum spill_step step, const struct spill_place_request *want,
                  const char **error)
{
	struct spill_placement *placement =
	    spill_place_make(spill_place_of(spill_step_place(step)), want, error);
	return placement && hand_out(request, placement, spill_admit_reason(request), error);
}

/* Chunks on the device in place of the plain call, so that it can make way later. Whatever else goes wrong: the plain call. */
static enum spill_instead make_movable(struct spill_request *request, const struct spill_backend *backend,
                                       const char **error)
{
	if (spill_engine_in_capture(request) ||
	    !spill_movable_wanted(backend, request->device, request->bytes, request->decision.chunks) ||
	    spill_exporting_asked(request))
		return SPILL_INSTEAD_NOT;
	struct spill_place_request want = spill_admit_want(request, backend, SPILL_UNLIMITED);
	spill_account_device_return(request->device, request->charged);
	struct spill_placement *placement = spill_place_movable.make(&want, error);
	if (placement && hand_out(request, placement, "fits", error)) {
		spill_demote_foresee(backend, request->device);
		return SPILL_INSTEAD_SERVED;
	}
	if (!placement && strcmp(*error, "device.limit") == 0)
		return SPILL_INSTEAD_LIMIT;
	if (!placement && strcmp(*error, backend->error_name(backend->out_of_memory)) == 0)
		return SPILL_INSTEAD_FULL;
	spill_account_device_add(request->device, request->charged);
	return SPILL_INSTEAD_NOT;
}

/* As the vendor leaves it: the pitch is the one that it would have had (docs/measurements.md; hipamd writes it, too). */
static void refused(struct spill_request *request)
{
	const struct spill_backend *backend = spill_backend_for(request->domain);
	if (backend->clears_pointer)
		*out(request) = 0;
	if (request->out_pitch)
		*request->out_pitch = backend->memory->pitch(request->width);
}

/*
 * Arrays: in a layout of the vendor's, for textures and surfaces, which host memory cannot stand in for. A full device is
 * trimmed and asked again; then the program sees the honest error. Known by their handle, which the vendor's free gets.
 */
bool spill_engine_array(struct spill_request *request)
{
	static const struct spill_alloc_kind_ops array = {.prepare = prepare, .served = served};
	return spill_admit(request, &array);
}

bool spill_engine_alloc(struct spill_request *request)
{
	static const struct spill_alloc_kind_ops plain = {.prepare = prepare,
	                                                  .instead = make_movable,
	                                                  .served = served,
	                                                  .place = place,
	                                                  .refused = refused};
	return spill_admit(request, &plain);
}
