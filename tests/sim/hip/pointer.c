/* Attributes of pointers, and advice about managed memory. */
#include "hip_later_api.h"
#include "hip_entry.h"

static bool find_pointer(const void *pointer, struct sim_pointer *about)
{
	return pointer && sim_pointer(hip_address(pointer), about) &&
	       (about->kind != SIM_VMM || about->mapped);
}

static bool on_host(const struct sim_pointer *about)
{
	return about->kind == SIM_HOST || about->kind == SIM_REGISTERED ||
	       (about->kind == SIM_VMM && about->on_host);
}

static bool is_managed(const struct sim_pointer *about)
{
	return about->kind == SIM_MANAGED || hip_note_find(about->id).managed;
}

/* ROCm 6 has other numbers for the kinds. Its number for managed memory is not used here. */
static hipMemoryType type_of(bool host)
{
	if (HIP_RELEASE < 6)
		return host ? hipMemoryTypeHost : hipMemoryTypeDevice;
	return (hipMemoryType)(host ? HIP_MEMORY_6_HOST : HIP_MEMORY_6_DEVICE);
}

/* In ROCm 5 managed memory is reported as host memory. A pointer unknown to HIP is an error. */
hipError_t hipPointerGetAttributes(hipPointerAttribute_t *attributes, const void *ptr)
{
	struct sim_pointer about;

	HIP_ENTER();
	HIP_TRY(attributes && find_pointer(ptr, &about) ? hipSuccess : hipErrorInvalidValue);
	bool managed = is_managed(&about), host = managed || on_host(&about);
	*attributes = (hipPointerAttribute_t){
	    .memoryType = type_of(host),
	    .device = about.device,
	    .devicePointer = (void *)ptr,
	    .hostPointer = host ? (void *)ptr : NULL,
	    .isManaged = managed,
	    .allocationFlags = hip_note_find(about.id).flags,
	};
	return hip_leave(hipSuccess);
}

/* Start of the vendor's unit of allocation: a virtual mapping is a unit of its own. */
static uint64_t start_of(const struct sim_pointer *about)
{
	return about->kind == SIM_VMM ? about->map_base : about->base;
}

static uint64_t size_of(const struct sim_pointer *about)
{
	return about->kind == SIM_VMM ? about->map_size : about->size;
}

hipError_t hipMemGetAddressRange(hipDeviceptr_t *pbase, size_t *psize, hipDeviceptr_t dptr)
{
	struct sim_pointer about;

	HIP_ENTER();
	HIP_TRY(find_pointer(dptr, &about) ? hipSuccess : hipErrorInvalidDevicePointer);
	if (pbase)
		*pbase = (void *)(uintptr_t)start_of(&about);
	if (psize)
		*psize = size_of(&about);
	return hip_leave(hipSuccess);
}

hipError_t hipMemPtrGetInfo(void *ptr, size_t *size)
{
	struct sim_pointer about;

	HIP_ENTER();
	HIP_TRY(size && find_pointer(ptr, &about) ? hipSuccess : hipErrorInvalidValue);
	*size = size_of(&about);
	return hip_leave(hipSuccess);
}

/* Widths are the vendor's: one byte for bool, four for a size (hip_memory.cpp). pre: data. */
static hipError_t answer_attribute(void *data, hipPointer_attribute attribute, hipDeviceptr_t ptr,
                                   const struct sim_pointer *about)
{
	bool managed = is_managed(about), host = managed || on_host(about);

	switch (attribute) {
	case HIP_POINTER_ATTRIBUTE_MEMORY_TYPE:
		*(unsigned *)data = type_of(host);
		return hipSuccess;
	case HIP_POINTER_ATTRIBUTE_DEVICE_POINTER:
		*(hipDeviceptr_t *)data = ptr;
		return hipSuccess;
	case HIP_POINTER_ATTRIBUTE_HOST_POINTER:
		*(void **)data = host ? ptr : NULL;
		return host ? hipSuccess : hipErrorInvalidValue;
	case HIP_POINTER_ATTRIBUTE_SYNC_MEMOPS:
	case HIP_POINTER_ATTRIBUTE_MAPPED:
		*(bool *)data = true;
		return hipSuccess;
	case HIP_POINTER_ATTRIBUTE_BUFFER_ID:
		*(uint32_t *)data = (uint32_t)about->id;
		return hipSuccess;
	case HIP_POINTER_ATTRIBUTE_IS_MANAGED:
		*(bool *)data = managed;
		return hipSuccess;
	case HIP_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
		*(int *)data = about->device;
		return hipSuccess;
	case HIP_POINTER_ATTRIBUTE_RANGE_START_ADDR:
		*(hipDeviceptr_t *)data = (void *)(uintptr_t)start_of(about);
		return hipSuccess;
	case HIP_POINTER_ATTRIBUTE_RANGE_SIZE:
		*(uint32_t *)data = (uint32_t)size_of(about);
		return hipSuccess;
	case HIP_POINTER_ATTRIBUTE_ACCESS_FLAGS:
		*(uint32_t *)data = hip_note_find(about->id).flags;
		return hipSuccess;
	case HIP_POINTER_ATTRIBUTE_CONTEXT:
	case HIP_POINTER_ATTRIBUTE_P2P_TOKENS:
	case HIP_POINTER_ATTRIBUTE_IS_LEGACY_HIP_IPC_CAPABLE:
	case HIP_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
	case HIP_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
	case HIP_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
		return hipErrorNotSupported;
	}
	return hipErrorInvalidValue;
}

/* The answer for memory unknown to HIP. pre: data. */
static hipError_t answer_unknown(void *data, hipPointer_attribute attribute)
{
	switch (attribute) {
	case HIP_POINTER_ATTRIBUTE_MEMORY_TYPE:
	case HIP_POINTER_ATTRIBUTE_BUFFER_ID:
	case HIP_POINTER_ATTRIBUTE_RANGE_SIZE:
		*(uint32_t *)data = 0;
		return hipErrorInvalidValue;
	case HIP_POINTER_ATTRIBUTE_DEVICE_POINTER:
	case HIP_POINTER_ATTRIBUTE_HOST_POINTER:
	case HIP_POINTER_ATTRIBUTE_RANGE_START_ADDR:
		*(void **)data = NULL;
		return hipErrorInvalidValue;
	case HIP_POINTER_ATTRIBUTE_IS_MANAGED:
	case HIP_POINTER_ATTRIBUTE_MAPPED:
		*(bool *)data = false;
		return hipErrorInvalidValue;
	case HIP_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
		*(int *)data = -2;
		return hipErrorInvalidValue;
	case HIP_POINTER_ATTRIBUTE_SYNC_MEMOPS:
		*(bool *)data = true;
		return hipSuccess;
	case HIP_POINTER_ATTRIBUTE_ACCESS_FLAGS:
		*(uint32_t *)data = 0;
		return hipSuccess;
	default:
		return attribute < HIP_POINTER_ATTRIBUTE_CONTEXT ||
		               attribute > HIP_POINTER_ATTRIBUTE_MEMPOOL_HANDLE
		           ? hipErrorInvalidValue
		           : hipErrorNotSupported;
	}
}

static hipError_t query_attribute(void *data, hipPointer_attribute attribute, hipDeviceptr_t ptr)
{
	struct sim_pointer about;

	return find_pointer(ptr, &about) ? answer_attribute(data, attribute, ptr, &about)
	                                 : answer_unknown(data, attribute);
}

hipError_t hipPointerGetAttribute(void *data, hipPointer_attribute attribute, hipDeviceptr_t ptr)
{
	HIP_ENTER();
	return hip_leave(data && ptr ? query_attribute(data, attribute, ptr) : hipErrorInvalidValue);
}

/* Succeeds for each pointer. Unknown values are zero or stay unchanged. */
hipError_t hipDrvPointerGetAttributes(unsigned int numAttributes, hipPointer_attribute *attributes,
                                      void **data, hipDeviceptr_t ptr)
{
	HIP_ENTER();
	HIP_TRY(numAttributes && attributes && data && ptr ? hipSuccess : hipErrorInvalidValue);
	for (unsigned i = 0; i < numAttributes; i++)
		if (data[i])
			query_attribute(data[i], attributes[i], ptr);
	return hip_leave(hipSuccess);
}

hipError_t hipHostGetDevicePointer(void **devPtr, void *hstPtr, unsigned int flags)
{
	struct sim_pointer about;

	(void)flags; /* no flags exist */
	HIP_ENTER();
	HIP_TRY(devPtr && find_pointer(hstPtr, &about) ? hipSuccess : hipErrorInvalidValue);
	*devPtr = hstPtr;
	return hip_leave(hipSuccess);
}

hipError_t hipHostGetFlags(unsigned int *flagsPtr, void *hostPtr)
{
	struct sim_pointer about;

	HIP_ENTER();
	HIP_TRY(flagsPtr && find_pointer(hostPtr, &about) && on_host(&about) ? hipSuccess
	                                                                     : hipErrorInvalidValue);
	*flagsPtr = hip_note_find(about.id).flags;
	return hip_leave(hipSuccess);
}

/* Managed memory that is pinned host memory (no XNACK) ignores advice. */
static hipError_t advise_range(const struct sim_pointer *about, uint64_t address, size_t count,
                               hipMemoryAdvise advice, int device)
{
	static const struct {
		enum sim_advice advice;
		bool set;
	} meaning[] = {
	    [hipMemAdviseSetReadMostly] = {SIM_READ_MOSTLY, true},
	    [hipMemAdviseUnsetReadMostly] = {SIM_READ_MOSTLY, false},
	    [hipMemAdviseSetPreferredLocation] = {SIM_PREFERRED_LOCATION, true},
	    [hipMemAdviseUnsetPreferredLocation] = {SIM_PREFERRED_LOCATION, false},
	    [hipMemAdviseSetAccessedBy] = {SIM_ACCESSED_BY, true},
	    [hipMemAdviseUnsetAccessedBy] = {SIM_ACCESSED_BY, false},
	};

	if (advice == hipMemAdviseSetCoarseGrain || advice == hipMemAdviseUnsetCoarseGrain)
		return hipSuccess;
	if (advice < hipMemAdviseSetReadMostly || advice > hipMemAdviseUnsetAccessedBy)
		return hipErrorInvalidValue;
	if (about->kind != SIM_MANAGED)
		return hipSuccess;
	return hip_error(sim_advise(address, count, meaning[advice].advice, meaning[advice].set, device));
}

/* The managed range that a program may advise or prefetch to `device`. pre: hip_enter. */
static hipError_t managed_range(const void *pointer, size_t count, int device, struct sim_pointer *about)
{
	if (count == 0 || !find_pointer(pointer, about) || !is_managed(about))
		return hipErrorInvalidValue;
	if (hip_address(pointer) - about->base + count > about->size)
		return hipErrorInvalidValue;
	if (device != hipCpuDeviceId && !hip_is_device(device))
		return hipErrorInvalidDevice;
	return hipSuccess;
}

hipError_t hipMemAdvise(const void *dev_ptr, size_t count, hipMemoryAdvise advice, int device)
{
	struct sim_pointer about;

	HIP_ENTER();
	HIP_TRY(managed_range(dev_ptr, count, device, &about));
	return hip_leave(advise_range(&about, hip_address(dev_ptr), count, advice, device));
}

hipError_t hipMemPrefetchAsync(const void *dev_ptr, size_t count, int device, hipStream_t stream)
{
	struct sim_pointer about;
	struct sim_stream *on;

	HIP_ENTER();
	HIP_TRY(managed_range(dev_ptr, count, device, &about));
	HIP_TRY(hip_stream(stream, &on));
	if (about.kind != SIM_MANAGED)
		return hip_leave(hipSuccess);
	return hip_return(sim_prefetch(on, hip_address(dev_ptr), count, device));
}
