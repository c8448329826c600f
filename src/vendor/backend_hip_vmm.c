/*
 * Physical memory, and its mappings. ROCm 6 gave hipMemAllocationProp CUDA's order of members
 * (hip_runtime_api.h), so its layout goes by the running version. From ROCm 7.2 a handle can stand
 * for host memory (its release notes; tests/sim/hip/hip_later_api.h).
 */
#include "backend_hip.h"

#include <stdatomic.h>
#include <string.h>

#define LOCATION_HOST 2 /* hipMemLocationTypeHost, which no header here has */

/* From ROCm 6 on. */
struct properties_6 {
	hipMemAllocationType type;
	hipMemAllocationHandleType handle_type;
	hipMemLocation location;
	void *win32;
	struct {
		unsigned char compression, rdma;
		unsigned short usage;
	} flags;
};
_Static_assert(sizeof(struct properties_6) <= SPILL_PROPERTIES_BYTES &&
                   sizeof(hipMemAllocationProp) <= SPILL_PROPERTIES_BYTES,
               "room for all properties");

static void physical_describe(const void *properties, struct spill_physical *physical)
{
	const hipMemAllocationProp *rocm5 = properties;
	const struct properties_6 *rocm6 = properties;
	bool before_6 = spill_hip_version() < 60000000;
	hipMemLocation location = before_6 ? rocm5->location : rocm6->location;
	bool pinned = (before_6 ? rocm5->type : rocm6->type) == hipMemAllocationTypePinned;
	*physical = (struct spill_physical){
	    .where = !pinned                                     ? SPILL_LOCATION_NONE
	             : location.type == hipMemLocationTypeDevice ? SPILL_LOCATION_DEVICE
	             : (int)location.type == LOCATION_HOST       ? SPILL_LOCATION_HOST
	                                                         : SPILL_LOCATION_NONE,
	    .device = location.id,
	    .device_only = (before_6 ? rocm5->usage : rocm6->flags.usage) != 0,
	};
	memcpy(physical->asked, properties, before_6 ? sizeof(*rocm5) : sizeof(*rocm6));
}

/* In the layout of the running version. False if that has no such memory. */
static bool fill_properties(int device, bool on_host, unsigned char properties[SPILL_PROPERTIES_BYTES])
{
	int version = spill_hip_version();
	hipMemLocation location = {on_host ? (hipMemLocationType)LOCATION_HOST : hipMemLocationTypeDevice,
	                           device};
	hipMemAllocationProp rocm5 = {.type = hipMemAllocationTypePinned, .location = location};
	struct properties_6 rocm6 = {.type = hipMemAllocationTypePinned, .location = location};
	if (version < 60000000)
		memcpy(properties, &rocm5, sizeof(rocm5));
	else
		memcpy(properties, &rocm6, sizeof(rocm6));
	return !on_host || version >= SPILL_HIP_SPLITS_FROM;
}

static int ask_granularity(int device, bool on_host, hipMemAllocationGranularity_flags which, uint64_t *bytes)
{
	unsigned char properties[SPILL_PROPERTIES_BYTES] __attribute__((aligned(8)));
	size_t unit;
	if (!spill_hip.hipMemGetAllocationGranularity || !fill_properties(device, on_host, properties))
		return hipErrorNotSupported;
	int result = spill_hip.hipMemGetAllocationGranularity(
	    &unit, (const hipMemAllocationProp *)(void *)properties, which);
	if (!result)
		*bytes = unit;
	return result;
}

static int physical_granularity(int device, bool on_host, uint64_t *bytes)
{
	return ask_granularity(device, on_host, hipMemAllocationGranularityMinimum, bytes);
}

static int physical_create_as(const void *properties, uint64_t bytes, uint64_t *handle)
{
	hipMemGenericAllocationHandle_t made;
	if (!spill_hip.hipMemCreate || !spill_hip.hipMemRelease)
		return hipErrorNotSupported;
	int result = spill_hip.hipMemCreate(&made, bytes, properties, 0);
	if (!result)
		*handle = (uintptr_t)made;
	return result;
}

static _Atomic bool refused_host_chunk[SPILL_DEVICES];

/* Another refusal than a lack of memory is for good. */
static void note_refusal(int device, int result)
{
	if (result == hipErrorInvalidValue || result == hipErrorInvalidDevice ||
	    result == hipErrorNotSupported)
		atomic_store(&refused_host_chunk[device], true);
}

/* The runtime takes memory from the current device, whatever device the properties name. */
static int physical_create(int device, bool on_host, uint64_t bytes, uint64_t *handle)
{
	unsigned char properties[SPILL_PROPERTIES_BYTES] __attribute__((aligned(8)));
	void *before;
	if (!fill_properties(device, on_host, properties))
		return hipErrorNotSupported;
	int result = spill_hip_enter(device, &before);
	if (result)
		return result;
	result = physical_create_as(properties, bytes, handle);
	spill_hip_leave(before);
	if (on_host && device >= 0 && device < SPILL_DEVICES)
		note_refusal(device, result);
	return result;
}

static int physical_release(uint64_t handle)
{
	return spill_hip.hipMemRelease((hipMemGenericAllocationHandle_t)(uintptr_t)handle);
}

const struct spill_vendor_physical spill_hip_physical = {
    .describe = physical_describe,
    .granularity = physical_granularity,
    .create = physical_create,
    .create_as = physical_create_as,
    .release = physical_release,
};

/* -- mappings ---------------------------------------------------------------------------------- */

bool spill_hip_has_vmm(int device)
{
	return spill_hip_version() >= SPILL_HIP_SPLITS_FROM && device >= 0 && device < SPILL_DEVICES &&
	       !atomic_load(&refused_host_chunk[device]) && spill_hip.hipMemGetAllocationGranularity &&
	       spill_hip.hipMemCreate && spill_hip.hipMemRelease && spill_hip.hipMemAddressReserve &&
	       spill_hip.hipMemAddressFree && spill_hip.hipMemMap && spill_hip.hipMemUnmap &&
	       spill_hip.hipMemSetAccess &&
	       spill_hip_attribute(device, hipDeviceAttributeVirtualMemoryManagementSupported);
}

static int range_reserve(uint64_t bytes, uint64_t alignment, uint64_t *va)
{
	void *address;
	int result = spill_hip.hipMemAddressReserve(&address, bytes, alignment, NULL, 0);
	if (!result)
		*va = (uintptr_t)address;
	return result;
}

static int range_unreserve(uint64_t va, uint64_t bytes)
{
	return spill_hip.hipMemAddressFree((void *)(uintptr_t)va, bytes);
}

static int range_map(uint64_t va, uint64_t bytes, uint64_t handle)
{
	return spill_hip.hipMemMap((void *)(uintptr_t)va, bytes, 0,
	                           (hipMemGenericAllocationHandle_t)(uintptr_t)handle, 0);
}

static int range_unmap(uint64_t va, uint64_t bytes)
{
	return spill_hip.hipMemUnmap((void *)(uintptr_t)va, bytes);
}

static int range_allow(uint64_t va, uint64_t bytes, int device)
{
	hipMemAccessDesc access = {{hipMemLocationTypeDevice, device}, hipMemAccessFlagsProtReadWrite};
	return spill_hip.hipMemSetAccess((void *)(uintptr_t)va, bytes, &access, 1);
}

/* The least granularity is a page of 4 KiB on many devices. */
static int range_granularity(int device, uint64_t *bytes)
{
	return ask_granularity(device, false, hipMemAllocationGranularityRecommended, bytes);
}

/*
 * hipIpcGetMemHandle serves mapped memory, and the kernel driver fails when the process ends
 * (ROCm/clr, issue 265). pre: spill_hip_has_vmm
 */
const struct spill_vendor_vmm spill_hip_vmm = {
    .export_harms = true,
    .reserve = range_reserve,
    .unreserve = range_unreserve,
    .map = range_map,
    .unmap = range_unmap,
    .allow = range_allow,
    .granularity = range_granularity,
    .works = spill_hip_chunks_work,
};
