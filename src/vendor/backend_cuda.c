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

static const struct spill_vendor_devices cuda_devices = {
    .list = devices,
    .capabilities = capabilities,
    .current = spill_cuda_current,
    .enter = spill_cuda_device_enter,
    .leave = spill_cuda_device_leave,
    .memory = spill_cuda_device_memory,
    .wait = spill_cuda_wait,
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
