#include "fallback_chain.h"

#include "promote.h"
#include "demote.h"
#include "retry_state.h"
#include "minmax.h"
#include "shared_chunks.h"
#include "gate.h"
#include "reserve.h"
#include "rules.h"
#include "trim.h"

/* How often room is made for one request: other threads may take it first. */
#define DEMOTIONS 3

/* Did the host refuse? Host memory that is kept for later requests may be what is missing. */
static bool is_refused_by_host(const char *error)
{
	enum spill_refused_by by = spill_refused_by_of(error);
	return by == SPILL_REFUSED_BY_HOST_LIMIT || by == SPILL_REFUSED_BY_HOST_RESERVE ||
	       by == SPILL_REFUSED_BY_HOST_PRESSURE;
}

/*
 * Places the request, with no more device memory than its rule's cap leaves. If the host has no
 * room, host memory that is kept for later is given up first.
 */
static bool place_within_cap(struct spill_request *request, enum spill_step step,
                             const struct spill_place_request *place_request, const char **error)
{
	const struct spill_alloc_kind_ops *kind = request->admission.kind;
	struct spill_place_request capped = *place_request;
	/* No more than the request can take: others of the rule may fit meanwhile. */
	uint64_t most = spill_min(capped.bytes, capped.device_room);
	uint64_t left = spill_rules_reserve(request, step == SPILL_STEP_HOST ? 0 : most);
	if (left < most)
		capped.device_room = left;
	bool placed = kind->place(request, step, &capped, error);
	if (!placed && is_refused_by_host(*error) &&
	    spill_trim_host(capped.backend, request->device, request->context, request->bytes)) {
		*error = NULL;
		placed = kind->place(request, step, &capped, error);
	}
	spill_rules_return(request);
	return placed;
}

/* There is room again. True if the limit has room, too. */
static bool decide_again(struct spill_request *request)
{
	if (!spill_admit_decide(request))
		return false;
	request->admission.over_limit = false;
	return true; /* a second failure is added to `tried` once more */
}

/* Demotes other memory. If that is not enough, later steps may use the freed room. */
static enum spill_outcome take_demote_step(struct spill_request *request,
                                           struct spill_place_request *place_request, const char **error)
{
	struct spill_admission *admission = &request->admission;
	struct spill_demotion demotion = {
	    .backend = admission->backend,
	    .device = request->device,
	    .bytes = spill_max(admission->weight, request->bytes),
	    .keeps_reserve = admission->short_of_reserve,
	    .reason = spill_admit_place_reason(request),
	    .api = spill_engine_api(request),
	    .caller = spill_engine_caller(request),
	};
	bool enough = spill_demote(&demotion);
	/* The chunks may need the host memory that is kept for other requests. */
	if (!enough && is_refused_by_host(demotion.error) &&
	    spill_trim_host(demotion.backend, request->device, request->context, demotion.bytes))
		enough = spill_demote(&demotion);
	if (enough && decide_again(request)) {
		if (++admission->demotions < DEMOTIONS)
			admission->steps_taken--;
		return SPILL_AGAIN;
	}
	if (demotion.freed)
		place_request->device_room = spill_promote_room(demotion.backend, request->device);
	*error = demotion.error ? demotion.error : spill_refused_by_name(SPILL_REFUSED_BY_DEVICE_LIMIT);
	return SPILL_REFUSED;
}

static enum spill_outcome take_trim_step(struct spill_request *request, const char **error)
{
	bool keeps_reserve = request->admission.short_of_reserve;
	uint64_t reserve = keeps_reserve ? spill_reserve_size(request->device) : 0;
	uint64_t bytes = request->bytes + spill_min(reserve, UINT64_MAX - request->bytes);
	*error = "nothing to give back";
	bool room = spill_trim(request->admission.backend, request->device, bytes, false);
	return room && decide_again(request) ? SPILL_AGAIN : SPILL_REFUSED;
}

/* oom.honest_first: the failure surfaces instead of the remaining steps. */
static enum spill_outcome surface_first(struct spill_request *request, const char **error)
{
	spill_retry_state_surfaced(request);
	/* Only the caches that the program frees now may be able to fill the reserve. */
	if (spill_reserve_begin(request->device))
		spill_gate_want_maintenance();
	spill_admit_refused_by(request, SPILL_REFUSED_BY_HONEST_FIRST);
	*error = request->admission.refused_word;
	request->admission.steps_taken = request->admission.fallback.count;
	return SPILL_REFUSED;
}

static enum spill_outcome take_step(struct spill_request *request, enum spill_step step,
                                    struct spill_place_request *place_request, const char **error)
{
	struct spill_admission *admission = &request->admission;
	if (step == SPILL_STEP_TRIM)
		return take_trim_step(request, error);
	if (admission->fallback.surfaces)
		return surface_first(request, error);
	if (admission->repeats) {
		spill_admit_tried(request, "honest_first", "surfaced before");
		admission->repeats = false;
	}
	if (step == SPILL_STEP_DEMOTE)
		return take_demote_step(request, place_request, error);
	if (!admission->kind->place) {
		*error = spill_refused_by_name(SPILL_REFUSED_BY_KIND);
		return SPILL_REFUSED;
	}
	if (place_within_cap(request, step, place_request, error))
		return SPILL_SERVED;
	spill_admit_refused(request, *error);
	/* Copied now: the host may refuse a later step with other figures. */
	admission->refusal = *spill_host_refusal();
	return SPILL_REFUSED;
}

enum spill_outcome spill_fallback_chain_place(struct spill_request *request,
                                              struct spill_place_request *place_request)
{
	struct spill_admission *admission = &request->admission;
	while (admission->steps_taken < admission->fallback.count) {
		enum spill_step step = admission->fallback.step[admission->steps_taken++];
		const char *error = NULL;
		enum spill_outcome outcome = take_step(request, step, place_request, &error);
		if (outcome != SPILL_REFUSED)
			return outcome;
		spill_admit_tried(request, spill_step_name(step), error);
	}
	return SPILL_REFUSED;
}

bool spill_fallback_chain_at_once(struct spill_request *request)
{
	struct spill_admission *admission = &request->admission;
	const char *error = NULL;
	enum spill_step step = spill_step_to(admission->decision.place);
	struct spill_place_request place_request = spill_admit_place_request(
	    request, admission->backend, spill_promote_room(admission->backend, request->device));
	/* A split that is all on the host is no split. Nor is a block of a shared chunk. */
	bool whole = admission->kind->whole || place_request.bytes <= SPILL_SHARED_CHUNKS_LARGEST;
	if (step == SPILL_STEP_SPLIT && whole && place_request.bytes <= place_request.device_room)
		error = "small enough for the device";
	admission->at_once = !error;
	bool placed = !error && place_within_cap(request, step, &place_request, &error);
	admission->at_once = false;
	if (!placed)
		spill_admit_tried(request, spill_step_name(step), error);
	return placed;
}
