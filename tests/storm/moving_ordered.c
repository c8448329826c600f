/* Memory in stream order, taken and freed in every way, and the pools that it comes from. */
#include "moving.h"

#include <stdio.h>

#define UNIT ((uint64_t)512) /* of what a pool counts */
#define FLEETING 3           /* blocks of a stream that ends, at most */

static const atomic_bool always = true, never = false;
static atomic_bool default_shared[MOVING_DEVICES];

/* -- blocks ---------------------------------------------------------------------------------------------- */

/* From its pool, or else from the default pool of its device, which is current. */
static CUresult take(struct moving_worker *worker, struct moving_block *block)
{
	CUstream stream = worker->streams[block->stream];
	struct moving_mempool *mempool = block->mempool;

	block->shared = mempool ? &mempool->shared : &default_shared[block->device];
	block->taken_on = moving_device_of(worker, block->stream);
	if (!mempool)
		return cuMemAllocAsync(&block->address, block->bytes, stream);
	CUresult result = cuMemAllocFromPoolAsync(&block->address, block->bytes, mempool->handle, stream);
	mempool->used += result ? 0 : block->bytes;
	return result;
}

static void make_mempool(struct moving_worker *worker, struct moving_mempool *mempool)
{
	int device = (int)moving_random(worker, (uint64_t)moving_devices);
	CUmemPoolProps properties = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
	                             .location = {CU_MEM_LOCATION_TYPE_DEVICE, device}};

	mempool->device = device;
	mempool->used = mempool->freed = 0;
	atomic_store(&mempool->shared, false);
	moving_must(worker, "cuMemPoolCreate", cuMemPoolCreate(&mempool->handle, &properties));
}

CUresult moving_make_ordered(struct moving_worker *worker, struct moving_block *block)
{
	struct moving_mempool *mempool = &worker->mempools[moving_random(worker, MOVING_MEMPOOLS)];

	if (moving_random(worker, 2)) {
		if (!mempool->handle)
			make_mempool(worker, mempool);
		block->mempool = mempool;
		block->device = mempool->device;
		block->bytes = (block->bytes + UNIT - 1) / UNIT * UNIT;
		/* A pool serves streams of all devices. */
		block->stream = moving_random(worker, 4) ? moving_stream_on(worker, block->device)
		                                         : (unsigned)moving_random(worker, moving_streams());
	}
	CUresult result = take(worker, block);
	if (!result && !moving_reaches(block, moving_device_of(worker, block->stream)))
		moving_use_on(worker, block, block->device);
	return result;
}

static void count_free(struct moving_block *block, bool in_order)
{
	if (!block->mempool)
		return;
	block->mempool->used -= block->bytes;
	block->mempool->freed += in_order ? 0 : block->bytes;
}

static void free_in_order(struct moving_worker *worker, struct moving_block *block)
{
	count_free(block, true);
	moving_must(worker, "cuMemFreeAsync", cuMemFreeAsync(block->address, worker->streams[block->stream]));
}

/* A stream of its own, in the place of one of the worker's. NULL: no room. */
static CUstream begin_stream(struct moving_worker *worker, unsigned which)
{
	CUstream usual = worker->streams[which], fresh;

	moving_enter(worker, moving_device_of(worker, which));
	CUresult result = cuStreamCreate(&fresh, 1);
	moving_enter(worker, worker->device);
	if (!moving_may(worker, "cuStreamCreate", result))
		return NULL;
	worker->streams[which] = fresh;
	return usual;
}

/* The stream ends at once. Its work is before the next work of the usual one. */
static void end_stream(struct moving_worker *worker, unsigned which, CUstream usual)
{
	CUevent event = worker->event[moving_device_of(worker, which)];
	CUstream fresh = worker->streams[which];

	worker->streams[which] = usual;
	moving_must(worker, "cuEventRecord", cuEventRecord(event, fresh));
	moving_must(worker, "cuStreamWaitEvent", cuStreamWaitEvent(usual, event, 0));
	moving_must(worker, "cuStreamDestroy", cuStreamDestroy_v2(fresh));
}

static void free_on_fleeting(struct moving_worker *worker, struct moving_block *block)
{
	unsigned which = block->stream;
	CUevent event = worker->event[moving_device_of(worker, which)];
	CUstream usual;

	moving_must(worker, "cuEventRecord", cuEventRecord(event, worker->streams[which]));
	usual = begin_stream(worker, which);
	if (usual)
		moving_must(worker, "cuStreamWaitEvent", cuStreamWaitEvent(worker->streams[which], event, 0));
	free_in_order(worker, block);
	if (usual)
		end_stream(worker, which, usual);
}

/* cuMemFree does not wait. It comes behind the work of the context whose stream the memory was for. */
static void free_plainly(struct moving_worker *worker, struct moving_block *block)
{
	if (moving_device_of(worker, block->stream) != block->taken_on)
		moving_alone(worker, block);
	count_free(block, false);
	moving_must(worker, "cuMemFree", cuMemFree_v2(block->address));
}

void moving_give_ordered(struct moving_worker *worker, struct moving_block *block)
{
	switch (moving_random(worker, 6)) {
	case 0:
		moving_use(worker, block, moving_stream_for(worker, block));
		free_in_order(worker, block);
		break;
	case 1:
		free_plainly(worker, block);
		break;
	case 2:
		free_on_fleeting(worker, block);
		break;
	default:
		free_in_order(worker, block);
	}
}

void moving_again(struct moving_worker *worker, struct moving_block *block)
{
	moving_end_graphs(worker, block);
	moving_verify(worker, block);
	if (!block->mempool) /* a default pool serves streams of its device */
		moving_use_on(worker, block, block->device);
	free_in_order(worker, block);
	moving_enter(worker, block->device);
	CUresult result = take(worker, block);
	moving_enter(worker, worker->device);
	if (moving_must(worker, "a block again", result))
		moving_fill(worker, block, 0, moving_pieces(block));
}

/* -- streams that end -------------------------------------------------------------------------------------- */

/* Blocks that live on the stream only. */
static void use_stream(struct moving_worker *worker, unsigned which)
{
	struct moving_content content[8];
	struct moving_block blocks[FLEETING];
	uint64_t count = 1 + moving_random(worker, FLEETING);

	for (uint64_t i = 0; i < count && !worker->failed; i++) {
		struct moving_block *block = &blocks[i];
		*block = (struct moving_block){.kind = MOVING_ORDERED,
		                               .device = worker->device,
		                               .bytes = 8 * (1 + moving_random(worker, 8 * MOVING_WORDS)),
		                               .stream = which,
		                               .content = content};
		if (!moving_must(worker, "a block of a stream that ends", take(worker, block)))
			return;
		moving_fill(worker, block, 0, moving_pieces(block));
		moving_verify(worker, block);
		if (moving_random(worker, 2))
			continue;
		free_in_order(worker, block);
		block->address = 0;
	}
	for (uint64_t i = 0; i < count && !worker->failed; i++)
		if (blocks[i].address)
			free_in_order(worker, &blocks[i]);
}

/* Twice: the second stream can have the handle of the first, and has no order with its frees. */
void moving_fleeting(struct moving_worker *worker)
{
	unsigned which = (unsigned)moving_random(worker, MOVING_STREAMS);

	if (worker->checks + 2 * FLEETING > MOVING_CHECKS)
		moving_sync(worker); /* not while the usual stream is not among the worker's */
	for (unsigned i = 0; i < 2 && !worker->failed; i++) {
		CUstream usual = begin_stream(worker, which);
		if (!usual)
			return;
		use_stream(worker, which);
		end_stream(worker, which, usual);
	}
}

/* -- pools ------------------------------------------------------------------------------------------------- */

/* Its blocks live on. */
static void end_mempool(struct moving_worker *worker, struct moving_mempool *mempool)
{
	for (unsigned i = 0; i < MOVING_BLOCKS; i++) {
		struct moving_block *block = &worker->blocks[i];
		if (block->mempool != mempool)
			continue;
		block->mempool = NULL;
		block->shared = atomic_load(&mempool->shared) ? &always : &never;
	}
	moving_must(worker, "cuMemPoolDestroy", cuMemPoolDestroy(mempool->handle));
	mempool->handle = NULL;
}

void moving_end_mempools(struct moving_worker *worker)
{
	for (unsigned i = 0; i < MOVING_MEMPOOLS; i++)
		if (worker->mempools[i].handle)
			end_mempool(worker, &worker->mempools[i]);
}

/* The other device gets access. */
static void share(struct moving_worker *worker, CUmemoryPool pool, int owner, atomic_bool *shared)
{
	CUmemAccessDesc access = {{CU_MEM_LOCATION_TYPE_DEVICE, 1 - owner},
	                          CU_MEM_ACCESS_FLAGS_PROT_READWRITE};

	if (moving_devices > 1 &&
	    moving_must(worker, "cuMemPoolSetAccess", cuMemPoolSetAccess(pool, &access, 1)))
		atomic_store(shared, true);
}

static void share_default(struct moving_worker *worker)
{
	CUmemoryPool pool;

	if (moving_shares_defaults &&
	    moving_must(worker, "default pool", cuDeviceGetDefaultMemPool(&pool, worker->device)))
		share(worker, pool, worker->device, &default_shared[worker->device]);
}

static uint64_t ask(struct moving_worker *worker, CUmemoryPool pool, CUmemPool_attribute attribute)
{
	cuuint64_t value = 0;

	moving_must(worker, "cuMemPoolGetAttribute", cuMemPoolGetAttribute(pool, attribute, &value));
	return value;
}

/* Wherever its memory is, the pool tells what the program took from it. */
static void check_figures(struct moving_worker *worker, const struct moving_mempool *mempool)
{
	CUmemoryPool pool = mempool->handle;
	uint64_t used = ask(worker, pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT),
	         most_used = ask(worker, pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH),
	         reserved = ask(worker, pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT),
	         most_reserved = ask(worker, pool, CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH);

	if (worker->failed || (used >= mempool->used && used <= mempool->used + mempool->freed &&
	                       used <= most_used && mempool->used <= reserved && reserved <= most_reserved))
		return;
	fprintf(stderr,
	        "thread %u, step %llu: a pool says used %llu (most %llu), reserved %llu (most %llu); %llu "
	        "are, and %llu were freed without a stream\n",
	        worker->index, (unsigned long long)worker->step, (unsigned long long)used,
	        (unsigned long long)most_used, (unsigned long long)reserved,
	        (unsigned long long)most_reserved, (unsigned long long)mempool->used,
	        (unsigned long long)mempool->freed);
	moving_must(worker, "figures of a pool", CUDA_ERROR_UNKNOWN);
}

static void set_figures(struct moving_worker *worker, CUmemoryPool pool)
{
	static const CUmemPool_attribute highest[] = {CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH,
	                                              CU_MEMPOOL_ATTR_USED_MEM_HIGH};
	cuuint64_t zero = 0, threshold = moving_random(worker, 2) ? UINT64_MAX : 0;

	moving_must(worker, "release threshold",
	            cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &threshold));
	moving_must(worker, "highest figure",
	            cuMemPoolSetAttribute(pool, highest[moving_random(worker, 2)], &zero));
}

void moving_mempool(struct moving_worker *worker)
{
	struct moving_mempool *mempool = &worker->mempools[moving_random(worker, MOVING_MEMPOOLS)];

	if (!mempool->handle)
		return;
	switch (moving_random(worker, 12)) {
	case 0:
		end_mempool(worker, mempool);
		break;
	case 1:
		share(worker, mempool->handle, mempool->device, &mempool->shared);
		break;
	case 2:
		share_default(worker);
		break;
	case 3:
	case 4:
		set_figures(worker, mempool->handle);
		break;
	case 5:
	case 6:
	case 7:
		moving_must(worker, "cuMemPoolTrimTo",
		            cuMemPoolTrimTo(mempool->handle, moving_random(worker, 2 * moving_largest)));
		break;
	default:
		check_figures(worker, mempool);
	}
}
