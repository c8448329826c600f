/* Virtual memory management. */
#include "cuda_entry.h"

static CUresult need_vmm(void)
{
	return sim_config()->vmm ? CUDA_SUCCESS : CUDA_ERROR_NOT_SUPPORTED;
}

/* Programs treat handles as numbers. These values are never addresses of ours. */
struct sim_physical *driver_physical(CUmemGenericAllocationHandle handle)
{
	struct sim_physical *physical = (struct sim_physical *)(uintptr_t)handle;

	return handle > 0xffff && handle % 16 == 0 && sim_physical_alive(physical) ? physical : NULL;
}

CUresult cuMemAddressReserve(CUdeviceptr *ptr, size_t size, size_t alignment, CUdeviceptr addr,
                             unsigned long long flags)
{
	uint64_t address;

	ENTER(cuMemAddressReserve, INIT);
	CUresult result = need_vmm();
	if (result)
		return result;
	if (!ptr || flags)
		return CUDA_ERROR_INVALID_VALUE;
	result = driver_result(sim_reserve(size, alignment, addr, &address));
	if (!result)
		*ptr = address;
	return result;
}

CUresult cuMemAddressFree(CUdeviceptr ptr, size_t size)
{
	ENTER(cuMemAddressFree, INIT);
	return driver_result(sim_unreserve(ptr, size));
}

/* The first driver that makes memory on the host (CUDA 12.2 release notes, "Host NUMA memory"). */
#define HOST_SINCE 12020

static CUresult place_of(const CUmemAllocationProp *prop, enum sim_place *place, int *id)
{
	if (!prop || prop->type != CU_MEM_ALLOCATION_TYPE_PINNED)
		return CUDA_ERROR_INVALID_VALUE;
	*place = SIM_ON_HOST;
	*id = 0;
	if (prop->location.type != CU_MEM_LOCATION_TYPE_DEVICE && driver_version < HOST_SINCE)
		return CUDA_ERROR_INVALID_VALUE;
	switch (prop->location.type) {
	case CU_MEM_LOCATION_TYPE_DEVICE:
		*place = SIM_ON_DEVICE;
		*id = prop->location.id;
		return driver_device(*id) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
	case CU_MEM_LOCATION_TYPE_HOST_NUMA:
		*id = prop->location.id;
		return *id == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE; /* there is only node 0 */
	case CU_MEM_LOCATION_TYPE_HOST:
	case CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT:
		return CUDA_SUCCESS;
	default:
		return CUDA_ERROR_INVALID_VALUE;
	}
}

CUresult cuMemGetAllocationGranularity(size_t *granularity, const CUmemAllocationProp *prop,
                                       CUmemAllocationGranularity_flags option)
{
	enum sim_place place;
	int id;

	ENTER(cuMemGetAllocationGranularity, INIT);
	CUresult result = need_vmm();
	if (!result)
		result = place_of(prop, &place, &id);
	if (!result && (!granularity || (int)option < 0 || option > CU_MEM_ALLOC_GRANULARITY_RECOMMENDED))
		result = CUDA_ERROR_INVALID_VALUE;
	if (!result)
		*granularity = SIM_GRANULE;
	return result;
}

CUresult cuMemCreate(CUmemGenericAllocationHandle *handle, size_t size, const CUmemAllocationProp *prop,
                     unsigned long long flags)
{
	struct sim_physical *physical;
	enum sim_place place;
	int id;

	ENTER(cuMemCreate, INIT);
	CUresult result = need_vmm();
	if (!result)
		result = place_of(prop, &place, &id);
	if (!result && (!handle || flags))
		result = CUDA_ERROR_INVALID_VALUE;
	/* There is no fabric service. Host memory has no RDMA and no compression. */
	if (!result && prop->requestedHandleTypes & ~CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
		result = CUDA_ERROR_NOT_PERMITTED;
	if (!result && place == SIM_ON_HOST &&
	    (prop->allocFlags.gpuDirectRDMACapable || prop->allocFlags.compressionType))
		result = CUDA_ERROR_INVALID_VALUE;
	if (!result)
		result = driver_result(sim_physical_create(place, id, size, &physical));
	if (!result) {
		*(struct physical_face *)sim_physical_face(physical) =
		    (struct physical_face){.handle_types = prop->requestedHandleTypes,
		                           .rdma = prop->allocFlags.gpuDirectRDMACapable,
		                           .usage = prop->allocFlags.usage};
		*handle = (CUmemGenericAllocationHandle)(uintptr_t)physical;
	}
	return result;
}

CUresult cuMemRelease(CUmemGenericAllocationHandle handle)
{
	ENTER(cuMemRelease, INIT);
	return driver_physical(handle) ? driver_result(sim_physical_release(driver_physical(handle)))
	                               : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuMemMap(CUdeviceptr ptr, size_t size, size_t offset, CUmemGenericAllocationHandle handle,
                  unsigned long long flags)
{
	ENTER(cuMemMap, INIT);
	if (flags || !driver_physical(handle))
		return CUDA_ERROR_INVALID_VALUE;
	return driver_result(sim_map(ptr, size, offset, driver_physical(handle)));
}

CUresult cuMemUnmap(CUdeviceptr ptr, size_t size)
{
	ENTER(cuMemUnmap, INIT);
	return driver_result(sim_unmap(ptr, size));
}

CUresult cuMemSetAccess(CUdeviceptr ptr, size_t size, const CUmemAccessDesc *desc, size_t count)
{
	CUresult result = CUDA_SUCCESS;

	ENTER(cuMemSetAccess, INIT);
	if (!desc || !count)
		return CUDA_ERROR_INVALID_VALUE;
	for (size_t i = 0; i < count && !result; i++) {
		int device = driver_location(desc[i].location);
		unsigned flags = desc[i].flags;

		if (device == -2)
			return CUDA_ERROR_INVALID_DEVICE;
		if (flags != CU_MEM_ACCESS_FLAGS_PROT_NONE && flags != CU_MEM_ACCESS_FLAGS_PROT_READ &&
		    flags != CU_MEM_ACCESS_FLAGS_PROT_READWRITE)
			return CUDA_ERROR_INVALID_VALUE;
		result = driver_result(sim_set_access(ptr, size, device, flags & 1, flags & 2));
	}
	return result;
}

CUresult cuMemGetAccess(unsigned long long *flags, const CUmemLocation *location, CUdeviceptr ptr)
{
	struct sim_pointer about;

	ENTER(cuMemGetAccess, INIT);
	if (!flags || !location || !sim_pointer(ptr, &about) || about.kind != SIM_VMM || !about.mapped)
		return CUDA_ERROR_INVALID_VALUE;
	int device = driver_location(*location);
	if (device == -2)
		return CUDA_ERROR_INVALID_DEVICE;
	bool read = device == SIM_CPU ? about.host_access : about.access & 1u << device;
	bool write = device == SIM_CPU ? about.host_access : about.access_write & 1u << device;
	*flags = write  ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE
	         : read ? CU_MEM_ACCESS_FLAGS_PROT_READ
	                : CU_MEM_ACCESS_FLAGS_PROT_NONE;
	return CUDA_SUCCESS;
}

CUresult cuMemGetAllocationPropertiesFromHandle(CUmemAllocationProp *prop,
                                                CUmemGenericAllocationHandle handle)
{
	enum sim_place place;
	uint64_t bytes;
	int id;

	ENTER(cuMemGetAllocationPropertiesFromHandle, INIT);
	if (!prop || !driver_physical(handle))
		return CUDA_ERROR_INVALID_VALUE;
	sim_physical_about(driver_physical(handle), &place, &id, &bytes);
	*prop = (CUmemAllocationProp){.type = CU_MEM_ALLOCATION_TYPE_PINNED};
	prop->location.type =
	    place == SIM_ON_DEVICE ? CU_MEM_LOCATION_TYPE_DEVICE : CU_MEM_LOCATION_TYPE_HOST_NUMA;
	prop->location.id = id;
	const struct physical_face *face = sim_physical_face(driver_physical(handle));
	prop->requestedHandleTypes = (CUmemAllocationHandleType)face->handle_types;
	prop->allocFlags.gpuDirectRDMACapable = face->rdma;
	prop->allocFlags.usage = face->usage;
	return CUDA_SUCCESS;
}

CUresult cuMemRetainAllocationHandle(CUmemGenericAllocationHandle *handle, void *addr)
{
	struct sim_physical *physical;

	ENTER(cuMemRetainAllocationHandle, INIT);
	CUresult result =
	    handle ? driver_result(sim_physical_retain((uint64_t)addr, &physical)) : CUDA_ERROR_INVALID_VALUE;
	if (!result)
		*handle = (CUmemGenericAllocationHandle)(uintptr_t)physical;
	return result;
}
