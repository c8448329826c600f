/*
 * CUDA, by its driver API: functions, contexts, devices. What makes memory is in backend_cuda_memory.c.
 */
#include "backend_cuda.h"

#include <stdatomic.h>
#include <string.h>

#include "context_end.h"
#include "publish_once.h"

struct spill_cuda spill_cuda;

static bool start(spill_resolve_fn *resolve)
{
	static _Atomic int published;
	struct spill_cuda found;
	bool complete = true;
#define FUNCTION(needed, ret, symbol, params) \
	*(void **)&found.symbol = resolve(SPILL_CUDA_DRIVER, #symbol); \
	complete = complete && (SPILL_##needed == SPILL_OPTIONAL || found.symbol);
#include "backend_cuda.def"
	spill_publish(&published, &spill_cuda, &found, sizeof(found));
	return complete;
}

static const char *error_name(int error)
{
	const char *name = NULL;
	return spill_cuda.cuGetErrorName((CUresult)error, &name) == CUDA_SUCCESS && name ? name
	                                                                                 : "unknown error";
}

static bool current(int *device, void **context)
{
	CUcontext now = NULL;
	CUdevice ordinal;
	if (spill_cuda.cuCtxGetCurrent(&now) || !now || spill_cuda.cuCtxGetDevice(&ordinal))
		return false;
	*device = ordinal;
	*context = now;
	return true;
}

/* The driver knows what is free only for the context that is current. */
static int memory(int device, uint64_t *free, uint64_t *total)
{
	size_t free_bytes = 0, total_bytes;
	CUdevice now;
	void *context;
	CUcontext popped;
	int result;
	if (spill_cuda.cuCtxGetDevice(&now) == CUDA_SUCCESS && now == device) {
		result = spill_cuda.cuMemGetInfo_v2(&free_bytes, &total_bytes);
	} else if (spill_cuda_primary(device, &context) && !spill_cuda.cuCtxPushCurrent_v2(context)) {
		result = spill_cuda.cuMemGetInfo_v2(&free_bytes, &total_bytes);
		spill_cuda.cuCtxPopCurrent_v2(&popped);
	} else {
		result = spill_cuda.cuDeviceTotalMem_v2(&total_bytes, device);
	}
	if (result)
		return result;
	*free = free_bytes;
	*total = total_bytes;
	return 0;
}

int spill_cuda_attribute(int device, CUdevice_attribute which)
{
	int value = 0;
	return spill_cuda.cuDeviceGetAttribute(&value, which, device) ? 0 : value;
}

static bool has_vmm(int device)
{
	return spill_cuda.cuMemCreate && spill_cuda.cuMemRelease && spill_cuda.cuMemMap &&
	       spill_cuda.cuMemUnmap && spill_cuda.cuMemSetAccess && spill_cuda.cuMemAddressReserve &&
	       spill_cuda.cuMemAddressFree && spill_cuda.cuMemGetAllocationGranularity &&
	       spill_cuda_attribute(device, CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED) &&
	       spill_cuda_attribute(device,
	                            CU_DEVICE_ATTRIBUTE_HOST_NUMA_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED);
}

/* Up to 1 MiB shares blocks of 2 MiB in pieces of 512 bytes; more takes blocks of its own (measured, H200). */
static uint64_t footprint(uint64_t bytes)
{
	uint64_t unit = bytes <= 1 << 20 ? 512 : 2 << 20;
	return bytes > UINT64_MAX - unit ? bytes : (bytes + unit - 1) / unit * unit;
}

/* Rows start at multiples of 512 bytes (measured, H200). */
static uint64_t pitch(uint64_t width)
{
	return width > UINT64_MAX - 511 ? 0 : (width + 511) / 512 * 512;
}

/*
 * By what cuda.h says of the attributes. Host page tables: the device translates by the processor's (ATS), as over NVLink-C2C; with
 * HMM alone, over a bus, only PAGEABLE_MEMORY_ACCESS is set (CUDA C++ Programming Guide, "Hardware Coherency").
 */
static unsigned memory_kind(int device)
{
	if (spill_cuda_attribute(device, CU_DEVICE_ATTRIBUTE_INTEGRATED))
		return SPILL_IS_INTEGRATED;
	return spill_cuda_attribute(device,
	                            CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS_USES_HOST_PAGE_TABLES) &&
	               spill_cuda_attribute(device, CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS)
	           ? SPILL_IS_COHERENT
	           : 0;
}

/* Managed memory larger than the device works only where the GPU can fault: concurrent managed access. */
static unsigned capabilities(int device)
{
	unsigned can = memory_kind(device);
	if (has_vmm(device))
		can |= spill_cuda_can_move() ? SPILL_CAN_SPLIT | SPILL_CAN_MOVE : SPILL_CAN_SPLIT;
	if (spill_cuda.cuMemAllocManaged &&
	    spill_cuda_attribute(device, CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS))
		can |= SPILL_CAN_MANAGED;
	if (spill_cuda_attribute(device, CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY))
		can |= SPILL_CAN_HOST;
	return can;
}

/* pre: the context to be waited for is current. A device too full for a byte: a pinned page, whose free waits likewise. */
static int free_something(void)
{
	CUdeviceptr small;
	void *page;
	int result = spill_cuda.cuMemAlloc_v2(&small, 1);
	if (result == CUDA_ERROR_OUT_OF_MEMORY) {
		result = spill_cuda.cuMemHostAlloc(&page, 4096, 0);
		if (!result)
			result = spill_cuda.cuMemFreeHost(page);
		return result;
	}
	if (result)
		return result;
	result = spill_cuda.cuMemFree_v2(small);
	if (result) /* an error of work before it: this one gives it back */
		(void)spill_cuda.cuMemFree_v2(small);
	return result;
}

/*
 * By the vendor's own free, of a small allocation: it waits for all work of its context (docs/measurements.md), as the
 * free that this is part of would, and unlike cuCtxSynchronize it leaves a capture alone that another thread begins at
 * this moment. By push and pop: the current context may be another.
 */
static int wait(int device, void *context)
{
	CUcontext popped;
	int result = spill_cuda.cuCtxPushCurrent_v2(context);
	if (result)
		return result;
	result = free_something();
	spill_cuda.cuCtxPopCurrent_v2(&popped);
	return result;
}

/* As nvidia-smi prints it: GPU-xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx. */
static void uuid_text(const CUuuid *uuid, char text[48])
{
	static const char digits[] = "0123456789abcdef";
	char *at = text;
	memcpy(at, "GPU-", 4);
	at += 4;
	for (int i = 0; i < 16; i++) {
		unsigned char byte = (unsigned char)uuid->bytes[i];
		if (i == 4 || i == 6 || i == 8 || i == 10)
			*at++ = '-';
		*at++ = digits[byte >> 4];
		*at++ = digits[byte & 15];
	}
	*at = '\0';
}

static void describe(int ordinal, struct spill_log_device *device)
{
	CUdevice handle;
	CUuuid uuid;
	size_t bytes;
	*device = (struct spill_log_device){0};
	if (spill_cuda.cuDeviceGet(&handle, ordinal))
		return;
	spill_cuda.cuDeviceGetName(device->name, sizeof(device->name), handle);
	/* The v2 form names the MIG instance where there is one; the older form is there before 11.4. */
	if ((spill_cuda.cuDeviceGetUuid_v2 && !spill_cuda.cuDeviceGetUuid_v2(&uuid, handle)) ||
	    (spill_cuda.cuDeviceGetUuid && !spill_cuda.cuDeviceGetUuid(&uuid, handle)))
		uuid_text(&uuid, device->uuid);
	if (spill_cuda.cuDeviceGetPCIBusId)
		spill_cuda.cuDeviceGetPCIBusId(device->pci, sizeof(device->pci), handle);
	if (!spill_cuda.cuDeviceTotalMem_v2(&bytes, handle))
		device->bytes = bytes;
}

static unsigned devices(struct spill_log_device *list, unsigned room)
{
	int count = 0;
	if (spill_cuda.cuDeviceGetCount(&count) || count < 0)
		return 0;
	unsigned shown = (unsigned)count < room ? (unsigned)count : room;
	for (unsigned i = 0; i < shown; i++)
		describe((int)i, &list[i]);
	return shown;
}

static int device_memory_type(void)
{
	return CU_MEMORYTYPE_DEVICE;
}

static int driver_version(void)
{
	int version = 0;
	spill_cuda.cuDriverGetVersion(&version);
	return version;
}

/* The primary context of each device, as it was last retained, and when (context_end.h). */
static struct {
	_Atomic(CUcontext) context;
	_Atomic uint64_t generation;
} primaries[SPILL_DEVICES];

void spill_cuda_primary_retained(int device, void *context)
{
	if (device < 0 || device >= SPILL_DEVICES)
		return;
	atomic_store(&primaries[device].generation, spill_context_generation());
	atomic_store(&primaries[device].context, (CUcontext)context);
}

static void context_ended(const struct spill_context_end *end)
{
	spill_cuda_events_ended(end);
	for (int device = 0; device < SPILL_DEVICES; device++) {
		CUcontext known = atomic_load(&primaries[device].context);
		if (spill_context_end_covers(end, &spill_backend_cuda, device, known,
		                             atomic_load(&primaries[device].generation)))
			atomic_compare_exchange_strong(&primaries[device].context, &known, NULL);
	}
}

/* A reference of ours, for a moment. If it is the last one by then, the context ends unseen. */
static CUcontext retain_and_release(int device)
{
	CUcontext found;
	if (!spill_cuda.cuDevicePrimaryCtxRetain || !spill_cuda.cuDevicePrimaryCtxRelease_v2 ||
	    spill_cuda.cuDevicePrimaryCtxRetain(&found, device))
		return NULL;
	spill_cuda.cuDevicePrimaryCtxRelease_v2(device);
	spill_cuda_primary_retained(device, found);
	return found;
}

/* The driver has no function for the handle. So it is the one that the program got, where its retain was seen. */
bool spill_cuda_primary(int device, void **context)
{
	unsigned int flags;
	int active = 0;
	if (!spill_cuda.cuDevicePrimaryCtxGetState ||
	    spill_cuda.cuDevicePrimaryCtxGetState(device, &flags, &active) || !active)
		return false;
	CUcontext found = device < SPILL_DEVICES ? atomic_load(&primaries[device].context) : NULL;
	if (!found)
		found = retain_and_release(device);
	if (found)
		*context = found;
	return found != NULL;
}

static uint64_t context_id(void *context)
{
	unsigned long long id = 0;
	if (!spill_cuda.cuCtxGetId || spill_cuda.cuCtxGetId(context, &id))
		return 0;
	return id;
}

static bool context_device(void *context, int *device)
{
	CUcontext popped;
	CUdevice ordinal;
	if (spill_cuda.cuCtxPushCurrent_v2(context))
		return false;
	bool found = spill_cuda.cuCtxGetDevice(&ordinal) == CUDA_SUCCESS;
	spill_cuda.cuCtxPopCurrent_v2(&popped);
	if (found)
		*device = ordinal;
	return found;
}

/* The legacy stream captures nothing, but is refused while a stream that synchronises with it captures. */
static bool capturing(void *stream)
{
	CUstreamCaptureStatus status;
	if (!spill_cuda.cuStreamIsCapturing)
		return false;
	CUresult result = spill_cuda.cuStreamIsCapturing(stream, &status);
	return result ? result == CUDA_ERROR_STREAM_CAPTURE_IMPLICIT
	              : status != CU_STREAM_CAPTURE_STATUS_NONE;
}

const struct spill_backend spill_backend_cuda = {
    .name = "cuda",
    .out_of_memory = CUDA_ERROR_OUT_OF_MEMORY,
    .invalid_value = CUDA_ERROR_INVALID_VALUE,
    .clears_pointer = true, /* measured, H200 */
    .range_size_width = 8,
    .device_memory_type = device_memory_type,
    .start = start,
    .error_name = error_name,
    .current = current,
    .memory = memory,
    .footprint = footprint,
    .pitch = pitch,
    .capabilities = capabilities,
    .wait = wait,
    .devices = devices,
    .driver_version = driver_version,
    .host_alloc = spill_cuda_host_alloc,
    .host_free = spill_cuda_host_free,
    .managed_alloc = spill_cuda_managed_alloc,
    .managed_free = spill_cuda_managed_free,
    .advise_preferred = spill_cuda_advise_preferred,
    .advise_accessed_by = spill_cuda_advise_accessed_by,
    .advise_read_mostly = spill_cuda_advise_read_mostly,
    .prefetch = spill_cuda_prefetch,
    .granularity = spill_cuda_granularity,
    .reserve = spill_cuda_reserve,
    .unreserve = spill_cuda_unreserve,
    .physical = spill_cuda_physical,
    .create = spill_cuda_create,
    .release = spill_cuda_release,
    .map = spill_cuda_map,
    .unmap = spill_cuda_unmap,
    .allow = spill_cuda_allow,
    .primary_retained = spill_cuda_primary_retained,
    .context_id = context_id,
    .context_device = context_device,
    .stream_owner = spill_cuda_stream_owner,
    .pools_outlive_contexts = true,
    .loses_code = true,
    .pool_create = spill_cuda_pool_create,
    .pool_destroy = spill_cuda_pool_destroy,
    .pool_allow = spill_cuda_pool_allow,
    .pool_alloc = spill_cuda_pool_alloc,
    .pool_free = spill_cuda_pool_free,
    .pool_reserved = spill_cuda_pool_reserved,
    .pool_unused = spill_cuda_pool_unused,
    .graph_reserved = spill_cuda_graph_reserved,
    .pool_trim = spill_cuda_pool_trim,
    .pool_current = spill_cuda_pool_current,
    .pool_default = spill_cuda_pool_default,
    .pool_place = spill_cuda_pool_place,
    .event_record = spill_cuda_event_record,
    .event_passed = spill_cuda_event_passed,
    .event_destroy = spill_cuda_event_destroy,
    .timer_create = spill_cuda_timer_create,
    .timer_record = spill_cuda_timer_record,
    .timer_passed = spill_cuda_timer_passed,
    .timer_between = spill_cuda_timer_between,
    .timer_destroy = spill_cuda_timer_destroy,
    .mark = spill_cuda_mark,
    .events_ahead = spill_cuda_events_ahead,
    .context_ended = context_ended,
    .copier_create = spill_cuda_copier_create,
    .copier_destroy = spill_cuda_copier_destroy,
    .copy = spill_cuda_copy,
    .device_alloc = spill_cuda_device_alloc,
    .device_free = spill_cuda_device_free,
    .device_enter = spill_cuda_device_enter,
    .device_leave = spill_cuda_device_leave,
    .capturing = capturing,
    .primary = spill_cuda_primary,
};
