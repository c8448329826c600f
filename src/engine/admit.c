#include "admit.h"

#include <pthread.h>

#include "account.h"
#include "capture.h"
#include "device_memory.h"
#include "fallback_chain.h"
#include "clock.h"
#include "deferred.h"
#include "retry_state.h"
#include "minmax.h"
#include "vendor_pool.h"
#include "reserve_keeper.h"
#include "rules.h"

/* Values of request->step. */
enum step { BEGIN, ASKED };

/* -- the two questions to the policy ----------------------------------------------------------- */

static struct spill_ask policy_question(const struct spill_request *request)
{
	return (struct spill_ask){
	    .bytes = request->bytes,
	    .weight = request->admission.weight,
	    .device = request->device,
	    .placeable = request->admission.placeable,
	    .place_failed = request->admission.place_failed,
	};
}

bool spill_admit_charge(struct spill_request *request, struct spill_ask *ask, uint64_t limit)
{
	struct spill_admission *admission = &request->admission;
	const struct spill_policy *policy = spill_process_policy();
	struct spill_view view = {.device_limit = limit};
	spill_rules_view(request, &view);
	do
		admission->decision = spill_decide(policy, admission->applied, ask, &view);
	while (admission->decision.would == SPILL_VERDICT_DRIVER && !spill_rules_charge(request, ask, &view));
	bool fits = admission->decision.would == SPILL_VERDICT_DRIVER;
	admission->charged = fits ? ask->weight : 0;
	return fits;
}

bool spill_admit_decide(struct spill_request *request)
{
	const struct spill_backend *backend = request->admission.backend;
	struct spill_ask ask = policy_question(request);
	if (request->admission.kind->charge)
		return request->admission.kind->charge(request, &ask, backend);
	return spill_admit_charge(request, &ask, spill_device_limit(backend, request->device));
}

/* The fallback when the device is full. Sets admission.repeats at the first failure. */
static struct spill_fallback decide_fallback(struct spill_request *request)
{
	struct spill_admission *admission = &request->admission;
	const struct spill_policy *policy = spill_process_policy();
	struct spill_ask ask = policy_question(request);
	struct spill_full_view view = {
	    .capabilities = admission->backend->devices->capabilities(request->device),
	    .capped = admission->capped,
	    .capturing = spill_engine_in_capture(request),
	    .any_capture = spill_capture_any(),
	};
	ask.placeable = admission->kind->place != NULL;
	spill_retry_state_view(request, &view);
	struct spill_fallback fallback = spill_decide_full(policy, admission->applied, &ask, &view);
	if (view.repeats && !admission->full) {
		view.repeats = false;
		admission->repeats = spill_decide_full(policy, admission->applied, &ask, &view).surfaces;
	}
	return fallback;
}

/* -- the end of a request ---------------------------------------------------------------------- */

static void retract_charge(struct spill_request *request)
{
	struct spill_admission *admission = &request->admission;
	if (admission->kind->retract)
		admission->kind->retract(request, admission->backend);
	else
		spill_account_device_return(request->device, admission->charged);
	admission->charged = 0;
	spill_rules_return(request);
}

/*
 * The program sees an out of memory, with the vendor's error code. If the vendor keeps a last error
 * below its own call (HIP), it is raised again: our own calls in between have overwritten it.
 */
static void surface_oom(struct spill_request *request)
{
	const struct spill_backend *backend = request->admission.backend;
	uint64_t free = 0, total = 0;
	spill_device_memory(backend, request->device, &free, &total); /* the steps have changed it */
	spill_ledger_count_oom(request->device);
	spill_request_log_oom(request, backend, free, total);
	if (request->admission.kind->refused && request->result == 0)
		request->admission.kind->refused(request);
	request->result =
	    backend->last_error ? backend->last_error->raise_out_of_memory() : backend->out_of_memory;
}

/* The device has less to give now, so the reserve is looked after. */
static void keep_reserve(struct spill_request *request)
{
	if (request->admission.asks_growth)
		spill_growth_state_served(request);
	spill_reserve_taken(request->device, spill_admit_weight(request));
	spill_reserve_keep(request->admission.backend, request->device, request->admission.asked_ns,
	                   spill_engine_api(request), spill_engine_site(request));
}

/* The request was served. Clears the last error that refused attempts and our own calls left. */
static void finish_served(struct spill_request *request)
{
	const struct spill_backend *backend = request->admission.backend;
	spill_retry_state_succeeded(request);
	if (backend->last_error && request->admission.last_error == 0)
		backend->last_error->forget();
	request->result = 0;
	spill_rules_return(request);
	keep_reserve(request);
}

/* -- a full device ----------------------------------------------------------------------------- */

static bool ask_driver(struct spill_request *request);

/*
 * Only the reserve refused, on a device that has not spilled yet. Then the driver may be asked as
 * the last resort. A caller that asks again gets that at its next request.
 */
static bool is_precaution(const struct spill_request *request)
{
	return request->admission.short_of_reserve && !request->admission.fallback.surfaces &&
	       !spill_reserve_is_kept(request->device);
}

/* Takes the steps of the fallback. True: the driver is to be asked again. */
static bool take_fallback(struct spill_request *request)
{
	struct spill_admission *admission = &request->admission;
	const struct spill_backend *backend = admission->backend;
	uint64_t free = 0, total = 0;
	spill_device_memory(backend, request->device, &free, &total);
	/* Decided again each time, because a stream may have begun to capture. */
	admission->fallback = decide_fallback(request);
	admission->full = true;
	if (admission->fallback.refused_by)
		spill_admit_refused_by(request, admission->fallback.refused_by);
	struct spill_place_request place_request = spill_admit_place_request(request, backend, 0);
	place_request.device_room =
	    spill_policy_device_room(spill_reserve_size(request->device), free,
	                             spill_account_device_held(request->device), place_request.device_limit);
	enum spill_outcome outcome = spill_fallback_chain_place(request, &place_request);
	if (outcome == SPILL_REFUSED && is_precaution(request)) {
		admission->last_resort = true;
		if (spill_admit_decide(request))
			return ask_driver(request);
	}
	if (outcome == SPILL_REFUSED)
		surface_oom(request);
	else if (outcome == SPILL_SERVED)
		finish_served(request);
	return outcome == SPILL_AGAIN && ask_driver(request);
}

/* The steps read files and may take long, but the vendor's call is no cancellation point. */
static bool handle_full(struct spill_request *request)
{
	int cancel;
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	request->admission.asked_ns = 0; /* the steps may take long */
	bool again = take_fallback(request);
	pthread_setcancelstate(cancel, NULL);
	return again;
}

/* -- device.reserve ---------------------------------------------------------------------------- */

/* Does nothing keep the reserve from this request, as in a capture that forbids our calls? Reads the clock. */
static bool is_reserve_open(struct spill_request *request)
{
	struct spill_admission *admission = &request->admission;
	if (admission->last_resort || spill_process_observes())
		return true;
	admission->asked_ns = spill_clock_ns();
	return (!spill_reserve_is_kept(request->device) &&
	        !spill_reserve_is_at_risk(admission->backend, request->device, admission->asked_ns)) ||
	       spill_engine_in_capture(request);
}

/* May the driver be asked? False if the request would take from a device.reserve that is kept. */
static bool finds_reserve_left(struct spill_request *request)
{
	struct spill_admission *admission = &request->admission;
	const struct spill_backend *backend = admission->backend;
	uint64_t bytes = spill_admit_weight(request);
	admission->short_of_reserve = false;
	admission->reserved_before = 0;
	admission->reserve_in_pool = false;
	if (is_reserve_open(request))
		return true;
	/* A pool grows in steps and may keep half of one. It is asked only if room is short. */
	uint64_t most = admission->kind->growth ? 2 * bytes : bytes;
	bool at_once = spill_reserve_allows_at_once(request->device, most, admission->asked_ns);
	if (at_once)
		bytes = most;
	else if (admission->kind->growth)
		bytes = admission->kind->growth(request, backend);
	const struct spill_taking taking = {bytes, spill_min(bytes, request->bytes)};
	bool leaves = at_once || !bytes ||
	              (!admission->reserve_in_pool &&
	               spill_reserve_allows(backend, request->device, &taking, spill_engine_api(request),
	                                    spill_engine_site(request)));
	admission->pending = leaves ? bytes : 0;
	admission->short_of_reserve = !leaves;
	return leaves;
}

/* pre: charged */
static bool leaves_reserve(struct spill_request *request)
{
	spill_device_memory_unserved(request->device, request->admission.charged);
	bool leaves = finds_reserve_left(request);
	spill_device_memory_unserved(request->device, 0);
	return leaves;
}

/* Counts as a refusal by the driver. True: the driver is to be asked after all. pre: not charged */
static bool handle_short_reserve(struct spill_request *request)
{
	spill_admit_refused_by(request, SPILL_REFUSED_BY_DEVICE_RESERVE);
	spill_admit_tried(request, spill_place_name(SPILL_PLACE_DEVICE), request->admission.refused_word);
	return handle_full(request);
}

/* -- asking the driver ------------------------------------------------------------------------- */

/* The driver is out of memory, or says so in a substitute of its plain call. */
static bool handle_driver_full(struct spill_request *request, const char *error)
{
	spill_admit_refused(request, "driver");
	spill_admit_tried(request, spill_place_name(SPILL_PLACE_DEVICE), error);
	return handle_full(request);
}

/* pre: charged */
static enum spill_substitute make_substitute(struct spill_request *request, const char **error)
{
	struct spill_admission *admission = &request->admission;
	if (!admission->kind->substitute)
		return SPILL_SUBSTITUTE_NONE;
	spill_device_memory_unserved(request->device, admission->charged);
	enum spill_substitute substitute = admission->kind->substitute(request, admission->backend, error);
	spill_device_memory_unserved(request->device, 0);
	return substitute;
}

/* Asks the driver, or makes the substitute of its plain call. True: the driver. pre: charged */
static bool ask_driver(struct spill_request *request)
{
	struct spill_admission *admission = &request->admission;
	const char *error = NULL;
	enum spill_substitute substitute = make_substitute(request, &error);
	if (substitute == SPILL_SUBSTITUTE_NONE) {
		if (leaves_reserve(request))
			return true;
		retract_charge(request);
		return handle_short_reserve(request);
	}
	admission->charged = 0;
	if (substitute == SPILL_SUBSTITUTE_SERVED) {
		finish_served(request);
		return false;
	}
	spill_rules_return(request);
	admission->over_limit = substitute == SPILL_SUBSTITUTE_LIMIT;
	if (!admission->over_limit)
		return handle_driver_full(request, error);
	spill_admit_refused_by(request, SPILL_REFUSED_BY_DEVICE_LIMIT);
	spill_admit_tried(request, spill_place_name(SPILL_PLACE_DEVICE), error);
	return handle_full(request);
}

/* A limit or a cap refused. True: ask the driver, as mode=observe does to see its answer. */
static bool handle_over_limit(struct spill_request *request, enum spill_refused_by refused_by)
{
	request->admission.over_limit = true;
	request->admission.capped = refused_by == SPILL_REFUSED_BY_RULE_CAP;
	spill_admit_refused_by(request, refused_by);
	spill_admit_tried(request, spill_place_name(SPILL_PLACE_DEVICE), request->admission.refused_word);
	return spill_process_observes() || handle_full(request);
}

static void refuse_by_rule(struct spill_request *request)
{
	spill_admit_refused_by(request, request->admission.decision.refused_by);
	surface_oom(request);
}

static bool decide_and_ask(struct spill_request *request);

/* Places or refuses as the rule says. True: the driver is to be asked after all. */
static bool follow_rule(struct spill_request *request)
{
	int cancel;
	if (spill_process_observes())
		return true;
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	if (request->admission.decision.would == SPILL_VERDICT_REFUSE)
		refuse_by_rule(request);
	else if (spill_fallback_chain_at_once(request))
		finish_served(request);
	else
		request->admission.place_failed = true;
	pthread_setcancelstate(cancel, NULL);
	return request->admission.place_failed && decide_and_ask(request);
}

/* True: the driver is to be asked. */
static bool decide_and_ask(struct spill_request *request)
{
	const struct spill_admission *admission = &request->admission;
	if (spill_admit_decide(request))
		return ask_driver(request);
	if (admission->decision.would != SPILL_VERDICT_FULL)
		return follow_rule(request);
	/* The vendor may have given back unused memory of its pools, which is charged until now. */
	if (!spill_capture_any() && spill_vendor_pool_settle_device(admission->backend, request->device) &&
	    spill_admit_decide(request))
		return ask_driver(request);
	return handle_over_limit(request, admission->decision.refused_by);
}

/* -- the request ------------------------------------------------------------------------------- */

/* True: the driver is to be asked. */
static bool begin(struct spill_request *request)
{
	struct spill_admission *admission = &request->admission;
	spill_engine_memory_call(admission->backend);
	request->start_us = spill_log_start_us();
	spill_deferred_poll(admission->backend, false);
	if (spill_device_limit(admission->backend, request->device) != SPILL_UNLIMITED)
		spill_vendor_pool_settle_graphs(admission->backend, request->device);
	if (spill_process_policy()->rules) {
		spill_rules_find(request);
		admission->placeable = admission->kind->place && !spill_engine_in_capture(request);
	}
	return decide_and_ask(request);
}

/* Looks at the driver's answer. True: the driver is to be asked again. */
static bool handle_answer(struct spill_request *request)
{
	struct spill_admission *admission = &request->admission;
	const struct spill_backend *backend = admission->backend;
	spill_reserve_answered(request->device, admission->pending);
	admission->pending = 0;
	if (request->result == 0 && admission->kind->accept && !admission->kind->accept(request, backend)) {
		admission->charged = 0;
		spill_rules_return(request);
		return admission->short_of_reserve
		           ? handle_short_reserve(request)
		           : handle_over_limit(request, SPILL_REFUSED_BY_DEVICE_LIMIT);
	}
	if (request->result == 0) {
		admission->kind->served(request, backend);
		finish_served(request);
		return false;
	}
	retract_charge(request);
	return request->result == backend->out_of_memory &&
	       handle_driver_full(request, backend->error_name(request->result));
}

bool spill_admit(struct spill_request *request, const struct spill_alloc_kind_ops *kind)
{
	const struct spill_backend *backend = spill_backend_for(request->domain);
	if (request->step != BEGIN)
		return handle_answer(request);
	request->admission.kind = kind;
	request->admission.backend = backend;
	if (backend && backend->last_error)
		request->admission.last_error = backend->last_error->peek();
	request->pass = !backend || !kind->prepare(request, backend);
	if (request->pass)
		return spill_engine_pass(request);
	request->step = ASKED;
	return begin(request);
}
