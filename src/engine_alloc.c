/*
 * One allocation: decide, ask the driver, and on out of memory try the places of oom.chain in order. What fits costs
 * one decision without lock or system call; nothing is spilled that the driver can serve within the limits.
 */
#include "engine.h"

#include <pthread.h>

#include "account.h"
#include "note.h"

enum step { BEGIN, ASKED };

static void tried(struct spill_request *request, const char *place, const char *error)
{
	if (request->attempts < SPILL_ATTEMPTS)
		request->tried[request->attempts++] = (struct spill_attempt){place, error};
}

static struct spill_allocation describe(struct spill_request *request, const struct spill_backend *backend)
{
	struct spill_allocation allocation = {
	    .backend = backend,
	    .bytes = request->bytes,
	    .device = request->device,
	    .context = request->context,
	    .api = spill_engine_api(request),
	    .caller = spill_engine_caller(request),
	};
	return allocation;
}

static uint64_t *out(struct spill_request *request)
{
	return request->out;
}

/* False if there is no memory for the entry: the allocation is then nobody's, and the caller's to undo. */
static bool record(struct spill_request *request, struct spill_allocation *allocation, const char *reason)
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

/* The driver served it. */
static void keep_plain(struct spill_request *request, const struct spill_backend *backend)
{
	struct spill_allocation allocation = describe(request, backend);
	allocation.ptr = *out(request);
	allocation.place = SPILL_PLACE_DEVICE;
	allocation.charged = request->charged;
	allocation.held.device = request->bytes;
	if (!record(request, &allocation, request->over_limit ? "limit" : "fits"))
		spill_account_device_return(request->device, request->charged);
}

/* Free device bytes less the reserve. */
static uint64_t device_room(const struct spill_policy *policy, uint64_t free, uint64_t total)
{
	uint64_t reserve = spill_amount_resolve(policy->device_reserve, total, 0);
	return free > reserve ? free - reserve : 0;
}

static bool place(struct spill_request *request, const struct spill_backend *backend, uint64_t free,
                  uint64_t total)
{
	const struct spill_policy *policy = spill_runtime_policy();
	struct spill_want want = {
	    .backend = backend,
	    .policy = policy,
	    .device = request->device,
	    .context = request->context,
	    .bytes = request->bytes,
	    .device_room = device_room(policy, free, total),
	    .device_limit = spill_runtime_device_limit(backend, request->device),
	};
	enum spill_place chain[SPILL_PLACES];
	unsigned count = spill_policy_chain(policy, backend->capabilities(request->device), chain);
	for (unsigned i = 0; i < count; i++) {
		const char *error = NULL;
		struct spill_placement *placement = spill_place_make(spill_place_of(chain[i]), &want, &error);
		if (!placement) {
			tried(request, spill_place_name(chain[i]), error);
			request->refused_by = error;
			continue;
		}
		struct spill_allocation allocation = describe(request, backend);
		allocation.ptr = placement->ptr;
		allocation.place = chain[i];
		allocation.held = placement->held;
		allocation.placement = placement;
		if (!record(request, &allocation, request->over_limit ? "limit" : "oom")) {
			spill_place_release(placement, false);
			request->refused_by = "no memory for bookkeeping";
			tried(request, spill_place_name(chain[i]), request->refused_by);
			continue;
		}
		*out(request) = placement->ptr;
		return true;
	}
	return false;
}

/*
 * The program sees an out of memory. Its error code, and last error where the vendor keeps one below its own call, are the
 * vendor's: HIP's is raised anew, because our own calls in between have overwritten it.
 */
static void surface(struct spill_request *request, const struct spill_backend *backend, uint64_t free,
                    uint64_t total)
{
	spill_ledger_count_oom();
	spill_report_oom(request, backend, free, total);
	request->result =
	    backend->raise_out_of_memory ? backend->raise_out_of_memory() : backend->out_of_memory;
}

static void make_room(struct spill_request *request, const struct spill_backend *backend)
{
	uint64_t free = 0, total = 0;
	backend->memory(request->device, &free, &total);
	if (spill_runtime_observes() || !place(request, backend, free, total)) {
		surface(request, backend, free, total);
		return;
	}
	if (backend->forget_error && request->last_error == 0)
		backend->forget_error();
	request->result = 0;
}

/* What is done here reads files and may take long: the vendor's call it stands for is no cancellation point. */
static void full(struct spill_request *request, const struct spill_backend *backend)
{
	int cancel;
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	make_room(request, backend);
	pthread_setcancelstate(cancel, NULL);
}

/* Decides, and charges in the same moment what the decision was about. */
static struct spill_decision decide(struct spill_request *request, const struct spill_backend *backend)
{
	struct spill_ask ask = {.bytes = backend->footprint(request->bytes), .device = request->device};
	struct spill_view view = {
	    .device_used = spill_account_device_held(request->device),
	    .device_limit = spill_runtime_device_limit(backend, request->device),
	};
	struct spill_decision decision;
	do
		decision = spill_decide(spill_runtime_policy(), &ask, &view);
	while (decision.fits && !spill_account_device_charge(request->device, &view.device_used, ask.bytes));
	request->charged = decision.fits ? ask.bytes : 0;
	return decision;
}

/* Returns true if the driver is to be asked. */
static bool begin(struct spill_request *request, const struct spill_backend *backend)
{
	spill_runtime_log(backend);
	request->start_us = spill_log_now_us();
	struct spill_decision decision = decide(request, backend);
	request->rule = decision.rule;
	if (decision.fits)
		return true;
	request->over_limit = true;
	tried(request, spill_place_name(SPILL_PLACE_DEVICE), "device.limit");
	request->refused_by = "device.limit";
	if (spill_runtime_observes())
		return true;
	full(request, backend);
	if (request->result)
		*out(request) = 0; /* as the driver leaves it after an out of memory (docs/measurements.md) */
	return false;
}

bool spill_engine_alloc(struct spill_request *request)
{
	const struct spill_backend *backend = spill_runtime_backend(request->domain);
	if (request->step == BEGIN) {
		/* The vendor's own answer to nonsense, and to a thread without a context, needs nothing of us. */
		request->pass = !backend || !request->out || !request->bytes;
		if (!request->pass && backend->peek_error)
			request->last_error = backend->peek_error();
		if (!request->pass)
			request->pass = !backend->current(&request->device, &request->context);
		if (request->pass)
			return spill_engine_pass(request);
		request->step = ASKED;
		return begin(request, backend);
	}
	if (request->result == 0) {
		keep_plain(request, backend);
		return false;
	}
	spill_account_device_return(request->device, request->charged);
	if (request->result == backend->out_of_memory) {
		tried(request, spill_place_name(SPILL_PLACE_DEVICE), backend->error_name(request->result));
		request->refused_by = "driver";
		full(request, backend);
	}
	return false;
}

/* Managed or pinned host memory that the program itself asked for: the ledger knows it, the policy does not touch it. */
bool spill_engine_account(struct spill_request *request)
{
	const struct spill_backend *backend = spill_runtime_backend(request->domain);
	if (request->step++ == BEGIN) {
		request->pass = !backend || !request->out || !request->bytes;
		if (!request->pass)
			request->pass = !backend->current(&request->device, &request->context);
		if (!request->pass)
			spill_runtime_log(backend);
		request->start_us = spill_log_now_us();
		return true;
	}
	if (request->result != 0)
		return false;
	bool managed = request->op == SPILL_OP_ALLOC_MANAGED;
	struct spill_allocation allocation = describe(request, backend);
	allocation.ptr = *out(request);
	allocation.place = managed ? SPILL_PLACE_MANAGED : SPILL_PLACE_HOST;
	*(managed ? &allocation.held.managed : &allocation.held.host) = request->bytes;
	record(request, &allocation, "asked");
	return false;
}
