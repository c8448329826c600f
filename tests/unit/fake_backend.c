#include "fake_backend.h"

#include <stdatomic.h>

#define OUT_OF_MEMORY 2
#define UNIT (2ull << 20)

struct fake fake;

static _Atomic uint64_t next_address;

/* A handle is the device bytes it stands for, or this. */
#define HOST_HANDLE 1

void fake_reset(uint64_t device_free)
{
	fake = (struct fake){.device_free = device_free};
	next_address = 1ull << 40;
}

unsigned fake_alive(void)
{
	return fake.ranges + fake.handles + fake.mappings + fake.hosts + fake.manageds;
}

static bool fails(void)
{
	return ++fake.calls == fake.fail_at;
}

static const char *error_name(int error)
{
	return error == OUT_OF_MEMORY ? "FAKE_OUT_OF_MEMORY" : "FAKE_ERROR";
}

static unsigned capabilities(int device)
{
	return SPILL_CAN_SPLIT | SPILL_CAN_MANAGED | SPILL_CAN_HOST;
}

static uint64_t address(uint64_t bytes)
{
	return atomic_fetch_add(&next_address, (bytes + UNIT) / UNIT * UNIT);
}

static int host_alloc(uint64_t bytes, uint64_t *ptr, void **host)
{
	if (fails())
		return OUT_OF_MEMORY;
	*ptr = address(bytes);
	*host = (void *)(uintptr_t)*ptr;
	fake.hosts++;
	return 0;
}

static int host_free(void *host)
{
	fake.hosts--;
	return 0;
}

static int managed_alloc(uint64_t bytes, uint64_t *ptr)
{
	if (fails())
		return OUT_OF_MEMORY;
	*ptr = address(bytes);
	fake.manageds++;
	return 0;
}

static int managed_free(uint64_t ptr)
{
	fake.manageds--;
	return 0;
}

static int advise(uint64_t ptr, uint64_t bytes, enum spill_location where, int device)
{
	return 0;
}

static int advise_read_mostly(uint64_t ptr, uint64_t bytes, int device)
{
	return 0;
}

static int prefetch(uint64_t ptr, uint64_t bytes, int device)
{
	if (fails())
		return OUT_OF_MEMORY;
	fake.prefetched += bytes;
	return 0;
}

static int granularity(int device, bool on_host, uint64_t *bytes)
{
	*bytes = UNIT;
	return 0;
}

static int reserve(uint64_t bytes, uint64_t alignment, uint64_t *va)
{
	if (fails())
		return OUT_OF_MEMORY;
	*va = address(bytes);
	fake.ranges++;
	return 0;
}

static int unreserve(uint64_t va, uint64_t bytes)
{
	fake.ranges--;
	return 0;
}

static bool take_device(uint64_t bytes)
{
	uint64_t free = atomic_load(&fake.device_free);
	while (bytes <= free)
		if (atomic_compare_exchange_weak(&fake.device_free, &free, free - bytes))
			return true;
	return false;
}

static int create(int device, bool on_host, uint64_t bytes, uint64_t *handle)
{
	if (fails() || (!on_host && !take_device(bytes)))
		return OUT_OF_MEMORY;
	*handle = on_host ? HOST_HANDLE : bytes;
	fake.handles++;
	return 0;
}

static int release(uint64_t handle)
{
	if (handle != HOST_HANDLE)
		fake.device_free += handle;
	fake.handles--;
	return 0;
}

static int map(uint64_t va, uint64_t bytes, uint64_t handle)
{
	if (fails())
		return OUT_OF_MEMORY;
	fake.mappings++;
	return 0;
}

static int unmap(uint64_t va, uint64_t bytes)
{
	fake.mappings--;
	return 0;
}

static int allow(uint64_t va, uint64_t bytes, int device)
{
	return fails() ? OUT_OF_MEMORY : 0;
}

/* -- pools: a step at a time, nothing goes back but by trimming ------------------------------------------- */

#define POOL_STEP (32ull << 20)

static int pool_create(int device, enum spill_place place, enum spill_location preferred, void **pool)
{
	if (fake.no_pools)
		return 801;
	if (fails())
		return OUT_OF_MEMORY;
	struct fake_pool *made = &fake.pool[fake.pools_made++ % FAKE_POOLS];
	*made = (struct fake_pool){.place = place};
	fake.pools++;
	*pool = made;
	return 0;
}

static int pool_destroy(void *pool)
{
	fake.pools--;
	((struct fake_pool *)pool)->reserved = 0;
	return 0;
}

static int pool_allow(void *pool, int device)
{
	return 0;
}

static int pool_alloc(void *handle, uint64_t bytes, void *stream, bool per_thread, uint64_t *ptr)
{
	struct fake_pool *pool = handle;
	if (fails())
		return OUT_OF_MEMORY;
	pool->used += bytes;
	if (pool->used > pool->reserved)
		pool->reserved = (pool->used + POOL_STEP - 1) / POOL_STEP * POOL_STEP;
	*ptr = address(bytes);
	return 0;
}

static int pool_reserved(void *pool, uint64_t *bytes)
{
	if (fails())
		return OUT_OF_MEMORY;
	*bytes = ((struct fake_pool *)pool)->reserved;
	return 0;
}

static int pool_trim(void *handle)
{
	struct fake_pool *pool = handle;
	pool->reserved = (pool->used + POOL_STEP - 1) / POOL_STEP * POOL_STEP;
	return 0;
}

static int pool_default(int device, void **pool)
{
	return 801;
}

/* -- events: pass when the test says so -------------------------------------------------------------------- */

static bool event_passed(int device, void *context, void *event)
{
	fake.queries++;
	return *(bool *)event;
}

static void event_destroy(int device, void *context, void *event)
{
	fake.events--;
}

static int fake_wait(int device, void *context)
{
	fake.waits++;
	return fake.wait_result;
}

const struct spill_backend fake_backend = {
    .name = "fake",
    .out_of_memory = OUT_OF_MEMORY,
    .error_name = error_name,
    .devices = &(const struct spill_vendor_devices){.capabilities = capabilities, .wait = fake_wait},
    .pools =
        &(const struct spill_vendor_pools){
            .create = pool_create,
            .destroy = pool_destroy,
            .allow = pool_allow,
            .alloc = pool_alloc,
            .reserved = pool_reserved,
            .trim = pool_trim,
            .current = pool_default,
            .device_default = pool_default,
        },
    .events = &(const struct spill_vendor_events){.passed = event_passed, .destroy = event_destroy},
    .memory =
        &(const struct spill_vendor_memory){
            .host_alloc = host_alloc,
            .host_free = host_free,
            .managed_alloc = managed_alloc,
            .managed_free = managed_free,
            .advise_preferred = advise,
            .advise_accessed_by = advise,
            .advise_read_mostly = advise_read_mostly,
            .prefetch = prefetch,
        },
    .physical =
        &(const struct spill_vendor_physical){
            .granularity = granularity,
            .create = create,
            .release = release,
        },
    .vmm =
        &(const struct spill_vendor_vmm){
            .reserve = reserve,
            .unreserve = unreserve,
            .map = map,
            .unmap = unmap,
            .allow = allow,
        },
};
