#include "chunked.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "account.h"
#include "capture.h"
#include "clock.h"
#include "ipc.h"
#include "blocks.h"
#include "chunk_map.h"
#include "minmax.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* SPILL_RANK_CHUNKED */
/* Oldest first. An entry is removed only while the mover is held, too: the mover's finds stay. */
static TAILQ_HEAD(chunked_list, spill_chunked) movable = TAILQ_HEAD_INITIALIZER(movable);
static _Atomic unsigned count; /* in the list */
/* of each device; the last: of all other devices */
static _Atomic uint64_t device_bytes[SPILL_DEVICES + 1];
static _Atomic uint64_t host_bytes; /* without pinned ones. Written under the lock */
static uint64_t move_count;         /* number of moves so far. The mover's lock guards it */
static void (*_Atomic observer)(void);
static _Atomic uint64_t held_until_ns;

/* -- making and releasing ---------------------------------------------------------------------- */

uint64_t spill_chunked_granularity(const struct spill_backend *backend, int device)
{
	uint64_t on_device, on_host, of_mappings = 0;
	if (!backend->physical || !(backend->devices->capabilities(device) & SPILL_CAN_SPLIT) ||
	    backend->physical->granularity(device, false, &on_device) ||
	    backend->physical->granularity(device, true, &on_host) ||
	    (backend->vmm->granularity && backend->vmm->granularity(device, &of_mappings)))
		return 0;
	return spill_max(of_mappings, spill_max(on_device, on_host));
}

uint64_t spill_chunked_unit(const struct spill_place_request *want, const char **error)
{
	const struct spill_backend *backend = want->backend;
	uint64_t unit = spill_chunked_granularity(backend, want->device);
	if (!unit || want->bytes > UINT64_MAX - unit) {
		*error = "not supported by the device";
		return 0;
	}
	if (backend->vmm->works && (spill_capture_any() || !backend->vmm->works(want->device, unit))) {
		*error = "a trial of chunks did not work";
		return 0;
	}
	return unit;
}

struct spill_chunked *spill_chunked_new(const struct spill_place_ops *ops,
                                        const struct spill_place_request *want, uint64_t unit,
                                        const char **error)
{
	uint64_t range = spill_round_up(want->bytes, unit);
	uint64_t chunk_bytes = spill_policy_chunk(want->policy, want->bytes, unit);
	if (want->most_chunk && want->most_chunk < chunk_bytes)
		chunk_bytes = spill_round_up(want->most_chunk, unit);
	/* At most two chunks are smaller: the last of the device, and the last of the host. */
	uint64_t room = range / chunk_bytes + 2;
	struct spill_chunked *chunked = NULL;
	if (room < UINT32_MAX)
		chunked = calloc(1, sizeof(*chunked) + room * sizeof(struct spill_chunk));
	if (!chunked) {
		*error = "no memory for bookkeeping";
		return NULL;
	}
	chunked->chunk_bytes = chunk_bytes;
	chunked->base = spill_placement_of(ops, want, 0);
	chunked->range = range;
	chunked->stays_from = UINT64_MAX;
	return chunked;
}

struct spill_chunked *spill_chunked_reserve(const struct spill_place_ops *ops,
                                            const struct spill_place_request *want, uint64_t unit,
                                            const char **error)
{
	struct spill_chunked *chunked = spill_chunked_new(ops, want, unit, error);
	int result = chunked ? want->backend->vmm->reserve(chunked->range, unit, &chunked->base.ptr) : 0;
	if (result) {
		*error = want->backend->error_name(result);
		free(chunked);
		return NULL;
	}
	return chunked;
}

int spill_chunk_create(const struct spill_backend *backend, int device, bool on_host, uint64_t bytes,
                       uint64_t *handle)
{
	const struct spill_vendor_physical *physical = backend->physical;
	if (physical->create_shareable)
		return physical->create_shareable(device, on_host, bytes, handle);
	return physical->create(device, on_host, bytes, handle);
}

/* The program exports a set by its own handle, and only if it asked for such memory. */
static int create_memory(const struct spill_chunked *chunked, struct spill_chunk *chunk)
{
	const struct spill_placement *base = &chunked->base;
	const struct spill_vendor_physical *physical = base->backend->physical;
	if (chunked->properties && !chunk->on_host)
		return physical->create_as(chunked->properties, chunk->bytes, &chunk->handle);
	if (chunked->set)
		return physical->create(base->device, chunk->on_host, chunk->bytes, &chunk->handle);
	return spill_chunk_create(base->backend, base->device, chunk->on_host, chunk->bytes, &chunk->handle);
}

int spill_chunked_allow(const struct spill_chunked *chunked)
{
	const struct spill_placement *base = &chunked->base;
	return chunked->set ? 0 : base->backend->vmm->allow(base->ptr, chunked->range, base->device);
}

int spill_chunked_extend(struct spill_chunked *chunked, bool on_host, uint64_t bytes)
{
	const struct spill_backend *backend = chunked->base.backend;
	while (bytes) {
		struct spill_chunk *chunk = &chunked->chunks[chunked->count];
		*chunk =
		    (struct spill_chunk){.offset = chunked->mapped,
		                         .bytes = bytes < chunked->chunk_bytes ? bytes : chunked->chunk_bytes,
		                         .on_host = on_host};
		int result = create_memory(chunked, chunk);
		if (result)
			return result;
		if (!chunked->set)
			result = backend->vmm->map(chunked->base.ptr + chunked->mapped, chunk->bytes,
			                           chunk->handle);
		if (result) {
			backend->physical->release(chunk->handle);
			return result;
		}
		chunked->count++;
		chunked->mapped += chunk->bytes;
		bytes -= chunk->bytes;
	}
	return 0;
}

static void release_memory(const struct spill_chunked *chunked)
{
	const struct spill_backend *backend = chunked->base.backend;
	for (unsigned i = 0; i < chunked->count; i++) {
		const struct spill_chunk *chunk = &chunked->chunks[i];
		if (!chunked->set && (!chunk->unmapped || chunk->wrong_memory))
			backend->vmm->unmap(spill_chunked_address(chunked, i), chunk->bytes);
		spill_view_end(backend, chunk->view, chunk->bytes);
		backend->physical->release(chunk->handle);
	}
	if (!chunked->set)
		backend->vmm->unreserve(chunked->base.ptr, chunked->range);
}

void spill_chunked_release(struct spill_placement *placement, bool context_ended)
{
	struct spill_chunked *chunked = (struct spill_chunked *)placement;
	const struct spill_backend *backend = placement->backend;
	spill_chunked_delist(chunked);
	spill_blocks_end(chunked);
	spill_ipc_exported_ends(chunked);
	if (!context_ended || backend->vmm->outlive_contexts)
		release_memory(chunked);
	spill_account_device_return(placement->device, placement->held.device);
	spill_account_physical_return(placement->held.host);
	free(chunked->owner);
	free(chunked);
}

void spill_chunked_range(const struct spill_placement *placement, uint64_t *va, uint64_t *bytes)
{
	*va = placement->ptr;
	*bytes = ((const struct spill_chunked *)placement)->range;
}

struct spill_chunked *spill_chunked_of(struct spill_placement *placement)
{
	bool chunked = placement && placement->ops->release == spill_chunked_release;
	return chunked ? (struct spill_chunked *)placement : NULL;
}

uint64_t spill_chunked_address(const struct spill_chunked *chunked, unsigned index)
{
	return chunked->base.ptr + chunked->chunks[index].offset;
}

unsigned spill_chunked_live(const struct spill_chunked *chunked, unsigned index,
                            struct spill_span spans[SPILL_SPANS])
{
	spill_chunked_live_fn *live = atomic_load_explicit(&chunked->live, memory_order_relaxed);
	if (live)
		return live(chunked, index, spans);
	spans[0] = (struct spill_span){0, chunked->chunks[index].bytes};
	return 1;
}

bool spill_chunked_is_dead(const struct spill_chunked *chunked)
{
	struct spill_span spans[SPILL_SPANS];
	for (unsigned i = 0; i < chunked->count; i++)
		if (spill_chunked_live(chunked, i, spans))
			return false;
	return true;
}

/* -- views ------------------------------------------------------------------------------------- */

uint64_t spill_view_make(const struct spill_backend *backend, int device, uint64_t handle, uint64_t bytes)
{
	uint64_t view, unit = spill_chunked_granularity(backend, device);
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

/* -- device memory of a chunk ------------------------------------------------------------------ */

bool spill_device_chunk_get(const struct spill_backend *backend, int device, uint64_t bytes, uint64_t *handle)
{
	uint64_t made;
	if (!spill_device_charge_all(device, spill_device_limit(backend, device), bytes))
		return false;
	if (spill_chunk_create(backend, device, false, bytes, &made)) {
		spill_account_device_return(device, bytes);
		return false;
	}
	*handle = made;
	return true;
}

void spill_device_chunk_put(const struct spill_backend *backend, int device, uint64_t bytes, uint64_t handle,
                            uint64_t view)
{
	spill_view_end(backend, view, bytes);
	backend->physical->release(handle);
	spill_account_device_return(device, bytes);
}

/* -- moving ------------------------------------------------------------------------------------ */

/*
 * If the new placement continues a run, the older ones of the run are dead cache. pre: locked, not
 * in the list yet
 */
static void mark_older_dead(struct spill_chunked *chunked)
{
	struct spill_chunked *older;
	if (!chunked->grows)
		return;
	TAILQ_FOREACH(older, &movable, link)
	if (older->run == chunked->run)
		atomic_store_explicit(&older->dead, true, memory_order_relaxed);
}

/* -- the chunk map and the sums. pre: locked --------------------------------------------------- */

/*
 * A program maps chunk sets side by side, and its buffers reach from one into the next: llama.cpp's
 * scratch pool grows so, and PyTorch's expandable segments. So a set continues if another one follows.
 */
static void enter_in_map(const struct spill_chunked *chunked, unsigned index)
{
	const struct spill_chunk *chunk = &chunked->chunks[index];
	spill_chunk_map_set(spill_chunked_address(chunked, index), chunk->bytes, chunk->on_host,
	                    chunked->set || index + 1 < chunked->count);
}

static _Atomic uint64_t *bytes_of_device(int device)
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

void spill_chunked_tell(void)
{
	pthread_mutex_lock(&lock);
	tell_observer();
	pthread_mutex_unlock(&lock);
}

void spill_chunked_hold(uint64_t until_ns)
{
	atomic_store_explicit(&held_until_ns, until_ns, memory_order_relaxed);
}

bool spill_chunked_is_held(void)
{
	uint64_t until_ns = atomic_load_explicit(&held_until_ns, memory_order_relaxed);
	return until_ns && spill_clock_ns() < until_ns;
}

/* Enters the chunks in the map and the sums, or removes them. */
static void set_followed(struct spill_chunked *chunked, bool followed)
{
	uint64_t on_host = 0, on_device = 0;
	if (chunked->followed == followed)
		return;
	chunked->followed = followed;
	for (unsigned i = 0; i < chunked->count; i++) {
		const struct spill_chunk *chunk = &chunked->chunks[i];
		*(chunk->on_host ? &on_host : &on_device) += chunk->bytes;
		if (followed)
			enter_in_map(chunked, i);
		else
			spill_chunk_map_clear(spill_chunked_address(chunked, i), chunk->bytes);
	}
	atomic_fetch_add(bytes_of_device(chunked->base.device), followed ? on_device : -on_device);
	atomic_fetch_add(&host_bytes, followed ? on_host : -on_host);
	tell_observer();
}

static void note_new_side(const struct spill_chunked *chunked, unsigned index)
{
	const struct spill_chunk *chunk = &chunked->chunks[index];
	if (!chunked->followed)
		return;
	enter_in_map(chunked, index);
	atomic_fetch_add(&host_bytes, chunk->on_host ? chunk->bytes : -chunk->bytes);
	atomic_fetch_add(bytes_of_device(chunked->base.device),
	                 chunk->on_host ? -chunk->bytes : chunk->bytes);
	tell_observer();
}

uint64_t spill_chunked_on_host(void)
{
	return atomic_load_explicit(&host_bytes, memory_order_relaxed);
}

uint64_t spill_chunked_on_device(int device)
{
	return atomic_load_explicit(bytes_of_device(device), memory_order_relaxed);
}

void spill_chunked_enlist(struct spill_chunked *chunked)
{
	pthread_mutex_lock(&lock);
	if (!atomic_load(&chunked->enlisted)) {
		mark_older_dead(chunked);
		set_followed(chunked, !chunked->pinned);
		TAILQ_INSERT_TAIL(&movable, chunked, link);
		atomic_store(&chunked->enlisted, true);
		atomic_fetch_add(&count, 1);
	}
	pthread_mutex_unlock(&lock);
}

/* Threads of the program may do so to one chunk set at the same time. */
void spill_chunked_delist(struct spill_chunked *chunked)
{
	if (!atomic_load(&chunked->enlisted))
		return;
	spill_mover_lock();
	pthread_mutex_lock(&lock);
	if (atomic_load(&chunked->enlisted)) {
		TAILQ_REMOVE(&movable, chunked, link);
		atomic_store(&chunked->enlisted, false);
		set_followed(chunked, false);
		atomic_fetch_sub(&count, 1);
	}
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
	struct spill_chunked *next = after ? TAILQ_NEXT(after, link) : TAILQ_FIRST(&movable);
	pthread_mutex_unlock(&lock);
	return next;
}

struct spill_chunked *spill_chunked_at(uint64_t ptr)
{
	struct spill_chunked *chunked = spill_chunked_next(NULL);
	while (chunked && ptr - chunked->base.ptr >= chunked->range)
		chunked = spill_chunked_next(chunked);
	return chunked;
}

void spill_chunked_pin_held(struct spill_chunked *chunked)
{
	chunked->pinned = true;
	if (chunked->set)
		spill_blocks_reach_over();
	pthread_mutex_lock(&lock);
	set_followed(chunked, false);
	pthread_mutex_unlock(&lock);
}

void spill_chunked_moved(struct spill_chunked *chunked, unsigned index, uint64_t handle)
{
	struct spill_chunk *moved = &chunked->chunks[index];
	struct spill_bytes *held = &chunked->base.held;
	moved->on_host = !moved->on_host;
	moved->handle = handle;
	*(moved->on_host ? &held->host : &held->device) += moved->bytes;
	*(moved->on_host ? &held->device : &held->host) -= moved->bytes;
	chunked->moved_at = ++move_count;
	chunked->owed = chunked->owed && spill_chunked_away(chunked);
	pthread_mutex_lock(&lock);
	note_new_side(chunked, index);
	pthread_mutex_unlock(&lock);
}

/* The child has no GPU. Movable memory stays with the parent. */
static void forget_parent(void)
{
	TAILQ_INIT(&movable);
	atomic_store(&count, 0);
	atomic_store(&host_bytes, 0);
	for (unsigned device = 0; device <= SPILL_DEVICES; device++)
		atomic_store(&device_bytes[device], 0);
}

const struct spill_fork_lock spill_chunked_fork_lock = {&lock, forget_parent};
