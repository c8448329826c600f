/*
 * HIP's memory in stream order on a device, and events. AMD documents no pools on host before ROCm
 * 7. So spilled memory is placed like plain memory, and freed behind an event.
 */
#include "backend_hip.h"

#include "minmax.h"

static hipStream_t stream_of(void *stream, bool per_thread)
{
	return !stream && per_thread ? hipStreamPerThread : stream;
}

static int pool_destroy(void *pool)
{
	return SPILL_HIP_RELAXED(spill_hip.hipMemPoolDestroy(pool));
}

static int pool_create(int device, enum spill_place place, enum spill_location preferred, void **pool)
{
	hipMemPoolProps wanted = {.allocType = hipMemAllocationTypePinned,
	                          .location = {hipMemLocationTypeDevice, device}};
	hipMemPool_t made;
	uint64_t everything = UINT64_MAX;
	int supported = 0;
	if (place != SPILL_PLACE_DEVICE || !spill_hip.hipMemPoolCreate || !spill_hip.hipMemPoolSetAttribute ||
	    !spill_hip.hipMemPoolDestroy || !spill_hip.hipMallocFromPoolAsync || !spill_hip.hipFreeAsync ||
	    spill_hip.hipDeviceGetAttribute(&supported, hipDeviceAttributeMemoryPoolsSupported, device) ||
	    !supported)
		return hipErrorNotSupported;
	int result = SPILL_HIP_RELAXED(spill_hip.hipMemPoolCreate(&made, &wanted));
	if (result)
		return result;
	result = spill_hip.hipMemPoolSetAttribute(made, hipMemPoolAttrReleaseThreshold, &everything);
	if (result) {
		pool_destroy(made);
		return result;
	}
	*pool = made;
	return hipSuccess;
}

static int pool_allow(void *pool, int device)
{
	hipMemAccessDesc access = {{hipMemLocationTypeDevice, device}, hipMemAccessFlagsProtReadWrite};
	return spill_hip.hipMemPoolSetAccess ? spill_hip.hipMemPoolSetAccess(pool, &access, 1)
	                                     : hipErrorNotSupported;
}

static int pool_alloc(void *pool, uint64_t bytes, void *stream, bool per_thread, uint64_t *ptr)
{
	void *address;
	hipStream_t on = stream_of(stream, per_thread);
	int result = SPILL_HIP_RELAXED(spill_hip.hipMallocFromPoolAsync(&address, bytes, pool, on));
	if (!result)
		*ptr = (uintptr_t)address;
	return result;
}

static int pool_free(uint64_t ptr, void *stream, bool per_thread)
{
	return SPILL_HIP_RELAXED(
	    spill_hip.hipFreeAsync((void *)(uintptr_t)ptr, stream_of(stream, per_thread)));
}

static int pool_figure(void *pool, hipMemPoolAttr attribute, uint64_t *bytes)
{
	uint64_t value;
	if (!spill_hip.hipMemPoolGetAttribute)
		return hipErrorNotSupported;
	int result = SPILL_HIP_RELAXED(spill_hip.hipMemPoolGetAttribute(pool, attribute, &value));
	if (!result)
		*bytes = value;
	return result;
}

static int pool_reserved(void *pool, uint64_t *bytes)
{
	return pool_figure(pool, hipMemPoolAttrReservedMemCurrent, bytes);
}

static int pool_unused(void *pool, uint64_t *bytes)
{
	uint64_t used;
	uint64_t reserved;
	int result = pool_reserved(pool, &reserved);
	if (!result)
		result = pool_figure(pool, hipMemPoolAttrUsedMemCurrent, &used);
	if (!result)
		*bytes = spill_minus(reserved, used);
	return result;
}

static int pool_trim(void *pool)
{
	if (!spill_hip.hipMemPoolTrimTo)
		return hipErrorNotSupported;
	return SPILL_HIP_RELAXED(spill_hip.hipMemPoolTrimTo(pool, 0));
}

static int pool_by(hipError_t (*find)(hipMemPool_t *, int), int device, void **pool)
{
	hipMemPool_t found;
	int result = find ? find(&found, device) : hipErrorNotSupported;
	if (!result)
		*pool = found;
	return result;
}

static int pool_current(int device, void **pool)
{
	return pool_by(spill_hip.hipDeviceGetMemPool, device, pool);
}

static int pool_default(int device, void **pool)
{
	return pool_by(spill_hip.hipDeviceGetDefaultMemPool, device, pool);
}

static enum spill_place pool_place(const void *properties, int *device)
{
	const hipMemPoolProps *wanted = properties;
	if (wanted->location.type != hipMemLocationTypeDevice)
		return SPILL_PLACE_HOST;
	*device = wanted->location.id;
	return SPILL_PLACE_DEVICE;
}

static int event_record(int device, void *context, void *stream, bool per_thread, void **event)
{
	hipEvent_t made;
	void *before;
	if (!spill_hip.hipEventCreateWithFlags || !spill_hip.hipEventRecord || !spill_hip.hipEventQuery ||
	    !spill_hip.hipEventDestroy)
		return hipErrorNotSupported;
	int result = spill_hip_enter(device, &before);
	if (result)
		return result;
	result = spill_hip.hipEventCreateWithFlags(&made, hipEventDisableTiming);
	if (!result) {
		result = spill_hip.hipEventRecord(made, stream_of(stream, per_thread));
		if (result)
			spill_hip.hipEventDestroy(made);
	}
	spill_hip_leave(before);
	if (!result)
		*event = made;
	return result;
}

static bool event_passed(int device, void *context, void *event)
{
	return SPILL_HIP_RELAXED(spill_hip.hipEventQuery(event)) == hipSuccess;
}

static void event_destroy(int device, void *context, void *event)
{
	spill_hip.hipEventDestroy(event);
}

const struct spill_vendor_pools spill_hip_pools = {
    .create = pool_create,
    .destroy = pool_destroy,
    .allow = pool_allow,
    .alloc = pool_alloc,
    .free = pool_free,
    .reserved = pool_reserved,
    .unused = pool_unused,
    .trim = pool_trim,
    .current = pool_current,
    .device_default = pool_default,
    .place = pool_place,
};

const struct spill_vendor_events spill_hip_events = {
    .record = event_record,
    .passed = event_passed,
    .destroy = event_destroy,
};
