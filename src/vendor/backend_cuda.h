/*
 * The CUDA driver functions that libspill calls, looked up once from the driver that the program loaded
 * (backend_cuda.c) and shared by the files of this backend. The list is backend_cuda.def; names and versions are
 * those of the CUDA Driver API reference.
 */
#ifndef SPILL_BACKEND_CUDA_H
#define SPILL_BACKEND_CUDA_H

#include "abi/cuda.h"
#include "backend.h"

struct spill_cuda {
#define FUNCTION(needed, ret, symbol, params) ret(*symbol) params;
#include "backend_cuda.def"
};

extern struct spill_cuda spill_cuda;

/* Memory: host, managed, virtual memory management (backend_cuda_memory.c). */
bool spill_cuda_primary(int device, void **context);            /* of backend.h */
int spill_cuda_attribute(int device, CUdevice_attribute which); /* 0 if the driver does not know it */
int spill_cuda_host_node(int device); /* by host.numa, else the nearest to the device */
int spill_cuda_host_alloc(uint64_t bytes, uint64_t *ptr, void **host);
int spill_cuda_host_free(void *host);
int spill_cuda_managed_alloc(uint64_t bytes, uint64_t *ptr);
int spill_cuda_managed_free(uint64_t ptr);
int spill_cuda_advise_preferred(uint64_t ptr, uint64_t bytes, enum spill_location where, int device);
int spill_cuda_advise_accessed_by(uint64_t ptr, uint64_t bytes, enum spill_location who, int device);
int spill_cuda_advise_read_mostly(uint64_t ptr, uint64_t bytes, int device);
int spill_cuda_prefetch(uint64_t ptr, uint64_t bytes, int device);
int spill_cuda_granularity(int device, bool on_host, uint64_t *bytes);
int spill_cuda_reserve(uint64_t bytes, uint64_t alignment, uint64_t *va);
int spill_cuda_unreserve(uint64_t va, uint64_t bytes);
void spill_cuda_physical(const void *properties, struct spill_physical *physical);
int spill_cuda_create(int device, bool on_host, uint64_t bytes, uint64_t *handle);
int spill_cuda_release(uint64_t handle);
int spill_cuda_map(uint64_t va, uint64_t bytes, uint64_t handle);
int spill_cuda_unmap(uint64_t va, uint64_t bytes);
int spill_cuda_allow(uint64_t va, uint64_t bytes, int device);

/* What is current on the calling thread, NULL if nothing is; another for the time being, which `leave` undoes. */
static inline CUcontext spill_cuda_now(void)
{
	CUcontext context = NULL;
	spill_cuda.cuCtxGetCurrent(&context);
	return context;
}

static inline int spill_cuda_enter(CUcontext before, CUcontext context)
{
	return before == context ? CUDA_SUCCESS : spill_cuda.cuCtxPushCurrent_v2(context);
}

static inline void spill_cuda_leave(CUcontext before, CUcontext context)
{
	CUcontext gone;
	if (before != context)
		spill_cuda.cuCtxPopCurrent_v2(&gone);
}

/* Some calls break a capture, unless the thread says that it knows (measured): another's, or the one it is made in. */
static inline void spill_cuda_exchange(CUstreamCaptureMode *mode)
{
	if (spill_cuda.cuThreadExchangeStreamCaptureMode)
		spill_cuda.cuThreadExchangeStreamCaptureMode(mode);
}

/* The vendor's names for the default streams; stream 0 by our own call is always the legacy one. */
#define SPILL_CUDA_LEGACY ((CUstream)0x1)
#define SPILL_CUDA_PER_THREAD ((CUstream)0x2)

static inline CUstream spill_cuda_stream(void *stream, bool per_thread)
{
	return !stream && per_thread ? SPILL_CUDA_PER_THREAD : stream;
}

/* Events, marks and the mover's copies (backend_cuda_move.c). */
bool spill_cuda_can_move(void);
int spill_cuda_event_record(int device, void *context, void *stream, bool per_thread, void **event);
bool spill_cuda_event_passed(int device, void *context, void *event);
void spill_cuda_event_destroy(int device, void *context, void *event);
int spill_cuda_events_ahead(int device, void *context, unsigned count);
void spill_cuda_events_ended(const struct spill_context_end *end);
void spill_cuda_primary_retained(int device, void *context); /* of backend.h */
int spill_cuda_mark(int device, void *context, void **event);
int spill_cuda_copier_create(int device, void *context, void **stream);
void spill_cuda_copier_destroy(int device, void *context, void *stream);
int spill_cuda_copy(int device, void *context, void *stream, uint64_t to, uint64_t from, uint64_t bytes);

/* How long work takes (backend_cuda_time.c). */
int spill_cuda_timer_create(int device, void *context, void **timer);
int spill_cuda_timer_record(int device, void *context, void *stream, bool per_thread, void *timer);
int spill_cuda_timer_passed(int device, void *context, void *timer, bool *passed);
int spill_cuda_timer_between(int device, void *context, void *begin, void *end, uint64_t *ns);
void spill_cuda_timer_destroy(int device, void *context, void *timer);

/* Memory in stream order, devices (backend_cuda_pool.c). */
int spill_cuda_stream_owner(void *stream, int *device, void **context);
int spill_cuda_pool_create(int device, enum spill_place place, enum spill_location preferred, void **pool);
int spill_cuda_pool_destroy(void *pool);
int spill_cuda_pool_allow(void *pool, int device);
int spill_cuda_pool_alloc(void *pool, uint64_t bytes, void *stream, bool per_thread, uint64_t *ptr);
int spill_cuda_pool_free(uint64_t ptr, void *stream, bool per_thread);
int spill_cuda_pool_reserved(void *pool, uint64_t *bytes);
int spill_cuda_pool_unused(void *pool, uint64_t *bytes);
int spill_cuda_pool_trim(void *pool);
int spill_cuda_pool_current(int device, void **pool);
int spill_cuda_pool_default(int device, void **pool);
enum spill_place spill_cuda_pool_place(const void *properties, int *device);
int spill_cuda_graph_reserved(int device, uint64_t *bytes);
int spill_cuda_device_alloc(uint64_t bytes, uint64_t *ptr);
int spill_cuda_device_free(uint64_t ptr);
int spill_cuda_device_enter(int device, void **before);
void spill_cuda_device_leave(void *before);

#endif
