/*
 * Stream-ordered memory. An allocation is there at once, a free takes effect when the stream gets there and
 * gives the memory back to the device: a pool keeps nothing here, whatever its release threshold says.
 */
#include <pthread.h>
#include <stdlib.h>

#include "driver.h"

#define POOL 0x504f4f4cu

struct CUmemPoolHandle_st {
	_Atomic uint32_t magic;
	CUmemPoolProps props;
	uint64_t used, used_high, threshold;
	int reuse[4]; /* the three switches, by their numbers */
};

struct piece {
	struct piece *next;
	CUmemoryPool pool;
	struct sim_context *context;
	CUdeviceptr pointer;
	uint64_t bytes;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct piece *pieces;
static struct CUmemPoolHandle_st defaults[SIM_DEVICES];
static CUmemoryPool current[SIM_DEVICES]; /* NULL: the default */

static void set_up(CUmemoryPool pool, const CUmemPoolProps *props)
{
	pool->props = *props;
	pool->reuse[1] = pool->reuse[2] = pool->reuse[3] = 1;
	pool->magic = POOL;
}

static CUmemoryPool default_pool(CUdevice device)
{
	pthread_mutex_lock(&lock);
	if (!defaults[device].magic) {
		CUmemPoolProps props = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
		                        .location = {CU_MEM_LOCATION_TYPE_DEVICE, device}};

		set_up(&defaults[device], &props);
	}
	pthread_mutex_unlock(&lock);
	return &defaults[device];
}

static bool alive(CUmemoryPool pool)
{
	return pool && pool->magic == POOL;
}

/* -- pieces ---------------------------------------------------------------------------------------------- */

bool driver_pool_forget(CUdeviceptr pointer)
{
	struct piece *found = NULL;

	pthread_mutex_lock(&lock);
	for (struct piece **link = &pieces; *link; link = &(*link)->next) {
		if ((*link)->pointer == pointer) {
			found = *link;
			*link = found->next;
			found->pool->used -= found->bytes;
			break;
		}
	}
	pthread_mutex_unlock(&lock);
	free(found);
	return found;
}

CUmemoryPool driver_pool_of(CUdeviceptr pointer)
{
	pthread_mutex_lock(&lock);
	struct piece *piece = pieces;
	while (piece && piece->pointer != pointer)
		piece = piece->next;
	CUmemoryPool pool = piece ? piece->pool : NULL;
	pthread_mutex_unlock(&lock);
	return pool;
}

void driver_pools_context_gone(struct sim_context *context)
{
	pthread_mutex_lock(&lock);
	for (struct piece **link = &pieces; *link;) {
		struct piece *piece = *link;

		if (piece->context == context) {
			*link = piece->next;
			piece->pool->used -= piece->bytes;
			free(piece);
		} else {
			link = &piece->next;
		}
	}
	pthread_mutex_unlock(&lock);
}

static enum sim_memory kind_of(CUmemoryPool pool)
{
	if ((int)pool->props.allocType == 2)
		return SIM_MANAGED;
	return pool->props.location.type == CU_MEM_LOCATION_TYPE_DEVICE ? SIM_DEVICE : SIM_HOST;
}

static CUresult alloc(CUdeviceptr *out, size_t bytes, CUmemoryPool pool, CUstream hStream)
{
	struct sim_stream *stream = driver_stream(hStream);
	uint64_t address;

	if (!stream)
		return CUDA_ERROR_INVALID_HANDLE;
	if (!out || !bytes || !alive(pool))
		return CUDA_ERROR_INVALID_VALUE;
	struct piece *piece = malloc(sizeof(*piece));
	if (!piece)
		return CUDA_ERROR_OUT_OF_MEMORY;
	enum sim_status status = sim_alloc(driver_current(), kind_of(pool), bytes, &address);
	/* What this stream is about to free serves what it asks for next. */
	if (status == SIM_NO_MEMORY && !sim_stream_synchronize(stream))
		status = sim_alloc(driver_current(), kind_of(pool), bytes, &address);
	if (status) {
		free(piece);
		return driver_result(status);
	}
	*piece =
	    (struct piece){.pool = pool, .context = driver_current(), .pointer = address, .bytes = bytes};
	pthread_mutex_lock(&lock);
	piece->next = pieces;
	pieces = piece;
	pool->used += bytes;
	if (pool->used > pool->used_high)
		pool->used_high = pool->used;
	pthread_mutex_unlock(&lock);
	*out = address;
	return CUDA_SUCCESS;
}

WITH_STREAM(cuMemAllocAsync, cuMemAllocAsync_ptsz, (CUdeviceptr * dptr, size_t bytesize, CUstream hStream),
            (dptr, bytesize, hStream))
{
	CUdevice device = sim_context_device(driver_current());
	CUmemoryPool fallback = default_pool(device);

	pthread_mutex_lock(&lock);
	CUmemoryPool pool = current[device] ? current[device] : fallback;
	pthread_mutex_unlock(&lock);
	return alloc(dptr, bytesize, pool, hStream);
}

WITH_STREAM(cuMemAllocFromPoolAsync, cuMemAllocFromPoolAsync_ptsz,
            (CUdeviceptr * dptr, size_t bytesize, CUmemoryPool pool, CUstream hStream),
            (dptr, bytesize, pool, hStream))
{
	return alloc(dptr, bytesize, pool, hStream);
}

WITH_STREAM(cuMemFreeAsync, cuMemFreeAsync_ptsz, (CUdeviceptr dptr, CUstream hStream), (dptr, hStream))
{
	struct sim_stream *stream = driver_stream(hStream);
	struct sim_pointer about;

	if (!stream)
		return CUDA_ERROR_INVALID_HANDLE;
	if (!sim_pointer(dptr, &about) || about.base != dptr || about.kind == SIM_VMM ||
	    about.kind == SIM_REGISTERED)
		return CUDA_ERROR_INVALID_VALUE;
	/* Plain device memory may go this way, too; managed and host memory only if a pool gave it. */
	if (!driver_pool_forget(dptr) && about.kind != SIM_DEVICE)
		return about.kind == SIM_MANAGED ? CUDA_ERROR_NOT_SUPPORTED : CUDA_ERROR_INVALID_VALUE;
	return driver_result(sim_free_ordered(dptr, stream));
}

/* -- pools ----------------------------------------------------------------------------------------------- */

CUresult cuMemPoolCreate(CUmemoryPool *pool, const CUmemPoolProps *poolProps)
{
	ENTER(cuMemPoolCreate, INIT);
	if (!pool || !poolProps || ((int)poolProps->allocType != 1 && (int)poolProps->allocType != 2))
		return CUDA_ERROR_INVALID_VALUE;
	if (poolProps->location.type == CU_MEM_LOCATION_TYPE_DEVICE && !driver_device(poolProps->location.id))
		return CUDA_ERROR_INVALID_VALUE;
	if (poolProps->handleTypes != CU_MEM_HANDLE_TYPE_NONE)
		return CUDA_ERROR_NOT_SUPPORTED;
	CUmemoryPool made = calloc(1, sizeof(*made));
	if (!made)
		return CUDA_ERROR_OUT_OF_MEMORY;
	set_up(made, poolProps);
	*pool = made;
	return CUDA_SUCCESS;
}

/* Its memory stays until it is freed, and so does what this points to. */
CUresult cuMemPoolDestroy(CUmemoryPool pool)
{
	ENTER(cuMemPoolDestroy, INIT);
	if (!alive(pool) || (pool >= defaults && pool < defaults + SIM_DEVICES))
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&lock);
	pool->magic = 0;
	for (int i = 0; i < SIM_DEVICES; i++)
		if (current[i] == pool)
			current[i] = NULL;
	pthread_mutex_unlock(&lock);
	return CUDA_SUCCESS;
}

CUresult cuMemPoolTrimTo(CUmemoryPool pool, size_t minBytesToKeep)
{
	ENTER(cuMemPoolTrimTo, INIT);
	return alive(pool) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuMemPoolGetAttribute(CUmemoryPool pool, CUmemPool_attribute attr, void *value)
{
	ENTER(cuMemPoolGetAttribute, INIT);
	if (!alive(pool) || !value || (int)attr < 1 || attr > CU_MEMPOOL_ATTR_USED_MEM_HIGH)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&lock);
	if (attr < CU_MEMPOOL_ATTR_RELEASE_THRESHOLD)
		*(int *)value = pool->reuse[attr];
	else if (attr == CU_MEMPOOL_ATTR_RELEASE_THRESHOLD)
		*(cuuint64_t *)value = pool->threshold;
	else if (attr == CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT || attr == CU_MEMPOOL_ATTR_USED_MEM_CURRENT)
		*(cuuint64_t *)value = pool->used;
	else
		*(cuuint64_t *)value = pool->used_high;
	pthread_mutex_unlock(&lock);
	return CUDA_SUCCESS;
}

CUresult cuMemPoolSetAttribute(CUmemoryPool pool, CUmemPool_attribute attr, void *value)
{
	CUresult result = CUDA_SUCCESS;

	ENTER(cuMemPoolSetAttribute, INIT);
	if (!alive(pool) || !value || (int)attr < 1)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&lock);
	if (attr < CU_MEMPOOL_ATTR_RELEASE_THRESHOLD)
		pool->reuse[attr] = *(int *)value;
	else if (attr == CU_MEMPOOL_ATTR_RELEASE_THRESHOLD)
		pool->threshold = *(cuuint64_t *)value;
	else if ((attr == CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH || attr == CU_MEMPOOL_ATTR_USED_MEM_HIGH) &&
	         *(cuuint64_t *)value == 0)
		pool->used_high = pool->used;
	else
		result = CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_unlock(&lock);
	return result;
}

CUresult cuMemPoolSetAccess(CUmemoryPool pool, const CUmemAccessDesc *map, size_t count)
{
	ENTER(cuMemPoolSetAccess, INIT);
	if (!alive(pool) || !map || !count)
		return CUDA_ERROR_INVALID_VALUE;
	for (size_t i = 0; i < count; i++)
		if (driver_location(map[i].location) == -2)
			return CUDA_ERROR_INVALID_DEVICE;
	return CUDA_SUCCESS;
}

CUresult cuMemPoolGetAccess(CUmemAccess_flags *flags, CUmemoryPool memPool, CUmemLocation *location)
{
	ENTER(cuMemPoolGetAccess, INIT);
	if (!flags || !alive(memPool) || !location)
		return CUDA_ERROR_INVALID_VALUE;
	bool own = kind_of(memPool) != SIM_DEVICE || location->id == memPool->props.location.id;
	*flags = own ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE : CU_MEM_ACCESS_FLAGS_PROT_NONE;
	return CUDA_SUCCESS;
}

CUresult cuDeviceGetDefaultMemPool(CUmemoryPool *pool_out, CUdevice dev)
{
	ENTER(cuDeviceGetDefaultMemPool, INIT);
	if (!pool_out)
		return CUDA_ERROR_INVALID_VALUE;
	if (!driver_device(dev))
		return CUDA_ERROR_INVALID_DEVICE;
	*pool_out = default_pool(dev);
	return CUDA_SUCCESS;
}

CUresult cuDeviceGetMemPool(CUmemoryPool *pool, CUdevice dev)
{
	ENTER(cuDeviceGetMemPool, INIT);
	if (!pool)
		return CUDA_ERROR_INVALID_VALUE;
	if (!driver_device(dev))
		return CUDA_ERROR_INVALID_DEVICE;
	CUmemoryPool fallback = default_pool(dev);
	pthread_mutex_lock(&lock);
	*pool = current[dev] ? current[dev] : fallback;
	pthread_mutex_unlock(&lock);
	return CUDA_SUCCESS;
}

CUresult cuDeviceSetMemPool(CUdevice dev, CUmemoryPool pool)
{
	ENTER(cuDeviceSetMemPool, INIT);
	if (!driver_device(dev))
		return CUDA_ERROR_INVALID_DEVICE;
	if (!alive(pool) || pool->props.location.type != CU_MEM_LOCATION_TYPE_DEVICE ||
	    pool->props.location.id != dev)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&lock);
	current[dev] = pool;
	pthread_mutex_unlock(&lock);
	return CUDA_SUCCESS;
}
