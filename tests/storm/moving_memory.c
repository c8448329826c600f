/* Blocks of device memory, made and given back in every way. */
#include "moving.h"

#include <stdlib.h>
#include <string.h>

#define GRANULE ((uint64_t)2 << 20)
#define POOL_ROOM ((uint64_t)64 << 20)
#define ROW ((uint64_t)1024)

uint64_t moving_pieces(const struct moving_block *block)
{
	return (block->bytes + MOVING_PIECE - 1) / MOVING_PIECE;
}

uint64_t moving_span(const struct moving_block *block, uint64_t first, uint64_t count)
{
	uint64_t left = block->bytes - first * MOVING_PIECE;
	return left < count * MOVING_PIECE ? left : count * MOVING_PIECE;
}

struct moving_block *moving_some(struct moving_worker *worker)
{
	uint64_t start = moving_random(worker, MOVING_BLOCKS);
	for (uint64_t i = 0; i < MOVING_BLOCKS; i++) {
		struct moving_block *block = &worker->blocks[(start + i) % MOVING_BLOCKS];
		if (block->kind)
			return block;
	}
	return NULL;
}

static struct moving_block *empty(struct moving_worker *worker)
{
	for (unsigned i = 0; i < MOVING_BLOCKS; i++)
		if (!worker->blocks[i].kind)
			return &worker->blocks[i];
	return NULL;
}

/* Large ones of any size, as programs ask for, and small ones between them. */
static uint64_t some_bytes(struct moving_worker *worker)
{
	switch (moving_random(worker, 8)) {
	case 0:
		return 8 * (1 + moving_random(worker, 64 << 10));
	case 1:
		return GRANULE * (1 + moving_random(worker, moving_largest / GRANULE));
	default:
		return GRANULE + 8 * moving_random(worker, (moving_largest - GRANULE) / 8 /
		                                               (1 + moving_random(worker, 8)));
	}
}

static CUresult map_part(struct moving_block *block, uint64_t bytes)
{
	CUmemAllocationProp properties = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
	                                  .location = {CU_MEM_LOCATION_TYPE_DEVICE, block->device}};
	CUmemAccessDesc access[MOVING_DEVICES] = {
	    {{CU_MEM_LOCATION_TYPE_DEVICE, 0}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE},
	    {{CU_MEM_LOCATION_TYPE_DEVICE, 1}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE}};
	CUmemGenericAllocationHandle handle;
	CUdeviceptr address = block->address + block->bytes;
	CUresult result = cuMemCreate(&handle, bytes, &properties, 0);

	if (!result)
		result = cuMemMap(address, bytes, 0, handle, 0);
	if (!result)
		result = cuMemSetAccess(address, bytes, access, (size_t)moving_devices);
	if (!result)
		result = cuMemRelease(handle); /* as llama.cpp does: the mapping keeps it */
	if (!result) {
		block->part[block->parts++] = bytes;
		block->bytes += bytes;
	}
	return result;
}

void moving_grow(struct moving_worker *worker, struct moving_block *block)
{
	uint64_t bytes = GRANULE * (1 + moving_random(worker, 4)), first = moving_pieces(block);

	if (block->parts == sizeof(block->part) / sizeof(*block->part) ||
	    block->bytes + bytes > block->room ||
	    !moving_must(worker, "cuMemCreate, map, access, release", map_part(block, bytes)))
		return;
	block->content = realloc(block->content, moving_pieces(block) * sizeof(*block->content));
	worker->used += bytes;
	moving_fill(worker, block, first, moving_pieces(block) - first);
}

/* Rows that need no padding, so that the block is one piece. */
static CUresult make_rows(struct moving_block *block)
{
	size_t rows = (block->bytes + ROW - 1) / ROW, pitch = 0;
	CUresult result = cuMemAllocPitch_v2(&block->address, &pitch, ROW, rows, 8);

	block->bytes = ROW * rows;
	return result || pitch == ROW ? result : CUDA_ERROR_UNKNOWN;
}

static CUresult plug(struct moving_worker *worker, struct moving_block *block)
{
	CUmemoryPool pool = NULL;

	block->address = (uintptr_t)spill_malloc(block->bytes, block->device, worker->streams[block->stream]);
	if (!block->address)
		return CUDA_ERROR_UNKNOWN;
	CUresult result = cuPointerGetAttribute(&pool, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, block->address);
	if (pool)
		atomic_store(&moving_plugged_pool[block->device], pool);
	return result;
}

static CUresult make(struct moving_worker *worker, struct moving_block *block, uint64_t bytes)
{
	static const atomic_bool always = true;

	block->bytes = bytes;
	block->shared = &moving_peers;
	switch (block->kind) {
	case MOVING_POOL:
		block->bytes = 0;
		block->room = POOL_ROOM;
		block->shared = &always;
		return cuMemAddressReserve(&block->address, POOL_ROOM, 0, 0, 0);
	case MOVING_ORDERED:
		return moving_make_ordered(worker, block);
	case MOVING_MANAGED:
		block->shared = &always;
		return cuMemAllocManaged(&block->address, bytes, CU_MEM_ATTACH_GLOBAL);
	case MOVING_PLUGGED:
		return plug(worker, block);
	default:
		return moving_random(worker, 8) ? cuMemAlloc_v2(&block->address, bytes) : make_rows(block);
	}
}

void moving_make(struct moving_worker *worker)
{
	static const char *const made_by[] = {
	    [MOVING_PLAIN] = "a new block by cuMemAlloc or cuMemAllocPitch",
	    [MOVING_POOL] = "a new block by cuMemAddressReserve",
	    [MOVING_ORDERED] = "a new block by cuMemAllocAsync or from a pool",
	    [MOVING_MANAGED] = "a new block by cuMemAllocManaged",
	    [MOVING_PLUGGED] = "a new block by spill_malloc, or its pool",
	};
	static const enum moving_kind kinds[] = {
	    MOVING_PLAIN,   MOVING_PLAIN,   MOVING_PLAIN,   MOVING_PLAIN,   MOVING_PLAIN,   MOVING_POOL,
	    MOVING_ORDERED, MOVING_ORDERED, MOVING_ORDERED, MOVING_ORDERED, MOVING_MANAGED, MOVING_PLUGGED};
	struct moving_block *block = empty(worker);
	uint64_t kind = moving_random(worker, sizeof(kinds) / sizeof(*kinds)), bytes = some_bytes(worker);

	if (!block)
		return;
	int device = moving_devices > 1 && !moving_random(worker, 3) ? 1 - worker->device : worker->device;
	*block = (struct moving_block){
	    .kind = kinds[kind], .device = device, .stream = moving_stream_on(worker, device)};
	if (block->kind == MOVING_PLUGGED && !spill_malloc)
		block->kind = MOVING_PLAIN;
	moving_enter(worker, device);
	CUresult result = make(worker, block, bytes);
	moving_enter(worker, worker->device);
	if (!moving_must(worker, made_by[block->kind], result)) {
		*block = (struct moving_block){0};
		return;
	}
	worker->made++;
	if (block->kind == MOVING_POOL) {
		moving_grow(worker, block);
		return;
	}
	worker->used += block->bytes;
	block->content = calloc(moving_pieces(block), sizeof(*block->content));
	moving_fill(worker, block, 0, moving_pieces(block));
}

void moving_ask(struct moving_worker *worker, const struct moving_block *block)
{
	CUpointer_attribute several[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
	                                 CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL};
	CUdeviceptr at = block->address + moving_random(worker, block->bytes), base = 0;
	int device = -1, type = 0, ordinal = -1;
	void *values[] = {&type, &ordinal};
	size_t bytes = 0;

	if (!moving_must(worker, "cuPointerGetAttribute",
	                 cuPointerGetAttribute(&device, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, at)) ||
	    !moving_must(worker, "cuPointerGetAttributes", cuPointerGetAttributes(2, several, values, at)) ||
	    !moving_must(worker, "cuMemGetAddressRange", cuMemGetAddressRange_v2(&base, &bytes, at)))
		return;
	if (type != CU_MEMORYTYPE_DEVICE || device != block->device || ordinal != device ||
	    at - base >= bytes)
		moving_must(worker, "what is known of a block", CUDA_ERROR_UNKNOWN);
}

static void give_pool(struct moving_worker *worker, struct moving_block *block)
{
	CUdeviceptr at = block->address;

	moving_sync(worker); /* unmapping waits for nobody */
	for (unsigned i = 0; i < block->parts; at += block->part[i++])
		moving_must(worker, "cuMemUnmap", cuMemUnmap(at, block->part[i]));
	moving_must(worker, "cuMemAddressFree", cuMemAddressFree(block->address, block->room));
}

static void give(struct moving_worker *worker, struct moving_block *block)
{
	moving_let_go(worker); /* a free waits for it */
	/* The driver's free waits for the context that has the memory, not for its peers. */
	moving_use_on(worker, block, block->device);
	if (block->kind == MOVING_POOL)
		give_pool(worker, block);
	else if (block->kind == MOVING_PLUGGED)
		spill_free((void *)(uintptr_t)block->address, block->bytes, block->device,
		           worker->streams[block->stream]);
	else
		moving_must(worker, "cuMemFree", cuMemFree_v2(block->address));
}

void moving_give(struct moving_worker *worker, struct moving_block *block)
{
	moving_end_graphs(worker, block);
	moving_verify(worker, block);
	if (block->kind == MOVING_ORDERED)
		moving_give_ordered(worker, block);
	else
		give(worker, block);
	worker->used -= block->bytes;
	free(block->content);
	*block = (struct moving_block){0};
}
