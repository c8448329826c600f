/*
 * Plain device memory. A request that fits costs one decision, without a lock or a system call.
 * Nothing is spilled that the driver can serve within the limits.
 */
#include <string.h>

#include "account.h"
#include "blocks.h"
#include "admit.h"
#include "capture.h"
#include "demote.h"
#include "exporting.h"
#include "gate.h"
#include "movable.h"
#include "peer.h"
#include "chunked.h"
#include "promote.h"
#include "rule.h"
#include "rules.h"

/*
 * The bytes of rows that the vendor pads. False for no rows, and for more rows than addresses: the
 * vendor's own answer is right.
 */
static bool prepare_rows(struct spill_request *request, const struct spill_backend *backend)
{
	const struct spill_pitched_arguments *pitched = &request->pitched;
	uint64_t pitch = backend->memory->pitch(pitched->width);
	return pitch >= pitched->width && !__builtin_mul_overflow(pitch, pitched->height, &request->bytes) &&
	       !__builtin_mul_overflow(request->bytes, pitched->depth, &request->bytes);
}

static bool prepare_alloc(struct spill_request *request, const struct spill_backend *backend)
{
	if (!request->out || (request->pitched.out_pitch && !prepare_rows(request, backend)) ||
	    !request->bytes || !backend->devices->current(&request->device, &request->context))
		return false;
	request->admission.weight = backend->memory->footprint(request->bytes);
	return true;
}

static void record_served(struct spill_request *request, const struct spill_backend *backend)
{
	struct spill_allocation allocation =
	    spill_admit_describe(request, backend, *spill_engine_out(request));
	allocation.place = SPILL_PLACE_DEVICE;
	allocation.charged = request->admission.charged;
	allocation.held.device = request->bytes;
	if (!spill_admit_record(request, &allocation, spill_admit_driver_reason(request)))
		spill_account_device_return(request->device, request->admission.charged);
}

static void store_result(struct spill_request *request, const struct spill_backend *backend, uint64_t ptr)
{
	const struct spill_pitched_arguments *pitched = &request->pitched;
	*spill_engine_out(request) = ptr;
	if (pitched->out_pitch)
		*pitched->out_pitch = backend->memory->pitch(pitched->width);
	if (pitched->out_width)
		*pitched->out_width = pitched->width;
	if (pitched->out_height)
		*pitched->out_height = pitched->height;
}

/* Lets the chunks of an allocation move from now on, if it has chunks. */
static void enlist_chunks(struct spill_request *request, const struct spill_allocation *allocation)
{
	const struct spill_rule *rule = request->admission.applied;
	struct spill_chunked *chunked = spill_chunked_of(allocation->placement);
	if (!chunked)
		return;
	chunked->seq = allocation->seq;
	struct spill_growth_answer growth = spill_growth_state_served(request);
	chunked->run = growth.run;
	chunked->grows = growth.grows;
	chunked->priority = spill_rule_priority(rule);
	if (spill_rule_room(rule, 0) != SPILL_UNLIMITED)
		chunked->stays_from = chunked->base.held.device;
	bool owed = chunked->owed = spill_chunked_away(chunked) > 0;
	spill_chunked_enlist(chunked);
	spill_blocks_follow(chunked);
	spill_gate_want_maintenance();
	if (owed)
		spill_promote_wanted();
}

/* Enters the placement in the ledger and gives it to the program. */
static bool hand_out(struct spill_request *request, struct spill_placement *placement,
                     enum spill_reason reason, const char **error)
{
	struct spill_allocation allocation =
	    spill_admit_describe(request, placement->backend, placement->ptr);
	allocation.place = placement->ops->place;
	allocation.held = placement->held;
	allocation.placement = placement;
	if (!spill_admit_record(request, &allocation, reason)) {
		spill_placement_release(placement, false);
		*error = "no memory for bookkeeping";
		return false;
	}
	spill_peer_placed(placement);
	enlist_chunks(request, &allocation);
	store_result(request, placement->backend, placement->ptr);
	return true;
}

static bool place_alloc(struct spill_request *request, enum spill_step step,
                        const struct spill_place_request *place_request, const char **error)
{
	struct spill_placement *placement =
	    spill_place_make(spill_place_of(spill_step_place(step)), place_request, error);
	return placement && hand_out(request, placement, spill_admit_place_reason(request), error);
}

/*
 * Movable chunks on the device instead of the plain call, so that they can be demoted later. Any
 * failure but a full device leads to the plain call.
 */
static enum spill_substitute make_movable(struct spill_request *request, const struct spill_backend *backend,
                                          const char **error)
{
	if (spill_engine_in_capture(request) ||
	    !spill_movable_wanted(backend, request->device, request->bytes,
	                          request->admission.decision.chunks) ||
	    spill_exporting_stays_plain(request))
		return SPILL_SUBSTITUTE_NONE;
	struct spill_place_request wanted = spill_admit_place_request(request, backend, SPILL_UNLIMITED);
	return spill_admit_substitute(request, &spill_place_movable, &wanted, hand_out, error);
}

/*
 * As the vendor leaves the program's variables: the pitch is the one of a success
 * (docs/measurements.md; hipamd writes it, too).
 */
static void store_refused(struct spill_request *request)
{
	const struct spill_backend *backend = spill_backend_for(request->domain);
	if (backend->clears_pointer)
		*spill_engine_out(request) = 0;
	if (request->pitched.out_pitch)
		*request->pitched.out_pitch = backend->memory->pitch(request->pitched.width);
}

/*
 * Arrays have a layout of the vendor's, for textures and surfaces. Host memory cannot replace it.
 * So only steps that make room on the device help. The ledger knows an array by its handle.
 */
bool spill_engine_array(struct spill_request *request)
{
	static const struct spill_alloc_kind_ops array = {.prepare = prepare_alloc, .served = record_served};
	return spill_admit(request, &array);
}

bool spill_engine_alloc(struct spill_request *request)
{
	static const struct spill_alloc_kind_ops plain = {.prepare = prepare_alloc,
	                                                  .substitute = make_movable,
	                                                  .served = record_served,
	                                                  .place = place_alloc,
	                                                  .refused = store_refused};
	return spill_admit(request, &plain);
}
