#include "vmm_vendor.h"
#include "registry.h"
#include "request.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define GRANULE (2 * MIB)
#define HOST_GRANULE (4 * MIB)
#define COUNT 4096

struct physical {
	uint64_t handle, bytes; /* bytes 0: free */
	unsigned handles, mappings;
	bool host;
	struct properties properties;
};

struct vendor vendor;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct physical memory[COUNT];
static struct {
	uint64_t va, bytes;
	struct physical *physical;
} mappings[COUNT];
static uint64_t serial;

void vendor_reset(uint64_t device_free)
{
	vendor = (struct vendor){.device_free = device_free};
	memset(memory, 0, sizeof(memory));
	memset(mappings, 0, sizeof(mappings));
	spill_registry_use_backend(SPILL_CUDA_DRIVER, &vendor_backend);
}

/* pre: locked */
static bool fails(void)
{
	return ++vendor.calls == vendor.fail_at;
}

/* pre: locked */
static struct physical *of(uint64_t handle)
{
	for (int i = 0; i < COUNT; i++)
		if (memory[i].bytes && memory[i].handles && memory[i].handle == handle)
			return &memory[i];
	return NULL;
}

/* pre: locked */
static void settle(struct physical *one)
{
	if (one->handles || one->mappings)
		return;
	if (!one->host)
		vendor.device_free += one->bytes;
	*(one->host ? &vendor.host : &vendor.device) -= one->bytes;
	one->bytes = 0;
}

static int make(uint64_t *handle, uint64_t bytes, const struct properties *properties)
{
	bool host = properties->where == SPILL_LOCATION_HOST;
	int slot = 0;
	pthread_mutex_lock(&lock);
	bool wrong = bytes % (host ? HOST_GRANULE : GRANULE) != 0;
	if (fails() || wrong || (!host && bytes > vendor.device_free)) {
		pthread_mutex_unlock(&lock);
		return wrong ? FAILED : OUT_OF_MEMORY;
	}
	while (memory[slot].bytes)
		slot++;
	memory[slot] = (struct physical){++serial << 20, bytes, 1, 0, host, *properties};
	if (vendor.next_handle)
		memory[slot].handle = vendor.next_handle;
	vendor.next_handle = 0;
	if (!host)
		vendor.device_free -= bytes;
	*(host ? &vendor.host : &vendor.device) += bytes;
	*handle = memory[slot].handle;
	pthread_mutex_unlock(&lock);
	return 0;
}

static int drop(uint64_t handle)
{
	pthread_mutex_lock(&lock);
	bool failed = fails();
	struct physical *one = failed ? NULL : of(handle);
	vendor.wild += !failed && !one;
	if (one) {
		one->handles--;
		settle(one);
	}
	pthread_mutex_unlock(&lock);
	return one ? 0 : FAILED;
}

static int map(uint64_t va, uint64_t bytes, uint64_t handle)
{
	int slot = 0;
	pthread_mutex_lock(&lock);
	struct physical *one = fails() ? NULL : of(handle);
	while (one && mappings[slot].physical)
		slot++;
	if (one) {
		mappings[slot].va = va;
		mappings[slot].bytes = bytes;
		mappings[slot].physical = one;
		one->mappings++;
	}
	void (*meanwhile)(void) = vendor.meanwhile;
	vendor.meanwhile = NULL;
	pthread_mutex_unlock(&lock);
	if (meanwhile)
		meanwhile();
	return one ? 0 : FAILED;
}

static int unmap(uint64_t va, uint64_t bytes)
{
	pthread_mutex_lock(&lock);
	bool good = !fails();
	for (int i = 0; good && i < COUNT; i++) {
		struct physical *one = mappings[i].physical;
		if (!one || mappings[i].va < va || mappings[i].va >= va + bytes)
			continue;
		mappings[i].physical = NULL;
		one->mappings--;
		settle(one);
	}
	pthread_mutex_unlock(&lock);
	return good ? 0 : FAILED;
}

static int retain(uint64_t *handle, uint64_t va)
{
	struct physical *one = NULL;
	pthread_mutex_lock(&lock);
	bool good = !fails();
	for (int i = 0; good && i < COUNT; i++)
		if (mappings[i].physical && va - mappings[i].va < mappings[i].bytes)
			one = mappings[i].physical;
	if (one) {
		one->handles++;
		*handle = one->handle;
	}
	pthread_mutex_unlock(&lock);
	return one ? 0 : FAILED;
}

static int look(struct properties *properties, uint64_t handle)
{
	pthread_mutex_lock(&lock);
	struct physical *one = of(handle);
	if (one)
		*properties = one->properties;
	pthread_mutex_unlock(&lock);
	return one ? 0 : FAILED;
}

/* -- as the engine sees it ------------------------------------------------------------------------------- */

static const char *error_name(int error)
{
	return error == OUT_OF_MEMORY ? "VENDOR_OUT_OF_MEMORY" : "VENDOR_ERROR";
}

static bool current(int *device, void **context)
{
	*device = 0;
	*context = &vendor;
	return true;
}

static int memory_of(int device, uint64_t *free, uint64_t *total)
{
	pthread_mutex_lock(&lock);
	*free = vendor.device_free;
	pthread_mutex_unlock(&lock);
	*total = 1024 * MIB;
	return 0;
}

static unsigned capabilities(int device)
{
	return SPILL_CAN_SPLIT | SPILL_CAN_MANAGED | SPILL_CAN_HOST;
}

static int granularity(int device, bool on_host, uint64_t *bytes)
{
	*bytes = on_host ? HOST_GRANULE : GRANULE;
	return 0;
}

static void describe(const void *properties, struct spill_physical *physical)
{
	struct properties asked;
	memcpy(&asked, properties, sizeof(asked));
	*physical = (struct spill_physical){
	    .where = asked.where, .device = asked.device, .device_only = asked.device_only};
	memcpy(physical->asked, properties, sizeof(physical->asked));
}

static int create(int device, bool on_host, uint64_t bytes, uint64_t *handle)
{
	struct properties properties = {on_host ? SPILL_LOCATION_HOST : SPILL_LOCATION_DEVICE, device};
	return make(handle, bytes, &properties);
}

static bool started(spill_resolve_fn *resolve)
{
	return true;
}

const struct spill_backend vendor_backend = {
    .start = started,
    .name = "test",
    .out_of_memory = OUT_OF_MEMORY,
    .invalid_value = FAILED,
    .error_name = error_name,
    .devices =
        &(const struct spill_vendor_devices){
            .current = current,
            .memory = memory_of,
            .capabilities = capabilities,
        },
    .physical =
        &(const struct spill_vendor_physical){
            .granularity = granularity,
            .describe = describe,
            .create = create,
            .release = drop,
        },
};

/* -- as the stubs do it ---------------------------------------------------------------------------------- */

#define CALL(request_op, real, ...) \
	struct spill_request request = {.op = SPILL_OP_##request_op, .api = #real, __VA_ARGS__}; \
	while (spill_request_next(&request)) \
		request.result = real; \
	return request.result

int program_create(uint64_t *handle, uint64_t bytes, const struct properties *properties)
{
	CALL(CREATE, make(handle, bytes, properties), .out = handle, .bytes = bytes,
	     .properties = properties);
}

int program_release(uint64_t handle)
{
	CALL(RELEASE, drop(handle), .handle = handle);
}

int program_retain(uint64_t *handle, uint64_t va)
{
	CALL(RETAIN, retain(handle, va), .out = handle, .ptr = va);
}

int program_map(uint64_t va, uint64_t bytes, uint64_t handle)
{
	CALL(MAP, map(va, bytes, handle), .ptr = va, .bytes = bytes, .handle = handle);
}

int program_unmap(uint64_t va, uint64_t bytes)
{
	CALL(UNMAP, unmap(va, bytes), .ptr = va, .bytes = bytes);
}

int program_properties(struct properties *properties, uint64_t handle)
{
	CALL(PROPERTIES, look(properties, handle), .out = properties, .handle = handle);
}
