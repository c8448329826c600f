/* Plain device memory, pinned host memory, managed memory. */
#include "cuda_entry.h"

#define DEVICE_OR_MANAGED (1u << SIM_DEVICE | 1u << SIM_MANAGED)

CUresult cuMemGetInfo_v2(size_t *free, size_t *total)
{
	uint64_t free_bytes, total_bytes;

	ENTER(cuMemGetInfo_v2, CONTEXT);
	sim_device_memory(sim_context_device(driver_current()), &free_bytes, &total_bytes);
	if (free)
		*free = free_bytes;
	if (total)
		*total = total_bytes;
	return CUDA_SUCCESS;
}

CUresult cuMemAlloc_v2(CUdeviceptr *dptr, size_t bytesize)
{
	uint64_t address;

	ENTER(cuMemAlloc_v2, CONTEXT);
	if (!dptr)
		return CUDA_ERROR_INVALID_VALUE;
	enum sim_status status = sim_capture_unsafe();
	sim_context_unblocked(driver_current());
	if (!status)
		status = sim_alloc(driver_current(), SIM_DEVICE, bytesize, &address);
	CUresult result = driver_result(status);
	*dptr = result ? 0 : address; /* a real driver clears it on failure (H200, 580.159) */
	return result;
}

CUresult cuMemAllocPitch_v2(CUdeviceptr *dptr, size_t *pPitch, size_t WidthInBytes, size_t Height,
                            unsigned int ElementSizeBytes)
{
	size_t pitch = (WidthInBytes + 511) / 512 * 512, bytes;
	uint64_t address;

	ENTER(cuMemAllocPitch_v2, CONTEXT);
	if (!dptr || !pPitch)
		return CUDA_ERROR_INVALID_VALUE;
	*dptr = 0;
	*pPitch = 0;
	if (!WidthInBytes || !Height || pitch < WidthInBytes ||
	    (ElementSizeBytes != 4 && ElementSizeBytes != 8 && ElementSizeBytes != 16))
		return CUDA_ERROR_INVALID_VALUE;
	*pPitch = pitch; /* also if memory runs out */
	if (__builtin_mul_overflow(pitch, Height, &bytes))
		return CUDA_ERROR_INVALID_VALUE;
	CUresult result = driver_result(sim_alloc(driver_current(), SIM_DEVICE, bytes, &address));
	if (!result)
		*dptr = address;
	return result;
}

CUresult cuMemFree_v2(CUdeviceptr dptr)
{
	ENTER(cuMemFree_v2, CONTEXT);
	if (!dptr)
		return CUDA_SUCCESS;
	return driver_result(sim_free(dptr, DEVICE_OR_MANAGED));
}

/* -- host -------------------------------------------------------------------------------------- */

static CUresult alloc_host(void **out, size_t bytes)
{
	uint64_t address;

	if (!out)
		return CUDA_ERROR_INVALID_VALUE;
	*out = NULL;
	if (!bytes)
		return CUDA_SUCCESS;
	CUresult result = driver_result(sim_alloc(driver_current(), SIM_HOST, bytes, &address));
	if (!result)
		*out = (void *)address;
	return result;
}

CUresult cuMemAllocHost_v2(void **pp, size_t bytesize)
{
	ENTER(cuMemAllocHost_v2, CONTEXT);
	return alloc_host(pp, bytesize);
}

CUresult cuMemHostAlloc(void **pp, size_t bytesize, unsigned int Flags)
{
	ENTER(cuMemHostAlloc, CONTEXT);
	return Flags & ~7u ? CUDA_ERROR_INVALID_VALUE : alloc_host(pp, bytesize);
}

CUresult cuMemFreeHost(void *p)
{
	ENTER(cuMemFreeHost, CONTEXT);
	if (!p)
		return CUDA_SUCCESS;
	return driver_result(sim_free((uint64_t)p, 1u << SIM_HOST));
}

static bool is_pinned(const void *p)
{
	struct sim_pointer about;

	return sim_pointer((uint64_t)p, &about) && (about.kind == SIM_HOST || about.kind == SIM_REGISTERED);
}

CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr *pdptr, void *p, unsigned int Flags)
{
	ENTER(cuMemHostGetDevicePointer_v2, CONTEXT);
	if (!pdptr || Flags || !is_pinned(p))
		return CUDA_ERROR_INVALID_VALUE;
	*pdptr = (CUdeviceptr)p;
	return CUDA_SUCCESS;
}

/* With unified addresses all host memory is mapped and portable, whatever the flags. */
CUresult cuMemHostGetFlags(unsigned int *pFlags, void *p)
{
	ENTER(cuMemHostGetFlags, CONTEXT);
	if (!pFlags || !is_pinned(p))
		return CUDA_ERROR_INVALID_VALUE;
	*pFlags = CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP;
	return CUDA_SUCCESS;
}

static CUresult host_register(void *p, size_t bytes, unsigned flags)
{
	return flags & ~15u ? CUDA_ERROR_INVALID_VALUE
	                    : driver_result(sim_register(driver_current(), p, bytes));
}

CUresult cuMemHostRegister_v2(void *p, size_t bytesize, unsigned int Flags)
{
	ENTER(cuMemHostRegister_v2, CONTEXT);
	return host_register(p, bytesize, Flags);
}

CUresult cuMemHostRegister(void *p, size_t bytesize, unsigned int Flags)
{
	ENTER(cuMemHostRegister, CONTEXT);
	return host_register(p, bytesize, Flags);
}

CUresult cuMemHostUnregister(void *p)
{
	ENTER(cuMemHostUnregister, CONTEXT);
	return driver_result(sim_unregister(p));
}

/* -- managed ----------------------------------------------------------------------------------- */

CUresult cuMemAllocManaged(CUdeviceptr *dptr, size_t bytesize, unsigned int flags)
{
	uint64_t address;

	ENTER(cuMemAllocManaged, CONTEXT);
	if (!dptr || (flags != CU_MEM_ATTACH_GLOBAL && flags != 2))
		return CUDA_ERROR_INVALID_VALUE;
	if (!bytesize) {
		*dptr = 0;
		return CUDA_ERROR_INVALID_VALUE;
	}
	if (!sim_config()->managed)
		return CUDA_ERROR_NOT_SUPPORTED;
	CUresult result = driver_result(sim_alloc(driver_current(), SIM_MANAGED, bytesize, &address));
	if (!result)
		*dptr = address;
	return result;
}

int driver_location(CUmemLocation location)
{
	if (location.type == CU_MEM_LOCATION_TYPE_DEVICE)
		return driver_device(location.id) ? location.id : -2;
	if (location.type == CU_MEM_LOCATION_TYPE_HOST ||
	    location.type == CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT ||
	    (location.type == CU_MEM_LOCATION_TYPE_HOST_NUMA && location.id >= 0))
		return SIM_CPU;
	return -2;
}

static CUresult advise_range(CUdeviceptr at, size_t bytes, CUmem_advise advice, int device)
{
	static const struct {
		enum sim_advice advice;
		bool set;
	} advices[] = {
	    [CU_MEM_ADVISE_SET_READ_MOSTLY] = {SIM_READ_MOSTLY, true},
	    [CU_MEM_ADVISE_UNSET_READ_MOSTLY] = {SIM_READ_MOSTLY, false},
	    [CU_MEM_ADVISE_SET_PREFERRED_LOCATION] = {SIM_PREFERRED_LOCATION, true},
	    [CU_MEM_ADVISE_UNSET_PREFERRED_LOCATION] = {SIM_PREFERRED_LOCATION, false},
	    [CU_MEM_ADVISE_SET_ACCESSED_BY] = {SIM_ACCESSED_BY, true},
	    [CU_MEM_ADVISE_UNSET_ACCESSED_BY] = {SIM_ACCESSED_BY, false},
	};

	if ((int)advice < 1 || advice > CU_MEM_ADVISE_UNSET_ACCESSED_BY)
		return CUDA_ERROR_INVALID_VALUE;
	if (advices[advice].advice != SIM_READ_MOSTLY && advice != CU_MEM_ADVISE_UNSET_PREFERRED_LOCATION) {
		if (device < SIM_CPU || (device >= 0 && !driver_device(device)))
			return CUDA_ERROR_INVALID_DEVICE;
		if (device >= 0 && !sim_config()->concurrent)
			return CUDA_ERROR_INVALID_DEVICE;
	}
	return driver_result(sim_advise(at, bytes, advices[advice].advice, advices[advice].set, device));
}

CUresult cuMemAdvise(CUdeviceptr devPtr, size_t count, CUmem_advise advice, CUdevice device)
{
	ENTER(cuMemAdvise, CONTEXT);
	return advise_range(devPtr, count, advice, device);
}

CUresult cuMemAdvise_v2(CUdeviceptr devPtr, size_t count, CUmem_advise advice, CUmemLocation location)
{
	ENTER(cuMemAdvise_v2, CONTEXT);
	return advise_range(devPtr, count, advice, driver_location(location));
}

static CUresult prefetch_range(CUdeviceptr at, size_t bytes, int device, CUstream hStream)
{
	struct sim_stream *stream = driver_stream(hStream);

	if (!stream)
		return CUDA_ERROR_INVALID_HANDLE;
	if (device < SIM_CPU || (device >= 0 && !driver_device(device)) || !sim_config()->concurrent)
		return CUDA_ERROR_INVALID_DEVICE;
	return driver_result(sim_prefetch(stream, at, bytes, device));
}

WITH_STREAM(cuMemPrefetchAsync, cuMemPrefetchAsync_ptsz,
            (CUdeviceptr devPtr, size_t count, CUdevice dstDevice, CUstream hStream),
            (devPtr, count, dstDevice, hStream))
{
	return prefetch_range(devPtr, count, dstDevice, hStream);
}

WITH_STREAM(cuMemPrefetchAsync_v2, cuMemPrefetchAsync_v2_ptsz,
            (CUdeviceptr devPtr, size_t count, CUmemLocation location, unsigned int flags, CUstream hStream),
            (devPtr, count, location, flags, hStream))
{
	return flags ? CUDA_ERROR_INVALID_VALUE
	             : prefetch_range(devPtr, count, driver_location(location), hStream);
}

static CUresult accessed_by(int *list, size_t bytes, unsigned mask)
{
	size_t count = bytes / sizeof(*list), n = 0;

	if (!count || bytes % sizeof(*list))
		return CUDA_ERROR_INVALID_VALUE;
	for (int device = 0; device < sim_config()->devices; device++)
		if (mask & 1u << device && n < count)
			list[n++] = device;
	if (mask & 1u << 31 && n < count)
		list[n++] = CU_DEVICE_CPU;
	while (n < count)
		list[n++] = -2;
	return CUDA_SUCCESS;
}

static CUmemLocationType type_of(int place)
{
	return place >= 0         ? CU_MEM_LOCATION_TYPE_DEVICE
	       : place == SIM_CPU ? CU_MEM_LOCATION_TYPE_HOST
	                          : CU_MEM_LOCATION_TYPE_INVALID;
}

static CUresult range_attribute(void *data, size_t bytes, CUmem_range_attribute attribute, CUdeviceptr at,
                                size_t count)
{
	struct sim_managed about;

	if (!data || sim_managed_query(at, count, &about))
		return CUDA_ERROR_INVALID_VALUE;
	if (attribute == CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY)
		return accessed_by(data, bytes, about.accessed_by);
	if (bytes != sizeof(int))
		return CUDA_ERROR_INVALID_VALUE;
	int *out = data;
	switch (attribute) {
	case CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY:
		*out = about.read_mostly;
		return CUDA_SUCCESS;
	case CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION:
		*out = about.preferred;
		return CUDA_SUCCESS;
	case CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION:
		*out = about.last_prefetch;
		return CUDA_SUCCESS;
	case CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_TYPE:
		*out = type_of(about.preferred);
		return CUDA_SUCCESS;
	case CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_TYPE:
		*out = type_of(about.last_prefetch);
		return CUDA_SUCCESS;
	case CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_ID:
		*out = about.preferred >= 0 ? about.preferred : 0;
		return CUDA_SUCCESS;
	case CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_ID:
		*out = about.last_prefetch >= 0 ? about.last_prefetch : 0;
		return CUDA_SUCCESS;
	default:
		return CUDA_ERROR_INVALID_VALUE;
	}
}

CUresult cuMemRangeGetAttribute(void *data, size_t dataSize, CUmem_range_attribute attribute,
                                CUdeviceptr devPtr, size_t count)
{
	ENTER(cuMemRangeGetAttribute, CONTEXT);
	return range_attribute(data, dataSize, attribute, devPtr, count);
}

CUresult cuMemRangeGetAttributes(void **data, size_t *dataSizes, CUmem_range_attribute *attributes,
                                 size_t numAttributes, CUdeviceptr devPtr, size_t count)
{
	CUresult result = CUDA_SUCCESS;

	ENTER(cuMemRangeGetAttributes, CONTEXT);
	if (!data || !dataSizes || !attributes || !numAttributes)
		return CUDA_ERROR_INVALID_VALUE;
	for (size_t i = 0; i < numAttributes && !result; i++)
		result = range_attribute(data[i], dataSizes[i], attributes[i], devPtr, count);
	return result;
}
