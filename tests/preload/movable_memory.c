/* Blocks: made and given back in every way. */
#include "movable.h"

#define POOL ((uint64_t)1 << 30) /* addresses of a pool */

static bool pool[26]; /* made by grow */

/* Physical memory of its own at `at`. */
static CUresult back(int device, CUdeviceptr at, uint64_t bytes)
{
	CUmemAllocationProp properties = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
	                                  .location = {CU_MEM_LOCATION_TYPE_DEVICE, device}};
	CUmemAccessDesc access = {{CU_MEM_LOCATION_TYPE_DEVICE, device}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
	CUmemGenericAllocationHandle handle;
	CUresult result = cuMemCreate(&handle, bytes, &properties, 0);

	if (result || (result = cuMemMap(at, bytes, 0, handle, 0)) ||
	    (result = cuMemSetAccess(at, bytes, &access, 1)))
		return result;
	return cuMemRelease(handle);
}

static CUresult grow_once(struct block *block, uint64_t bytes)
{
	CUresult result = back(0, block->address + block->bytes, bytes);

	block->bytes += result ? 0 : bytes;
	return result;
}

CUresult movable_create(int device, uint64_t bytes, CUdeviceptr *address)
{
	CUresult result = cuMemAddressReserve(address, bytes, 0, 0, 0);

	return result ? result : back(device, *address, bytes);
}

CUresult movable_uncreate(CUdeviceptr address, uint64_t bytes)
{
	CUresult result = cuMemUnmap(address, bytes);

	return result ? result : cuMemAddressFree(address, bytes);
}

CUresult movable_grow(struct block *block, uint64_t bytes, uint64_t count)
{
	CUresult result = CUDA_SUCCESS;

	if (!pool[block - movable_blocks]) {
		*block = (struct block){0};
		result = cuMemAddressReserve(&block->address, POOL, 0, 0, 0);
		pool[block - movable_blocks] = true;
	}
	for (uint64_t i = 0; !result && i < count; i++)
		result = grow_once(block, bytes);
	return result;
}

CUresult movable_give(struct block *block)
{
	bool *made = &pool[block - movable_blocks];

	if (!*made)
		return cuMemFree_v2(block->address);
	*made = false;
	CUresult result = cuMemUnmap(block->address, block->bytes);
	return result ? result : cuMemAddressFree(block->address, POOL);
}

/* Two call sites, so that one's requests do not look like the growth of the other's. */
__attribute__((noinline)) CUresult movable_alloc(struct block *block, uint64_t bytes)
{
	block->bytes = bytes;
	CUresult result = cuMemAlloc_v2(&block->address, bytes);
	return result;
}

__attribute__((noinline)) CUresult movable_alloc_early(struct block *block, uint64_t bytes)
{
	block->bytes = bytes;
	CUresult result = cuMemAlloc_v2(&block->address, bytes);
	return result ? result : CUDA_SUCCESS;
}

CUresult movable_brim(struct block *block)
{
	size_t free = 0, total = 0;
	CUresult result = cuMemGetInfo_v2(&free, &total);

	block->bytes = free / MOVABLE_GRANULE * MOVABLE_GRANULE;
	return result ? result : cuMemAlloc_v2(&block->address, block->bytes);
}
