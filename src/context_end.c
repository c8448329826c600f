#include "context_end.h"

#include <pthread.h>
#include <stdatomic.h>

/* The latest ends, in progress or done. Nobody holds a thing of a dead context for as long as so many more take. */
#define ENDS 256

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* SPILL_RANK_CONTEXT_END */
static struct spill_context_end ends[ENDS];              /* by generation; no backend: nothing */
static _Atomic uint64_t generation = 1;

uint64_t spill_context_generation(void)
{
	return atomic_load_explicit(&generation, memory_order_acquire);
}

struct spill_context_end spill_context_end_begin(const struct spill_backend *backend, int device,
                                                 const void *context)
{
	struct spill_context_end end = {.backend = backend, .device = device, .context = context};
	pthread_mutex_lock(&lock);
	end.generation = atomic_fetch_add(&generation, 1);
	ends[end.generation % ENDS] = end;
	pthread_mutex_unlock(&lock);
	return end;
}

void spill_context_end_undo(const struct spill_context_end *end)
{
	struct spill_context_end *slot = &ends[end->generation % ENDS];
	pthread_mutex_lock(&lock);
	if (slot->generation == end->generation)
		slot->backend = NULL;
	pthread_mutex_unlock(&lock);
}

bool spill_context_end_covers(const struct spill_context_end *end, const struct spill_backend *backend,
                              int device, const void *context, uint64_t made_in)
{
	return end->backend == backend && made_in <= end->generation &&
	       (end->context ? end->context == context : end->device == device);
}

/* Only the ends since then can cover it. */
bool spill_context_ending(const struct spill_backend *backend, int device, const void *context,
                          uint64_t made_in)
{
	uint64_t now = spill_context_generation();
	bool ending = false;
	if (made_in >= now)
		return false;
	pthread_mutex_lock(&lock);
	for (unsigned i = 0; i < ENDS && !ending; i++)
		ending =
		    ends[i].backend && spill_context_end_covers(&ends[i], backend, device, context, made_in);
	pthread_mutex_unlock(&lock);
	return ending;
}

void spill_context_end_fork_prepare(void)
{
	pthread_mutex_lock(&lock);
}

/* The child has no GPU, and none of the threads that were ending something. */
void spill_context_end_fork_done(bool child)
{
	for (unsigned i = 0; child && i < ENDS; i++)
		ends[i].backend = NULL;
	if (child)
		atomic_fetch_add(&generation, 1);
	pthread_mutex_unlock(&lock);
}
