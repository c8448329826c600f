#include "fake_backend.h"

#include <string.h>

#define OUT_OF_MEMORY 2
#define UNIT (2ull << 20)

struct fake fake;

static uint64_t next_address;
static uint64_t handle_bytes[4096]; /* by handle; device handles only */

void fake_reset(uint64_t device_free)
{
	fake = (struct fake){.device_free = device_free};
	memset(handle_bytes, 0, sizeof(handle_bytes));
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
	uint64_t at = next_address;
	next_address += (bytes + UNIT) / UNIT * UNIT;
	return at;
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

static int create(int device, bool on_host, uint64_t bytes, uint64_t *handle)
{
	static uint64_t last;
	if (fails() || (!on_host && bytes > fake.device_free))
		return OUT_OF_MEMORY;
	last = last % 4095 + 1;
	handle_bytes[last] = on_host ? 0 : bytes;
	if (!on_host)
		fake.device_free -= bytes;
	*handle = last;
	fake.handles++;
	return 0;
}

static int release(uint64_t handle)
{
	fake.device_free += handle_bytes[handle];
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

const struct spill_backend fake_backend = {
    .name = "fake",
    .out_of_memory = OUT_OF_MEMORY,
    .error_name = error_name,
    .capabilities = capabilities,
    .host_alloc = host_alloc,
    .host_free = host_free,
    .managed_alloc = managed_alloc,
    .managed_free = managed_free,
    .advise_preferred = advise,
    .advise_accessed_by = advise,
    .advise_read_mostly = advise_read_mostly,
    .prefetch = prefetch,
    .granularity = granularity,
    .reserve = reserve,
    .unreserve = unreserve,
    .create = create,
    .release = release,
    .map = map,
    .unmap = unmap,
    .allow = allow,
};
