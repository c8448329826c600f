#include "make_room.h"

#include <pthread.h>

#include "capture.h"
#include "demote.h"
#include "engine.h"
#include "trim.h"

/* Twice as much each time: what is missing is not known. */
static uint64_t size_of(unsigned attempt)
{
	uint64_t chunk = spill_amount_resolve(spill_process_policy()->movable_chunk, 0, 64ull << 20);
	return chunk << attempt;
}

/* Room for all of `bytes`. A part of it would be lost to the device (docs/adr/0015). */
static bool make_whole(const struct spill_backend *backend, int device, const char *api, const void *caller,
                       uint64_t bytes)
{
	uint64_t free = 0, total = 0;
	struct spill_demotion demotion = {
	    .backend = backend,
	    .device = device,
	    .bytes = bytes,
	    .reason = "room",
	    .api = api,
	    .caller = spill_log_caller(caller),
	};
	if (spill_process_observes() || spill_capture_any())
		return false;
	spill_trim(backend, device, bytes);
	return (!backend->devices->memory(device, &free, &total) && free >= bytes) || spill_demote(&demotion);
}

bool spill_make_room(const struct spill_backend *backend, int device, const char *api, const void *caller,
                     unsigned attempt)
{
	if (attempt >= SPILL_ROOM_ATTEMPTS || spill_process_observes() || spill_capture_any())
		return false;
	struct spill_demotion demotion = {
	    .backend = backend,
	    .device = device,
	    .bytes = size_of(attempt),
	    .reason = "room",
	    .part_helps = true,
	    .api = api,
	    .caller = spill_log_caller(caller),
	};
	bool trimmed = attempt == 0 && spill_trim(backend, device, demotion.bytes);
	return trimmed || spill_demote(&demotion) || demotion.freed;
}

static spill_make_room_fn *instead; /* set before there are threads */

void spill_make_room_use(spill_make_room_fn *other)
{
	instead = other;
}

bool spill_make_room_for(enum spill_domain domain, int result, const char *api, const void *caller,
                         unsigned attempt, uint64_t whole)
{
	const struct spill_backend *backend = spill_backend_for(domain);
	void *context;
	int device;
	if (instead)
		return instead(domain, result, api, caller, attempt, whole);
	if (!backend || result != backend->out_of_memory)
		return false;
	int cancel;
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE,
	                       &cancel); /* the vendor's call it is part of is no cancellation point */
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
