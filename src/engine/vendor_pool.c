#include "vendor_pool.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "account.h"
#include "minmax.h"
#include "ordered_pool.h"
#include "peer.h"
#include "place.h"
#include "rules.h"
#include "process.h"

struct spill_vendor_pool {
	const struct spill_backend *backend;
	void *handle; /* NULL: destroyed */
	int device;
	enum spill_place place;
	bool ours;
	enum spill_location preferred; /* only of ours */
	/* no real pool: the bytes that the vendor's graphs hold on the device */
	bool graphs;
	uint64_t live; /* bytes in use, with those that the vendor is being asked for */
	/* To the account of device or host. After the first charge never less than `live`. */
	uint64_t charged;
	unsigned users; /* threads that are asking the vendor about the handle */
	struct spill_vendor_pool *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* SPILL_RANK_VENDOR_POOL */
static struct spill_vendor_pool *pools;                  /* grows at its head only */

static void add_to_account(const struct spill_vendor_pool *pool, uint64_t bytes)
{
	if (pool->place != SPILL_PLACE_DEVICE)
		spill_account_host_add(bytes);
	else
		spill_account_device_add(pool->device, bytes);
}

static void return_to_account(const struct spill_vendor_pool *pool, uint64_t bytes)
{
	if (pool->place != SPILL_PLACE_DEVICE)
		spill_account_host_return(bytes);
	else
		spill_account_device_return(pool->device, bytes);
}

/* pre: locked */
static void set_charge(struct spill_vendor_pool *pool, uint64_t bytes)
{
	if (bytes > pool->charged)
		add_to_account(pool, bytes - pool->charged);
	else
		return_to_account(pool, pool->charged - bytes);
	pool->charged = bytes;
}

/* pre: locked */
static struct spill_vendor_pool *find_pool(const struct spill_backend *backend, const void *handle)
{
	struct spill_vendor_pool *pool = pools;
	while (pool && (pool->backend != backend || pool->handle != handle))
		pool = pool->next;
	return pool;
}

/* Reuses the struct of an ended pool without live memory. pre: locked */
static struct spill_vendor_pool *add_pool(const struct spill_backend *backend, void *handle,
                                          enum spill_place place, int device, bool ours)
{
	struct spill_vendor_pool *pool = pools;
	while (pool && (pool->handle || pool->live || pool->users))
		pool = pool->next;
	if (!pool) {
		pool = calloc(1, sizeof(*pool));
		if (!pool)
			return NULL;
		pool->next = pools;
		pools = pool;
	}
	pool->backend = backend;
	pool->handle = handle;
	pool->place = place;
	pool->device = device;
	pool->ours = ours;
	pool->graphs = false;
	return pool;
}

/* Memory of a destroyed pool returns to the vendor when none of it is in use. pre: locked */
static void end_if_gone(struct spill_vendor_pool *pool)
{
	if (!pool->handle && !pool->live)
		set_charge(pool, 0);
}

/* pre: locked */
static void end_pool(struct spill_vendor_pool *pool)
{
	pool->handle = NULL;
	end_if_gone(pool);
}

void spill_vendor_pool_created(const struct spill_backend *backend, void *handle, enum spill_place place,
                               int device)
{
	pthread_mutex_lock(&lock);
	/* ended without our knowledge */
	struct spill_vendor_pool *left = find_pool(backend, handle);
	if (left)
		end_pool(left);
	add_pool(backend, handle, place, device, false);
	pthread_mutex_unlock(&lock);
}

static struct spill_vendor_pool *find_or_add(const struct spill_backend *backend, void *handle,
                                             enum spill_place place, int device)
{
	pthread_mutex_lock(&lock);
	struct spill_vendor_pool *pool = find_pool(backend, handle);
	if (!pool)
		pool = add_pool(backend, handle, place, device, false);
	pthread_mutex_unlock(&lock);
	return pool;
}

void spill_vendor_pool_found(const struct spill_backend *backend, void *handle, enum spill_place place)
{
	find_or_add(backend, handle, place, 0);
}

struct spill_vendor_pool *spill_vendor_pool_destroyed(const struct spill_backend *backend, const void *handle)
{
	pthread_mutex_lock(&lock);
	struct spill_vendor_pool *pool = handle ? find_pool(backend, handle) : NULL;
	if (pool)
		end_pool(pool);
	while (pool && pool->users) { /* as long as a call to the vendor takes */
		pthread_mutex_unlock(&lock);
		sched_yield();
		pthread_mutex_lock(&lock);
	}
	pthread_mutex_unlock(&lock);
	return pool;
}

void spill_vendor_pool_alive(struct spill_vendor_pool *pool, void *handle)
{
	pthread_mutex_lock(&lock);
	if (pool && !pool->handle)
		pool->handle = handle;
	pthread_mutex_unlock(&lock);
}

void spill_vendor_pool_trimmed(const struct spill_backend *backend, const void *handle)
{
	pthread_mutex_lock(&lock);
	struct spill_vendor_pool *pool = handle ? find_pool(backend, handle) : NULL;
	bool charged = pool && pool->charged;
	pthread_mutex_unlock(&lock);
	if (charged)
		spill_vendor_pool_settle(pool);
}

struct spill_vendor_pool *spill_vendor_pool_of(const struct spill_backend *backend, void *handle, int device)
{
	return find_or_add(backend, handle, SPILL_PLACE_DEVICE, device);
}

static bool is_default(const struct spill_backend *backend, int device, const void *handle)
{
	void *own;
	return !backend->pools->device_default(device, &own) && own == handle;
}

int spill_vendor_pool_default_of(const struct spill_backend *backend, const void *handle)
{
	for (int device = 0; device < SPILL_DEVICES; device++)
		if (is_default(backend, device, handle))
			return device;
	return -1;
}

enum spill_place spill_vendor_pool_place(const struct spill_backend *backend, void *handle)
{
	pthread_mutex_lock(&lock);
	const struct spill_vendor_pool *pool = handle ? find_pool(backend, handle) : NULL;
	enum spill_place place = pool ? pool->place : SPILL_PLACE_DEVICE;
	pthread_mutex_unlock(&lock);
	if (!handle || pool)
		return place;
	int device = spill_vendor_pool_default_of(backend, handle);
	if (device < 0)
		return SPILL_PLACES;
	spill_vendor_pool_of(backend, handle, device); /* the vendor is asked once */
	return SPILL_PLACE_DEVICE;
}

int spill_vendor_pool_device(const struct spill_backend *backend, const void *handle, int device)
{
	pthread_mutex_lock(&lock);
	const struct spill_vendor_pool *pool = find_pool(backend, handle);
	int recorded = pool ? pool->device : -1;
	pthread_mutex_unlock(&lock);
	if (recorded < 0 && !is_default(backend, device, handle))
		recorded = spill_vendor_pool_default_of(backend, handle);
	return recorded < 0 ? device : recorded;
}

/* Addresses of these serve as handles: the vendor uses none of them. */
static char graph_handles[SPILL_DEVICES];
static _Atomic bool graphs_seen;

void spill_vendor_pool_graphs(const struct spill_backend *backend, int device)
{
	if (!backend->graph_reserved || device < 0 || device >= SPILL_DEVICES)
		return;
	pthread_mutex_lock(&lock);
	struct spill_vendor_pool *pool = find_pool(backend, &graph_handles[device]);
	if (!pool)
		pool = add_pool(backend, &graph_handles[device], SPILL_PLACE_DEVICE, device, false);
	if (pool) {
		pool->graphs = true;
		atomic_store(&graphs_seen, true);
	}
	pthread_mutex_unlock(&lock);
}

bool spill_vendor_pool_has_graphs(void)
{
	return atomic_load_explicit(&graphs_seen, memory_order_relaxed);
}

void spill_vendor_pool_settle_graphs(const struct spill_backend *backend, int device)
{
	if (!spill_vendor_pool_has_graphs() || device < 0 || device >= SPILL_DEVICES)
		return;
	pthread_mutex_lock(&lock);
	struct spill_vendor_pool *pool = find_pool(backend, &graph_handles[device]);
	pthread_mutex_unlock(&lock);
	if (pool)
		spill_vendor_pool_settle(pool);
}

static int reserved_by(const struct spill_vendor_pool *pool, void *handle, uint64_t *bytes)
{
	return pool->graphs ? pool->backend->graph_reserved(pool->device, bytes)
	                    : pool->backend->pools->reserved(handle, bytes);
}

void *spill_vendor_pool_handle(const struct spill_vendor_pool *pool)
{
	pthread_mutex_lock(&lock);
	void *handle = pool->handle;
	pthread_mutex_unlock(&lock);
	return handle;
}

enum kind { ON_DEVICE, OURS_ON_HOST, OURS };

static bool has_kind(const struct spill_vendor_pool *pool, enum kind kind)
{
	bool on_device = pool->place == SPILL_PLACE_DEVICE;
	return kind == ON_DEVICE ? on_device : pool->ours && (kind == OURS || !on_device);
}

/* pre: locked */
static struct spill_vendor_pool *find_ours(const struct spill_backend *backend, int device,
                                           enum spill_place place, enum spill_location preferred)
{
	struct spill_vendor_pool *pool = pools;
	while (pool && !(pool->ours && pool->handle && pool->backend == backend && pool->device == device &&
	                 pool->place == place && pool->preferred == preferred))
		pool = pool->next;
	return pool;
}

/*
 * Called after the pool is in the list. So a peer that gains access meanwhile finds the pool, or is
 * found here.
 */
static void allow_peers(const struct spill_backend *backend, int device, void *handle)
{
	int peers[SPILL_DEVICES];
	unsigned count = spill_peer_devices(backend, device, peers);
	for (unsigned i = 0; i < count; i++)
		backend->pools->allow(handle, peers[i]);
}

/* A pool of ours on the device keeps its memory until it is trimmed (backend.h). */
static void keep_all(const struct spill_backend *backend, int device, const void *handle)
{
	struct spill_ordered_pool *pool = spill_ordered_pool_made(backend, device, handle);
	if (pool)
		spill_ordered_keep(pool, UINT64_MAX);
}

/* Made without the lock. The thread that comes second destroys its own pool. */
static struct spill_vendor_pool *make_ours(const struct spill_backend *backend, int device,
                                           enum spill_place place, enum spill_location preferred,
                                           const char **error)
{
	void *handle;
	int result = backend->pools->create(device, place, preferred, &handle);
	if (result) {
		*error = result == backend->out_of_memory ? backend->error_name(result) : NULL;
		return NULL;
	}
	pthread_mutex_lock(&lock);
	struct spill_vendor_pool *pool = find_ours(backend, device, place, preferred);
	bool is_first = !pool;
	if (is_first)
		pool = add_pool(backend, handle, place, device, true);
	if (is_first && pool)
		pool->preferred = preferred;
	pthread_mutex_unlock(&lock);
	if (!is_first || !pool)
		backend->pools->destroy(handle);
	else
		allow_peers(backend, device, handle);
	if (is_first && pool && place == SPILL_PLACE_DEVICE)
		keep_all(backend, device, handle);
	if (!pool)
		*error = "no memory for bookkeeping";
	return pool;
}

struct spill_vendor_pool *spill_vendor_pool_ours(const struct spill_backend *backend, int device,
                                                 enum spill_place place, enum spill_location preferred,
                                                 const char **error)
{
	*error = NULL;
	if (!backend->pools)
		return NULL;
	pthread_mutex_lock(&lock);
	struct spill_vendor_pool *pool = find_ours(backend, device, place, preferred);
	pthread_mutex_unlock(&lock);
	return pool ? pool : make_ours(backend, device, place, preferred, error);
}

uint64_t spill_vendor_pool_growth(uint64_t bytes, uint64_t spare, uint64_t room)
{
	if (bytes <= spare)
		return 0;
	uint64_t needed = bytes - spare;
	return needed > room ? needed : spill_min(spill_round_up(needed, SPILL_MEMPOOL_STEP), room);
}

/* pre: locked */
static uint64_t growth_of_pool(const struct spill_vendor_pool *pool, uint64_t bytes, uint64_t room)
{
	return spill_vendor_pool_growth(bytes, pool->charged - pool->live, room);
}

bool spill_vendor_pool_admit(struct spill_vendor_pool *pool, struct spill_request *request,
                             struct spill_ask *ask, uint64_t limit)
{
	struct spill_view view = {.device_limit = limit};
	bool fits;
	spill_rules_view(request, &view);
	pthread_mutex_lock(&lock);
	do {
		uint64_t room = limit > view.device_used ? limit - view.device_used : 0;
		ask->weight = growth_of_pool(pool, request->bytes, room);
		request->admission.decision =
		    spill_decide(spill_process_policy(), request->admission.applied, ask, &view);
		fits = request->admission.decision.would == SPILL_VERDICT_DRIVER;
	} while (fits && !spill_rules_charge(request, ask, &view));
	request->admission.charged = 0;
	if (fits) {
		request->admission.charged = ask->weight;
		pool->live += request->bytes;
		pool->charged += ask->weight;
	}
	pthread_mutex_unlock(&lock);
	return fits;
}

const char *spill_vendor_pool_charge(struct spill_vendor_pool *pool, uint64_t bytes,
                                     const struct spill_policy *policy, uint64_t *charged)
{
	pthread_mutex_lock(&lock);
	*charged = growth_of_pool(pool, bytes, 0);
	const char *refused = *charged ? spill_host_charge(policy, *charged) : NULL;
	if (!refused) {
		pool->live += bytes;
		pool->charged += *charged;
	}
	pthread_mutex_unlock(&lock);
	return refused;
}

/* Another thread may have used this charge meanwhile. */
void spill_vendor_pool_retract(struct spill_vendor_pool *pool, uint64_t bytes, uint64_t charged)
{
	pthread_mutex_lock(&lock);
	pool->live -= bytes;
	set_charge(pool, pool->charged - spill_min(charged, pool->charged - pool->live));
	end_if_gone(pool);
	pthread_mutex_unlock(&lock);
}

void spill_vendor_pool_freed(struct spill_vendor_pool *pool, uint64_t bytes)
{
	pthread_mutex_lock(&lock);
	pool->live -= bytes;
	end_if_gone(pool);
	pthread_mutex_unlock(&lock);
}

/*
 * The bytes to charge if the vendor says `reserved`. A host pool keeps the largest charge: the
 * vendor gives managed memory of a pool back only with the pool (measured, H200). pre: locked
 */
static uint64_t held_now(const struct spill_vendor_pool *pool, uint64_t reserved)
{
	uint64_t least = pool->place == SPILL_PLACE_DEVICE ? pool->live : pool->charged;
	return reserved > least ? reserved : least;
}

/*
 * Begins a call to the vendor about the pool. spill_vendor_pool_destroyed waits until the call ends
 * with pool->users-- under the lock. NULL if the pool is destroyed already.
 */
static void *begin_use(struct spill_vendor_pool *pool)
{
	pthread_mutex_lock(&lock);
	void *handle = pool->handle;
	pool->users += handle != NULL;
	pthread_mutex_unlock(&lock);
	return handle;
}

bool spill_vendor_pool_settle(struct spill_vendor_pool *pool)
{
	uint64_t reserved;
	bool more = false;
	void *handle = begin_use(pool);
	if (!handle)
		return false;
	int result = reserved_by(pool, handle, &reserved);
	pthread_mutex_lock(&lock);
	if (!result && pool->handle == handle) {
		uint64_t before = pool->charged;
		set_charge(pool, held_now(pool, reserved));
		more = pool->charged > before;
	}
	pool->users--;
	pthread_mutex_unlock(&lock);
	return more;
}

/* The next pool of a kind. The list only grows, so no lock is kept between two calls. */
static struct spill_vendor_pool *next_pool(const struct spill_backend *backend, int device, enum kind kind,
                                           struct spill_vendor_pool *after)
{
	pthread_mutex_lock(&lock);
	struct spill_vendor_pool *pool = after ? after->next : pools;
	while (pool &&
	       !(pool->handle && pool->backend == backend && pool->device == device && has_kind(pool, kind)))
		pool = pool->next;
	pthread_mutex_unlock(&lock);
	return pool;
}

#define FOR_EACH(pool, backend, device, kind) \
	for (struct spill_vendor_pool *pool = next_pool(backend, device, kind, NULL); pool; \
	     pool = next_pool(backend, device, kind, pool))

bool spill_vendor_pool_settle_device(const struct spill_backend *backend, int device)
{
	uint64_t before = spill_account_device_held(device);
	FOR_EACH(pool, backend, device, ON_DEVICE)
	spill_vendor_pool_settle(pool);
	return spill_account_device_held(device) < before;
}

/*
 * Graphs are left alone: they take their memory again at the next launch, and no limit can refuse
 * that.
 */
static uint64_t trim_pool(struct spill_vendor_pool *pool)
{
	const struct spill_backend *backend = pool->backend;
	uint64_t before = 0, after = 0;
	void *handle = pool->graphs ? NULL : begin_use(pool);
	if (!handle)
		return 0;
	bool trimmed = !backend->pools->reserved(handle, &before) && !backend->pools->trim(handle) &&
	               !backend->pools->reserved(handle, &after);
	pthread_mutex_lock(&lock);
	/* A program's pool is not charged if no limit was checked for it. */
	if (trimmed && pool->charged && pool->handle == handle)
		set_charge(pool, held_now(pool, after));
	pool->users--;
	pthread_mutex_unlock(&lock);
	return trimmed && before > after ? before - after : 0;
}

/* Destroys a host pool of ours that is unused. The next request makes another. */
static uint64_t destroy_unused(struct spill_vendor_pool *pool)
{
	void *handle = NULL;
	uint64_t given = 0;
	pthread_mutex_lock(&lock);
	if (!pool->live) {
		handle = pool->handle;
		given = pool->charged;
		end_pool(pool);
	}
	pthread_mutex_unlock(&lock);
	if (handle)
		pool->backend->pools->destroy(handle);
	return handle ? given : 0;
}

/* Adds the pools that the program did not make. */
static void add_default_pools(const struct spill_backend *backend, int device)
{
	void *handle;
	if (!backend->pools->device_default(device, &handle))
		spill_vendor_pool_of(backend, handle, device);
	if (!backend->pools->current(device, &handle))
		spill_vendor_pool_of(backend, handle, device);
}

uint64_t spill_vendor_pool_trim(const struct spill_backend *backend, int device, bool on_host)
{
	uint64_t given = 0;
	if (!backend->pools)
		return 0;
	if (!on_host)
		add_default_pools(backend, device);
	FOR_EACH(pool, backend, device, on_host ? OURS_ON_HOST : ON_DEVICE)
	given += on_host ? destroy_unused(pool) : trim_pool(pool);
	return given;
}

static uint64_t unused_in_pool(struct spill_vendor_pool *pool)
{
	uint64_t unused = 0;
	void *handle = pool->graphs ? NULL : begin_use(pool);
	if (!handle)
		return 0;
	if (pool->backend->pools->unused(handle, &unused))
		unused = 0;
	pthread_mutex_lock(&lock);
	pool->users--;
	pthread_mutex_unlock(&lock);
	return unused;
}

uint64_t spill_vendor_pool_unused(const struct spill_backend *backend, int device)
{
	uint64_t unused = 0;
	if (!backend->pools)
		return 0;
	add_default_pools(backend, device);
	FOR_EACH(pool, backend, device, ON_DEVICE)
	unused += unused_in_pool(pool);
	return unused;
}

void spill_vendor_pool_allow(const struct spill_backend *backend, int device, int peer)
{
	FOR_EACH(pool, backend, device, OURS)
	backend->pools->allow(spill_vendor_pool_handle(pool), peer);
}

void spill_vendor_pool_device_ended(const struct spill_backend *backend, int device)
{
	pthread_mutex_lock(&lock);
	for (struct spill_vendor_pool *pool = pools; pool; pool = pool->next)
		if (pool->ours && pool->handle && pool->backend == backend && pool->device == device)
			end_pool(pool);
	pthread_mutex_unlock(&lock);
}

/* The child has none of its parent's pools. */
static void forget_parent(void)
{
	for (struct spill_vendor_pool *pool = pools; pool; pool = pool->next) {
		pool->handle = NULL;
		pool->live = pool->charged = 0;
	}
}

const struct spill_fork_lock spill_vendor_pool_fork_lock = {&lock, forget_parent};
