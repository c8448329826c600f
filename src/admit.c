#include "admit.h"

#include <pthread.h>
#include <string.h>

#include "account.h"
#include "capture.h"
#include "deferred.h"
#include "honest.h"
#include "mempool.h"
#include "note.h"
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
	if (!spill_ledger_add(allocation)) {
		spill_note("ledger", "no memory for bookkeeping: an allocation is not accounted");
		return false;
	}
	spill_report_alloc(request, allocation, reason);
	return true;
}

/* Free device bytes less the reserve. */
static uint64_t device_room(const struct spill_policy *policy, uint64_t free, uint64_t total)
{
	uint64_t reserve = spill_amount_resolve(policy->device_reserve, total, 0);
	return free > reserve ? free - reserve : 0;
}

/* Decides, and charges in the same moment what the decision was about. */
static bool admit_weight(struct spill_request *request, const struct spill_backend *backend)
{
	struct spill_ask ask = {.bytes = request->weight, .device = request->device};
	struct spill_view view = {
	    .device_used = spill_account_device_held(request->device),
	    .device_limit = spill_runtime_device_limit(backend, request->device),
	};
	struct spill_decision decision;
	do
		decision = spill_decide(spill_runtime_policy(), &ask, &view);
	while (decision.fits && !spill_account_device_charge(request->device, &view.device_used, ask.bytes));
	request->charged = decision.fits ? ask.bytes : 0;
	request->rule = decision.rule;
	return decision.fits;
}

static bool admit(struct spill_request *request, const struct spill_demand *demand,
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

/* What was pinned for later may be what is missing now. */
static bool host_refused(const char *error)
{
	return error && (strcmp(error, "host.limit") == 0 || strcmp(error, "host.reserve") == 0);
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

/* Places it by the next steps of the chain. True: served, or the driver is to be asked again (*again). */
static bool place(struct spill_request *request, const struct spill_demand *demand,
                  const struct spill_backend *backend, const struct spill_want *want, bool *again)
{
	while (request->chain_at < request->chain_count) {
		enum spill_step step = request->chain[request->chain_at++];
		const char *error = NULL;
		if (step == SPILL_STEP_TRIM) {
			*again = spill_trim(backend, request->device, request->bytes) &&
			         admit(request, demand, backend);
			if (*again) {
				request->over_limit = false;
				return true; /* a second failure is recorded as "device" once more */
			}
			error = "nothing to give back";
		} else if (!demand->place) {
			error = "this kind of memory cannot be elsewhere";
		} else if (spill_honest_surfaces(request)) {
			request->refused_by = error = "oom.honest_first";
			request->chain_at = request->chain_count;
		} else if (demand->place(request, step, want, &error) ||
		           (host_refused(error) && place_again(request, demand, step, want, &error))) {
			return true;
		} else {
			request->refused_by = error;
		}
		spill_admit_tried(request, spill_step_name(step), error);
	}
	return false;
}

/* True: the driver is to be asked again. */
static bool make_room(struct spill_request *request, const struct spill_demand *demand,
                      const struct spill_backend *backend)
{
	const struct spill_policy *policy = spill_runtime_policy();
	bool again = false;
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
	    .device_room = device_room(policy, free, total),
	    .device_limit = spill_runtime_device_limit(backend, request->device),
	};
	bool here = spill_capture_here(request);
	if (here)
		request->refused_by = "stream capture";
	if (here || spill_runtime_observes() || !place(request, demand, backend, &want, &again)) {
		surface(request, demand, backend, free, total);
		return false;
	}
	if (again)
		return true;
	spill_honest_succeeded(request);
	if (backend->forget_error && request->last_error == 0)
		backend->forget_error();
	request->result = 0;
	return false;
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
	if (admit(request, demand, backend))
		return true;
	/* The vendor gives back what its pools keep whenever it likes. */
	if (!spill_capture_any() && spill_mempool_settle_device(backend, request->device) &&
	    admit(request, demand, backend))
		return true;
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
