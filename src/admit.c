#include "admit.h"

#include <pthread.h>
#include <string.h>

#include "account.h"
#include "capture.h"
#include "chain.h"
#include "contexts.h"
#include "deferred.h"
#include "honest.h"
#include "mempool.h"
#include "note.h"
#include "reserve.h"
#include "trim.h"

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
	};
}

bool spill_admit_record(const struct spill_request *request, struct spill_allocation *allocation,
                        const char *reason)
{
	for (struct spill_request *frame = spill_thread.frame; frame; frame = frame->outer)
		frame->taken = true;
	spill_contexts_made(allocation->backend, request->device, request->context);
	if (!spill_ledger_add(allocation)) {
		spill_note("ledger", "no memory for bookkeeping: an allocation is not accounted");
		return false;
	}
	spill_report_alloc(request, allocation, reason);
	return true;
}

/* Decides, and charges in the same moment what the decision was about. */
static bool admit_weight(struct spill_request *request, const struct spill_backend *backend)
{
	struct spill_ask ask = {
	    .bytes = request->bytes, .weight = request->weight, .device = request->device};
	struct spill_view view = {
	    .device_used = spill_account_device_held(request->device),
	    .device_limit = spill_runtime_device_limit(backend, request->device),
	};
	struct spill_decision decision;
	do
		decision = spill_decide(spill_runtime_policy(), NULL, &ask, &view);
	while (decision.would == SPILL_VERDICT_DRIVER &&
	       !spill_account_device_charge(request->device, &view.device_used, ask.weight));
	bool fits = decision.would == SPILL_VERDICT_DRIVER;
	request->charged = fits ? ask.weight : 0;
	request->rule = decision.rule;
	return fits;
}

bool spill_admit_charge(struct spill_request *request, const struct spill_demand *demand,
                        const struct spill_backend *backend)
{
	return demand->admit ? demand->admit(request, backend) : admit_weight(request, backend);
}

static void retract(struct spill_request *request, const struct spill_demand *demand,
                    const struct spill_backend *backend)
{
	if (demand->retract)
		demand->retract(request, backend);
	else
		spill_account_device_return(request->device, request->charged);
	request->charged = 0;
}

/*
 * The program sees an out of memory. Its error code, and last error where the vendor keeps one below its own call, are the
 * vendor's: HIP's is raised anew, because our own calls in between have overwritten it.
 */
static void surface(struct spill_request *request, const struct spill_demand *demand,
                    const struct spill_backend *backend, uint64_t free, uint64_t total)
{
	spill_ledger_count_oom();
	spill_report_oom(request, backend, free, total);
	if (demand->refused && request->result == 0)
		demand->refused(request);
	request->result =
	    backend->raise_out_of_memory ? backend->raise_out_of_memory() : backend->out_of_memory;
}

static bool full(struct spill_request *request, const struct spill_demand *demand,
                 const struct spill_backend *backend);

/* The device has less to give: what it must keep for code is looked after. */
static void taken(const struct spill_request *request, const struct spill_backend *backend)
{
	spill_reserve_taken(request->weight);
	spill_reserve_keep(backend, request->device, spill_engine_api(request), spill_engine_site(request));
}

/* The request has been served, by us. */
static void finish(struct spill_request *request, const struct spill_backend *backend)
{
	spill_honest_succeeded(request);
	if (backend->forget_error && request->last_error == 0)
		backend->forget_error();
	request->result = 0;
	taken(request, backend);
}

/* The driver, or what stands in for its plain call, is asked. True: the driver. pre: admitted */
static bool ask(struct spill_request *request, const struct spill_demand *demand,
                const struct spill_backend *backend)
{
	const char *error = NULL;
	enum spill_instead instead =
	    demand->instead ? demand->instead(request, backend, &error) : SPILL_INSTEAD_NOT;
	if (instead == SPILL_INSTEAD_NOT)
		return true;
	request->charged = 0;
	if (instead == SPILL_INSTEAD_SERVED) {
		finish(request, backend);
		return false;
	}
	request->over_limit = instead == SPILL_INSTEAD_LIMIT;
	request->refused_by = request->over_limit ? "device.limit" : "driver";
	spill_admit_tried(request, spill_place_name(SPILL_PLACE_DEVICE), error);
	return full(request, demand, backend);
}

/* True: the driver is to be asked again. */
static bool make_room(struct spill_request *request, const struct spill_demand *demand,
                      const struct spill_backend *backend)
{
	const struct spill_policy *policy = spill_runtime_policy();
	uint64_t free = 0, total = 0;
	backend->memory(request->device, &free, &total);
	if (!request->full)
		request->chain_count =
		    spill_policy_chain(policy, backend->capabilities(request->device), request->chain);
	request->full = true;
	struct spill_want want = {
	    .backend = backend,
	    .policy = policy,
	    .device = request->device,
	    .context = request->context,
	    .bytes = request->bytes,
	    .device_room = spill_chain_device_room(backend, policy, request->device),
	    .device_limit = spill_runtime_device_limit(backend, request->device),
	};
	bool here = spill_capture_here(request);
	enum spill_outcome outcome = SPILL_REFUSED;
	if (here)
		request->refused_by = "stream capture";
	else if (!spill_runtime_observes())
		outcome = spill_chain_place(request, demand, &want);
	if (outcome == SPILL_REFUSED)
		surface(request, demand, backend, free, total);
	else if (outcome == SPILL_SERVED)
		finish(request, backend);
	return outcome == SPILL_AGAIN && ask(request, demand, backend);
}

/* What is done here reads files and may take long: the vendor's call it stands for is no cancellation point. */
static bool full(struct spill_request *request, const struct spill_demand *demand,
                 const struct spill_backend *backend)
{
	int cancel;
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	bool again = make_room(request, demand, backend);
	pthread_setcancelstate(cancel, NULL);
	return again;
}

/* Returns true if the driver is to be asked. */
static bool begin(struct spill_request *request, const struct spill_demand *demand,
                  const struct spill_backend *backend)
{
	spill_runtime_log(backend);
	request->start_us = spill_log_now_us();
	spill_deferred_poll(backend, false);
	if (spill_runtime_device_limit(backend, request->device) != SPILL_UNLIMITED)
		spill_mempool_settle_graphs(backend, request->device);
	if (spill_admit_charge(request, demand, backend))
		return ask(request, demand, backend);
	/* The vendor gives back what its pools keep whenever it likes. */
	if (!spill_capture_any() && spill_mempool_settle_device(backend, request->device) &&
	    spill_admit_charge(request, demand, backend))
		return ask(request, demand, backend);
	request->over_limit = true;
	spill_admit_tried(request, spill_place_name(SPILL_PLACE_DEVICE), "device.limit");
	request->refused_by = "device.limit";
	return spill_runtime_observes() || full(request, demand, backend);
}

bool spill_admit(struct spill_request *request, const struct spill_demand *demand)
{
	const struct spill_backend *backend = spill_runtime_backend(request->domain);
	if (request->step == BEGIN) {
		request->pass = !backend;
		if (!request->pass && backend->peek_error)
			request->last_error = backend->peek_error();
		if (!request->pass)
			request->pass = !demand->prepare(request, backend);
		if (request->pass)
			return spill_engine_pass(request);
		request->step = ASKED;
		return begin(request, demand, backend);
	}
	if (request->result == 0 && demand->keep && !demand->keep(request, backend)) {
		request->charged = 0;
		request->over_limit = true;
		spill_admit_tried(request, spill_place_name(SPILL_PLACE_DEVICE), "device.limit");
		return full(request, demand, backend);
	}
	if (request->result == 0) {
		demand->served(request, backend);
		spill_honest_succeeded(request);
		taken(request, backend);
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
