/* CUDA by its driver API: look-up of its functions, errors, devices, the current context. */
#include "backend_cuda.h"

#include <string.h>

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

/* A handle can be of either kind, and the driver refuses the wrong one (CUDA Driver API, cuLaunchKernel). */
static const char *kernel_name(const void *function)
{
	const char *name = NULL;
	bool known = (spill_cuda.cuKernelGetName && !spill_cuda.cuKernelGetName(&name, (CUkernel)function)) ||
	             (spill_cuda.cuFuncGetName && !spill_cuda.cuFuncGetName(&name, (CUfunction)function));
	return known ? name : NULL;
}

int spill_cuda_attribute(int device, CUdevice_attribute attribute)
{
	int value = 0;
	return spill_cuda.cuDeviceGetAttribute(&value, attribute, device) ? 0 : value;
}

/*
 * Drivers from 12.2 on make memory on the host by cuMemCreate (CUDA 12.2 release notes, "Host NUMA
 * memory allocation"). Those from 12.9 on tell so: the attribute is in the headers from then on. In
 * between libspill believes it until a driver refuses the first one: to make one as a trial would be
 * a call that the program did not ask for.
 */
#define HOST_CHUNKS_TOLD_FROM 12090

static bool has_host_chunks(int device)
{
	int version = 0;
	if (spill_cuda.cuDriverGetVersion(&version) || version < SPILL_CUDA_SPLITS_FROM)
		return false;
	if (version < HOST_CHUNKS_TOLD_FROM)
		return !spill_cuda_refused_host_chunk(device);
	return spill_cuda_attribute(device,
	                            CU_DEVICE_ATTRIBUTE_HOST_NUMA_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED);
}

static bool has_vmm(int device)
{
	return spill_cuda.cuMemCreate && spill_cuda.cuMemRelease && spill_cuda.cuMemMap &&
	       spill_cuda.cuMemUnmap && spill_cuda.cuMemSetAccess && spill_cuda.cuMemAddressReserve &&
	       spill_cuda.cuMemAddressFree && spill_cuda.cuMemGetAllocationGranularity &&
	       spill_cuda_attribute(device, CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED) &&
	       has_host_chunks(device);
}

/*
 * With host page tables the device uses the processor's address translation (ATS), as over
 * NVLink-C2C. A device on a bus with HMM has only PAGEABLE_MEMORY_ACCESS (CUDA C++ Programming
 * Guide, "Hardware Coherency").
 */
static unsigned memory_capability(int device)
{
	if (spill_cuda_attribute(device, CU_DEVICE_ATTRIBUTE_INTEGRATED))
		return SPILL_IS_INTEGRATED;
	return spill_cuda_attribute(device,
	                            CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS_USES_HOST_PAGE_TABLES) &&
	               spill_cuda_attribute(device, CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS)
	           ? SPILL_IS_COHERENT
	           : 0;
}

/* Managed memory larger than the device needs a GPU that can fault: concurrent managed access. */
static unsigned capabilities(int device)
{
	unsigned can = memory_capability(device);
	if (has_vmm(device))
		can |= spill_cuda_can_move() ? SPILL_CAN_SPLIT | SPILL_CAN_MOVE : SPILL_CAN_SPLIT;
	if (spill_cuda.cuMemAllocManaged &&
	    spill_cuda_attribute(device, CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS))
		can |= SPILL_CAN_MANAGED;
	if (spill_cuda_attribute(device, CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY))
		can |= SPILL_CAN_HOST;
	return can;
}

/* As nvidia-smi prints it: GPU-xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx. */
static void uuid_text(const CUuuid *uuid, char text[48])
{
	static const char digits[] = "0123456789abcdef";
	char *next = text;
	memcpy(next, "GPU-", 4);
	next += 4;
	for (int i = 0; i < 16; i++) {
		unsigned char byte = (unsigned char)uuid->bytes[i];
		if (i == 4 || i == 6 || i == 8 || i == 10)
			*next++ = '-';
		*next++ = digits[byte >> 4];
		*next++ = digits[byte & 15];
	}
	*next = '\0';
}

static void describe_device(int ordinal, struct spill_log_device *device)
{
	CUdevice handle;
	CUuuid uuid;
	size_t bytes;
	*device = (struct spill_log_device){0};
	if (spill_cuda.cuDeviceGet(&handle, ordinal))
		return;
	spill_cuda.cuDeviceGetName(device->name, sizeof(device->name), handle);
	/* The v2 form (11.4) names the MIG instance, if there is one. */
	if ((spill_cuda.cuDeviceGetUuid_v2 && !spill_cuda.cuDeviceGetUuid_v2(&uuid, handle)) ||
	    (spill_cuda.cuDeviceGetUuid && !spill_cuda.cuDeviceGetUuid(&uuid, handle)))
		uuid_text(&uuid, device->uuid);
	if (spill_cuda.cuDeviceGetPCIBusId)
		spill_cuda.cuDeviceGetPCIBusId(device->pci, sizeof(device->pci), handle);
	if (!spill_cuda.cuDeviceTotalMem_v2(&bytes, handle))
		device->bytes = bytes;
}

static unsigned count_devices(void)
{
	int count = 0;
	return spill_cuda.cuDeviceGetCount(&count) || count < 0 ? 0 : (unsigned)count;
}

static unsigned list_devices(struct spill_log_device *list, unsigned room)
{
	unsigned count = count_devices(), shown = count < room ? count : room;
	for (unsigned i = 0; i < shown; i++)
		describe_device((int)i, &list[i]);
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

static bool current(int *device, void **context)
{
	CUcontext owner = spill_cuda_owner_context(spill_cuda_current_context());
	CUdevice ordinal;
	if (!owner || spill_cuda.cuCtxGetDevice(&ordinal))
		return false;
	*device = ordinal;
	*context = owner;
	return true;
}

/* The driver reports free memory only for the current context. */
static int device_memory(int device, uint64_t *free, uint64_t *total)
{
	size_t free_bytes = 0, total_bytes;
	CUdevice now;
	void *context;
	int result;
	if (spill_cuda.cuCtxGetDevice(&now) == CUDA_SUCCESS && now == device) {
		result = spill_cuda.cuMemGetInfo_v2(&free_bytes, &total_bytes);
	} else if (spill_cuda_contexts.primary(device, &context) &&
	           !spill_cuda.cuCtxPushCurrent_v2(context)) {
		result = spill_cuda.cuMemGetInfo_v2(&free_bytes, &total_bytes);
		spill_cuda_pop(context);
	} else {
		result = spill_cuda.cuDeviceTotalMem_v2(&total_bytes, device);
	}
	if (result)
		return result;
	*free = free_bytes;
	*total = total_bytes;
	return 0;
}

/* Creates a missing primary context, and keeps it as the runtime does. *before: the pushed one. */
static int device_enter(int device, void **before)
{
	CUcontext context;
	CUdevice ordinal;
	void *active;
	*before = NULL;
	if (spill_cuda_owner_context(spill_cuda_current_context()) && !spill_cuda.cuCtxGetDevice(&ordinal) &&
	    ordinal == device)
		return CUDA_SUCCESS;
	if (spill_cuda_contexts.primary(device, &active)) {
		*before = spill_cuda.cuCtxPushCurrent_v2(active) ? NULL : active;
		return *before ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
	}
	if (!spill_cuda.cuDevicePrimaryCtxRetain)
		return CUDA_ERROR_NOT_SUPPORTED;
	int result = spill_cuda.cuDevicePrimaryCtxRetain(&context, device);
	if (!result)
		spill_cuda_contexts.primary_retained(device, context);
	if (!result)
		result = spill_cuda.cuCtxPushCurrent_v2(context);
	if (!result)
		*before = context;
	return result;
}

static void device_leave(void *before)
{
	if (before)
		spill_cuda_pop(before);
}

/* The free of a pinned page waits as well, if the device is full. pre: its context is current */
static int free_small_allocation(void)
{
	CUdeviceptr small;
	void *page;
	int result = spill_cuda.cuMemAlloc_v2(&small, 1);
	if (result == CUDA_ERROR_OUT_OF_MEMORY) {
		result = spill_cuda.cuMemHostAlloc(&page, 4096, 0);
		if (result)
			return result;
		result = spill_cuda.cuMemFreeHost(page);
		if (result) /* an error of earlier work; the second call frees */
			(void)spill_cuda.cuMemFreeHost(page);
		return result;
	}
	if (result)
		return result;
	result = spill_cuda.cuMemFree_v2(small);
	if (result) /* an error of earlier work; the second call frees */
		(void)spill_cuda.cuMemFree_v2(small);
	return result;
}

/*
 * The vendor's free of a small allocation waits for all work of its context (docs/measurements.md).
 * The program's own free would wait too. Unlike cuCtxSynchronize, the free does not break a capture
 * that another thread begins now, because the thread is relaxed.
 */
static int wait_for_context(int device, void *context)
{
	CUcontext before = spill_cuda_current_context();
	int result = spill_cuda_enter(before, context);
	if (result)
		return result;
	result = SPILL_CUDA_RELAXED(free_small_allocation());
	spill_cuda_leave(before, context);
	return result;
}

static const struct spill_vendor_devices cuda_devices = {
    .list = list_devices,
    .count = count_devices,
    .capabilities = capabilities,
    .current = current,
    .enter = device_enter,
    .leave = device_leave,
    .memory = device_memory,
    .wait = wait_for_context,
};

const struct spill_backend spill_backend_cuda = {
    .name = "cuda",
    .out_of_memory = CUDA_ERROR_OUT_OF_MEMORY,
    .invalid_value = CUDA_ERROR_INVALID_VALUE,
    .loses_code = true,
    .clears_pointer = true, /* measured, H200 */
    .range_size_width = 8,
    .start = start,
    .error_name = error_name,
    .driver_version = driver_version,
    .device_memory_type = device_memory_type,
    .kernel_name = kernel_name,
    .graph_reserved = spill_cuda_graph_reserved,
    .devices = &cuda_devices,
    .memory = &spill_cuda_memory,
    .streams = &spill_cuda_streams,
    .contexts = &spill_cuda_contexts,
    .physical = &spill_cuda_physical,
    .vmm = &spill_cuda_vmm,
    .pools = &spill_cuda_pools,
    .events = &spill_cuda_events,
    .timers = &spill_cuda_timers,
    .moves = &spill_cuda_moves,
};
