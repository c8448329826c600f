/*
 * HIP, by its one API level (AMD ROCm documentation, "HIP runtime API reference"; the prototypes are checked against
 * Debian's libamdhip64-dev). There is no context object in use here: an allocation belongs to a device. Virtual
 * memory management on host exists only from ROCm 7.2, so there is no split here yet.
 */
#include "abi/hip.h"
#include "backend.h"
#include "publish.h"

#include <string.h>

static struct hip {
#define FUNCTION(needed, ret, symbol, params) ret(*symbol) params;
#include "backend_hip.def"
} hip;

static bool start(spill_resolve_fn *resolve)
{
	static _Atomic int published;
	struct hip found;
	bool complete = true;
#define FUNCTION(needed, ret, symbol, params) \
	*(void **)&found.symbol = resolve(SPILL_HIP, #symbol); \
	complete = complete && (SPILL_##needed == SPILL_OPTIONAL || found.symbol);
#include "backend_hip.def"
	spill_publish(&published, &hip, &found, sizeof(found));
	return complete;
}

static const char *error_name(int error)
{
	const char *name = hip.hipGetErrorName((hipError_t)error);
	return name ? name : "unknown error";
}

static bool current(int *device, void **context)
{
	int now;
	if (hip.hipGetDevice(&now))
		return false;
	*device = now;
	*context = NULL;
	return true;
}

static int memory(int device, uint64_t *free, uint64_t *total)
{
	size_t free_bytes, total_bytes;
	int result = hip.hipMemGetInfo(&free_bytes, &total_bytes);
	if (result)
		return result;
	*free = free_bytes;
	*total = total_bytes;
	return 0;
}

/* Pages of the device; AMD documents no larger block for it. */
static uint64_t footprint(uint64_t bytes)
{
	return bytes > UINT64_MAX - 4096 ? bytes : (bytes + 4095) / 4096 * 4096;
}

static int attribute(int device, hipDeviceAttribute_t which)
{
	int value = 0;
	return hip.hipDeviceGetAttribute(&value, which, device) ? 0 : value;
}

/*
 * Managed memory migrates where the GPU retries faults (XNACK, which pageable access tells) or shares the host's
 * memory (integrated); elsewhere it is pinned host memory by another name, and host does that better.
 */
static unsigned capabilities(int device)
{
	unsigned can = 0;
	bool migrates = attribute(device, hipDeviceAttributePageableMemoryAccess) ||
	                attribute(device, hipDeviceAttributeIntegrated);
	if (hip.hipMallocManaged && attribute(device, hipDeviceAttributeManagedMemory) && migrates)
		can |= SPILL_CAN_MANAGED;
	if (attribute(device, hipDeviceAttributeCanMapHostMemory))
		can |= SPILL_CAN_HOST;
	return can;
}

static int wait(int device, void *context)
{
	int before;
	int result = hip.hipGetDevice(&before);
	if (!result && before != device)
		result = hip.hipSetDevice(device);
	if (result)
		return result;
	result = hip.hipDeviceSynchronize();
	if (before != device)
		hip.hipSetDevice(before);
	return result;
}

static unsigned devices(struct spill_log_device *list, unsigned room)
{
	int count = 0;
	if (hip.hipGetDeviceCount(&count) || count < 0)
		return 0;
	unsigned shown = (unsigned)count < room ? (unsigned)count : room;
	for (unsigned i = 0; i < shown; i++) {
		size_t bytes;
		list[i] = (struct spill_log_device){0};
		if (hip.hipDeviceGetName)
			hip.hipDeviceGetName(list[i].name, sizeof(list[i].name), (int)i);
		if (hip.hipDeviceGetPCIBusId)
			hip.hipDeviceGetPCIBusId(list[i].pci, sizeof(list[i].pci), (int)i);
		if (hip.hipDeviceTotalMem && !hip.hipDeviceTotalMem(&bytes, (int)i))
			list[i].bytes = bytes;
	}
	return shown;
}

static int driver_version(void)
{
	int version = 0;
	hip.hipDriverGetVersion(&version);
	return version;
}

/* Non-coherent: the device may cache it, as it does its own memory; a kernel's end makes writes visible. */
static int host_alloc(uint64_t bytes, uint64_t *ptr, void **host)
{
	void *memory, *mapped;
	int result = hip.hipHostMalloc(
	    &memory, bytes, hipHostMallocPortable | hipHostMallocMapped | hipHostMallocNonCoherent);
	if (result)
		return result;
	result = hip.hipHostGetDevicePointer(&mapped, memory, 0);
	if (result) {
		hip.hipHostFree(memory);
		return result;
	}
	*ptr = (uintptr_t)mapped;
	*host = memory;
	return 0;
}

static int host_free(void *host)
{
	return hip.hipHostFree(host);
}

static int managed_alloc(uint64_t bytes, uint64_t *ptr)
{
	void *address;
	if (!hip.hipMallocManaged)
		return hipErrorNotSupported;
	int result = hip.hipMallocManaged(&address, bytes, hipMemAttachGlobal);
	if (!result)
		*ptr = (uintptr_t)address;
	return result;
}

static int managed_free(uint64_t ptr)
{
	return hip.hipFree((void *)(uintptr_t)ptr);
}

static int advise(uint64_t ptr, uint64_t bytes, hipMemoryAdvise advice, enum spill_location where, int device)
{
	if (!hip.hipMemAdvise)
		return hipErrorNotSupported;
	return hip.hipMemAdvise((void *)(uintptr_t)ptr, bytes, advice,
	                        where == SPILL_LOCATION_DEVICE ? device : hipCpuDeviceId);
}

static int advise_preferred(uint64_t ptr, uint64_t bytes, enum spill_location where, int device)
{
	return advise(ptr, bytes, hipMemAdviseSetPreferredLocation, where, device);
}

static int advise_accessed_by(uint64_t ptr, uint64_t bytes, enum spill_location who, int device)
{
	return advise(ptr, bytes, hipMemAdviseSetAccessedBy, who, device);
}

static int advise_read_mostly(uint64_t ptr, uint64_t bytes, int device)
{
	return advise(ptr, bytes, hipMemAdviseSetReadMostly, SPILL_LOCATION_DEVICE, device);
}

static int prefetch(uint64_t ptr, uint64_t bytes, int device)
{
	if (!hip.hipMemPrefetchAsync)
		return hipErrorNotSupported;
	return hip.hipMemPrefetchAsync((void *)(uintptr_t)ptr, bytes, device, NULL);
}

static int peek_error(void)
{
	return hip.hipPeekAtLastError();
}

static void forget_error(void)
{
	(void)hip.hipGetLastError();
}

/* A request that no device can serve: the runtime refuses it and keeps its last error, whatever its version's rule. */
static int raise_out_of_memory(void)
{
	void *nothing = NULL;
	int result = hip.hipMalloc(&nothing, (size_t)1 << 62);
	if (result == hipSuccess)
		hip.hipFree(nothing);
	return hipErrorOutOfMemory;
}

const struct spill_backend spill_backend_hip = {
    .name = "hip",
    .out_of_memory = hipErrorOutOfMemory,
    .invalid_value = hipErrorInvalidValue,
    .start = start,
    .error_name = error_name,
    .current = current,
    .memory = memory,
    .footprint = footprint,
    .capabilities = capabilities,
    .wait = wait,
    .devices = devices,
    .driver_version = driver_version,
    .host_alloc = host_alloc,
    .host_free = host_free,
    .managed_alloc = managed_alloc,
    .managed_free = managed_free,
    .advise_preferred = advise_preferred,
    .advise_accessed_by = advise_accessed_by,
    .advise_read_mostly = advise_read_mostly,
    .prefetch = prefetch,
    .peek_error = peek_error,
    .forget_error = forget_error,
    .raise_out_of_memory = raise_out_of_memory,
};
