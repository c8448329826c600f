#include "chain.h"

#include <string.h>

#include "demote.h"
#include "honest.h"
#include "trim.h"

/* Room that was made and taken by others is made again, so often. */
#define DEMOTIONS 3

uint64_t spill_chain_device_room(const struct spill_backend *backend, const struct spill_policy *policy,
                                 int device)
{
	uint64_t free = 0, total = 0;
	backend->memory(device, &free, &total);
	uint64_t reserve = spill_policy_device_reserve(policy, device);
	return free > reserve ? free - reserve : 0;
}

/* What was pinned for later may be what is missing now. */
static bool host_refused(const char *error)
{
	return error && (strcmp(error, "host.limit") == 0 || strcmp(error, "host.reserve") == 0 ||
	                 strcmp(error, "host.pressure") == 0);
}

/* Host memory was refused: what is kept of it is given up. */
static bool place_again(struct spill_request *request, const struct spill_demand *demand,
                        enum spill_step step, const struct spill_want *want, const char **error)
{
	if (!spill_trim_host(want->backend, request->device, request->context, request->bytes))
		return false;
	*error = NULL;
	return demand->place(request, step, want, error);
}

/* There is room again: true if the limit has some, too. */
static bool ask_again(struct spill_request *request, const struct spill_demand *demand,
                      const struct spill_backend *backend)
{
	if (!spill_admit_charge(request, demand, backend))
		return false;
	request->over_limit = false;
	return true; /* a second failure is recorded as "device" once more */
}

/* Others make way. What they leave is there for the steps behind this one, too, if it is not enough. */
static enum spill_outcome demote(struct spill_request *request, const struct spill_demand *demand,
                                 struct spill_want *want, const char **error)
{
	struct spill_demotion demotion = {
	    .backend = want->backend,
	    .device = request->device,
	    .bytes = request->weight > request->bytes ? request->weight : request->bytes,
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
			request->chain_at--;
		return SPILL_AGAIN;
	}
	if (demotion.freed)
		want->device_room = spill_chain_device_room(want->backend, want->policy, request->device);
	*error = demotion.error ? demotion.error : "device.limit";
	return SPILL_REFUSED;
}

static enum spill_outcome take(struct spill_request *request, const struct spill_demand *demand,
                               enum spill_step step, struct spill_want *want, const char **error)
{
	if (step == SPILL_STEP_TRIM) {
		*error = "nothing to give back";
		return spill_trim(want->backend, request->device, request->bytes) &&
		               ask_again(request, demand, want->backend)
		           ? SPILL_AGAIN
		           : SPILL_REFUSED;
	}
	if (demand->place && spill_honest_surfaces(request)) {
		request->refused_by = *error = "oom.honest_first";
		request->chain_at = request->chain_count;
		return SPILL_REFUSED;
	}
	if (step == SPILL_STEP_DEMOTE)
		return demote(request, demand, want, error);
	if (!demand->place) {
		*error = "this kind of memory cannot be elsewhere";
		return SPILL_REFUSED;
	}
	if (demand->place(request, step, want, error) ||
	    (host_refused(*error) && place_again(request, demand, step, want, error)))
		return SPILL_SERVED;
	request->refused_by = *error;
	return SPILL_REFUSED;
}

enum spill_outcome spill_chain_place(struct spill_request *request, const struct spill_demand *demand,
                                     struct spill_want *want)
{
	while (request->chain_at < request->chain_count) {
		enum spill_step step = request->chain[request->chain_at++];
		const char *error = NULL;
		enum spill_outcome outcome = take(request, demand, step, want, &error);
		if (outcome != SPILL_REFUSED)
			return outcome;
		spill_admit_tried(request, spill_step_name(step), error);
	}
	return SPILL_REFUSED;
}
