#include "chunked.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "account.h"
#include "clock.h"
#include "chunk_map.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* SPILL_RANK_CHUNKED */
/* Oldest first. Grows under the lock, shrinks only while the mover is held, too: what the mover has found stays. */
static TAILQ_HEAD(list, spill_chunked) movable = TAILQ_HEAD_INITIALIZER(movable);
static _Atomic unsigned count;                           /* in it */
static _Atomic uint64_t device_bytes[SPILL_DEVICES + 1]; /* on each device; the last: on those beyond */
static _Atomic uint64_t host_bytes; /* bytes of theirs; of what is pinned none. Written under the lock */
static uint64_t moves;              /* the mover's: how many there have been */
static void (*_Atomic observer)(void);
static _Atomic uint64_t held_until_ns;

/* -- making and releasing ---------------------------------------------------------------------------------- */

static uint64_t round_up(uint64_t bytes, uint64_t unit)
{
	return (bytes + unit - 1) / unit * unit;
}

uint64_t spill_chunked_granule(const struct spill_backend *backend, int device)
{
	uint64_t on_device, on_host;
	if (!backend->physical || !(backend->devices->capabilities(device) & SPILL_CAN_SPLIT) ||
	    backend->physical->granularity(device, false, &on_device) ||
	    backend->physical->granularity(device, true, &on_host))
		return 0;
	return on_device > on_host ? on_device : on_host;
}

struct spill_chunked *spill_chunked_reserve(const struct spill_place_ops *ops,
                                            const struct spill_place_request *want, uint64_t unit,
                                            const char **error)
{
	uint64_t range = round_up(want->bytes, unit);
	uint64_t chunk = spill_policy_chunk(want->policy, want->bytes, unit);
	/* Two that are not whole at most: the last of the device and the last of the host. */
	uint64_t room = range / chunk + 2;
	struct spill_chunked *mine = NULL;
	if (room < UINT32_MAX)
		mine = calloc(1, sizeof(*mine) + room * sizeof(struct spill_chunk));
	if (!mine) {
		*error = "no memory for bookkeeping";
		return NULL;
	}
	mine->chunk = chunk;
	mine->base = (struct spill_placement){
	    .ops = ops,
	    .backend = want->backend,
	    .device = want->device,
	    .context = want->context,
	    .bytes = want->bytes,
	};
	int result = want->backend->vmm->reserve(range, unit, &mine->base.ptr);
	if (result) {
		*error = want->backend->error_name(result);
		free(mine);
		return NULL;
	}
	mine->range = range;
	mine->stays_from = UINT64_MAX;
	return mine;
}

int spill_chunked_extend(struct spill_chunked *mine, bool on_host, uint64_t bytes)
{
	const struct spill_backend *backend = mine->base.backend;
	while (bytes) {
		struct spill_chunk *chunk = &mine->chunks[mine->count];
		*chunk = (struct spill_chunk){.offset = mine->mapped,
		                              .bytes = bytes < mine->chunk ? bytes : mine->chunk,
		                              .on_host = on_host};
		int result =
		    backend->physical->create(mine->base.device, on_host, chunk->bytes, &chunk->handle);
		if (result)
			return result;
		result = backend->vmm->map(mine->base.ptr + mine->mapped, chunk->bytes, chunk->handle);
		if (result) {
			backend->physical->release(chunk->handle);
			return result;
		}
		mine->count++;
		mine->mapped += chunk->bytes;
		bytes -= chunk->bytes;
	}
	return 0;
}

void spill_chunked_release(struct spill_placement *placement, bool context_ended)
{
	struct spill_chunked *mine = (struct spill_chunked *)placement;
	const struct spill_backend *backend = placement->backend;
	spill_chunked_delist(mine);
	uint64_t va = placement->ptr;
	for (unsigned i = 0; i < mine->count; i++) {
		if (!mine->chunks[i].unmapped || mine->chunks[i].wrong)
			backend->vmm->unmap(va, mine->chunks[i].bytes);
		spill_view_end(backend, mine->chunks[i].view, mine->chunks[i].bytes);
		backend->physical->release(mine->chunks[i].handle);
		va += mine->chunks[i].bytes;
	}
	backend->vmm->unreserve(placement->ptr, mine->range);
	spill_account_device_return(placement->device, placement->held.device);
	spill_account_physical_return(placement->held.host);
	free(mine);
}

void spill_chunked_range(const struct spill_placement *placement, uint64_t *va, uint64_t *bytes)
{
	*va = placement->ptr;
	*bytes = ((const struct spill_chunked *)placement)->range;
}

struct spill_chunked *spill_chunked_of(struct spill_placement *placement)
{
	bool chunked =
	    placement && (placement->ops == &spill_place_movable || placement->ops == &spill_place_split);
	return chunked ? (struct spill_chunked *)placement : NULL;
}

uint64_t spill_chunked_address(const struct spill_chunked *chunked, unsigned chunk)
{
	return chunked->base.ptr + chunked->chunks[chunk].offset;
}

/* -- views ------------------------------------------------------------------------------------------------- */

uint64_t spill_view_make(const struct spill_backend *backend, int device, uint64_t handle, uint64_t bytes)
{
	uint64_t view, unit = spill_chunked_granule(backend, device);
	if (!unit || backend->vmm->reserve(bytes, unit, &view))
		return 0;
	if (!backend->vmm->map(view, bytes, handle) &&
	    (!backend->vmm->allow(view, bytes, device) || backend->vmm->unmap(view, bytes)))
		return view;
	backend->vmm->unreserve(view, bytes);
	return 0;
}

void spill_view_end(const struct spill_backend *backend, uint64_t view, uint64_t bytes)
{
	if (view && !backend->vmm->unmap(view, bytes))
		backend->vmm->unreserve(view, bytes);
}

/* -- moving ------------------------------------------------------------------------------------------------- */

/* The newest of a growing pool's blocks makes the older ones dead cache. pre: locked, not in the list yet */
static void grow(struct spill_chunked *chunked)
{
	struct spill_chunked *older;
	if (!chunked->grows)
		return;
	TAILQ_FOREACH(older, &movable, all)
	if (older->run == chunked->run)
		atomic_store_explicit(&older->dead, true, memory_order_relaxed);
}

/* -- who follows its use (follow.h, chunk_map.h). pre: locked ------------------------------------------------- */

static void tell(const struct spill_chunked *chunked, unsigned chunk)
{
	const struct spill_chunk *at = &chunked->chunks[chunk];
	spill_chunk_map_set(spill_chunked_address(chunked, chunk), at->bytes, at->on_host,
	                    chunk + 1 < chunked->count);
}

static _Atomic uint64_t *bytes_on(int device)
{
	return &device_bytes[device >= 0 && device < SPILL_DEVICES ? device : SPILL_DEVICES];
}

static void tell_observer(void)
{
	void (*changed)(void) = atomic_load(&observer);
	if (changed)
		changed();
}

void spill_chunked_observe(void (*changed)(void))
{
	atomic_store(&observer, changed);
}

void spill_chunked_hold(uint64_t until_ns)
{
	atomic_store_explicit(&held_until_ns, until_ns, memory_order_relaxed);
}

bool spill_chunked_is_held(void)
{
	return spill_clock_ns() < atomic_load_explicit(&held_until_ns, memory_order_relaxed);
}

/* Told and counted, and the opposite. */
static void follow(struct spill_chunked *chunked, bool followed)
{
	uint64_t bytes = 0, here = 0;
	if (chunked->followed == followed)
		return;
	chunked->followed = followed;
	for (unsigned i = 0; i < chunked->count; i++) {
		const struct spill_chunk *chunk = &chunked->chunks[i];
		*(chunk->on_host ? &bytes : &here) += chunk->bytes;
		if (followed)
			tell(chunked, i);
		else
			spill_chunk_map_clear(spill_chunked_address(chunked, i), chunk->bytes);
	}
	atomic_fetch_add(bytes_on(chunked->base.device), followed ? here : -here);
	if (!bytes)
		return;
	atomic_fetch_add(&host_bytes, followed ? bytes : -bytes);
	tell_observer();
}

static void followed_moves(const struct spill_chunked *chunked, unsigned chunk)
{
	const struct spill_chunk *at = &chunked->chunks[chunk];
	if (!chunked->followed)
		return;
	tell(chunked, chunk);
	atomic_fetch_add(&host_bytes, at->on_host ? at->bytes : -at->bytes);
	atomic_fetch_add(bytes_on(chunked->base.device), at->on_host ? -at->bytes : at->bytes);
	tell_observer();
}

uint64_t spill_chunked_on_host(void)
{
	return atomic_load_explicit(&host_bytes, memory_order_relaxed);
}

uint64_t spill_chunked_on_device(int device)
{
	return atomic_load_explicit(bytes_on(device), memory_order_relaxed);
}

void spill_chunked_enlist(struct spill_chunked *chunked)
{
	pthread_mutex_lock(&lock);
	grow(chunked);
	follow(chunked, !chunked->pinned);
	TAILQ_INSERT_TAIL(&movable, chunked, all);
	chunked->enlisted = true;
	atomic_fetch_add(&count, 1);
	pthread_mutex_unlock(&lock);
}

/* Whoever frees it is the only one to come here, and the mover does not write `enlisted`: it is read without a lock. */
void spill_chunked_delist(struct spill_chunked *chunked)
{
	if (!chunked->enlisted)
		return;
	spill_mover_lock();
	pthread_mutex_lock(&lock);
	TAILQ_REMOVE(&movable, chunked, all);
	chunked->enlisted = false;
	follow(chunked, false);
	atomic_fetch_sub(&count, 1);
	pthread_mutex_unlock(&lock);
	spill_mover_unlock();
}

bool spill_chunked_any(void)
{
	return atomic_load_explicit(&count, memory_order_relaxed) != 0;
}

struct spill_chunked *spill_chunked_next(struct spill_chunked *after)
{
	pthread_mutex_lock(&lock);
	struct spill_chunked *next = after ? TAILQ_NEXT(after, all) : TAILQ_FIRST(&movable);
	pthread_mutex_unlock(&lock);
	return next;
}

void spill_chunked_pin(uint64_t ptr)
{
	spill_mover_lock();
	struct spill_chunked *one = spill_chunked_next(NULL);
	while (one && ptr - one->base.ptr >= one->range)
		one = spill_chunked_next(one);
	if (one) {
		one->pinned = true;
		pthread_mutex_lock(&lock);
		follow(one, false);
		pthread_mutex_unlock(&lock);
	}
	spill_mover_unlock();
}

void spill_chunked_moved(struct spill_chunked *chunked, unsigned chunk, uint64_t handle)
{
	struct spill_chunk *moved = &chunked->chunks[chunk];
	struct spill_bytes *held = &chunked->base.held;
	moved->on_host = !moved->on_host;
	moved->handle = handle;
	*(moved->on_host ? &held->host : &held->device) += moved->bytes;
	*(moved->on_host ? &held->device : &held->host) -= moved->bytes;
	chunked->moved_at = ++moves;
	chunked->owed = chunked->owed && spill_chunked_away(chunked);
	pthread_mutex_lock(&lock);
	followed_moves(chunked, chunk);
	pthread_mutex_unlock(&lock);
}

void spill_chunked_fork_prepare(void)
{
	pthread_mutex_lock(&lock);
}

/* The child has no GPU: what was movable is the parent's alone. */
void spill_chunked_fork_done(bool child)
{
	if (child) {
		TAILQ_INIT(&movable);
		atomic_store(&count, 0);
		atomic_store(&host_bytes, 0);
	}
	pthread_mutex_unlock(&lock);
}
