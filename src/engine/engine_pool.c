/*
 * The program's pools: they are recorded, so that they can be trimmed, and so that their memory can
 * come from segments that move (engine_ordered.h). Exportable memory stays with the driver. Questions
 * about a pool's figures get those of the driver's part and of the segments together. Unused segments go back when
 * the driver's pools would give their memory back.
 */
#include "abi/cuda.h"
#include "capture.h"
#include "engine_ordered.h"
#include "mover.h"
#include "ordered_pool.h"
#include "unpark.h"
#include "vendor_pool.h"

static void record_pool(struct spill_request *request, const struct spill_backend *backend)
{
	void *handle = *(void **)request->out;
	int device = 0;
	backend->devices->current(&device, &request->context);
	enum spill_place place = backend->pools->place(request->properties, &device);
	spill_vendor_pool_created(backend, handle, place, device);
	if (place == SPILL_PLACE_DEVICE && backend->pools->special &&
	    !backend->pools->special(request->properties))
		spill_ordered_pool_made(backend, device, handle);
}

/* A default pool on the host, or of managed memory, that the driver has made itself. */
static void record_found(const struct spill_request *request, const struct spill_backend *backend)
{
	enum spill_place place = backend->pools->place_at(request->properties, request->mode);
	if (place != SPILL_PLACE_DEVICE)
		spill_vendor_pool_found(backend, *(void **)request->out, place);
}

/*
 * The segments get the same access, and stay where they are from now on. More memory of the pool stays
 * with the driver.
 */
static void share_segments(struct spill_ordered_pool *pool, const struct spill_request *request,
                           const struct spill_backend *backend)
{
	struct spill_chunked *segment;
	spill_mover_lock();
	spill_ordered_pool_close(pool);
	while ((segment = spill_ordered_next_closed(pool)) != NULL) {
		spill_unpark_pin_held(segment);
		for (unsigned access = 0; access < request->mode; access++)
			backend->pools->share(request->properties, access, segment->base.ptr, segment->range);
	}
	spill_mover_unlock();
}

/*
 * Memory that spilled, segments, and what is made later, get access for each device, now and at each
 * move. Access that is taken back stays for these. False: somebody else gets access, or the pairs of
 * devices are too many.
 */
static bool share_with_devices(const struct spill_request *request, const struct spill_backend *backend)
{
	int owner = spill_vendor_pool_device(backend, request->pool, -1);
	bool all = true;
	if (owner < 0 || spill_vendor_pool_place(backend, request->pool) != SPILL_PLACE_DEVICE)
		return true;
	for (unsigned access = 0; access < request->mode; access++) {
		int user = backend->pools->share_device(request->properties, access);
		if (user == SPILL_SHARED_WITH_OTHERS)
			all = false;
		else if (user >= 0 && user != owner)
			all &= spill_engine_pool_shared(backend, owner, user);
	}
	return all;
}

/* The pool beside that of the call; made for a device's own one. NULL: there is none. */
static struct spill_ordered_pool *pool_of_call(const struct spill_request *request,
                                               const struct spill_backend *backend)
{
	struct spill_ordered_pool *pool = spill_ordered_pool_of(backend, request->pool);
	int device = pool ? -1 : spill_vendor_pool_default_of(backend, request->pool);
	return device < 0 ? pool : spill_ordered_pool_made(backend, device, request->pool);
}

static void share_pool(const struct spill_request *request, const struct spill_backend *backend)
{
	struct spill_ordered_pool *pool = pool_of_call(request, backend);
	if (backend->pools->share && !share_with_devices(request, backend) && pool)
		share_segments(pool, request, backend);
}

/* HIP numbers the attributes alike (hip_runtime_api.h, hipMemPoolAttr). Their values have 64 bits. */
static void add_figures(const struct spill_request *request, struct spill_ordered_pool *pool)
{
	struct spill_ordered_figures figures = spill_ordered_figures(pool);
	uint64_t *value = request->out;
	switch (request->mode) {
	case CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT:
		*value += figures.reserved;
		break;
	case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
		*value += figures.most_reserved;
		break;
	case CU_MEMPOOL_ATTR_USED_MEM_CURRENT:
		*value += figures.used;
		break;
	case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
		*value += figures.most_used;
		break;
	default:
		break;
	}
}

/* A value of 64 bits. A highest figure can only be restarted. */
static void change_pool(const struct spill_request *request, struct spill_ordered_pool *pool)
{
	if (!pool)
		return;
	if (request->mode == CU_MEMPOOL_ATTR_RELEASE_THRESHOLD)
		spill_ordered_keep(pool, *(const uint64_t *)request->properties);
	spill_ordered_restart(pool, request->mode == CU_MEMPOOL_ATTR_USED_MEM_HIGH,
	                      request->mode == CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH);
}

static void finish_call(struct spill_request *request, const struct spill_backend *backend)
{
	struct spill_ordered_pool *pool = spill_ordered_pool_of(backend, request->pool);
	switch (request->op) {
	case SPILL_OP_POOL_CREATE:
		if (request->properties)
			record_pool(request, backend);
		break;
	case SPILL_OP_POOL_FIND:
		record_found(request, backend);
		break;
	case SPILL_OP_POOL_DESTROY:
		if (request->destroyed.ordered)
			spill_ordered_trim_pool(backend, request->destroyed.ordered, 0);
		break;
	case SPILL_OP_POOL_TRIM:
		spill_vendor_pool_trimmed(backend, request->pool);
		if (pool)
			spill_ordered_trim_pool(backend, pool, request->bytes);
		break;
	case SPILL_OP_POOL_SHARE:
		share_pool(request, backend);
		break;
	case SPILL_OP_POOL_GET:
		if (pool && request->out)
			add_figures(request, pool);
		break;
	case SPILL_OP_POOL_SET:
		change_pool(request, pool_of_call(request, backend));
		break;
	default:
		break;
	}
}

/* The vendor has refused to end it. */
static void revive_pool(const struct spill_request *request)
{
	spill_vendor_pool_alive(request->destroyed.vendor, request->pool);
	spill_ordered_pool_alive(request->destroyed.ordered, request->pool);
}

/* A pool leaves the lists before it ends: afterwards another pool may have its handle. */
bool spill_engine_pool(struct spill_request *request)
{
	const struct spill_backend *backend = spill_backend_for(request->domain);
	if (request->step++ == 0) {
		request->pass = !backend || !backend->pools;
		if (!request->pass && request->op == SPILL_OP_POOL_DESTROY) {
			request->destroyed.vendor = spill_vendor_pool_destroyed(backend, request->pool);
			request->destroyed.ordered = spill_ordered_pool_ended(backend, request->pool);
		}
		return true;
	}
	if (request->result == 0)
		finish_call(request, backend);
	else if (request->op == SPILL_OP_POOL_DESTROY)
		revive_pool(request);
	return false;
}

/* The frees that the call has waited for. That of an event is not known, and of a green context only its own. */
static void note_done(const struct spill_request *request, const struct spill_backend *backend)
{
	struct spill_stream_order order = {0};
	void *context = request->context;
	int device;
	if (request->mode == SPILL_WAITS_FOR_STREAM &&
	    !backend->streams->owner(request->stream, &device, &context))
		order.stream = spill_engine_stream(request);
	else if (request->mode == SPILL_WAITS_FOR_CONTEXT && !context && !spill_engine_green(backend))
		backend->devices->current(&device, &context);
	order.context = context;
	if (context)
		spill_ordered_done(backend, &order, request->frees);
}

bool spill_engine_synchronize(struct spill_request *request)
{
	const struct spill_backend *backend = spill_backend_for(request->domain);
	if (request->step++ == 0) {
		request->pass = !backend || !spill_ordered_any(NULL);
		request->frees = spill_ordered_number();
		return true;
	}
	if (request->result == 0 && !spill_capture_any()) {
		note_done(request, backend);
		spill_ordered_give_back(backend);
	}
	return false;
}
