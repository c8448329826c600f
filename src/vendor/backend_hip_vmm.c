/*
 * HIP's physical memory. ROCm 6 changed the order of hipMemAllocationProp to CUDA's (hip_runtime_api.h of
 * both), so the structure is read and written by the version that runs. Behind a handle can be host memory
 * from ROCm 7.2 on, the location being HOST with a device's number (ROCm 7.2 release notes;
 * tests/sim/hip/hip_later_api.h): before it there is none, and a split needs more than that.
 */
#include "backend_hip.h"

#include <string.h>

#define LOCATION_HOST 2 /* hipMemLocationTypeHost, of no header here */

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
               "properties are kept whole");

static int version(void)
{
	int number = 0;
	spill_hip.hipRuntimeGetVersion(&number);
	return number;
}

static void physical_describe(const void *properties, struct spill_physical *physical)
{
	const hipMemAllocationProp *rocm5 = properties;
	const struct properties_6 *rocm6 = properties;
	bool old = version() < 60000000;
	hipMemLocation location = old ? rocm5->location : rocm6->location;
	bool pinned = (old ? rocm5->type : rocm6->type) == hipMemAllocationTypePinned;
	*physical = (struct spill_physical){
	    .where = !pinned                                     ? SPILL_LOCATION_NONE
	             : location.type == hipMemLocationTypeDevice ? SPILL_LOCATION_DEVICE
	             : (int)location.type == LOCATION_HOST       ? SPILL_LOCATION_HOST
	                                                         : SPILL_LOCATION_NONE,
	    .device = location.id,
	    .device_only = (old ? rocm5->usage : rocm6->flags.usage) != 0,
	};
	memcpy(physical->asked, properties, old ? sizeof(*rocm5) : sizeof(*rocm6));
}

/* What libspill asks for, in the order of the version; false where there is no such thing. */
static bool wanted(int device, bool on_host, unsigned char properties[SPILL_PROPERTIES_BYTES])
{
	int number = version();
	hipMemLocation location = {on_host ? (hipMemLocationType)LOCATION_HOST : hipMemLocationTypeDevice,
	                           device};
	hipMemAllocationProp rocm5 = {.type = hipMemAllocationTypePinned, .location = location};
	struct properties_6 rocm6 = {.type = hipMemAllocationTypePinned, .location = location};
	if (number < 60000000)
		memcpy(properties, &rocm5, sizeof(rocm5));
	else
		memcpy(properties, &rocm6, sizeof(rocm6));
	return !on_host || number >= 70200000;
}

static int physical_granularity(int device, bool on_host, uint64_t *bytes)
{
	unsigned char properties[SPILL_PROPERTIES_BYTES] __attribute__((aligned(8)));
	size_t unit;
	if (!spill_hip.hipMemGetAllocationGranularity || !wanted(device, on_host, properties))
		return hipErrorNotSupported;
	int result = spill_hip.hipMemGetAllocationGranularity(
	    &unit, (const hipMemAllocationProp *)(void *)properties, hipMemAllocationGranularityMinimum);
	if (!result)
		*bytes = unit;
	return result;
}

static int physical_create(int device, bool on_host, uint64_t bytes, uint64_t *handle)
{
	unsigned char properties[SPILL_PROPERTIES_BYTES] __attribute__((aligned(8)));
	hipMemGenericAllocationHandle_t made;
	if (!spill_hip.hipMemCreate || !spill_hip.hipMemRelease || !wanted(device, on_host, properties))
		return hipErrorNotSupported;
	int result =
	    spill_hip.hipMemCreate(&made, bytes, (const hipMemAllocationProp *)(void *)properties, 0);
	if (!result)
		*handle = (uintptr_t)made;
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
    .release = physical_release,
};
