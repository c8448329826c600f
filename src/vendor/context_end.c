#include "context_end.h"

#include <pthread.h>
#include <stdatomic.h>

#include "clock.h"

/* The latest ends. No thread uses a dead object for so long that this many more contexts end. */
#define ENDS 256

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* SPILL_RANK_CONTEXT_END */
static struct {
	struct spill_context_end end; /* no backend: unused, or undone */
	bool in_progress;
} ends[ENDS];
static unsigned next_slot; /* the lock guards it: ends are forgotten in their order */
static _Atomic unsigned in_progress;
static _Atomic uint64_t generation = 1;

/* Threads that hold a context, by a hash of it. A call of the vendor takes microseconds. */
#define HOLDS 64
#define HOLD_POLL_NS 5000
#define HOLD_MOST_NS 5000000000ull
static _Atomic unsigned holds[HOLDS];

uint64_t spill_context_generation(void)
{
	return atomic_load_explicit(&generation, memory_order_acquire);
}

static _Atomic unsigned *holds_of(const void *context)
{
	return &holds[((uintptr_t)context >> 4) * 0x9e3779b97f4a7c15ull >> 58];
}

static bool is_held(const void *context)
{
	unsigned held = context ? atomic_load(holds_of(context)) : 0;
	for (unsigned i = 0; i < HOLDS && !context; i++)
		held |= atomic_load(&holds[i]);
	return held;
}

/*
 * Either this thread sees the other's hold, or that one sees the end: both write before they read. The
 * program's call is no cancellation point, and a sleep is.
 */
static void wait_for_holds(const void *context)
{
	int cancel;
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	for (uint64_t begin = spill_clock_ns(); is_held(context) && spill_clock_ns() - begin < HOLD_MOST_NS;)
		spill_clock_sleep(HOLD_POLL_NS);
	pthread_setcancelstate(cancel, NULL);
}

bool spill_context_hold(struct spill_context_hold *hold, const struct spill_backend *backend, int device,
                        const void *context, uint64_t made_in)
{
	hold->context = context;
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &hold->cancel);
	atomic_fetch_add(holds_of(context), 1);
	if (!spill_context_ending(backend, device, context, made_in))
		return true;
	spill_context_release(hold);
	return false;
}

void spill_context_release(const struct spill_context_hold *hold)
{
	atomic_fetch_sub(holds_of(hold->context), 1);
	pthread_setcancelstate(hold->cancel, NULL);
}

/* The end is in progress from here on, and covers all objects. Returns its place. */
static unsigned publish(const struct spill_context_end *end)
{
	pthread_mutex_lock(&lock);
	atomic_fetch_add(&in_progress, 1);
	unsigned slot = next_slot++ % ENDS;
	for (unsigned i = 0; i < ENDS && ends[slot].in_progress; i++)
		slot = (slot + 1) % ENDS;
	ends[slot].end = *end;
	ends[slot].in_progress = true;
	pthread_mutex_unlock(&lock);
	return slot;
}

struct spill_context_end spill_context_end_begin(const struct spill_backend *backend, int device,
                                                 const void *context)
{
	struct spill_context_end end = {
	    .backend = backend, .device = device, .context = context, .generation = UINT64_MAX};
	end.slot = publish(&end);
	/* Those who hold the context may still make objects in it, and the end covers these, too. */
	wait_for_holds(context);
	pthread_mutex_lock(&lock);
	end.generation = atomic_fetch_add(&generation, 1);
	ends[end.slot].end = end;
	pthread_mutex_unlock(&lock);
	return end;
}

void spill_context_end_finish(const struct spill_context_end *end, bool undone)
{
	pthread_mutex_lock(&lock);
	if (ends[end->slot].end.generation == end->generation) {
		ends[end->slot].in_progress = false;
		if (undone)
			ends[end->slot].end.backend = NULL;
	}
	atomic_fetch_sub(&in_progress, 1);
	pthread_mutex_unlock(&lock);
}

bool spill_context_end_covers(const struct spill_context_end *end, const struct spill_backend *backend,
                              int device, const void *context, uint64_t made_in)
{
	return end->backend == backend && made_in <= end->generation &&
	       (end->context ? end->context == context : end->device == device);
}

static bool is_covered_by_any(bool also_done, const struct spill_backend *backend, int device,
                              const void *context, uint64_t made_in)
{
	bool covered = false;
	pthread_mutex_lock(&lock);
	for (unsigned i = 0; i < ENDS && !covered; i++)
		covered = (also_done || ends[i].in_progress) && ends[i].end.backend &&
		          spill_context_end_covers(&ends[i].end, backend, device, context, made_in);
	pthread_mutex_unlock(&lock);
	return covered;
}

bool spill_context_ending(const struct spill_backend *backend, int device, const void *context,
                          uint64_t made_in)
{
	return atomic_load(&in_progress) && is_covered_by_any(false, backend, device, context, made_in);
}

/* Only an end since `made_in` can cover the object. */
bool spill_context_dead(const struct spill_backend *backend, int device, const void *context,
                        uint64_t made_in)
{
	return made_in < spill_context_generation() &&
	       is_covered_by_any(true, backend, device, context, made_in);
}

/* The child has no GPU, and none of the threads that were ending a context. */
static void forget_parent(void)
{
	for (unsigned i = 0; i < ENDS; i++) {
		ends[i].end.backend = NULL;
		ends[i].in_progress = false;
	}
	for (unsigned i = 0; i < HOLDS; i++)
		atomic_store(&holds[i], 0);
	atomic_store(&in_progress, 0);
	atomic_fetch_add(&generation, 1);
}

const struct spill_fork_lock spill_context_end_fork_lock = {&lock, forget_parent};
