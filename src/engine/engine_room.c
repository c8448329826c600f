/*
 * Calls that take device memory for themselves (make_room.h). The vendor is asked first, and again
 * after room was made.
 */
#include <pthread.h>

#include "capture.h"
#include "contexts.h"
#include "demote.h"
#include "device_memory.h"
#include "engine.h"
#include "make_room.h"
#include "movable.h"
#include "reserve_keeper.h"
#include "trim.h"

/* Doubled each time, because the missing size is unknown. */
static uint64_t room_of_attempt(unsigned attempt)
{
	uint64_t chunk = spill_amount_resolve(spill_process_policy()->movable_chunk, 0, 64ull << 20);
	return chunk << attempt;
}

/* Makes room for all of `bytes`. The vendor would lose a part of it for ever (docs/adr/0015). */
static bool make_whole(const struct spill_backend *backend, int device, const char *api, const void *caller,
                       uint64_t bytes)
{
	uint64_t free = 0, total = 0;
	struct spill_demotion demotion = {
	    .backend = backend,
	    .device = device,
	    .bytes = bytes,
	    .reason = SPILL_REASON_ROOM,
	    .api = api,
	    .caller = spill_log_caller(caller),
	};
	if (spill_process_observes() || spill_capture_any())
		return false;
	spill_trim(backend, device, bytes, true);
	return (!spill_device_memory(backend, device, &free, &total) && free >= bytes) ||
	       spill_demote(&demotion);
}

bool spill_make_room(const struct spill_backend *backend, int device, const char *api, const void *caller,
                     unsigned attempt)
{
	if (attempt >= SPILL_ROOM_ATTEMPTS || spill_process_observes() || spill_capture_any())
		return false;
	struct spill_demotion demotion = {
	    .backend = backend,
	    .device = device,
	    .bytes = room_of_attempt(attempt),
	    .reason = SPILL_REASON_ROOM,
	    .part_helps = true,
	    .api = api,
	    .caller = spill_log_caller(caller),
	};
	bool trimmed = attempt == 0 && spill_trim(backend, device, demotion.bytes, true);
	return trimmed || spill_demote(&demotion) || demotion.freed;
}

static spill_make_room_fn *replacement; /* set before there are threads */

void spill_make_room_use(spill_make_room_fn *other)
{
	replacement = other;
}

bool spill_make_room_for(enum spill_domain domain, int result, const char *api, const void *caller,
                         unsigned attempt, uint64_t whole)
{
	const struct spill_backend *backend = spill_backend_for(domain);
	void *context;
	int device;
	if (replacement)
		return replacement(domain, result, api, caller, attempt, whole);
	if (!backend || result != backend->out_of_memory)
		return false;
	int cancel;
	/* The vendor's call is no cancellation point. */
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	spill_thread.depth++;
	bool made = backend->devices->current(&device, &context);
	if (made)
		made = whole ? make_whole(backend, device, api, caller, whole)
		             : spill_make_room(backend, device, api, caller, attempt);
	if (spill_thread.depth)
		spill_thread.depth--;
	pthread_setcancelstate(cancel, NULL);
	return made;
}

/* -- ROOM and calls that make contexts --------------------------------------------------------- */

static bool device_of_call(const struct spill_request *request, const struct spill_backend *backend,
                           int *device)
{
	void *context;
	if (request->op == SPILL_OP_CONTEXT_CREATE || request->op == SPILL_OP_PRIMARY_RETAIN) {
		*device = request->device;
		return true;
	}
	return backend->devices->current(device, &context);
}

/*
 * Only for code. A context takes much once, and asking again helps it: the reserve need not hold
 * it.
 */
static void measure_load(struct spill_request *request, const struct spill_backend *backend, int device,
                         bool refused)
{
	if (request->op == SPILL_OP_ROOM)
		request->load = spill_reserve_load_begin(backend, device, refused);
}

/*
 * Fills the reserve first. Code that finds no room at its first load is refused for good
 * (reserve.h). Asking again helps only data, streams, graphs and contexts.
 */
static bool begin_room_call(struct spill_request *request, const struct spill_backend *backend)
{
	int device;
	if (!backend || !spill_reserve_any() || !device_of_call(request, backend, &device))
		return true;
	spill_reserve_whole(backend, device, spill_engine_api(request), spill_engine_site(request));
	measure_load(request, backend, device, false);
	return true;
}

/* The vendor has made a context, or has added a reference to a primary one. */
static void record_context(const struct spill_request *request, const struct spill_backend *backend)
{
	void *context = request->out ? *(void **)request->out : NULL;
	if (request->op == SPILL_OP_PRIMARY_RETAIN) {
		backend->contexts->primary_retained(request->device, context);
		spill_contexts_made(backend, request->device, context);
	} else if (request->op == SPILL_OP_CONTEXT_CREATE && request->mode) {
		if (!backend->contexts->green_made(context, request->device))
			spill_movable_forbid("a green context whose primary context is not known");
	} else if (request->op == SPILL_OP_CONTEXT_CREATE) {
		spill_contexts_created(backend, request->device, context);
	}
}

static bool step_room_call(struct spill_request *request)
{
	const struct spill_backend *backend = spill_backend_for(request->domain);
	int device = SPILL_CURRENT_DEVICE;
	if (request->step++ == 0)
		return begin_room_call(request, backend);
	if (!backend)
		return false;
	if (request->result == 0)
		record_context(request, backend);
	if (request->result == 0 && request->load.free && device_of_call(request, backend, &device))
		spill_reserve_load_end(backend, device, &request->load, spill_engine_api(request));
	if (request->result != backend->out_of_memory || !device_of_call(request, backend, &device) ||
	    !spill_make_room(backend, device, spill_engine_api(request), spill_engine_site(request),
	                     request->step - 2))
		return false;
	measure_load(request, backend, device, true);
	return true;
}

/* To make room may take long, but the vendor's call is no cancellation point. */
bool spill_engine_room(struct spill_request *request)
{
	int cancel;
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	bool again = step_room_call(request);
	pthread_setcancelstate(cancel, NULL);
	return again;
}
