/*
 * CUDA's plain, pinned, managed and physical memory, and its mappings. cuMemAdvise and
 * cuMemPrefetchAsync take a device (since 8.0) or a location (since 12.2; the only form in CUDA
 * 13's headers). libspill calls the location form where it exists.
 */
#include "backend_cuda.h"

#include <stdatomic.h>
#include <string.h>

#include "numa.h"
#include "minmax.h"

/* Up to 1 MiB: pieces of 512 bytes in shared blocks. Above: blocks of 2 MiB (measured, H200). */
static uint64_t footprint(uint64_t bytes)
{
	uint64_t unit = bytes <= 1 << 20 ? 512 : 2 << 20;
	return spill_round_up(bytes, unit);
}

/* Rows start at multiples of 512 bytes (measured, H200). */
static uint64_t pitch(uint64_t width)
{
	return width > UINT64_MAX - 511 ? 0 : (width + 511) / 512 * 512;
}

static int device_alloc(uint64_t bytes, uint64_t *ptr)
{
	CUdeviceptr address;
	int result = SPILL_CUDA_RELAXED(spill_cuda.cuMemAlloc_v2(&address, bytes));
	if (!result)
		*ptr = address;
	return result;
}

static int device_free(uint64_t ptr)
{
	return SPILL_CUDA_RELAXED(spill_cuda.cuMemFree_v2(ptr));
}

static int host_free(void *host)
{
	return SPILL_CUDA_RELAXED(spill_cuda.cuMemFreeHost(host));
}

/* Portable: every context of the process may use the memory. */
static int host_alloc(uint64_t bytes, uint64_t *ptr, void **host)
{
	void *memory;
	CUdeviceptr mapped;
	struct spill_numa_thread before;
	spill_numa_enter(&before);
	unsigned flags = CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP;
	int result = SPILL_CUDA_RELAXED(spill_cuda.cuMemHostAlloc(&memory, bytes, flags));
	spill_numa_leave(&before);
	if (result)
		return result;
	result = spill_cuda.cuMemHostGetDevicePointer_v2(&mapped, memory, 0);
	if (result) {
		host_free(memory);
		return result;
	}
	*ptr = mapped;
	*host = memory;
	return 0;
}

static int managed_alloc(uint64_t bytes, uint64_t *ptr)
{
	CUdeviceptr address;
	if (!spill_cuda.cuMemAllocManaged)
		return CUDA_ERROR_NOT_SUPPORTED;
	int result = SPILL_CUDA_RELAXED(spill_cuda.cuMemAllocManaged(&address, bytes, CU_MEM_ATTACH_GLOBAL));
	if (!result)
		*ptr = address;
	return result;
}

static int advise(uint64_t ptr, uint64_t bytes, CUmem_advise advice, enum spill_location where, int device)
{
	bool on_device = where == SPILL_LOCATION_DEVICE;
	CUmemLocation location = {on_device ? CU_MEM_LOCATION_TYPE_DEVICE : CU_MEM_LOCATION_TYPE_HOST,
	                          on_device ? device : 0};
	if (spill_cuda.cuMemAdvise_v2)
		return SPILL_CUDA_RELAXED(spill_cuda.cuMemAdvise_v2(ptr, bytes, advice, location));
	if (spill_cuda.cuMemAdvise)
		return SPILL_CUDA_RELAXED(
		    spill_cuda.cuMemAdvise(ptr, bytes, advice, on_device ? device : CU_DEVICE_CPU));
	return CUDA_ERROR_NOT_SUPPORTED;
}

/* The older form has no NUMA nodes. */
static int advise_preferred(uint64_t ptr, uint64_t bytes, enum spill_location where, int device)
{
	CUmemLocation node = {CU_MEM_LOCATION_TYPE_HOST_NUMA, spill_numa_node()};
	if (where == SPILL_LOCATION_HOST && node.id != SPILL_NODE_NEAREST && spill_cuda.cuMemAdvise_v2)
		return SPILL_CUDA_RELAXED(
		    spill_cuda.cuMemAdvise_v2(ptr, bytes, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, node));
	return advise(ptr, bytes, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, where, device);
}

static int advise_accessed_by(uint64_t ptr, uint64_t bytes, enum spill_location accessor, int device)
{
	return advise(ptr, bytes, CU_MEM_ADVISE_SET_ACCESSED_BY, accessor, device);
}

static int advise_read_mostly(uint64_t ptr, uint64_t bytes, int device)
{
	return advise(ptr, bytes, CU_MEM_ADVISE_SET_READ_MOSTLY, SPILL_LOCATION_DEVICE, device);
}

static int prefetch_to_device(uint64_t ptr, uint64_t bytes, int device)
{
	CUmemLocation location = {CU_MEM_LOCATION_TYPE_DEVICE, device};
	if (spill_cuda.cuMemPrefetchAsync_v2)
		return spill_cuda.cuMemPrefetchAsync_v2(ptr, bytes, location, 0, NULL);
	if (spill_cuda.cuMemPrefetchAsync)
		return spill_cuda.cuMemPrefetchAsync(ptr, bytes, device, NULL);
	return CUDA_ERROR_NOT_SUPPORTED;
}

const struct spill_vendor_memory spill_cuda_memory = {
    .footprint = footprint,
    .pitch = pitch,
    .device_alloc = device_alloc,
    .device_free = device_free,
    .host_alloc = host_alloc,
    .host_free = host_free,
    .managed_alloc = managed_alloc,
    .managed_free = device_free,
    .advise_preferred = advise_preferred,
    .advise_accessed_by = advise_accessed_by,
    .advise_read_mostly = advise_read_mostly,
    .prefetch = prefetch_to_device,
};
/* The driver answers -1 on a machine without NUMA, whose node is 0. */
int spill_cuda_host_node(int device)
{
	int node = spill_numa_node();
	if (node == SPILL_NODE_NEAREST)
		node = spill_cuda_attribute(device, CU_DEVICE_ATTRIBUTE_HOST_NUMA_ID);
	return node > 0 ? node : 0;
}

/* By device, for memory on it and on the host: the driver has refused memory that can be handed on. */
static _Atomic bool refused_descriptors[SPILL_DEVICES][2];

/*
 * Such memory costs no more to make, map and read than other memory (measured, H200). WSL2 has no
 * descriptors.
 */
static bool has_descriptors(int device, bool on_host)
{
	return spill_cuda.cuMemExportToShareableHandle && spill_cuda.cuMemImportFromShareableHandle &&
	       spill_cuda.cuMemRetainAllocationHandle && device >= 0 && device < SPILL_DEVICES &&
	       !atomic_load_explicit(&refused_descriptors[device][on_host], memory_order_relaxed) &&
	       spill_cuda_attribute(device, CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED);
}

static CUmemAllocationProp pinned_properties(int device, bool on_host)
{
	return (CUmemAllocationProp){
	    .type = CU_MEM_ALLOCATION_TYPE_PINNED,
	    .location = {on_host ? CU_MEM_LOCATION_TYPE_HOST_NUMA : CU_MEM_LOCATION_TYPE_DEVICE,
	                 on_host ? spill_cuda_host_node(device) : device},
	};
}

static int physical_granularity(int device, bool on_host, uint64_t *bytes)
{
	CUmemAllocationProp wanted = pinned_properties(device, on_host);
	size_t unit;
	int result =
	    spill_cuda.cuMemGetAllocationGranularity(&unit, &wanted, CU_MEM_ALLOC_GRANULARITY_MINIMUM);
	if (!result)
		*bytes = unit;
	return result;
}

static int range_reserve(uint64_t bytes, uint64_t alignment, uint64_t *va)
{
	CUdeviceptr address;
	int result = spill_cuda.cuMemAddressReserve(&address, bytes, alignment, 0, 0);
	if (!result)
		*va = address;
	return result;
}

static int range_unreserve(uint64_t va, uint64_t bytes)
{
	return spill_cuda.cuMemAddressFree(va, bytes);
}

/* Programs look up whether they got compression, which is a hint. Host memory has none. */
static void physical_describe(const void *properties, struct spill_physical *physical)
{
	CUmemAllocationProp asked = *(const CUmemAllocationProp *)properties;
	bool on_device = asked.location.type == CU_MEM_LOCATION_TYPE_DEVICE;
	bool on_host = asked.location.type == CU_MEM_LOCATION_TYPE_HOST ||
	               asked.location.type == CU_MEM_LOCATION_TYPE_HOST_NUMA ||
	               asked.location.type == CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT;
	if (asked.type != CU_MEM_ALLOCATION_TYPE_PINNED)
		on_device = on_host = false;
	*physical = (struct spill_physical){
	    .where = on_device ? SPILL_LOCATION_DEVICE
	             : on_host ? SPILL_LOCATION_HOST
	                       : SPILL_LOCATION_NONE,
	    .device = on_device ? asked.location.id : 0,
	    /* Tiles of arrays, the decompression engine. */
	    .device_only = asked.allocFlags.usage != 0,
	    .exportable = asked.requestedHandleTypes != 0,
	};
	asked.allocFlags.compressionType = 0;
	memcpy(physical->asked, &asked, sizeof(asked));
}
_Static_assert(sizeof(CUmemAllocationProp) <= SPILL_PROPERTIES_BYTES, "room for all properties");

static int physical_create_as(const void *properties, uint64_t bytes, uint64_t *handle)
{
	CUmemGenericAllocationHandle made;
	int result = spill_cuda.cuMemCreate(&made, bytes, properties, 0);
	if (!result)
		*handle = made;
	return result;
}

static _Atomic bool refused_host_chunk[SPILL_DEVICES];

bool spill_cuda_refused_host_chunk(int device)
{
	return device >= 0 && device < SPILL_DEVICES && atomic_load(&refused_host_chunk[device]);
}

/* Does the driver refuse this kind of memory, whatever is free? */
static bool is_refused(int result)
{
	return result == CUDA_ERROR_INVALID_VALUE || result == CUDA_ERROR_INVALID_DEVICE ||
	       result == CUDA_ERROR_NOT_SUPPORTED || result == CUDA_ERROR_NOT_PERMITTED;
}

static int physical_create(int device, bool on_host, uint64_t bytes, uint64_t *handle)
{
	CUmemAllocationProp wanted = pinned_properties(device, on_host);
	int result = physical_create_as(&wanted, bytes, handle);
	if (on_host && device >= 0 && device < SPILL_DEVICES && is_refused(result))
		atomic_store(&refused_host_chunk[device], true);
	return result;
}

static int physical_create_shareable(int device, bool on_host, uint64_t bytes, uint64_t *handle)
{
	CUmemAllocationProp wanted = pinned_properties(device, on_host);
	bool shareable = has_descriptors(device, on_host);
	int result = CUDA_ERROR_NOT_SUPPORTED;
	wanted.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
	if (shareable)
		result = physical_create_as(&wanted, bytes, handle);
	if (!is_refused(result))
		return result;
	result = physical_create(device, on_host, bytes, handle);
	if (!result && shareable)
		atomic_store(&refused_descriptors[device][on_host], true);
	return result;
}

static int physical_release(uint64_t handle)
{
	return spill_cuda.cuMemRelease(handle);
}

static int physical_retain(uint64_t va, uint64_t *handle)
{
	CUmemGenericAllocationHandle made;
	if (!spill_cuda.cuMemRetainAllocationHandle)
		return CUDA_ERROR_NOT_SUPPORTED;
	int result = spill_cuda.cuMemRetainAllocationHandle(&made, (void *)(uintptr_t)va);
	if (!result)
		*handle = made;
	return result;
}

static int physical_to_descriptor(uint64_t handle, int *descriptor)
{
	int made;
	if (!spill_cuda.cuMemExportToShareableHandle)
		return CUDA_ERROR_NOT_SUPPORTED;
	int result = spill_cuda.cuMemExportToShareableHandle(&made, handle,
	                                                     CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
	if (!result)
		*descriptor = made;
	return result;
}

static int physical_from_descriptor(int descriptor, uint64_t *handle)
{
	CUmemGenericAllocationHandle made;
	if (!spill_cuda.cuMemImportFromShareableHandle)
		return CUDA_ERROR_NOT_SUPPORTED;
	int result = spill_cuda.cuMemImportFromShareableHandle(&made, (void *)(intptr_t)descriptor,
	                                                       CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
	if (!result)
		*handle = made;
	return result;
}

static int range_map(uint64_t va, uint64_t bytes, uint64_t handle)
{
	return spill_cuda.cuMemMap(va, bytes, 0, handle, 0);
}

static int range_unmap(uint64_t va, uint64_t bytes)
{
	return spill_cuda.cuMemUnmap(va, bytes);
}

static int range_allow(uint64_t va, uint64_t bytes, int device)
{
	CUmemAccessDesc access = {{CU_MEM_LOCATION_TYPE_DEVICE, device}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
	return spill_cuda.cuMemSetAccess(va, bytes, &access, 1);
}

const struct spill_vendor_physical spill_cuda_physical = {
    .describe = physical_describe,
    .granularity = physical_granularity,
    .create = physical_create,
    .create_shareable = physical_create_shareable,
    .create_as = physical_create_as,
    .release = physical_release,
    .shareable = has_descriptors,
    .retain = physical_retain,
    .to_descriptor = physical_to_descriptor,
    .from_descriptor = physical_from_descriptor,
};

const struct spill_vendor_vmm spill_cuda_vmm = {
    .outlive_contexts = true,
    .reserve = range_reserve,
    .unreserve = range_unreserve,
    .map = range_map,
    .unmap = range_unmap,
    .allow = range_allow,
};
