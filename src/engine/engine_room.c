/*
 * Calls that take device memory for themselves (make_room.h): the vendor is asked first, and again when room has been made.
 */
#include <pthread.h>

#include "contexts.h"
#include "engine.h"
#include "movable.h"
#include "reserve_keeper.h"
#include "make_room.h"

/* The device that the call is about. */
static bool device_of(const struct spill_request *request, const struct spill_backend *backend, int *device)
{
	void *context;
	if (request->op == SPILL_OP_CONTEXT_CREATE || request->op == SPILL_OP_PRIMARY_RETAIN) {
		*device = request->device;
		return true;
	}
	return backend->devices->current(device, &context);
}

/* A context takes much, once, and is helped by asking again: no reserve need be as large. */
static void measure(struct spill_request *request, const struct spill_backend *backend, int device,
                    bool refused)
{
	if (request->op == SPILL_OP_ROOM)
		request->load = spill_reserve_load_begin(backend, device, refused);
}

/*
 * The reserve first: code that finds no room at its first load is refused for good, so that asking again behind it helps data,
 * streams, graphs and contexts only (reserve.h).
 */
static bool begin(struct spill_request *request, const struct spill_backend *backend)
{
	int device;
	if (!backend || !spill_reserve_any() || !device_of(request, backend, &device))
		return true;
	spill_reserve_whole(backend, device, spill_engine_api(request), spill_engine_site(request));
	measure(request, backend, device, false);
	return true;
}

/* The vendor has made a context, or given the program one more reference to a primary one. */
static void made(const struct spill_request *request, const struct spill_backend *backend)
{
	void *context = request->out ? *(void **)request->out : NULL;
	if (request->op == SPILL_OP_PRIMARY_RETAIN) {
		backend->contexts->primary_retained(request->device, context);
		spill_contexts_made(backend, request->device, context);
	} else if (request->op == SPILL_OP_CONTEXT_CREATE && request->mode) {
		spill_movable_forbid("green contexts, whose work cannot be waited for");
	} else if (request->op == SPILL_OP_CONTEXT_CREATE) {
		spill_contexts_created(backend, request->device, context);
	}
}

static bool step(struct spill_request *request)
{
	const struct spill_backend *backend = spill_backend_for(request->domain);
	int device;
	if (request->step++ == 0)
		return begin(request, backend);
	if (!backend)
		return false;
	if (request->result == 0)
		made(request, backend);
	if (request->result == 0 && request->load.free && device_of(request, backend, &device))
		spill_reserve_load_end(backend, device, &request->load, spill_engine_api(request));
	if (request->result != backend->out_of_memory || !device_of(request, backend, &device) ||
	    !spill_make_room(backend, device, spill_engine_api(request), spill_engine_site(request),
	                     request->step - 2))
		return false;
	measure(request, backend, device, true);
	return true;
}

/* What is done beside the vendor's call may take long, and that call is no cancellation point. */
bool spill_engine_room(struct spill_request *request)
{
	int cancel;
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	bool again = step(request);
	pthread_setcancelstate(cancel, NULL);
	return again;
}
