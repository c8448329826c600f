/*
 * The HIP functions that libspill calls, looked up once from the runtime that the program loaded (backend_hip.c) and
 * shared by the files of this backend. The list is backend_hip.def.
 */
#ifndef SPILL_BACKEND_HIP_H
#define SPILL_BACKEND_HIP_H

#include "abi/hip.h"
#include "backend.h"

struct spill_hip {
#define FUNCTION(needed, ret, symbol, params) ret(*symbol) params;
#include "backend_hip.def"
};

extern struct spill_hip spill_hip;

/* Physical memory (backend_hip_vmm.c). */
void spill_hip_physical(const void *properties, struct spill_physical *physical);
int spill_hip_granularity(int device, bool on_host, uint64_t *bytes);
int spill_hip_create(int device, bool on_host, uint64_t bytes, uint64_t *handle);
int spill_hip_release(uint64_t handle);

/* Memory in stream order, events, devices (backend_hip_pool.c). */
int spill_hip_stream_owner(void *stream, int *device, void **context);
int spill_hip_pool_create(int device, enum spill_place place, enum spill_location preferred, void **pool);
int spill_hip_pool_destroy(void *pool);
int spill_hip_pool_allow(void *pool, int device);
int spill_hip_pool_alloc(void *pool, uint64_t bytes, void *stream, bool per_thread, uint64_t *ptr);
int spill_hip_pool_free(uint64_t ptr, void *stream, bool per_thread);
int spill_hip_pool_reserved(void *pool, uint64_t *bytes);
int spill_hip_pool_unused(void *pool, uint64_t *bytes);
int spill_hip_pool_trim(void *pool);
int spill_hip_pool_current(int device, void **pool);
int spill_hip_pool_default(int device, void **pool);
enum spill_place spill_hip_pool_place(const void *properties, int *device);
int spill_hip_event_record(int device, void *context, void *stream, bool per_thread, void **event);
bool spill_hip_event_passed(int device, void *context, void *event);
void spill_hip_event_destroy(int device, void *context, void *event);
int spill_hip_device_alloc(uint64_t bytes, uint64_t *ptr);
int spill_hip_device_free(uint64_t ptr);
int spill_hip_device_enter(int device, void **before);
void spill_hip_device_leave(void *before);

#endif
