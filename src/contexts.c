#include "contexts.h"

#include <pthread.h>
#include <stdatomic.h>

/* Of all devices together. */
#define KNOWN 512

struct known {
	const struct spill_backend *backend; /* NULL: free */
	int device;
	void *context;
	uint64_t birth;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* SPILL_RANK_CONTEXTS */
static struct known known[KNOWN];
static unsigned used; /* slots from here on have never been taken */
static uint64_t last_birth;
static bool lost;             /* some context found no slot: what there is is not known any more */
static _Atomic uint64_t ends; /* so far */

/* What this thread named last, and how many had ended by then: the same handle may be another context by now. */
static __thread struct {
	const struct spill_backend *backend;
	const void *context;
	uint64_t ends;
} named __attribute__((tls_model("initial-exec")));

/* pre: locked. NULL: it is not known */
static struct known *find(const struct spill_backend *backend, const void *context)
{
	for (struct known *one = known; one < known + used; one++)
		if (one->backend == backend && one->context == context)
			return one;
	return NULL;
}

/* pre: locked */
static void add(const struct spill_backend *backend, int device, void *context)
{
	struct known *slot = known;
	while (slot < known + used && slot->backend)
		slot++;
	if (slot == known + KNOWN) {
		lost = true;
		return;
	}
	*slot = (struct known){backend, device, context, ++last_birth};
	if (slot == known + used)
		used++;
}

void spill_contexts_made(const struct spill_backend *backend, int device, void *context)
{
	uint64_t before = atomic_load_explicit(&ends, memory_order_acquire);
	if (!context || (named.context == context && named.backend == backend && named.ends == before))
		return;
	pthread_mutex_lock(&lock);
	if (!find(backend, context))
		add(backend, device, context);
	pthread_mutex_unlock(&lock);
	named.backend = backend;
	named.context = context;
	named.ends = before;
}

void spill_contexts_ended(const struct spill_backend *backend, int device, const void *context)
{
	pthread_mutex_lock(&lock);
	for (struct known *one = known; one < known + used; one++)
		if (one->backend == backend && (context ? one->context == context : one->device == device))
			*one = (struct known){0};
	atomic_fetch_add(&ends, 1);
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
	if (backend->primary && backend->primary(device, &context))
		spill_contexts_made(backend, device, context);
	if (backend->current(&its_device, &context) && its_device == device)
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
	if (child) {
		lost = false;
		atomic_fetch_add(&ends, 1);
	}
	pthread_mutex_unlock(&lock);
}
