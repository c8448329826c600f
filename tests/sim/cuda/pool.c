/* Stream-ordered memory: allocations and frees in stream order, and pools. */
#include <pthread.h>
#include <string.h>

#include "cuda_entry.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct sim_pool *defaults[SIM_DEVICES];
static struct sim_pool *current[SIM_DEVICES]; /* NULL: the default pool */
#define PLACES 8
static struct sim_pool *elsewhere[PLACES]; /* default pools of other places (13.0) */

static struct sim_pool *pool_of(CUmemoryPool pool)
{
	return sim_pool_alive((struct sim_pool *)pool) ? (struct sim_pool *)pool : NULL;
}

static CUmemoryPool handle_of(struct sim_pool *pool)
{
	return (CUmemoryPool)pool;
}

static CUmemPoolProps *props_of(struct sim_pool *pool)
{
	_Static_assert(sizeof(CUmemPoolProps) <= SIM_FACE, "the core keeps that much");
	return sim_pool_face(pool);
}

const CUmemPoolProps *driver_pool_props(CUmemoryPool pool)
{
	return pool_of(pool) ? props_of(pool_of(pool)) : NULL;
}

static CUresult create_pool(const CUmemPoolProps *props, enum sim_memory kind, int device,
                            struct sim_pool **out)
{
	CUresult result = driver_result(sim_pool_create(kind, device, props->maxSize, out));

	if (!result)
		*props_of(*out) = *props;
	return result;
}

/* NULL: out of memory. */
static struct sim_pool *default_pool(CUdevice device)
{
	pthread_mutex_lock(&lock);
	if (!defaults[device]) {
		CUmemPoolProps props = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
		                        .location = {CU_MEM_LOCATION_TYPE_DEVICE, device}};

		create_pool(&props, SIM_DEVICE, device, &defaults[device]);
	}
	struct sim_pool *pool = defaults[device];
	pthread_mutex_unlock(&lock);
	return pool;
}

static struct sim_pool *current_pool(CUdevice device)
{
	struct sim_pool *fallback = default_pool(device);

	pthread_mutex_lock(&lock);
	struct sim_pool *pool = current[device] ? current[device] : fallback;
	pthread_mutex_unlock(&lock);
	return pool;
}

static bool is_default(const struct sim_pool *pool)
{
	bool found = false;

	pthread_mutex_lock(&lock);
	for (int i = 0; i < SIM_DEVICES; i++)
		found |= defaults[i] == pool;
	for (int i = 0; i < PLACES; i++)
		found |= elsewhere[i] == pool;
	pthread_mutex_unlock(&lock);
	return found;
}

/* -- allocations ------------------------------------------------------------------------------- */

static CUresult alloc_from_pool(CUdeviceptr *out, size_t bytes, struct sim_pool *pool, CUstream hStream)
{
	struct sim_stream *stream = driver_stream(hStream);
	uint64_t address;

	if (!stream)
		return CUDA_ERROR_INVALID_HANDLE;
	if (!out || !pool)
		return CUDA_ERROR_INVALID_VALUE;
	*out = 0;
	if (sim_capturing(stream))
		return driver_capture_alloc(out, bytes, driver_pool_props(handle_of(pool)), stream);
	enum sim_status forbidden = sim_capture_unsafe();
	if (forbidden)
		return driver_result(forbidden);
	if (!bytes) /* unlike cuMemAlloc (H200, 580.159) */
		return CUDA_SUCCESS;
	CUresult result = driver_result(sim_pool_alloc(pool, stream, bytes, &address));
	if (!result)
		*out = address;
	return result;
}

WITH_STREAM(cuMemAllocAsync, cuMemAllocAsync_ptsz, (CUdeviceptr * dptr, size_t bytesize, CUstream hStream),
            (dptr, bytesize, hStream))
{
	return alloc_from_pool(dptr, bytesize, current_pool(sim_context_device(driver_current())), hStream);
}

WITH_STREAM(cuMemAllocFromPoolAsync, cuMemAllocFromPoolAsync_ptsz,
            (CUdeviceptr * dptr, size_t bytesize, CUmemoryPool pool, CUstream hStream),
            (dptr, bytesize, pool, hStream))
{
	return alloc_from_pool(dptr, bytesize, pool_of(pool), hStream);
}

WITH_STREAM(cuMemFreeAsync, cuMemFreeAsync_ptsz, (CUdeviceptr dptr, CUstream hStream), (dptr, hStream))
{
	struct sim_stream *stream = driver_stream(hStream);
	struct sim_pointer about;

	if (!stream)
		return CUDA_ERROR_INVALID_HANDLE;
	if (sim_capturing(stream))
		return driver_result(sim_capture_free(stream, dptr));
	enum sim_status forbidden = sim_capture_unsafe();
	if (forbidden)
		return driver_result(forbidden);
	if (!dptr)
		return CUDA_SUCCESS;
	if (!sim_pointer(dptr, &about) || about.base != dptr || about.kind == SIM_VMM ||
	    about.kind == SIM_REGISTERED)
		return CUDA_ERROR_INVALID_VALUE;
	/* Plain device memory is accepted, other memory only from a pool. */
	if (!about.pool && about.kind != SIM_DEVICE)
		return about.kind == SIM_MANAGED ? CUDA_ERROR_NOT_SUPPORTED : CUDA_ERROR_INVALID_VALUE;
	return driver_result(sim_free_ordered(dptr, stream));
}

/* -- pools ------------------------------------------------------------------------------------- */

/* The place of a pool with these properties. cuda.h lists combinations that are refused. */
static CUresult place_of(const CUmemPoolProps *props, enum sim_memory *kind, int *device)
{
	CUmemLocationType type = props->location.type;
	bool exported = props->handleTypes != CU_MEM_HANDLE_TYPE_NONE;

	*device = SIM_CPU;
	if (exported && props->handleTypes != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
		return CUDA_ERROR_NOT_SUPPORTED;
	if (type == CU_MEM_LOCATION_TYPE_DEVICE) {
		*device = props->location.id;
		if (!driver_device(*device))
			return CUDA_ERROR_INVALID_VALUE;
	}
	if ((int)props->allocType == 2) { /* managed: the place is optional, and is the preferred one */
		*kind = SIM_MANAGED;
		if (*device == SIM_CPU)
			*device = 0;
		return !sim_config()->managed ? CUDA_ERROR_NOT_SUPPORTED
		       : exported             ? CUDA_ERROR_INVALID_VALUE
		                              : CUDA_SUCCESS;
	}
	*kind = type == CU_MEM_LOCATION_TYPE_DEVICE ? SIM_DEVICE : SIM_HOST;
	if (props->allocType != CU_MEM_ALLOCATION_TYPE_PINNED)
		return CUDA_ERROR_INVALID_VALUE;
	if (type == CU_MEM_LOCATION_TYPE_HOST)
		return exported ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
	if (type == CU_MEM_LOCATION_TYPE_HOST_NUMA)
		return props->location.id == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
	return *kind == SIM_DEVICE ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuMemPoolCreate(CUmemoryPool *pool, const CUmemPoolProps *poolProps)
{
	enum sim_memory kind;
	struct sim_pool *made;
	int device;

	ENTER(cuMemPoolCreate, INIT);
	if (!pool || !poolProps)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult result = place_of(poolProps, &kind, &device);
	if (!result)
		result = create_pool(poolProps, kind, device, &made);
	if (!result)
		*pool = handle_of(made);
	return result;
}

CUresult cuMemPoolDestroy(CUmemoryPool pool)
{
	ENTER(cuMemPoolDestroy, INIT);
	if (!pool_of(pool) || is_default(pool_of(pool)))
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&lock);
	for (int i = 0; i < SIM_DEVICES; i++)
		if (current[i] == pool_of(pool))
			current[i] = NULL;
	pthread_mutex_unlock(&lock);
	return driver_result(sim_pool_destroy(pool_of(pool)));
}

CUresult cuMemPoolTrimTo(CUmemoryPool pool, size_t minBytesToKeep)
{
	ENTER(cuMemPoolTrimTo, INIT);
	if (!pool_of(pool))
		return CUDA_ERROR_INVALID_VALUE;
	sim_pool_trim(pool_of(pool), minBytesToKeep);
	return CUDA_SUCCESS;
}

CUresult cuMemPoolGetAttribute(CUmemoryPool pool, CUmemPool_attribute attr, void *value)
{
	struct sim_pool_about about;

	ENTER(cuMemPoolGetAttribute, INIT);
	if (!pool_of(pool) || !value)
		return CUDA_ERROR_INVALID_VALUE;
	sim_pool_about(pool_of(pool), &about);
	switch (attr) {
	case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES:
		*(int *)value = about.follow;
		return CUDA_SUCCESS;
	case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC:
		*(int *)value = about.opportunistic;
		return CUDA_SUCCESS;
	case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES:
		*(int *)value = about.internal;
		return CUDA_SUCCESS;
	case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
		*(cuuint64_t *)value = about.threshold;
		return CUDA_SUCCESS;
	case CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT:
		*(cuuint64_t *)value = about.reserved;
		return CUDA_SUCCESS;
	case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
		*(cuuint64_t *)value = about.reserved_high;
		return CUDA_SUCCESS;
	case CU_MEMPOOL_ATTR_USED_MEM_CURRENT:
		*(cuuint64_t *)value = about.used;
		return CUDA_SUCCESS;
	case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
		*(cuuint64_t *)value = about.used_high;
		return CUDA_SUCCESS;
	}
	return CUDA_ERROR_INVALID_VALUE;
}

static CUresult set_attribute(struct sim_pool_about *about, CUmemPool_attribute attr, const void *value)
{
	switch (attr) {
	case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES:
		about->follow = *(const int *)value;
		return CUDA_SUCCESS;
	case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC:
		about->opportunistic = *(const int *)value;
		return CUDA_SUCCESS;
	case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES:
		about->internal = *(const int *)value;
		return CUDA_SUCCESS;
	case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
		about->threshold = *(const cuuint64_t *)value;
		return CUDA_SUCCESS;
	case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH: /* can be reset, not set */
		about->reserved_high = 0;
		return *(const cuuint64_t *)value ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
	case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
		about->used_high = 0;
		return *(const cuuint64_t *)value ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
	default:
		return CUDA_ERROR_INVALID_VALUE;
	}
}

CUresult cuMemPoolSetAttribute(CUmemoryPool pool, CUmemPool_attribute attr, void *value)
{
	struct sim_pool_about about;

	ENTER(cuMemPoolSetAttribute, INIT);
	if (!pool_of(pool) || !value)
		return CUDA_ERROR_INVALID_VALUE;
	sim_pool_about(pool_of(pool), &about);
	about.reserved_high = about.used_high = 1; /* 0 means: reset */
	CUresult result = set_attribute(&about, attr, value);
	if (!result)
		sim_pool_set(pool_of(pool), &about);
	return result;
}

CUresult cuMemPoolSetAccess(CUmemoryPool pool, const CUmemAccessDesc *map, size_t count)
{
	ENTER(cuMemPoolSetAccess, INIT);
	if (!pool_of(pool) || !map || !count)
		return CUDA_ERROR_INVALID_VALUE;
	for (size_t i = 0; i < count; i++)
		if (driver_location(map[i].location) == -2)
			return CUDA_ERROR_INVALID_DEVICE;
	for (size_t i = 0; i < count; i++)
		sim_pool_set_access(pool_of(pool), driver_location(map[i].location), map[i].flags & 1,
		                    map[i].flags & 2);
	return CUDA_SUCCESS;
}

CUresult cuMemPoolGetAccess(CUmemAccess_flags *flags, CUmemoryPool memPool, CUmemLocation *location)
{
	bool read, write;

	ENTER(cuMemPoolGetAccess, INIT);
	if (!flags || !pool_of(memPool) || !location)
		return CUDA_ERROR_INVALID_VALUE;
	int device = driver_location(*location);
	if (device == -2)
		return CUDA_ERROR_INVALID_DEVICE;
	sim_pool_get_access(pool_of(memPool), device, &read, &write);
	*flags = write  ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE
	         : read ? CU_MEM_ACCESS_FLAGS_PROT_READ
	                : CU_MEM_ACCESS_FLAGS_PROT_NONE;
	return CUDA_SUCCESS;
}

/* -- a device's pools -------------------------------------------------------------------------- */

CUresult cuDeviceGetDefaultMemPool(CUmemoryPool *pool_out, CUdevice dev)
{
	ENTER(cuDeviceGetDefaultMemPool, INIT);
	if (!pool_out)
		return CUDA_ERROR_INVALID_VALUE;
	if (!driver_device(dev))
		return CUDA_ERROR_INVALID_DEVICE;
	*pool_out = handle_of(default_pool(dev));
	return CUDA_SUCCESS;
}

CUresult cuDeviceGetMemPool(CUmemoryPool *pool, CUdevice dev)
{
	ENTER(cuDeviceGetMemPool, INIT);
	if (!pool)
		return CUDA_ERROR_INVALID_VALUE;
	if (!driver_device(dev))
		return CUDA_ERROR_INVALID_VALUE; /* not an invalid device (H200) */
	*pool = handle_of(current_pool(dev));
	return CUDA_SUCCESS;
}

static bool is_imported(struct sim_pool *pool)
{
	struct sim_pool_about about;

	sim_pool_about(pool, &about);
	return about.imported;
}

static CUresult set_current(CUdevice device, struct sim_pool *pool)
{
	if (!pool || is_imported(pool) || props_of(pool)->location.type != CU_MEM_LOCATION_TYPE_DEVICE ||
	    props_of(pool)->location.id != device)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&lock);
	current[device] = pool;
	pthread_mutex_unlock(&lock);
	return CUDA_SUCCESS;
}

CUresult cuDeviceSetMemPool(CUdevice dev, CUmemoryPool pool)
{
	ENTER(cuDeviceSetMemPool, INIT);
	return driver_device(dev) ? set_current(dev, pool_of(pool)) : CUDA_ERROR_INVALID_DEVICE;
}

static bool is_of(struct sim_pool *pool, const CUmemPoolProps *props)
{
	const CUmemPoolProps *own = props_of(pool);

	return own->allocType == props->allocType && own->location.type == props->location.type &&
	       own->location.id == props->location.id;
}

/* The default pool on the host, or of managed memory. It is made when it is first asked for. */
static CUresult pool_elsewhere(const CUmemLocation *location, CUmemAllocationType type, CUmemoryPool *out)
{
	CUmemPoolProps props = {.allocType = type, .location = *location};
	enum sim_memory kind;
	int device, i = 0;
	CUresult result = place_of(&props, &kind, &device);

	pthread_mutex_lock(&lock);
	while (!result && i < PLACES && elsewhere[i] && !is_of(elsewhere[i], &props))
		i++;
	if (!result && i < PLACES && !elsewhere[i])
		result = create_pool(&props, kind, device, &elsewhere[i]);
	if (!result && i < PLACES)
		*out = handle_of(elsewhere[i]);
	pthread_mutex_unlock(&lock);
	return i < PLACES ? result : CUDA_ERROR_OUT_OF_MEMORY;
}

static bool is_elsewhere(const CUmemLocation *location, CUmemAllocationType type)
{
	return location &&
	       (location->type != CU_MEM_LOCATION_TYPE_DEVICE || type != CU_MEM_ALLOCATION_TYPE_PINNED);
}

/* Since 13.0 the same for any place. Only a device's current pool can be changed here. */
static CUresult device_at(const CUmemLocation *location, CUmemAllocationType type, CUdevice *device)
{
	if (!location)
		return CUDA_ERROR_INVALID_VALUE;
	if (is_elsewhere(location, type)) {
		sim_say("other current pools than those of devices are not imitated");
		return location->type ? CUDA_ERROR_NOT_SUPPORTED : CUDA_ERROR_INVALID_VALUE;
	}
	*device = location->id;
	return driver_device(*device) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

CUresult cuMemGetDefaultMemPool(CUmemoryPool *pool_out, CUmemLocation *location, CUmemAllocationType type)
{
	CUdevice device;

	ENTER(cuMemGetDefaultMemPool, INIT);
	if (pool_out && is_elsewhere(location, type))
		return pool_elsewhere(location, type, pool_out);
	CUresult result = pool_out ? device_at(location, type, &device) : CUDA_ERROR_INVALID_VALUE;
	if (!result)
		*pool_out = handle_of(default_pool(device));
	return result;
}

CUresult cuMemGetMemPool(CUmemoryPool *pool, CUmemLocation *location, CUmemAllocationType type)
{
	CUdevice device;

	ENTER(cuMemGetMemPool, INIT);
	if (pool && is_elsewhere(location, type))
		return pool_elsewhere(location, type, pool);
	CUresult result = pool ? device_at(location, type, &device) : CUDA_ERROR_INVALID_VALUE;
	if (!result)
		*pool = handle_of(current_pool(device));
	return result;
}

CUresult cuMemSetMemPool(CUmemLocation *location, CUmemAllocationType type, CUmemoryPool pool)
{
	CUdevice device;

	ENTER(cuMemSetMemPool, INIT);
	CUresult result = device_at(location, type, &device);
	return result ? result : set_current(device, pool_of(pool));
}
