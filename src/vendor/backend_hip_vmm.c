/*
 * Physical memory. ROCm 6 gave hipMemAllocationProp CUDA's order of members (hip_runtime_api.h), so
 * its layout goes by the running version. From ROCm 7.2 a handle can stand for host memory (its
 * release notes; tests/sim/hip/hip_later_api.h).
 */
#include "backend_hip.h"

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
	return !on_host || version >= 70200000;
}

static int physical_granularity(int device, bool on_host, uint64_t *bytes)
{
	unsigned char properties[SPILL_PROPERTIES_BYTES] __attribute__((aligned(8)));
	size_t unit;
	if (!spill_hip.hipMemGetAllocationGranularity || !fill_properties(device, on_host, properties))
		return hipErrorNotSupported;
	int result = spill_hip.hipMemGetAllocationGranularity(
	    &unit, (const hipMemAllocationProp *)(void *)properties, hipMemAllocationGranularityMinimum);
	if (!result)
		*bytes = unit;
	return result;
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

static int physical_create(int device, bool on_host, uint64_t bytes, uint64_t *handle)
{
	unsigned char properties[SPILL_PROPERTIES_BYTES] __attribute__((aligned(8)));
	return fill_properties(device, on_host, properties) ? physical_create_as(properties, bytes, handle)
	                                                    : hipErrorNotSupported;
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
