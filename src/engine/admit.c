#include "admit.h"

#include <pthread.h>
#include <string.h>

#include "account.h"
#include "ask.h"
#include "capture.h"
#include "fallback_chain.h"
#include "clock.h"
#include "contexts.h"
#include "deferred.h"
#include "growth_state.h"
#include "retry_state.h"
#include "minmax.h"
#include "vendor_pool.h"
#include "note.h"
#include "gate.h"
#include "reserve_keeper.h"
#include "rules.h"

enum step { BEGIN, ASKED };

void spill_admit_tried(struct spill_request *request, const char *step, const char *error)
{
	if (request->attempts < SPILL_ATTEMPTS)
		request->tried[request->attempts++] = (struct spill_attempt){step, error};
}

struct spill_allocation spill_admit_describe(const struct spill_request *request,
                                             const struct spill_backend *backend)
{
	return (struct spill_allocation){
	    .backend = backend,
	    .bytes = request->bytes,
	    .device = request->device,
	    .context = request->context,
	    .api = spill_engine_api(request),
	    .caller = spill_engine_caller(request),
	    .site = spill_engine_site(request),
	};
}

bool spill_admit_record(struct spill_request *request, struct spill_allocation *allocation,
                        const char *reason)
{
	for (struct spill_request *frame = spill_thread.frame; frame; frame = frame->outer)
		frame->taken = true;
	spill_contexts_made(allocation->backend, request->device, request->context);
	spill_rules_take_over(request, allocation);
	if (!spill_ledger_add(allocation)) {
		request->charged_rule += allocation->charged_rule;
		spill_rules_return(request);
		spill_note("ledger", "no memory for bookkeeping: an allocation is not accounted");
		return false;
	}
	/* A rule's place is no lack of room. */
	if (!request->at_once && spill_ledger_is_spill(allocation))
		if (spill_reserve_begin(request->device))
			spill_gate_want_maintenance();
	spill_report_alloc(request, allocation, reason);
	return true;
}

struct spill_place_request spill_admit_want(const struct spill_request *request,
                                            const struct spill_backend *backend, uint64_t device_room)
{
	const struct spill_policy *policy = spill_process_policy();
	return (struct spill_place_request){
	    .backend = backend,
	    .policy = policy,
	    .device = request->device,
	    .context = request->context,
	    .bytes = request->bytes,
	    .device_room = device_room,
	    .device_limit = spill_device_limit(backend, request->device),
	    .advice = spill_rule_advice(policy, request->applied),
	};
}

static void retract(struct spill_request *request, const struct spill_alloc_kind_ops *demand,
                    const struct spill_backend *backend)
{
	if (demand->retract)
		demand->retract(request, backend);
	else
		spill_account_device_return(request->device, request->charged);
	request->charged = 0;
	spill_rules_return(request);
}

/*
 * The program sees an out of memory. Its error code, and last error where the vendor keeps one below its own call, are the
 * vendor's: HIP's is raised anew, because our own calls in between have overwritten it.
 */
static void surface(struct spill_request *request, const struct spill_alloc_kind_ops *demand,
                    const struct spill_backend *backend, uint64_t free, uint64_t total)
{
	spill_ledger_count_oom(request->device);
	spill_report_oom(request, backend, free, total);
	if (demand->refused && request->result == 0)
		demand->refused(request);
	request->result =
	    backend->last_error ? backend->last_error->raise_out_of_memory() : backend->out_of_memory;
}

static bool full(struct spill_request *request, const struct spill_alloc_kind_ops *demand,
                 const struct spill_backend *backend);

/* The device has less to give: what it must keep for code is looked after. */
static void taken(struct spill_request *request, const struct spill_backend *backend)
{
	if (request->asks_growth)
		spill_growth_state_served(request);
	spill_reserve_taken(request->device, request->weight ? request->weight : request->bytes);
	spill_reserve_keep(backend, request->device, request->asked_ns, spill_engine_api(request),
	                   spill_engine_site(request));
}

/* The request has been served, by us or by the driver: what our own calls and refused attempts left as the last error is gone. */
static void finish(struct spill_request *request, const struct spill_backend *backend)
{
	spill_retry_state_succeeded(request);
	if (backend->last_error && request->last_error == 0)
		backend->last_error->forget();
	request->result = 0;
	spill_rules_return(request);
	taken(request, backend);
}

/*
 * May the driver be asked for it, or would that take of device.reserve, which the device has begun to need (reserve.h)?
 * Nothing is refused for it in a capture.
 */
static bool leaves_reserve(struct spill_request *request, const struct spill_alloc_kind_ops *demand,
                           const struct spill_backend *backend)
{
	uint64_t bytes = request->weight ? request->weight : request->bytes;
	request->short_of_reserve = false;
	request->reserved_before = 0;
	if (request->last_resort || spill_process_observes())
		return true;
	uint64_t now_ns = spill_clock_ns();
	request->asked_ns = now_ns;
	if ((!spill_reserve_is_kept(request->device) &&
	     !spill_reserve_is_at_risk(backend, request->device, now_ns)) ||
	    spill_engine_in_capture(request))
		return true;
	/* A pool grows in steps, of which up to half is left over. It is asked itself only when room is short. */
	uint64_t at_most = demand->growth ? 2 * bytes : bytes;
	bool at_once = spill_reserve_allows_at_once(request->device, at_most, now_ns);
	if (at_once)
		bytes = at_most;
	else if (demand->growth)
		bytes = demand->growth(request, backend);
	const struct spill_taking taking = {bytes, spill_min(bytes, request->bytes)};
	bool leaves = at_once || !bytes ||
	              spill_reserve_allows(backend, request->device, &taking, spill_engine_api(request),
	                                   spill_engine_site(request));
	request->pending = leaves ? bytes : 0;
	request->short_of_reserve = !leaves;
	return leaves;
}

/* As one that the driver has refused. True: the driver is to be asked all the same. pre: nothing is charged */
static bool short_of_reserve(struct spill_request *request, const struct spill_alloc_kind_ops *demand,
                             const struct spill_backend *backend)
{
	request->refused_by = "device.reserve";
	spill_admit_tried(request, spill_place_name(SPILL_PLACE_DEVICE), request->refused_by);
	return full(request, demand, backend);
}

/* The driver is not asked: it would take of the reserve. */
static bool keep_reserve(struct spill_request *request, const struct spill_alloc_kind_ops *demand,
                         const struct spill_backend *backend)
{
	retract(request, demand, backend);
	return short_of_reserve(request, demand, backend);
}

/* The driver, or what stands in for its plain call, is asked. True: the driver. pre: admitted */
static bool ask(struct spill_request *request, const struct spill_alloc_kind_ops *demand,
                const struct spill_backend *backend)
{
	const char *error = NULL;
	enum spill_instead instead =
	    demand->instead ? demand->instead(request, backend, &error) : SPILL_INSTEAD_NOT;
	if (instead == SPILL_INSTEAD_NOT)
		return leaves_reserve(request, demand, backend) || keep_reserve(request, demand, backend);
	request->charged = 0;
	if (instead == SPILL_INSTEAD_SERVED) {
		finish(request, backend);
		return false;
	}
	spill_rules_return(request);
	request->over_limit = instead == SPILL_INSTEAD_LIMIT;
	request->refused_by = request->over_limit ? "device.limit" : "driver";
	spill_admit_tried(request, spill_place_name(SPILL_PLACE_DEVICE), error);
	return full(request, demand, backend);
}

/* Refused for the reserve alone, before the device has spilled anything: the driver may have it. Who asks again does so. */
static bool is_precaution(const struct spill_request *request)
{
	return request->short_of_reserve && !request->remedy.surfaces &&
	       !spill_reserve_is_kept(request->device);
}

/* True: the driver is to be asked again. */
static bool make_room(struct spill_request *request, const struct spill_alloc_kind_ops *demand,
                      const struct spill_backend *backend)
{
	uint64_t free = 0, total = 0;
	backend->devices->memory(request->device, &free, &total);
	/* The same steps each time; but a stream may have begun to capture. */
	request->remedy = spill_ask_full(request, demand, backend);
	request->full = true;
	if (request->remedy.refused_by)
		request->refused_by = request->remedy.refused_by;
	struct spill_place_request want = spill_admit_want(request, backend, 0);
	want.device_room =
	    spill_policy_device_room(spill_reserve_size(request->device), free,
	                             spill_account_device_held(request->device), want.device_limit);
	enum spill_outcome outcome = spill_fallback_chain_place(request, demand, &want);
	if (outcome == SPILL_REFUSED && is_precaution(request)) {
		request->last_resort = true;
		if (spill_ask(request, demand, backend))
			return ask(request, demand, backend);
	}
	if (outcome == SPILL_REFUSED)
		surface(request, demand, backend, free, total);
	else if (outcome == SPILL_SERVED)
		finish(request, backend);
	return outcome == SPILL_AGAIN && ask(request, demand, backend);
}

/* What is done here reads files and may take long: the vendor's call it stands for is no cancellation point. */
static bool full(struct spill_request *request, const struct spill_alloc_kind_ops *demand,
                 const struct spill_backend *backend)
{
	int cancel;
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	request->asked_ns = 0; /* what comes may take long */
	bool again = make_room(request, demand, backend);
	pthread_setcancelstate(cancel, NULL);
	return again;
}

/* Above a limit or a cap. Returns true if the driver is to be asked, as it is to see what happens with mode=observe. */
static bool refused(struct spill_request *request, const struct spill_alloc_kind_ops *demand,
                    const struct spill_backend *backend, const char *refused_by)
{
	request->over_limit = true;
	request->capped = strcmp(refused_by, "rule.cap") == 0;
	request->refused_by = refused_by;
	spill_admit_tried(request, spill_place_name(SPILL_PLACE_DEVICE), refused_by);
	return spill_process_observes() || full(request, demand, backend);
}

static void refuse(struct spill_request *request, const struct spill_alloc_kind_ops *demand,
                   const struct spill_backend *backend)
{
	uint64_t free = 0, total = 0;
	request->refused_by = request->decision.refused_by;
	backend->devices->memory(request->device, &free, &total);
	surface(request, demand, backend, free, total);
}

static bool charge(struct spill_request *request, const struct spill_alloc_kind_ops *demand,
                   const struct spill_backend *backend);

/* As its rule says. Returns true if the driver is to be asked after all. */
static bool by_rule(struct spill_request *request, const struct spill_alloc_kind_ops *demand,
                    const struct spill_backend *backend)
{
	int cancel;
	if (spill_process_observes())
		return true;
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	if (request->decision.would == SPILL_VERDICT_REFUSE)
		refuse(request, demand, backend);
	else if (spill_fallback_chain_at_once(request, demand, backend))
		finish(request, backend);
	else
		request->place_failed = true;
	pthread_setcancelstate(cancel, NULL);
	return request->place_failed && charge(request, demand, backend);
}

/* By a limit or a cap. Returns true if the driver is to be asked. */
static bool above(struct spill_request *request, const struct spill_alloc_kind_ops *demand,
                  const struct spill_backend *backend)
{
	/* The vendor gives back what its pools keep whenever it likes. */
	if (!spill_capture_any() && spill_vendor_pool_settle_device(backend, request->device) &&
	    spill_ask(request, demand, backend))
		return ask(request, demand, backend);
	return refused(request, demand, backend, request->decision.refused_by);
}

static bool charge(struct spill_request *request, const struct spill_alloc_kind_ops *demand,
                   const struct spill_backend *backend)
{
	if (spill_ask(request, demand, backend))
		return ask(request, demand, backend);
	return request->decision.would == SPILL_VERDICT_FULL ? above(request, demand, backend)
	                                                     : by_rule(request, demand, backend);
}

/* Returns true if the driver is to be asked. */
static bool begin(struct spill_request *request, const struct spill_alloc_kind_ops *demand,
                  const struct spill_backend *backend)
{
	spill_engine_memory_call(backend);
	request->start_us = spill_log_start_us();
	spill_deferred_poll(backend, false);
	if (spill_device_limit(backend, request->device) != SPILL_UNLIMITED)
		spill_vendor_pool_settle_graphs(backend, request->device);
	if (spill_process_policy()->rules) {
		spill_rules_find(request);
		request->placeable = demand->place && !spill_engine_in_capture(request);
	}
	return charge(request, demand, backend);
}

bool spill_admit(struct spill_request *request, const struct spill_alloc_kind_ops *demand)
{
	const struct spill_backend *backend = spill_backend_for(request->domain);
	if (request->step == BEGIN) {
		request->pass = !backend;
		if (!request->pass && backend->last_error)
			request->last_error = backend->last_error->peek();
		if (!request->pass)
			request->pass = !demand->prepare(request, backend);
		if (request->pass)
			return spill_engine_pass(request);
		request->step = ASKED;
		return begin(request, demand, backend);
	}
	spill_reserve_answered(request->device, request->pending);
	request->pending = 0;
	if (request->result == 0 && demand->keep && !demand->keep(request, backend)) {
		request->charged = 0;
		spill_rules_return(request);
		return request->short_of_reserve ? short_of_reserve(request, demand, backend)
		                                 : refused(request, demand, backend, "device.limit");
	}
	if (request->result == 0) {
		demand->served(request, backend);
		finish(request, backend);
		return false;
	}
	retract(request, demand, backend);
	if (request->result != backend->out_of_memory)
		return false;
	spill_admit_tried(request, spill_place_name(SPILL_PLACE_DEVICE),
	                  backend->error_name(request->result));
	request->refused_by = "driver";
	return full(request, demand, backend);
}
