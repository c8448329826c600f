#include "contexts.h"

#include <pthread.h>

/* Most contexts of all devices together. */
#define MOST_CONTEXTS 512

struct known_context {
	const struct spill_backend *backend; /* NULL: the slot is free */
	int device;
	void *context;
	uint64_t birth, generation; /* context_end.h */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* SPILL_RANK_CONTEXTS */
static struct known_context known_contexts[MOST_CONTEXTS];
static unsigned used_slots; /* slots behind this index are unused */
static uint64_t last_birth;
static bool incomplete; /* a context found no slot, so the table is incomplete from now on */

/*
 * The context that this thread named last, with the generation of ends (context_end.h): after a
 * later end the same handle may be another context.
 */
static __thread struct {
	const struct spill_backend *backend;
	const void *context;
	uint64_t generation;
} last_named __attribute__((tls_model("initial-exec")));

/* pre: locked. NULL: not known */
static struct known_context *find_known(const struct spill_backend *backend, const void *context)
{
	for (struct known_context *entry = known_contexts; entry < known_contexts + used_slots; entry++)
		if (entry->backend == backend && entry->context == context)
			return entry;
	return NULL;
}

/* pre: locked. The slot of a context, or a free one. NULL: all are taken */
static struct known_context *slot_for(const struct spill_backend *backend, const void *context)
{
	struct known_context *slot = find_known(backend, context);
	if (slot)
		return slot;
	for (slot = known_contexts; slot < known_contexts + used_slots && slot->backend;)
		slot++;
	if (slot == known_contexts + MOST_CONTEXTS) {
		incomplete = true;
		return NULL;
	}
	if (slot == known_contexts + used_slots)
		used_slots++;
	return slot;
}

/* pre: locked */
static void remember_context(const struct spill_backend *backend, int device, void *context, bool created)
{
	struct known_context *slot = slot_for(backend, context);
	if (!slot)
		return;
	if (created || !slot->backend)
		*slot = (struct known_context){backend, device, context, ++last_birth, 0};
	/*
	 * The context is in use now. An end that began before does not cover it, or ends one
	 * reference of several.
	 */
	slot->generation = spill_context_generation();
}

static void note_context(const struct spill_backend *backend, int device, void *context, bool created)
{
	uint64_t now = spill_context_generation();
	if (!context || (!created && last_named.context == context && last_named.backend == backend &&
	                 last_named.generation == now))
		return;
	pthread_mutex_lock(&lock);
	remember_context(backend, device, context, created);
	pthread_mutex_unlock(&lock);
	last_named.backend = backend;
	last_named.context = context;
	last_named.generation = now;
}

void spill_contexts_created(const struct spill_backend *backend, int device, void *context)
{
	note_context(backend, device, context, true);
}

void spill_contexts_made(const struct spill_backend *backend, int device, void *context)
{
	note_context(backend, device, context, false);
}

/* A context that is in use again under the same handle stays, with a new birth. */
void spill_contexts_ended(const struct spill_context_end *end)
{
	pthread_mutex_lock(&lock);
	for (struct known_context *entry = known_contexts; entry < known_contexts + used_slots; entry++) {
		if (spill_context_end_covers(end, entry->backend, entry->device, entry->context,
		                             entry->generation))
			*entry = (struct known_context){0};
		else if (entry->backend == end->backend && end->context && entry->context == end->context)
			entry->birth = ++last_birth;
	}
	pthread_mutex_unlock(&lock);
}

/* pre: locked */
static unsigned list_known(const struct spill_backend *backend, int device, void *list[SPILL_CONTEXTS])
{
	unsigned count = 0;
	for (struct known_context *entry = known_contexts;
	     entry < known_contexts + used_slots && count <= SPILL_CONTEXTS; entry++) {
		if (entry->backend != backend || entry->device != device)
			continue;
		if (count < SPILL_CONTEXTS)
			list[count] = entry->context;
		count++;
	}
	return incomplete ? SPILL_CONTEXTS + 1 : count;
}

unsigned spill_contexts_of(const struct spill_backend *backend, int device, void *list[SPILL_CONTEXTS])
{
	void *context;
	int current_device;
	if (backend->contexts && backend->contexts->primary(device, &context))
		spill_contexts_made(backend, device, context);
	if (backend->devices->current(&current_device, &context) && current_device == device)
		spill_contexts_made(backend, device, context);
	pthread_mutex_lock(&lock);
	unsigned count = list_known(backend, device, list);
	pthread_mutex_unlock(&lock);
	return count;
}

unsigned spill_contexts_devices(const struct spill_backend *backend, int device, int list[SPILL_DEVICES])
{
	bool has_context[SPILL_DEVICES] = {false};
	unsigned count = 0;
	pthread_mutex_lock(&lock);
	for (const struct known_context *entry = known_contexts; entry < known_contexts + used_slots; entry++)
		if (entry->backend == backend && entry->device >= 0 && entry->device < SPILL_DEVICES)
			has_context[entry->device] = true;
	pthread_mutex_unlock(&lock);
	for (int i = 0; i < SPILL_DEVICES; i++)
		if (has_context[i] || i == device)
			list[count++] = i;
	return count;
}

void *spill_contexts_only(const struct spill_backend *backend, int device)
{
	void *contexts[SPILL_CONTEXTS];
	int devices[SPILL_DEVICES];
	bool only = spill_contexts_of(backend, device, contexts) == 1 &&
	            spill_contexts_devices(backend, device, devices) == 1;
	return only ? contexts[0] : NULL;
}

uint64_t spill_contexts_birth(const struct spill_backend *backend, const void *context)
{
	pthread_mutex_lock(&lock);
	const struct known_context *entry = find_known(backend, context);
	uint64_t birth = entry ? entry->birth : 0;
	pthread_mutex_unlock(&lock);
	return birth;
}

/* The child has no GPU. */
static void forget_parent(void)
{
	for (unsigned i = 0; i < used_slots; i++)
		known_contexts[i] = (struct known_context){0};
	incomplete = false;
}

const struct spill_fork_lock spill_contexts_fork_lock = {&lock, forget_parent};
