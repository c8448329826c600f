#include "fallback_chain.h"

#include <string.h>

#include "ask.h"
#include "promote.h"
#include "demote.h"
#include "retry_state.h"
#include "minmax.h"
#include "shared_chunks.h"
#include "gate.h"
#include "reserve.h"
#include "rules.h"
#include "trim.h"

/* Room that was made and taken by others is made again, so often. */
#define DEMOTIONS 3

/* What was pinned for later may be what is missing now. */
static bool host_refused(const char *error)
{
	return error && (strcmp(error, "host.limit") == 0 || strcmp(error, "host.reserve") == 0 ||
	                 strcmp(error, "host.pressure") == 0);
}

/* Host memory was refused: what is kept of it is given up. */
static bool place_again(struct spill_request *request, const struct spill_alloc_kind_ops *demand,
                        enum spill_step step, const struct spill_place_request *want, const char **error)
{
	if (!spill_trim_host(want->backend, request->device, request->context, request->bytes))
		return false;
	*error = NULL;
	return demand->place(request, step, want, error);
}

/*
 * Makes it by a step other than trim and demote, within what a rule's cap leaves of the device; host memory that is kept for later is
 * given up if it is missing.
 */
static bool make(struct spill_request *request, const struct spill_alloc_kind_ops *demand,
                 enum spill_step step, const struct spill_place_request *want, const char **error)
{
	struct spill_place_request within = *want;
	/* No more than it can take: what others of the rule ask for meanwhile may fit. */
	uint64_t most = spill_min(want->bytes, want->device_room);
	uint64_t left = spill_rules_reserve(request, step == SPILL_STEP_HOST ? 0 : most);
	if (left < most)
		within.device_room = left;
	bool made = demand->place(request, step, &within, error) ||
	            (host_refused(*error) && place_again(request, demand, step, &within, error));
	spill_rules_return(request);
	return made;
}

/* There is room again: true if the limit has some, too. */
static bool ask_again(struct spill_request *request, const struct spill_alloc_kind_ops *demand,
                      const struct spill_backend *backend)
{
	if (!spill_ask(request, demand, backend))
		return false;
	request->over_limit = false;
	return true; /* a second failure is recorded as "device" once more */
}

/* Others make way. What they leave is there for the steps behind this one, too, if it is not enough. */
static enum spill_outcome demote(struct spill_request *request, const struct spill_alloc_kind_ops *demand,
                                 struct spill_place_request *want, const char **error)
{
	struct spill_demotion demotion = {
	    .backend = want->backend,
	    .device = request->device,
	    .bytes = request->weight > request->bytes ? request->weight : request->bytes,
	    .keeps_reserve = request->short_of_reserve,
	    .reason = spill_admit_reason(request),
	    .api = spill_engine_api(request),
	    .caller = spill_engine_caller(request),
	};
	bool enough = spill_demote(&demotion);
	/* What is kept on host for others may be what the chunks need. */
	if (!enough && host_refused(demotion.error) &&
	    spill_trim_host(want->backend, request->device, request->context, demotion.bytes))
		enough = spill_demote(&demotion);
	if (enough && ask_again(request, demand, want->backend)) {
		/* Others may take it first. */
		if (++request->demotions < DEMOTIONS)
			request->remedy_at--;
		return SPILL_AGAIN;
	}
	if (demotion.freed)
		want->device_room = spill_promote_room(want->backend, request->device);
	*error = demotion.error ? demotion.error : "device.limit";
	return SPILL_REFUSED;
}

/* What is to stay free beside it. */
static uint64_t reserve_of(const struct spill_request *request)
{
	uint64_t size = request->short_of_reserve ? spill_reserve_size(request->device) : 0;
	return spill_min(size, UINT64_MAX - request->bytes);
}

static enum spill_outcome take(struct spill_request *request, const struct spill_alloc_kind_ops *demand,
                               enum spill_step step, struct spill_place_request *want, const char **error)
{
	if (step == SPILL_STEP_TRIM) {
		*error = "nothing to give back";
		return spill_trim(want->backend, request->device, request->bytes + reserve_of(request)) &&
		               ask_again(request, demand, want->backend)
		           ? SPILL_AGAIN
		           : SPILL_REFUSED;
	}
	if (request->remedy.surfaces) {
		spill_retry_state_surfaced(request);
		/* The caches that the program frees now are the first to fill the reserve: nothing else may be able to. */
		if (spill_reserve_begin(request->device))
			spill_gate_want_maintenance();
		request->refused_by = *error = "oom.honest_first";
		request->remedy_at = request->remedy.count;
		return SPILL_REFUSED;
	}
	if (request->repeats) {
		spill_admit_tried(request, "honest_first", "surfaced before");
		request->repeats = false;
	}
	if (step == SPILL_STEP_DEMOTE)
		return demote(request, demand, want, error);
	if (!demand->place) {
		*error = "this kind of memory cannot be elsewhere";
		return SPILL_REFUSED;
	}
	if (make(request, demand, step, want, error))
		return SPILL_SERVED;
	request->refused_by = *error;
	/* Now: a step behind it may be refused by the host, too, with figures of its own. */
	request->refusal = *spill_host_refusal();
	return SPILL_REFUSED;
}

enum spill_outcome spill_fallback_chain_place(struct spill_request *request,
                                              const struct spill_alloc_kind_ops *demand,
                                              struct spill_place_request *want)
{
	while (request->remedy_at < request->remedy.count) {
		enum spill_step step = request->remedy.step[request->remedy_at++];
		const char *error = NULL;
		enum spill_outcome outcome = take(request, demand, step, want, &error);
		if (outcome != SPILL_REFUSED)
			return outcome;
		spill_admit_tried(request, spill_step_name(step), error);
	}
	return SPILL_REFUSED;
}

static enum spill_step step_to(enum spill_place place)
{
	enum spill_step step = SPILL_STEP_SPLIT;
	while (spill_step_place(step) != place)
		step++;
	return step;
}

bool spill_fallback_chain_at_once(struct spill_request *request, const struct spill_alloc_kind_ops *demand,
                                  const struct spill_backend *backend)
{
	const char *error = NULL;
	enum spill_step step = step_to(request->decision.place);
	struct spill_place_request want =
	    spill_admit_want(request, backend, spill_promote_room(backend, request->device));
	/* On host as a whole is no split, and no reason to leave the device: so is what shares a chunk with others (place/pool.h). */
	bool whole = demand->whole || want.bytes <= SPILL_SHARED_CHUNKS_LARGEST;
	if (step == SPILL_STEP_SPLIT && whole && want.bytes <= want.device_room)
		error = "small enough for the device";
	request->at_once = !error;
	bool made = !error && make(request, demand, step, &want, &error);
	request->at_once = false;
	if (!made)
		spill_admit_tried(request, spill_step_name(step), error);
	return made;
}
