#include "contexts.h"

#include <pthread.h>

/* Of all devices together. */
#define KNOWN 512

struct known {
	const struct spill_backend *backend; /* NULL: free */
	int device;
	void *context;
	uint64_t birth, generation; /* context_end.h */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* SPILL_RANK_CONTEXTS */
static struct known known[KNOWN];
static unsigned used; /* slots from here on have never been taken */
static uint64_t last_birth;
static bool lost; /* some context found no slot: what there is is not known any more */

/* What this thread named last, and when: since a later end the same handle may be another context. */
static __thread struct {
	const struct spill_backend *backend;
	const void *context;
	uint64_t generation;
} named __attribute__((tls_model("initial-exec")));

/* pre: locked. NULL: it is not known */
static struct known *find(const struct spill_backend *backend, const void *context)
{
	for (struct known *one = known; one < known + used; one++)
		if (one->backend == backend && one->context == context)
			return one;
	return NULL;
}

/* pre: locked. The slot of a context, a free one for it, or NULL if all are taken. */
static struct known *slot_of(const struct spill_backend *backend, const void *context)
{
	struct known *slot = find(backend, context);
	if (slot)
		return slot;
	for (slot = known; slot < known + used && slot->backend;)
		slot++;
	if (slot == known + KNOWN) {
		lost = true;
		return NULL;
	}
	if (slot == known + used)
		used++;
	return slot;
}

/* pre: locked */
static void enter(const struct spill_backend *backend, int device, void *context, bool created)
{
	struct known *slot = slot_of(backend, context);
	if (!slot)
		return;
	if (created || !slot->backend)
		*slot = (struct known){backend, device, context, ++last_birth, 0};
	/* In use now: an end that began before does not cover it, or ends one reference of several. */
	slot->generation = spill_context_generation();
}

static void made(const struct spill_backend *backend, int device, void *context, bool created)
{
	uint64_t now = spill_context_generation();
	if (!context ||
	    (!created && named.context == context && named.backend == backend && named.generation == now))
		return;
	pthread_mutex_lock(&lock);
	enter(backend, device, context, created);
	pthread_mutex_unlock(&lock);
	named.backend = backend;
	named.context = context;
	named.generation = now;
}

void spill_contexts_created(const struct spill_backend *backend, int device, void *context)
{
	made(backend, device, context, true);
}

void spill_contexts_made(const struct spill_backend *backend, int device, void *context)
{
	made(backend, device, context, false);
}

/* A context that is in use again under the same handle stays, as another one than before. */
void spill_contexts_ended(const struct spill_context_end *end)
{
	pthread_mutex_lock(&lock);
	for (struct known *one = known; one < known + used; one++) {
		if (spill_context_end_covers(end, one->backend, one->device, one->context, one->generation))
			*one = (struct known){0};
		else if (one->backend == end->backend && end->context && one->context == end->context)
			one->birth = ++last_birth;
	}
	pthread_mutex_unlock(&lock);
}

/* pre: locked */
static unsigned collect(const struct spill_backend *backend, int device, void *list[SPILL_CONTEXTS])
{
	unsigned count = 0;
	for (struct known *one = known; one < known + used && count <= SPILL_CONTEXTS; one++) {
		if (one->backend != backend || one->device != device)
			continue;
		if (count < SPILL_CONTEXTS)
			list[count] = one->context;
		count++;
	}
	return lost ? SPILL_CONTEXTS + 1 : count;
}

unsigned spill_contexts_of(const struct spill_backend *backend, int device, void *list[SPILL_CONTEXTS])
{
	void *context;
	int its_device;
	if (backend->contexts && backend->contexts->primary(device, &context))
		spill_contexts_made(backend, device, context);
	if (backend->devices->current(&its_device, &context) && its_device == device)
		spill_contexts_made(backend, device, context);
	pthread_mutex_lock(&lock);
	unsigned count = collect(backend, device, list);
	pthread_mutex_unlock(&lock);
	return count;
}

uint64_t spill_contexts_birth(const struct spill_backend *backend, const void *context)
{
	pthread_mutex_lock(&lock);
	const struct known *one = find(backend, context);
	uint64_t birth = one ? one->birth : 0;
	pthread_mutex_unlock(&lock);
	return birth;
}

void spill_contexts_fork_prepare(void)
{
	pthread_mutex_lock(&lock);
}

/* The child has no GPU. */
void spill_contexts_fork_done(bool child)
{
	for (unsigned i = 0; child && i < used; i++)
		known[i] = (struct known){0};
	if (child)
		lost = false;
	pthread_mutex_unlock(&lock);
}
