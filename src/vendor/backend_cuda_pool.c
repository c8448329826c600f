/* Memory in stream order (CUDA Driver API, "Stream Ordered Memory Allocator"). */
#include "backend_cuda.h"

#include "minmax.h"

static bool has_pools(int device)
{
	return spill_cuda.cuMemPoolCreate && spill_cuda.cuMemPoolDestroy && spill_cuda.cuMemPoolSetAccess &&
	       spill_cuda.cuMemPoolSetAttribute && spill_cuda.cuMemPoolGetAttribute &&
	       spill_cuda.cuMemPoolTrimTo && spill_cuda.cuMemAllocFromPoolAsync &&
	       spill_cuda.cuMemFreeAsync &&
	       spill_cuda_attribute(device, CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED);
}

/*
 * On host a pool is of managed memory that prefers the host. Copy calls that name device memory
 * refuse memory of a pool of pinned host memory (measured, H200: invalid value). Managed memory is
 * as fast in place, and every copy call takes it. It lives on the node of host.numa, or on the one
 * nearest to the device.
 *
 * A managed pool with the device as its location is plain device memory. Without a location
 * (INVALID) it migrates when it is touched, as memory does that prefers the device or nothing.
 */
static CUmemPoolProps pool_properties(int device, enum spill_place place, enum spill_location preferred)
{
	CUmemPoolProps wanted = {.allocType = CU_MEM_ALLOCATION_TYPE_MANAGED,
	                         .location = {CU_MEM_LOCATION_TYPE_HOST_NUMA, spill_cuda_host_node(device)}};
	if (place == SPILL_PLACE_DEVICE) {
		wanted.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
		wanted.location = (CUmemLocation){CU_MEM_LOCATION_TYPE_DEVICE, device};
	} else if (preferred != SPILL_LOCATION_HOST) {
		wanted.location = (CUmemLocation){CU_MEM_LOCATION_TYPE_INVALID, 0};
	}
	return wanted;
}

static int create_keeping_memory(const CUmemPoolProps *wanted, CUmemoryPool *made)
{
	cuuint64_t everything = UINT64_MAX;
	int result = spill_cuda.cuMemPoolCreate(made, wanted);
	if (result)
		return result;
	result = spill_cuda.cuMemPoolSetAttribute(*made, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &everything);
	if (result)
		spill_cuda.cuMemPoolDestroy(*made);
	return result;
}

static int pool_create(int device, enum spill_place place, enum spill_location preferred, void **pool)
{
	CUmemPoolProps wanted = pool_properties(device, place, preferred);
	CUmemoryPool made;
	if (!has_pools(device) ||
	    (place != SPILL_PLACE_DEVICE &&
	     !(spill_cuda_attribute(device, CU_DEVICE_ATTRIBUTE_HOST_NUMA_MEMORY_POOLS_SUPPORTED) &&
	       spill_cuda_attribute(device, CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS))))
		return CUDA_ERROR_NOT_SUPPORTED;
	int result = SPILL_CUDA_RELAXED(create_keeping_memory(&wanted, &made));
	if (!result)
		*pool = made;
	return result;
}

static int pool_destroy(void *pool)
{
	return SPILL_CUDA_RELAXED(spill_cuda.cuMemPoolDestroy(pool));
}

static int pool_allow(void *pool, int device)
{
	CUmemAccessDesc access = {{CU_MEM_LOCATION_TYPE_DEVICE, device}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
	return spill_cuda.cuMemPoolSetAccess(pool, &access, 1);
}

static int pool_alloc(void *pool, uint64_t bytes, void *stream, bool per_thread, uint64_t *ptr)
{
	CUdeviceptr address;
	CUstream on = spill_cuda_stream(stream, per_thread);
	int result = SPILL_CUDA_RELAXED(spill_cuda.cuMemAllocFromPoolAsync(&address, bytes, pool, on));
	if (!result)
		*ptr = address;
	return result;
}

static int pool_free(uint64_t ptr, void *stream, bool per_thread)
{
	return SPILL_CUDA_RELAXED(spill_cuda.cuMemFreeAsync(ptr, spill_cuda_stream(stream, per_thread)));
}

static int pool_figure(void *pool, CUmemPool_attribute attribute, uint64_t *bytes)
{
	cuuint64_t value;
	if (!spill_cuda.cuMemPoolGetAttribute)
		return CUDA_ERROR_NOT_SUPPORTED;
	int result = SPILL_CUDA_RELAXED(spill_cuda.cuMemPoolGetAttribute(pool, attribute, &value));
	if (!result)
		*bytes = value;
	return result;
}

static int pool_reserved(void *pool, uint64_t *bytes)
{
	return pool_figure(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, bytes);
}

static int pool_unused(void *pool, uint64_t *bytes)
{
	uint64_t used, reserved;
	int result = pool_reserved(pool, &reserved);
	if (!result)
		result = pool_figure(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &used);
	if (!result)
		*bytes = spill_minus(reserved, used);
	return result;
}

static int pool_trim(void *pool)
{
	if (!spill_cuda.cuMemPoolTrimTo)
		return CUDA_ERROR_NOT_SUPPORTED;
	return SPILL_CUDA_RELAXED(spill_cuda.cuMemPoolTrimTo(pool, 0));
}

static int pool_by(CUresult (*find)(CUmemoryPool *, CUdevice), int device, void **pool)
{
	CUmemoryPool found;
	int result = find ? find(&found, device) : CUDA_ERROR_NOT_SUPPORTED;
	if (!result)
		*pool = found;
	return result;
}

static int pool_current(int device, void **pool)
{
	return pool_by(spill_cuda.cuDeviceGetMemPool, device, pool);
}

static int pool_default(int device, void **pool)
{
	return pool_by(spill_cuda.cuDeviceGetDefaultMemPool, device, pool);
}

static enum spill_place pool_place(const void *properties, int *device)
{
	const CUmemPoolProps *wanted = properties;
	if (wanted->allocType == CU_MEM_ALLOCATION_TYPE_MANAGED)
		return SPILL_PLACE_MANAGED;
	if (wanted->location.type != CU_MEM_LOCATION_TYPE_DEVICE)
		return SPILL_PLACE_HOST;
	*device = wanted->location.id;
	return SPILL_PLACE_DEVICE;
}

static enum spill_place pool_place_at(const void *location, unsigned type)
{
	int device;
	return pool_place(
	    &(const CUmemPoolProps){.allocType = type, .location = *(const CUmemLocation *)location},
	    &device);
}

static bool pool_special(const void *properties)
{
	const CUmemPoolProps *wanted = properties;
	return wanted->handleTypes != CU_MEM_HANDLE_TYPE_NONE || wanted->maxSize || wanted->usage;
}

static int pool_share(const void *descriptions, unsigned index, uint64_t va, uint64_t bytes)
{
	return spill_cuda.cuMemSetAccess(va, bytes, (const CUmemAccessDesc *)descriptions + index, 1);
}

static int pool_share_device(const void *descriptions, unsigned index)
{
	const CUmemAccessDesc *access = (const CUmemAccessDesc *)descriptions + index;
	if (access->location.type != CU_MEM_LOCATION_TYPE_DEVICE)
		return SPILL_SHARED_WITH_OTHERS;
	return access->flags != CU_MEM_ACCESS_FLAGS_PROT_NONE ? access->location.id
	                                                      : SPILL_SHARED_WITH_NOBODY;
}

const struct spill_vendor_pools spill_cuda_pools = {
    .outlive_contexts = true,
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
    .place_at = pool_place_at,
    .special = pool_special,
    .share = pool_share,
    .share_device = pool_share_device,
};

int spill_cuda_graph_reserved(int device, uint64_t *bytes)
{
	cuuint64_t reserved;
	if (!spill_cuda.cuDeviceGetGraphMemAttribute)
		return CUDA_ERROR_NOT_SUPPORTED;
	int result = spill_cuda.cuDeviceGetGraphMemAttribute(device, CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT,
	                                                     &reserved);
	if (!result)
		*bytes = reserved;
	return result;
}
