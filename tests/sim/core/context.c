/* The start, and contexts: owners of streams, plain allocations and modules. */
#include <stdlib.h>

#include "core_internal.h"

struct peer {
	struct peer *next;
	struct sim_context *context;
};

enum { NOT_STARTED, STARTED, FORKED };

static atomic_int state;
static pthread_mutex_t start_lock = PTHREAD_MUTEX_INITIALIZER;

#define ADDRESSES ((uint64_t)4 << 40)

/* Under the thread sanitizer, mappings fit only into a small part of the address space. */
#define ADDRESSES_TSAN ((uint64_t)64 << 30)
extern void __tsan_init(void) __attribute__((weak));

/* qemu-user keeps a record for each page of a mapping. */
#define ADDRESSES_EMULATED ((uint64_t)4 << 30)

static uint64_t choose_addresses(uint64_t configured)
{
	if (configured)
		return configured;
	return __tsan_init ? ADDRESSES_TSAN : device_maps_again() ? ADDRESSES : ADDRESSES_EMULATED;
}

static void in_child(void)
{
	if (atomic_load(&state) == STARTED)
		atomic_store(&state, FORKED);
}

static enum sim_status start_simulator(void)
{
	const struct sim_config *config = sim_config();
	uint64_t bytes = choose_addresses(config->addresses);

	if (config->devices == 0)
		return SIM_NO_DEVICE;
	pthread_mutex_lock(&sim_memory_lock);
	bool good = device_files_open(config, bytes < ADDRESSES ? 2 * bytes : bytes / 2, bytes < ADDRESSES) &&
	            va_open(config->devices, bytes);
	pthread_mutex_unlock(&sim_memory_lock);
	if (!good || pthread_atfork(NULL, NULL, in_child))
		return SIM_NO_HOST_MEMORY;
	atomic_store(&state, STARTED);
	return SIM_OK;
}

enum sim_status sim_init(void)
{
	enum sim_status status = SIM_OK;

	if (atomic_load(&state) == FORKED)
		return SIM_FORKED;
	pthread_mutex_lock(&start_lock);
	if (atomic_load(&state) == NOT_STARTED)
		status = start_simulator();
	pthread_mutex_unlock(&start_lock);
	return status;
}

enum sim_status sim_ready(void)
{
	int now = atomic_load(&state);

	return now == STARTED ? SIM_OK : now == FORKED ? SIM_FORKED : SIM_INVALID;
}

/* -- contexts ---------------------------------------------------------------------------------- */

enum sim_status sim_context_create(int device, struct sim_context **out)
{
	const uint64_t bytes = round_up(sim_config()->context_bytes, SIM_GRANULE);

	if (device < 0 || device >= sim_config()->devices)
		return SIM_INVALID;
	struct sim_context *context = object_new(OBJECT_CONTEXT, sizeof(*context));
	if (!context)
		return SIM_NO_HOST_MEMORY;
	context->device = device;
	context->id = sim_next_id();
	pthread_mutex_lock(&sim_memory_lock);
	enum sim_status status = device_charge(device, bytes);
	pthread_mutex_unlock(&sim_memory_lock);
	if (!status) {
		status = stream_open(context);
		if (status) {
			pthread_mutex_lock(&sim_memory_lock);
			device_discharge(device, bytes);
			pthread_mutex_unlock(&sim_memory_lock);
		}
	}
	if (status) {
		object_delete(context);
		return status;
	}
	pthread_mutex_lock(&sim_memory_lock);
	context->next = sim_contexts;
	sim_contexts = context;
	pthread_mutex_unlock(&sim_memory_lock);
	*out = context;
	return SIM_OK;
}

/* -- peers: all with the memory lock held ------------------------------------------------------ */

static struct peer **find_peer(struct sim_context *context, const struct sim_context *owner)
{
	struct peer **link = &context->peers;

	while (*link && (*link)->context != owner)
		link = &(*link)->next;
	return link;
}

bool context_reaches(const struct sim_context *context, const struct sim_context *owner)
{
	const struct peer *peer = context->peers;

	while (peer && peer->context != owner)
		peer = peer->next;
	return peer;
}

static void remove_peer(struct peer **link)
{
	struct peer *peer = *link;

	*link = peer->next;
	free(peer);
}

/* Removes a context that ends from all lists of peers. pre: it is not in sim_contexts. */
static void forget_peers(struct sim_context *context)
{
	while (context->peers) {
		const struct sim_context *owner = context->peers->context;

		remove_peer(&context->peers);
		alloc_peers_changed(owner);
	}
	for (struct sim_context *other = sim_contexts; other; other = other->next) {
		struct peer **link = find_peer(other, context);

		if (*link)
			remove_peer(link);
	}
}

/* False: another thread was first. */
static bool take_out(struct sim_context *context)
{
	pthread_mutex_lock(&sim_memory_lock);
	struct sim_context **link = &sim_contexts;
	while (*link && *link != context)
		link = &(*link)->next;
	bool found = *link;
	if (found) {
		*link = context->next;
		forget_peers(context);
	}
	pthread_mutex_unlock(&sim_memory_lock);
	return found;
}

enum sim_status sim_context_destroy(struct sim_context *context)
{
	if (!sim_context_alive(context))
		return SIM_BAD_CONTEXT;
	sim_context_synchronize(context);
	if (!take_out(context))
		return SIM_BAD_CONTEXT;
	stream_context_gone(context);
	event_context_gone(context);
	module_context_gone(context);
	array_context_gone(context);
	alloc_context_gone(context);
	pthread_mutex_lock(&sim_memory_lock);
	device_discharge(context->device, round_up(sim_config()->context_bytes, SIM_GRANULE) + context->room);
	context->room = 0;
	pthread_mutex_unlock(&sim_memory_lock);
	object_delete(context);
	return SIM_OK;
}

bool sim_context_alive(struct sim_context *context)
{
	return object_is(context, OBJECT_CONTEXT);
}

int sim_context_device(struct sim_context *context)
{
	return context->device;
}

uint64_t sim_context_id(struct sim_context *context)
{
	return context->id;
}

void *sim_context_face(struct sim_context *context)
{
	return context->face;
}

enum sim_status sim_context_status(struct sim_context *context)
{
	return sim_context_alive(context) ? (enum sim_status)atomic_load(&context->status) : SIM_BAD_CONTEXT;
}

enum sim_status sim_peer_enable(struct sim_context *context, struct sim_context *owner)
{
	enum sim_status status = SIM_OK;

	if (!sim_context_alive(context) || !sim_context_alive(owner))
		return SIM_BAD_CONTEXT;
	if (context->device == owner->device)
		return SIM_INVALID;
	struct peer *peer = malloc(sizeof(*peer));
	if (!peer)
		return SIM_NO_HOST_MEMORY;
	pthread_mutex_lock(&sim_memory_lock);
	if (context_reaches(context, owner)) {
		status = SIM_ALREADY;
	} else {
		*peer = (struct peer){context->peers, owner};
		context->peers = peer;
		peer = NULL;
		alloc_peers_changed(owner);
	}
	pthread_mutex_unlock(&sim_memory_lock);
	free(peer);
	return status;
}

enum sim_status sim_peer_disable(struct sim_context *context, struct sim_context *owner)
{
	enum sim_status status = SIM_OK;

	if (!sim_context_alive(context) || !sim_context_alive(owner))
		return SIM_BAD_CONTEXT;
	if (context->device == owner->device)
		return SIM_INVALID;
	pthread_mutex_lock(&sim_memory_lock);
	struct peer **link = find_peer(context, owner);
	if (*link) {
		remove_peer(link);
		alloc_peers_changed(owner);
	} else {
		status = SIM_NOT_REGISTERED;
	}
	pthread_mutex_unlock(&sim_memory_lock);
	return status;
}
