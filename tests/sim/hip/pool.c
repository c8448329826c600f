/* Stream-ordered memory (hip_mempool.cpp). Both frees accept memory of both allocations. */
#include <pthread.h>
#include <stdlib.h>

#include "graph.h"
#include "hip_entry.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct sim_pool *defaults[SIM_DEVICES];
static struct sim_pool *current[SIM_DEVICES]; /* NULL or destroyed: the default pool */

/* A reset of the device ends allocations of its pools, and the pools. */
struct piece {
	struct piece *next;
	uint64_t address;
	int device;
};

static struct piece *pieces;

struct face { /* in sim_pool_face, of pools of the program */
	struct sim_pool *next;
};

static struct sim_pool *made_pools;

static struct face *face_of(struct sim_pool *pool)
{
	_Static_assert(sizeof(struct face) <= SIM_FACE, "the core keeps that much");
	return sim_pool_face(pool);
}

static struct sim_pool *default_pool(int device)
{
	pthread_mutex_lock(&lock);
	if (!defaults[device])
		sim_pool_create(SIM_DEVICE, device, 0, &defaults[device]);
	struct sim_pool *pool = defaults[device];
	pthread_mutex_unlock(&lock);
	return pool;
}

static struct sim_pool *current_pool(int device)
{
	struct sim_pool *fallback = default_pool(device);

	pthread_mutex_lock(&lock);
	struct sim_pool *pool = current[device];
	pthread_mutex_unlock(&lock);
	return pool && sim_pool_alive(pool) ? pool : fallback;
}

static struct sim_pool *pool_of(hipMemPool_t handle)
{
	struct sim_pool *pool = (struct sim_pool *)handle;

	return pool && sim_pool_alive(pool) ? pool : NULL;
}

/* If memory runs out, a reset does not free it. */
static void remember_piece(uint64_t address, int device)
{
	struct piece *piece = malloc(sizeof(*piece));

	if (!piece)
		return;
	pthread_mutex_lock(&lock);
	*piece = (struct piece){pieces, address, device};
	pieces = piece;
	pthread_mutex_unlock(&lock);
}

void hip_pool_forget(uint64_t address)
{
	struct piece *found = NULL;

	pthread_mutex_lock(&lock);
	for (struct piece **link = &pieces; *link; link = &(*link)->next) {
		if ((*link)->address != address)
			continue;
		found = *link;
		*link = found->next;
		break;
	}
	pthread_mutex_unlock(&lock);
	free(found);
}

/* Takes the pieces of a device out of the list. pre: the lock is held. */
static struct piece *take_pieces(int device)
{
	struct piece *taken = NULL;

	for (struct piece **link = &pieces; *link;) {
		struct piece *piece = *link;

		if (piece->device != device) {
			link = &piece->next;
			continue;
		}
		*link = piece->next;
		piece->next = taken;
		taken = piece;
	}
	return taken;
}

/* pre: the lock is held. */
static void destroy_pools(int device)
{
	struct sim_pool_about about;

	for (struct sim_pool *pool = made_pools, *before = NULL, *next; pool; pool = next) {
		next = face_of(pool)->next;
		sim_pool_about(pool, &about);
		if (about.device != device) {
			before = pool;
			continue;
		}
		*(before ? &face_of(before)->next : &made_pools) = next;
		sim_pool_destroy(pool);
	}
	if (defaults[device])
		sim_pool_destroy(defaults[device]);
	defaults[device] = current[device] = NULL;
}

void hip_pools_reset(int device)
{
	pthread_mutex_lock(&lock);
	struct piece *piece = take_pieces(device);
	pthread_mutex_unlock(&lock);
	while (piece) {
		struct piece *next = piece->next;

		sim_free(piece->address, 1u << SIM_DEVICE);
		free(piece);
		piece = next;
	}
	pthread_mutex_lock(&lock);
	destroy_pools(device);
	pthread_mutex_unlock(&lock);
}

/* On failure *dev_ptr is NULL. pre: dev_ptr, stream and pool are valid. */
static hipError_t allocate_from_pool(void **dev_ptr, size_t size, struct sim_pool *pool,
                                     struct sim_stream *stream)
{
	uint64_t address = 0;

	if (size && sim_capturing(stream)) {
		hipError_t error = hip_error(sim_capture_alloc(stream, size, &address));

		*dev_ptr = error ? NULL : (void *)(uintptr_t)address;
		return error;
	}
	enum sim_status status = size ? sim_pool_alloc(pool, stream, size, &address) : SIM_OK;

	/* Memory that this stream is about to free serves its next allocations. */
	if (status == SIM_NO_MEMORY && !sim_stream_synchronize(stream))
		status = sim_pool_alloc(pool, stream, size, &address);
	*dev_ptr = status ? NULL : (void *)(uintptr_t)address;
	if (!status && size)
		remember_piece(address, sim_context_device(sim_stream_context(stream)));
	return hip_error(status);
}

/* An invalid stream is an invalid value here (hip::isValid). */
static hipError_t stream_of(hipStream_t stream, struct sim_stream **on)
{
	hipError_t error = hip_stream(stream, on);

	return error == hipErrorInvalidHandle ? hipErrorInvalidValue : error;
}

hipError_t hipMallocAsync(void **dev_ptr, size_t size, hipStream_t stream)
{
	struct sim_stream *on;

	HIP_ENTER();
	HIP_TRY(dev_ptr ? stream_of(stream, &on) : hipErrorInvalidValue);
	int device = sim_context_device(sim_stream_context(on));
	return hip_leave(allocate_from_pool(dev_ptr, size, current_pool(device), on));
}

hipError_t hipMallocFromPoolAsync(void **dev_ptr, size_t size, hipMemPool_t mem_pool, hipStream_t stream)
{
	struct sim_stream *on;

	HIP_ENTER();
	HIP_TRY(dev_ptr && pool_of(mem_pool) ? stream_of(stream, &on) : hipErrorInvalidValue);
	return hip_leave(allocate_from_pool(dev_ptr, size, pool_of(mem_pool), on));
}

hipError_t hipFreeAsync(void *dev_ptr, hipStream_t stream)
{
	struct sim_stream *on;

	HIP_ENTER();
	HIP_TRY(dev_ptr ? stream_of(stream, &on) : hipErrorInvalidValue);
	uint64_t address = hip_address(dev_ptr);
	if (sim_capturing(on))
		return hip_return(sim_capture_free(on, address));
	hip_pool_forget(address); /* before another allocation gets the address */
	return hip_return(sim_free_ordered(address, on));
}

/* In ROCm 6.1 the first reserved bytes became a limit. */
static uint64_t limit_of(const hipMemPoolProps *props)
{
	uint64_t limit;

	__builtin_memcpy(&limit, props->reserved, sizeof(limit));
	return HIP_RELEASE < 6 ? 0 : limit;
}

hipError_t hipMemPoolCreate(hipMemPool_t *mem_pool, const hipMemPoolProps *pool_props)
{
	struct sim_pool *made;

	HIP_ENTER();
	HIP_TRY(mem_pool && pool_props && pool_props->allocType == hipMemAllocationTypePinned &&
	                pool_props->location.type == hipMemLocationTypeDevice &&
	                hip_is_device(pool_props->location.id)
	            ? hipSuccess
	            : hipErrorInvalidValue);
	HIP_TRY(hip_error(sim_pool_create(SIM_DEVICE, pool_props->location.id, limit_of(pool_props), &made)));
	pthread_mutex_lock(&lock);
	face_of(made)->next = made_pools;
	made_pools = made;
	pthread_mutex_unlock(&lock);
	*mem_pool = (hipMemPool_t)made;
	return hip_leave(hipSuccess);
}

/* The default pool stays. */
hipError_t hipMemPoolDestroy(hipMemPool_t mem_pool)
{
	struct sim_pool_about about;

	HIP_ENTER();
	HIP_TRY(pool_of(mem_pool) ? hipSuccess : hipErrorInvalidValue);
	sim_pool_about(pool_of(mem_pool), &about);
	HIP_TRY(pool_of(mem_pool) == default_pool(about.device) ? hipErrorInvalidValue : hipSuccess);
	struct sim_pool *pool = pool_of(mem_pool);
	pthread_mutex_lock(&lock);
	for (struct sim_pool *at = made_pools, *before = NULL; at; before = at, at = face_of(at)->next) {
		if (at != pool)
			continue;
		*(before ? &face_of(before)->next : &made_pools) = face_of(at)->next;
		break;
	}
	pthread_mutex_unlock(&lock);
	return hip_return(sim_pool_destroy(pool));
}

hipError_t hipMemPoolTrimTo(hipMemPool_t mem_pool, size_t min_bytes_to_hold)
{
	HIP_ENTER();
	HIP_TRY(pool_of(mem_pool) ? hipSuccess : hipErrorInvalidValue);
	sim_pool_trim(pool_of(mem_pool), min_bytes_to_hold);
	return hip_leave(hipSuccess);
}

hipError_t hipMemPoolGetAttribute(hipMemPool_t mem_pool, hipMemPoolAttr attr, void *value)
{
	struct sim_pool_about about;

	HIP_ENTER();
	HIP_TRY(pool_of(mem_pool) && value ? hipSuccess : hipErrorInvalidValue);
	sim_pool_about(pool_of(mem_pool), &about);
	const bool switches[] = {false, about.follow, about.opportunistic, about.internal};
	const uint64_t amounts[] = {about.threshold, about.reserved, about.reserved_high, about.used,
	                            about.used_high};
	if (attr < hipMemPoolReuseFollowEventDependencies || attr > hipMemPoolAttrUsedMemHigh)
		return hip_leave(hipErrorInvalidValue);
	if (attr < hipMemPoolAttrReleaseThreshold)
		*(int32_t *)value = switches[attr];
	else
		*(uint64_t *)value = amounts[attr - hipMemPoolAttrReleaseThreshold];
	return hip_leave(hipSuccess);
}

hipError_t hipMemPoolSetAttribute(hipMemPool_t mem_pool, hipMemPoolAttr attr, void *value)
{
	struct sim_pool_about about;

	HIP_ENTER();
	HIP_TRY(pool_of(mem_pool) && value ? hipSuccess : hipErrorInvalidValue);
	sim_pool_about(pool_of(mem_pool), &about);
	switch (attr) {
	case hipMemPoolReuseFollowEventDependencies:
		about.follow = *(const int32_t *)value;
		break;
	case hipMemPoolReuseAllowOpportunistic:
		about.opportunistic = *(const int32_t *)value;
		break;
	case hipMemPoolReuseAllowInternalDependencies:
		about.internal = *(const int32_t *)value;
		break;
	case hipMemPoolAttrReleaseThreshold:
		about.threshold = *(const uint64_t *)value;
		break;
	case hipMemPoolAttrReservedMemHigh:
	case hipMemPoolAttrUsedMemHigh:
		HIP_TRY(*(const uint64_t *)value ? hipErrorInvalidValue : hipSuccess);
		*(attr == hipMemPoolAttrUsedMemHigh ? &about.used_high : &about.reserved_high) = 0;
		break;
	default:
		return hip_leave(hipErrorInvalidValue);
	}
	sim_pool_set(pool_of(mem_pool), &about);
	return hip_leave(hipSuccess);
}

hipError_t hipMemPoolSetAccess(hipMemPool_t mem_pool, const hipMemAccessDesc *desc_list, size_t count)
{
	HIP_ENTER();
	HIP_TRY(pool_of(mem_pool) && desc_list ? hipSuccess : hipErrorInvalidValue);
	for (size_t i = 0; i < count; i++) {
		hipMemLocation where = desc_list[i].location;
		unsigned flags = desc_list[i].flags;

		if (where.type != hipMemLocationTypeDevice || !hip_is_device(where.id) ||
		    flags > hipMemAccessFlagsProtReadWrite)
			return hip_leave(hipErrorInvalidValue);
		sim_pool_set_access(pool_of(mem_pool), where.id, flags & 1, flags & 2);
	}
	return hip_leave(hipSuccess);
}

hipError_t hipMemPoolGetAccess(hipMemAccessFlags *flags, hipMemPool_t mem_pool, hipMemLocation *location)
{
	bool read, write;

	HIP_ENTER();
	HIP_TRY(flags && pool_of(mem_pool) && location && location->type == hipMemLocationTypeDevice &&
	                hip_is_device(location->id)
	            ? hipSuccess
	            : hipErrorInvalidValue);
	sim_pool_get_access(pool_of(mem_pool), location->id, &read, &write);
	*flags = write  ? hipMemAccessFlagsProtReadWrite
	         : read ? hipMemAccessFlagsProtRead
	                : hipMemAccessFlagsProtNone;
	return hip_leave(hipSuccess);
}

hipError_t hipDeviceGetDefaultMemPool(hipMemPool_t *mem_pool, int device)
{
	HIP_ENTER();
	HIP_TRY(mem_pool ? hipSuccess : hipErrorInvalidValue);
	HIP_TRY(hip_is_device(device) ? hipSuccess : hipErrorInvalidDevice);
	*mem_pool = (hipMemPool_t)default_pool(device);
	return hip_leave(hipSuccess);
}

hipError_t hipDeviceGetMemPool(hipMemPool_t *mem_pool, int device)
{
	HIP_ENTER();
	HIP_TRY(mem_pool && hip_is_device(device) ? hipSuccess : hipErrorInvalidValue);
	*mem_pool = (hipMemPool_t)current_pool(device);
	return hip_leave(hipSuccess);
}

hipError_t hipDeviceSetMemPool(int device, hipMemPool_t mem_pool)
{
	struct sim_pool_about about;

	HIP_ENTER();
	HIP_TRY(pool_of(mem_pool) && hip_is_device(device) ? hipSuccess : hipErrorInvalidValue);
	sim_pool_about(pool_of(mem_pool), &about);
	HIP_TRY(about.device == device ? hipSuccess : hipErrorInvalidDevice);
	pthread_mutex_lock(&lock);
	current[device] = pool_of(mem_pool);
	pthread_mutex_unlock(&lock);
	return hip_leave(hipSuccess);
}
