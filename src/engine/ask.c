#include "ask.h"

#include "account.h"
#include "capture.h"
#include "retry_state.h"
#include "rules.h"

bool spill_ask_weight(struct spill_request *request, struct spill_ask *ask, uint64_t limit)
{
	const struct spill_policy *policy = spill_process_policy();
	struct spill_view view = {.device_limit = limit};
	spill_rules_view(request, &view);
	do
		request->decision = spill_decide(policy, request->applied, ask, &view);
	while (request->decision.would == SPILL_VERDICT_DRIVER && !spill_rules_charge(request, ask, &view));
	bool fits = request->decision.would == SPILL_VERDICT_DRIVER;
	request->charged = fits ? ask->weight : 0;
	return fits;
}

static struct spill_ask ask_of(const struct spill_request *request)
{
	return (struct spill_ask){
	    .bytes = request->bytes,
	    .weight = request->weight,
	    .device = request->device,
	    .placeable = request->placeable,
	    .place_failed = request->place_failed,
	};
}

bool spill_ask(struct spill_request *request, const struct spill_alloc_kind_ops *demand,
               const struct spill_backend *backend)
{
	struct spill_ask ask = ask_of(request);
	return demand->admit ? demand->admit(request, &ask, backend)
	                     : spill_ask_weight(request, &ask, spill_device_limit(backend, request->device));
}

struct spill_fallback spill_ask_full(struct spill_request *request, const struct spill_alloc_kind_ops *demand,
                                     const struct spill_backend *backend)
{
	struct spill_ask ask = ask_of(request);
	struct spill_full_view view = {
	    .capabilities = backend->devices->capabilities(request->device),
	    .capped = request->capped,
	    .capturing = spill_engine_in_capture(request),
	    .any_capture = spill_capture_any(),
	};
	ask.placeable = demand->place != NULL;
	spill_retry_state_look(request, &view);
	struct spill_fallback remedy =
	    spill_decide_full(spill_process_policy(), request->applied, &ask, &view);
	if (view.repeats && !request->full) {
		view.repeats = false;
		request->repeats =
		    spill_decide_full(spill_process_policy(), request->applied, &ask, &view).surfaces;
	}
	return remedy;
}
