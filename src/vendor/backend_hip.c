/*
 * HIP (AMD ROCm documentation, "HIP runtime API reference"). An allocation belongs to a device, not
 * to a context. Nothing moves, because no call marks all work of a device without waiting for it
 * (docs/adr/0036).
 */
#include "backend_hip.h"
#include "numa.h"
#include "publish_once.h"

#include <string.h>

struct spill_hip spill_hip;

static bool start(spill_resolve_fn *resolve)
{
	static _Atomic int published;
	struct spill_hip found;
	bool complete = true;
#define FUNCTION(needed, ret, symbol, params) \
	*(void **)&found.symbol = resolve(SPILL_HIP, #symbol); \
	complete = complete && (SPILL_##needed == SPILL_OPTIONAL || found.symbol);
#include "backend_hip.def"
	spill_publish(&published, &spill_hip, &found, sizeof(found));
	return complete;
}

static const char *error_name(int error)
{
	const char *name = spill_hip.hipGetErrorName((hipError_t)error);
	return name ? name : "unknown error";
}

static int driver_version(void)
{
	int version = 0;
	spill_hip.hipDriverGetVersion(&version);
	return version;
}

int spill_hip_version(void)
{
	int version = 0;
	spill_hip.hipRuntimeGetVersion(&version);
	return version;
}

/* ROCm 6.0 took CUDA's values (its release notes, "Changes to hipMemoryType"). */
static int device_memory_type(void)
{
	return spill_hip_version() >= 60000000 ? 2 : hipMemoryTypeDevice;
}

/* The same layout in all versions. ROCm 6 renamed the first member to `type`. */
static void describe_plain(void *structure, uint64_t ptr, int device)
{
	*(hipPointerAttribute_t *)structure = (hipPointerAttribute_t){
	    .memoryType = (hipMemoryType)device_memory_type(),
	    .device = device,
	    .devicePointer = (void *)(uintptr_t)ptr,
	};
}

/* *before: the device that was current, plus one. NULL: nothing to undo. */
int spill_hip_enter(int device, void **before)
{
	int now;
	int result = spill_hip.hipGetDevice(&now);
	*before = NULL;
	if (result || now == device)
		return result;
	result = spill_hip.hipSetDevice(device);
	if (!result)
		*before = (void *)(uintptr_t)(now + 1);
	return result;
}

void spill_hip_leave(void *before)
{
	/* The device is the program's. So an error, which may be that of earlier work, is no reason to leave it. */
	if (before && spill_hip.hipSetDevice((int)(uintptr_t)before - 1))
		spill_hip.hipSetDevice((int)(uintptr_t)before - 1);
}

static bool current(int *device, void **context)
{
	int now;
	if (spill_hip.hipGetDevice(&now))
		return false;
	*device = now;
	*context = NULL;
	return true;
}

static int device_memory(int device, uint64_t *free, uint64_t *total)
{
	size_t free_bytes, total_bytes;
	void *before;
	int result = spill_hip_enter(device, &before);
	if (result)
		return result;
	result = spill_hip.hipMemGetInfo(&free_bytes, &total_bytes);
	spill_hip_leave(before);
	if (result)
		return result;
	*free = free_bytes;
	*total = total_bytes;
	return 0;
}

static int wait_for_device(int device, void *context)
{
	void *before;
	int result = spill_hip_enter(device, &before);
	if (result)
		return result;
	result = spill_hip.hipDeviceSynchronize();
	spill_hip_leave(before);
	return result;
}

static unsigned count_devices(void)
{
	int count = 0;
	return spill_hip.hipGetDeviceCount(&count) || count < 0 ? 0 : (unsigned)count;
}

static unsigned list_devices(struct spill_log_device *list, unsigned room)
{
	unsigned count = count_devices(), shown = count < room ? count : room;
	for (unsigned i = 0; i < shown; i++) {
		size_t bytes;
		list[i] = (struct spill_log_device){0};
		if (spill_hip.hipDeviceGetName)
			spill_hip.hipDeviceGetName(list[i].name, sizeof(list[i].name), (int)i);
		if (spill_hip.hipDeviceGetPCIBusId)
			spill_hip.hipDeviceGetPCIBusId(list[i].pci, sizeof(list[i].pci), (int)i);
		if (spill_hip.hipDeviceTotalMem && !spill_hip.hipDeviceTotalMem(&bytes, (int)i))
			list[i].bytes = bytes;
	}
	return shown;
}

int spill_hip_attribute(int device, hipDeviceAttribute_t attribute)
{
	int value = 0;
	return spill_hip.hipDeviceGetAttribute(&value, attribute, device) ? 0 : value;
}

/*
 * The kernel driver provides managed memory (HMM). It migrates if the GPU retries faults (XNACK, seen
 * by pageable access) or is integrated. Elsewhere it is pinned host memory, and the place `host`
 * serves that better.
 */
static bool has_managed(int device)
{
	return spill_hip.hipMallocManaged && spill_hip_attribute(device, hipDeviceAttributeManagedMemory) &&
	       spill_hip_attribute(device, hipDeviceAttributeConcurrentManagedAccess);
}

static unsigned capabilities(int device)
{
	bool integrated = spill_hip_attribute(device, hipDeviceAttributeIntegrated);
	bool migrates = integrated || spill_hip_attribute(device, hipDeviceAttributePageableMemoryAccess);
	unsigned can = 0;
	if (integrated)
		can |= SPILL_IS_INTEGRATED;
	else if (spill_hip_attribute(device, hipDeviceAttributePageableMemoryAccessUsesHostPageTables) &&
	         spill_hip_attribute(device, hipDeviceAttributeConcurrentManagedAccess))
		can |= SPILL_IS_COHERENT;
	if (spill_hip_has_vmm(device))
		can |= SPILL_CAN_SPLIT;
	if (migrates && has_managed(device))
		can |= SPILL_CAN_MANAGED;
	if (spill_hip_attribute(device, hipDeviceAttributeCanMapHostMemory))
		can |= SPILL_CAN_HOST;
	return can;
}

static const struct spill_vendor_devices hip_devices = {
    .list = list_devices,
    .count = count_devices,
    .capabilities = capabilities,
    .current = current,
    .enter = spill_hip_enter,
    .leave = spill_hip_leave,
    .memory = device_memory,
    .wait = wait_for_device,
};

/* Whole pages of the device. AMD documents no larger block. */
static uint64_t footprint(uint64_t bytes)
{
	return bytes > UINT64_MAX - 4096 ? bytes : (bytes + 4095) / 4096 * 4096;
}

/* Rows are aligned like images: to 256 bytes on all GPUs that ROCm supports. */
static uint64_t pitch(uint64_t width)
{
	return width > UINT64_MAX - 255 ? 0 : (width + 255) / 256 * 256;
}

static int device_alloc(uint64_t bytes, uint64_t *ptr)
{
	void *address;
	int result = SPILL_HIP_RELAXED(spill_hip.hipMalloc(&address, bytes));
	if (!result)
		*ptr = (uintptr_t)address;
	return result;
}

static int device_free(uint64_t ptr)
{
	return SPILL_HIP_RELAXED(spill_hip.hipFree((void *)(uintptr_t)ptr));
}

static int host_free(void *host)
{
	return SPILL_HIP_RELAXED(spill_hip.hipHostFree(host));
}

/* Non-coherent: the device may cache the memory. The end of a kernel makes its writes visible. */
static int host_alloc(uint64_t bytes, uint64_t *ptr, void **host)
{
	void *memory, *mapped;
	unsigned flags = hipHostMallocPortable | hipHostMallocMapped | hipHostMallocNonCoherent;
	struct spill_numa_thread before;
	if (spill_numa_node() != SPILL_NODE_NEAREST)
		flags |= hipHostMallocNumaUser;
	spill_numa_enter(&before);
	int result = SPILL_HIP_RELAXED(spill_hip.hipHostMalloc(&memory, bytes, flags));
	spill_numa_leave(&before);
	if (result)
		return result;
	result = spill_hip.hipHostGetDevicePointer(&mapped, memory, 0);
	if (result) {
		host_free(memory);
		return result;
	}
	*ptr = (uintptr_t)mapped;
	*host = memory;
	return 0;
}

static int managed_alloc(uint64_t bytes, uint64_t *ptr)
{
	void *address;
	int device, result = spill_hip.hipGetDevice(&device);
	if (result)
		return result;
	if (!has_managed(device))
		return hipErrorNotSupported;
	result = SPILL_HIP_RELAXED(spill_hip.hipMallocManaged(&address, bytes, hipMemAttachGlobal));
	if (!result)
		*ptr = (uintptr_t)address;
	return result;
}

static int advise(uint64_t ptr, uint64_t bytes, hipMemoryAdvise advice, enum spill_location where, int device)
{
	if (!spill_hip.hipMemAdvise)
		return hipErrorNotSupported;
	return SPILL_HIP_RELAXED(spill_hip.hipMemAdvise(
	    (void *)(uintptr_t)ptr, bytes, advice, where == SPILL_LOCATION_DEVICE ? device : hipCpuDeviceId));
}

static int advise_preferred(uint64_t ptr, uint64_t bytes, enum spill_location where, int device)
{
	return advise(ptr, bytes, hipMemAdviseSetPreferredLocation, where, device);
}

static int advise_accessed_by(uint64_t ptr, uint64_t bytes, enum spill_location accessor, int device)
{
	return advise(ptr, bytes, hipMemAdviseSetAccessedBy, accessor, device);
}

static int advise_read_mostly(uint64_t ptr, uint64_t bytes, int device)
{
	return advise(ptr, bytes, hipMemAdviseSetReadMostly, SPILL_LOCATION_DEVICE, device);
}

static int prefetch_to_device(uint64_t ptr, uint64_t bytes, int device)
{
	if (!spill_hip.hipMemPrefetchAsync)
		return hipErrorNotSupported;
	return spill_hip.hipMemPrefetchAsync((void *)(uintptr_t)ptr, bytes, device, NULL);
}

static const struct spill_vendor_memory hip_memory = {
    .footprint = footprint,
    .pitch = pitch,
    .device_alloc = device_alloc,
    .device_free = device_free,
    .host_alloc = host_alloc,
    .host_free = host_free,
    .managed_alloc = managed_alloc,
    .managed_free = device_free,
    .advise_preferred = advise_preferred,
    .advise_accessed_by = advise_accessed_by,
    .advise_read_mostly = advise_read_mostly,
    .prefetch = prefetch_to_device,
};

/* HIP 5 does not tell on which device a stream was made: the current one is taken. */
static int stream_owner(void *stream, int *device, void **context)
{
	int now;
	int result = spill_hip.hipGetDevice(&now);
	if (result)
		return result;
	*device = now;
	*context = NULL;
	return hipSuccess;
}

/* As in backend_cuda_context.c. */
static bool capturing(void *stream)
{
	hipStreamCaptureStatus status;
	if (!spill_hip.hipStreamIsCapturing)
		return false;
	hipError_t result = spill_hip.hipStreamIsCapturing(stream, &status);
	return result ? result == hipErrorStreamCaptureImplicit : status != hipStreamCaptureStatusNone;
}

static const struct spill_vendor_streams hip_streams = {
    .owner = stream_owner,
    .capturing = capturing,
};

static int last_error_peek(void)
{
	return spill_hip.hipPeekAtLastError();
}

static void last_error_forget(void)
{
	(void)spill_hip.hipGetLastError();
}

/*
 * No device can serve this. The runtime sets its last error by the rule of its version, so no call
 * may follow: it is not made relaxed. It breaks no capture that the program's own call would not.
 */
static int raise_out_of_memory(void)
{
	void *nothing = NULL;
	int result = spill_hip.hipMalloc(&nothing, (size_t)1 << 62);
	if (result == hipSuccess)
		spill_hip.hipFree(nothing);
	return hipErrorOutOfMemory;
}

static const struct spill_vendor_last_error hip_last_error = {
    .peek = last_error_peek,
    .forget = last_error_forget,
    .raise_out_of_memory = raise_out_of_memory,
};

const struct spill_backend spill_backend_hip = {
    .name = "hip",
    .out_of_memory = hipErrorOutOfMemory,
    .invalid_value = hipErrorInvalidValue,
    /* ROCm 5 writes 4 bytes (hipamd, hip_memory.cpp); the other 4 are right already. */
    .range_size_width = 4,
    .start = start,
    .error_name = error_name,
    .driver_version = driver_version,
    .device_memory_type = device_memory_type,
    .describe_plain = describe_plain,
    .devices = &hip_devices,
    .memory = &hip_memory,
    .streams = &hip_streams,
    .physical = &spill_hip_physical,
    .vmm = &spill_hip_vmm,
    .pools = &spill_hip_pools,
    .events = &spill_hip_events,
    .last_error = &hip_last_error,
};
