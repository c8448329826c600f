#include "host_kinds.h"

#include <stdint.h>
#include <sys/mman.h>

static CUresult make_mmap(struct memory *memory, size_t bytes, int node)
{
	memory->host =
	    mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	return memory->host == MAP_FAILED ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
}

static void free_mmap(struct memory *memory, size_t bytes)
{
	munmap(memory->host, bytes);
}

static CUresult make_registered(struct memory *memory, size_t bytes, int node)
{
	CUresult result = make_mmap(memory, bytes, node);
	if (!result)
		result = cuMemHostRegister(memory->host, bytes, CU_MEMHOSTREGISTER_DEVICEMAP);
	if (!result)
		result = cuMemHostGetDevicePointer(&memory->device, memory->host, 0);
	return result;
}

static void free_registered(struct memory *memory, size_t bytes)
{
	cuMemHostUnregister(memory->host);
	free_mmap(memory, bytes);
}

static CUresult make_alloc_host(struct memory *memory, size_t bytes, int node)
{
	CUresult result = cuMemAllocHost((void **)&memory->host, bytes);
	if (!result)
		result = cuMemHostGetDevicePointer(&memory->device, memory->host, 0);
	return result;
}

static CUresult make_host_alloc(struct memory *memory, size_t bytes, int node)
{
	CUresult result = cuMemHostAlloc((void **)&memory->host, bytes,
	                                 CU_MEMHOSTALLOC_DEVICEMAP | CU_MEMHOSTALLOC_PORTABLE);
	if (!result)
		result = cuMemHostGetDevicePointer(&memory->device, memory->host, 0);
	return result;
}

static void free_host(struct memory *memory, size_t bytes)
{
	cuMemFreeHost(memory->host);
}

static CUresult make_vmm(struct memory *memory, size_t bytes, int node)
{
	CUmemAllocationProp want = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
	                            .location = {.type = CU_MEM_LOCATION_TYPE_HOST_NUMA, .id = node}};
	CUmemAccessDesc access = {.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE},
	                          .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
	CUresult result = cuMemCreate(&memory->handle, bytes, &want, 0);
	if (!result)
		result = cuMemAddressReserve(&memory->device, bytes, 0, 0, 0);
	if (!result)
		result = cuMemMap(memory->device, bytes, 0, memory->handle, 0);
	if (!result)
		result = cuMemSetAccess(memory->device, bytes, &access, 1);
	return result;
}

static void free_vmm(struct memory *memory, size_t bytes)
{
	cuMemUnmap(memory->device, bytes);
	cuMemAddressFree(memory->device, bytes);
	cuMemRelease(memory->handle);
}

static CUresult advise(CUdeviceptr range, size_t bytes)
{
	CUmemLocation host = {.type = CU_MEM_LOCATION_TYPE_HOST},
	              device = {.type = CU_MEM_LOCATION_TYPE_DEVICE};
	CUresult result = cuMemAdvise(range, bytes, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, host);
	if (!result)
		result = cuMemAdvise(range, bytes, CU_MEM_ADVISE_SET_ACCESSED_BY, device);
	return result;
}

static CUresult make_managed(struct memory *memory, size_t bytes, int node)
{
	size_t free_bytes, total;
	CUresult result = cuMemGetInfo(&free_bytes, &total);
	if (result || free_bytes / 2 < bytes)
		return result ? result : CUDA_ERROR_OUT_OF_MEMORY;
	result = cuMemAllocManaged(&memory->device, bytes, CU_MEM_ATTACH_GLOBAL);
	memory->host = (char *)(uintptr_t)memory->device;
	return result ? result : advise(memory->device, bytes);
}

/* The other first: what the device did not touch before the host does. */
static CUresult make_managed_host_first(struct memory *memory, size_t bytes, int node)
{
	CUresult result = make_managed(memory, bytes, node);
	memory->device = 0;
	return result;
}

static void free_managed(struct memory *memory, size_t bytes)
{
	cuMemFree((CUdeviceptr)(uintptr_t)memory->host);
}

static CUresult make_pool(struct memory *memory, size_t bytes, int node, CUmemAllocationType type)
{
	CUmemPoolProps want = {.allocType = type,
	                       .location = {.type = CU_MEM_LOCATION_TYPE_HOST_NUMA, .id = node}};
	CUmemAccessDesc access = {.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE},
	                          .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
	CUresult result = cuMemPoolCreate(&memory->pool, &want);
	if (!result)
		result = cuMemPoolSetAccess(memory->pool, &access, 1);
	if (!result)
		result = cuMemAllocFromPoolAsync(&memory->device, bytes, memory->pool, NULL);
	if (!result)
		result = cuCtxSynchronize();
	memory->host = (char *)(uintptr_t)memory->device;
	return result;
}

static CUresult make_pinned_pool(struct memory *memory, size_t bytes, int node)
{
	return make_pool(memory, bytes, node, CU_MEM_ALLOCATION_TYPE_PINNED);
}

static CUresult make_managed_pool(struct memory *memory, size_t bytes, int node)
{
	return make_pool(memory, bytes, node, CU_MEM_ALLOCATION_TYPE_MANAGED);
}

static void free_pool(struct memory *memory, size_t bytes)
{
	cuMemFree(memory->device);
	cuMemPoolDestroy(memory->pool);
}

const struct host_kind host_kinds[] = {
    {"mmap", false, make_mmap, free_mmap},
    {"mmap registered", true, make_registered, free_registered},
    {"cuMemAllocHost", true, make_alloc_host, free_host},
    {"cuMemHostAlloc mapped", true, make_host_alloc, free_host},
    {"cuMemCreate HOST_NUMA", true, make_vmm, free_vmm},
    {"managed, device first", false, make_managed, free_managed},
    {"managed, host first", false, make_managed_host_first, free_managed},
    {"pool PINNED HOST_NUMA", false, make_pinned_pool, free_pool},
    {"pool MANAGED HOST_NUMA", false, make_managed_pool, free_pool},
    {NULL, false, NULL, NULL},
};
