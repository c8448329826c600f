/* Virtual memory management, as in hip_vm.cpp. From ROCm 7.2 on a handle may have host memory. */
#include "hip_later_api.h"
#include "hip_entry.h"

struct face { /* in sim_physical_face */
	hipMemLocation location;
};

static struct face *face_of(struct sim_physical *physical)
{
	_Static_assert(sizeof(struct face) <= SIM_PHYSICAL_FACE, "the core keeps that much");
	return sim_physical_face(physical);
}

/* NULL: the handle is invalid or was released. */
static struct sim_physical *physical_of(hipMemGenericAllocationHandle_t handle)
{
	return sim_physical_alive((struct sim_physical *)handle) ? (struct sim_physical *)handle : NULL;
}

static hipError_t need_vmm(void)
{
	return sim_config()->vmm ? hipSuccess : hipErrorNotSupported;
}

/* Properties that each release has. pre: prop. */
static void read_properties(const hipMemAllocationProp *prop, hipMemAllocationType *type,
                            hipMemAllocationHandleType *handle_type, hipMemLocation *location)
{
	const struct hip_allocation_prop_6 *later = (const void *)prop;

	*type = HIP_RELEASE < 6 ? prop->type : later->type;
	*handle_type = HIP_RELEASE < 6 ? prop->requestedHandleType : later->requestedHandleType;
	*location = HIP_RELEASE < 6 ? prop->location : later->location;
}

static hipError_t place_of(const hipMemAllocationProp *prop, enum sim_place *place, hipMemLocation *location)
{
	hipMemAllocationHandleType handle_type;
	hipMemAllocationType type;

	if (!prop)
		return hipErrorInvalidValue;
	read_properties(prop, &type, &handle_type, location);
	bool host = HIP_RELEASE >= 7 && (int)location->type == HIP_LOCATION_7_HOST && sim_config()->host_vmm;
	if (type != hipMemAllocationTypePinned || (location->type != hipMemLocationTypeDevice && !host))
		return hipErrorInvalidValue;
	if (!hip_is_device(location->id))
		return HIP_RELEASE >= 7 ? hipErrorInvalidDevice : hipErrorInvalidValue;
	*place = host ? SIM_ON_HOST : SIM_ON_DEVICE;
	if (handle_type != hipMemHandleTypeNone) {
		sim_say("hipMemCreate: exportable handles are not imitated");
		return hipErrorNotSupported;
	}
	return hipSuccess;
}

hipError_t hipMemAddressReserve(void **ptr, size_t size, size_t alignment, void *addr,
                                unsigned long long flags)
{
	uint64_t address;

	HIP_ENTER();
	HIP_TRY(ptr && !flags ? need_vmm() : hipErrorInvalidValue);
	if (!size || size % SIM_GRANULE || (alignment & (alignment - 1)))
		return hip_leave(HIP_RELEASE >= 7 ? hipErrorInvalidValue : hipErrorOutOfMemory);
	enum sim_status status = sim_reserve(size, alignment, hip_address(addr), &address);
	*ptr = status ? NULL : (void *)(uintptr_t)address;
	return hip_return(status);
}

hipError_t hipMemAddressFree(void *devPtr, size_t size)
{
	HIP_ENTER();
	HIP_TRY(devPtr && size ? hipSuccess : hipErrorInvalidValue);
	return hip_return(sim_unreserve(hip_address(devPtr), size));
}

hipError_t hipMemGetAllocationGranularity(size_t *granularity, const hipMemAllocationProp *prop,
                                          hipMemAllocationGranularity_flags option)
{
	hipMemLocation location;
	enum sim_place place;

	HIP_ENTER();
	HIP_TRY(granularity && (unsigned)option <= hipMemAllocationGranularityRecommended
	            ? need_vmm()
	            : hipErrorInvalidValue);
	hipError_t error = place_of(prop, &place, &location);
	HIP_TRY(error && error != hipErrorNotSupported ? hipErrorInvalidValue : hipSuccess);
	*granularity = SIM_GRANULE;
	return hip_leave(hipSuccess);
}

hipError_t hipMemCreate(hipMemGenericAllocationHandle_t *handle, size_t size,
                        const hipMemAllocationProp *prop, unsigned long long flags)
{
	struct sim_physical *physical;
	hipMemLocation location;
	enum sim_place place;

	HIP_ENTER();
	HIP_TRY(handle && size && !flags ? need_vmm() : hipErrorInvalidValue);
	HIP_TRY(place_of(prop, &place, &location));
	/* hip_vm.cpp of ROCm 7 takes memory from the thread's device, whatever `prop` names. */
	int device = HIP_RELEASE < 7 ? location.id : hip_device();
	HIP_TRY(hip_error(sim_physical_create(place, device, size, &physical)));
	face_of(physical)->location = location;
	*handle = (hipMemGenericAllocationHandle_t)physical;
	return hip_leave(hipSuccess);
}

hipError_t hipMemRelease(hipMemGenericAllocationHandle_t handle)
{
	HIP_ENTER();
	HIP_TRY(physical_of(handle) ? hipSuccess : hipErrorInvalidValue);
	return hip_return(sim_physical_release(physical_of(handle)));
}

hipError_t hipMemMap(void *ptr, size_t size, size_t offset, hipMemGenericAllocationHandle_t handle,
                     unsigned long long flags)
{
	HIP_ENTER();
	HIP_TRY(ptr && size && !offset && !flags && physical_of(handle) ? hipSuccess : hipErrorInvalidValue);
	return hip_return(sim_map(hip_address(ptr), size, 0, physical_of(handle)));
}

/* Waits for the default stream of the memory's device, and so for all blocking streams. */
hipError_t hipMemUnmap(void *ptr, size_t size)
{
	struct sim_context *context;
	struct sim_pointer about;

	HIP_ENTER();
	HIP_TRY(ptr && size && sim_pointer(hip_address(ptr), &about) && about.kind == SIM_VMM
	            ? hip_context(about.device, &context)
	            : hipErrorInvalidValue);
	HIP_TRY(hip_error(sim_stream_synchronize(sim_stream_default(context))));
	return hip_return(sim_unmap(hip_address(ptr), size));
}

/* The device or SIM_CPU of a location. -2: neither. */
static int device_of(hipMemLocation location)
{
	if (HIP_RELEASE >= 7 && (int)location.type >= HIP_LOCATION_7_HOST &&
	    (int)location.type <= HIP_LOCATION_7_HOST_CURRENT)
		return SIM_CPU;
	return location.type == hipMemLocationTypeDevice && hip_is_device(location.id) ? location.id : -2;
}

/*
 * ROCm 7.0 to 7.2 compare the size with those of the first mappings of the reservation, wherever
 * `ptr` is (ROCm/rocm-systems, pull request 2451).
 */
static bool covers_first_mappings(void *ptr, size_t size)
{
	struct sim_pointer about;
	uint64_t sum = 0;

	if (HIP_RELEASE < 7 || !sim_pointer(hip_address(ptr), &about) || about.kind != SIM_VMM)
		return true;
	for (uint64_t at = about.base, end = about.base + about.size; at < end && sum < size;) {
		bool mapped = sim_pointer(at, &about) && about.mapped;

		sum += mapped ? about.map_size : 0;
		at += mapped ? about.map_size : SIM_GRANULE;
	}
	return sum == size;
}

hipError_t hipMemSetAccess(void *ptr, size_t size, const hipMemAccessDesc *desc, size_t count)
{
	HIP_ENTER();
	HIP_TRY(ptr && size && desc && count && covers_first_mappings(ptr, size) ? hipSuccess
	                                                                         : hipErrorInvalidValue);
	for (size_t i = 0; i < count; i++) {
		int device = device_of(desc[i].location);
		unsigned flags = desc[i].flags;

		if (device == -2 || flags == 2 || flags > hipMemAccessFlagsProtReadWrite)
			return hip_leave(hipErrorInvalidValue);
		HIP_TRY(hip_error(sim_set_access(hip_address(ptr), size, device, flags & 1, flags & 2)));
	}
	return hip_leave(hipSuccess);
}

hipError_t hipMemGetAccess(unsigned long long *flags, const hipMemLocation *location, void *ptr)
{
	struct sim_pointer about;

	HIP_ENTER();
	HIP_TRY(flags && location && ptr && location->type == hipMemLocationTypeDevice &&
	                hip_is_device(location->id) && sim_pointer(hip_address(ptr), &about) &&
	                about.kind == SIM_VMM && about.mapped
	            ? hipSuccess
	            : hipErrorInvalidValue);
	unsigned bit = 1u << location->id;
	*flags = about.access_write & bit ? hipMemAccessFlagsProtReadWrite
	         : about.access & bit     ? hipMemAccessFlagsProtRead
	                                  : hipMemAccessFlagsProtNone;
	return hip_leave(hipSuccess);
}

hipError_t hipMemGetAllocationPropertiesFromHandle(hipMemAllocationProp *prop,
                                                   hipMemGenericAllocationHandle_t handle)
{
	struct sim_physical *physical = physical_of(handle);

	HIP_ENTER();
	HIP_TRY(prop && physical ? hipSuccess : hipErrorInvalidValue);
	if (HIP_RELEASE < 6)
		*prop = (hipMemAllocationProp){.type = hipMemAllocationTypePinned,
		                               .location = face_of(physical)->location};
	else
		*(struct hip_allocation_prop_6 *)(void *)prop = (struct hip_allocation_prop_6){
		    .type = hipMemAllocationTypePinned, .location = face_of(physical)->location};
	return hip_leave(hipSuccess);
}

/* ROCm 5 did not count the new holder. ROCm 7 (hip_vm.cpp) does, and so does this. */
hipError_t hipMemRetainAllocationHandle(hipMemGenericAllocationHandle_t *handle, void *addr)
{
	struct sim_physical *physical;

	HIP_ENTER();
	HIP_TRY(handle && addr ? hip_error(sim_physical_retain(hip_address(addr), &physical))
	                       : hipErrorInvalidValue);
	*handle = (hipMemGenericAllocationHandle_t)physical;
	return hip_leave(hipSuccess);
}

hipError_t hipMemExportToShareableHandle(void *shareableHandle, hipMemGenericAllocationHandle_t handle,
                                         hipMemAllocationHandleType handleType, unsigned long long flags)
{
	(void)handleType;
	HIP_ENTER();
	HIP_TRY(shareableHandle && handle && !flags ? hipSuccess : hipErrorInvalidValue);
	return hip_leave(HIP_RELEASE >= 7 ? hipErrorInvalidValue : hipErrorNotSupported);
}

hipError_t hipMemImportFromShareableHandle(hipMemGenericAllocationHandle_t *handle, void *osHandle,
                                           hipMemAllocationHandleType shHandleType)
{
	(void)shHandleType;
	HIP_ENTER();
	HIP_TRY(handle && osHandle ? hipSuccess : hipErrorInvalidValue);
	return hip_leave(HIP_RELEASE >= 7 ? hipErrorInvalidValue : hipErrorNotSupported);
}
