#include "copier.h"

#include "chunked.h"
#include "clock.h"
#include "mover.h"

#define EVENT_COUNT (SPILL_COPIER_VIEWS + 2) /* for copies, and for marks of contexts (quiesce.h). */
#define POLL_NS 20000                        /* a copy of 64 MiB takes 1.2 ms. */
/*
 * Polls without a pause, some 0.1 ms. A pause takes longer than asked for, while the program waits.
 */
#define SPINS 200
#define TRIES 5 /* attempts, with pauses of 1 ms, 2 ms, 4 ms … */

static struct spill_copier copiers[SPILL_DEVICES];

/* Only reserves addresses, which take no memory. */
static bool reserve_views(struct spill_copier *copier, uint64_t view)
{
	const struct spill_backend *backend = copier->backend;
	if (copier->view_addresses && view <= copier->view_bytes)
		return true;
	uint64_t unit = spill_chunked_granularity(backend, copier->device);
	if (copier->view_addresses)
		backend->vmm->unreserve(copier->view_addresses,
		                        (uint64_t)SPILL_COPIER_VIEWS * copier->view_bytes);
	copier->view_addresses = 0;
	copier->view_bytes = view;
	return unit &&
	       !backend->vmm->reserve((uint64_t)SPILL_COPIER_VIEWS * view, unit, &copier->view_addresses);
}

/*
 * Makes one stream each way, in one context. With only one, the ways take turns. The second is
 * tried again at each move, because a device that is too full for it is where chunks have to move.
 */
static bool make_streams(struct spill_copier *copier, void *context)
{
	const struct spill_backend *backend = copier->backend;
	void **streams = copier->streams;
	if (!streams[0]) {
		/* first, because the context may end meanwhile */
		uint64_t generation = spill_context_generation();
		if (backend->moves->copier_create(copier->device, context, &streams[0])) {
			streams[0] = NULL;
			return false;
		}
		copier->context = context;
		copier->generation = generation;
	}
	if (!streams[1] && backend->moves->copier_create(copier->device, copier->context, &streams[1]))
		streams[1] = NULL;
	return true;
}

void *spill_copier_stream(const struct spill_copier *copier, bool to_device)
{
	return copier->streams[to_device] ? copier->streams[to_device] : copier->streams[0];
}

/* The streams end with their context. pre: the mover is held */
static void forget_streams(struct spill_copier *copier)
{
	copier->streams[0] = copier->streams[1] = copier->context = NULL;
	atomic_store(&copier->ready, false);
}

struct spill_copier *spill_copier_of(const struct spill_backend *backend, int device, void *context,
                                     uint64_t view)
{
	if (device < 0 || device >= SPILL_DEVICES ||
	    !(backend->devices->capabilities(device) & SPILL_CAN_MOVE))
		return NULL;
	struct spill_copier *copier = &copiers[device];
	if (copier->context && spill_context_ending(backend, device, copier->context, copier->generation))
		return NULL; /* until it is known whether they still exist */
	if (atomic_load(&copier->ready) && copier->view_addresses && view <= copier->view_bytes) {
		/* One stream is enough. */
		if (!copier->streams[1])
			make_streams(copier, context);
		return copier;
	}
	copier->backend = backend;
	copier->device = device;
	bool ready = reserve_views(copier, view) && make_streams(copier, context) &&
	             !backend->moves->events_ahead(device, copier->context, EVENT_COUNT);
	atomic_store_explicit(&copier->ready, ready, memory_order_release);
	return ready ? copier : NULL;
}

bool spill_copier_prepare(const struct spill_backend *backend, int device, void *context)
{
	if (device < 0 || device >= SPILL_DEVICES)
		return false;
	struct spill_copier *copier = &copiers[device];
	if (!atomic_load_explicit(&copier->ready, memory_order_acquire)) {
		spill_mover_lock();
		bool ready = spill_copier_of(backend, device, context, SPILL_COPIER_VIEW) != NULL;
		spill_mover_unlock();
		if (!ready)
			return false;
	}
	if (atomic_load_explicit(&copier->marked, memory_order_relaxed) == context)
		return true;
	if (backend->moves->events_ahead(device, context, EVENT_COUNT))
		return false;
	atomic_store(&copier->marked, context);
	return true;
}

void spill_copier_context_ended(const struct spill_context_end *end)
{
	spill_mover_lock();
	for (int device = 0; device < SPILL_DEVICES; device++) {
		struct spill_copier *copier = &copiers[device];
		if (!end->context || atomic_load(&copier->marked) == end->context)
			atomic_store(&copier->marked, NULL);
		if (spill_context_end_covers(end, copier->backend, device, copier->context,
		                             copier->generation))
			forget_streams(copier);
	}
	spill_mover_unlock();
}

void spill_copier_give_up(const struct spill_backend *backend, int device, const void *context)
{
	spill_copier_context_ended(&(struct spill_context_end){
	    .backend = backend, .device = device, .context = context, .generation = UINT64_MAX});
}

void spill_copier_reset(void)
{
	for (int device = 0; device < SPILL_DEVICES; device++) {
		copiers[device].backend = NULL;
		copiers[device].streams[0] = copiers[device].streams[1] = copiers[device].context = NULL;
		copiers[device].view_addresses = copiers[device].view_bytes = 0;
		atomic_store(&copiers[device].ready, false);
		atomic_store(&copiers[device].marked, NULL);
	}
}

/* -- waiting ------------------------------------------------------------------------------------- */

bool spill_copier_wait(const struct spill_copier *copier)
{
	bool passed = false;
	for (unsigned try = 0; try < TRIES && !passed; try++) {
		passed = !copier->backend->devices->wait(copier->device, copier->context);
		if (!passed)
			spill_clock_sleep(1000000ull << try);
	}
	return passed;
}

static bool will_pass(const struct spill_copier *copier, void *event)
{
	const struct spill_vendor_events *events = copier->backend->events;
	return events->will_pass && events->will_pass(copier->device, copier->context, event);
}

bool spill_copier_wait_for(const struct spill_copier *copier, void *event, uint64_t patience_ns)
{
	const struct spill_backend *backend = copier->backend;
	uint64_t end = spill_clock_ns() + patience_ns;
	bool passed = false;
	for (unsigned looks = 1; event && !passed && (spill_clock_ns() < end || will_pass(copier, event));
	     looks++) {
		passed = backend->events->passed(copier->device, copier->context, event);
		if (!passed && looks > SPINS)
			spill_clock_sleep(POLL_NS);
	}
	passed = passed || spill_copier_wait(copier);
	if (event)
		backend->events->destroy(copier->device, copier->context, event);
	return passed;
}
