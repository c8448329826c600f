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

/* The groups of backend.h, each in the file of its functions. */
extern const struct spill_vendor_memory spill_cuda_memory;     /* backend_cuda_memory.c */
extern const struct spill_vendor_physical spill_cuda_physical; /* backend_cuda_memory.c */
extern const struct spill_vendor_vmm spill_cuda_vmm;           /* backend_cuda_memory.c */
extern const struct spill_vendor_streams spill_cuda_streams;   /* backend_cuda_context.c */
extern const struct spill_vendor_contexts spill_cuda_contexts; /* backend_cuda_context.c */
extern const struct spill_vendor_pools spill_cuda_pools;       /* backend_cuda_pool.c */
extern const struct spill_vendor_events spill_cuda_events;     /* backend_cuda_move.c */
extern const struct spill_vendor_moves spill_cuda_moves;       /* backend_cuda_move.c */
extern const struct spill_vendor_timers spill_cuda_timers;     /* backend_cuda_time.c */

/* Functions of the group `devices` that are in backend_cuda_context.c. */
bool spill_cuda_current(int *device, void **context);
int spill_cuda_device_enter(int device, void **before);
void spill_cuda_device_leave(void *before);
int spill_cuda_device_memory(int device, uint64_t *free, uint64_t *total);
int spill_cuda_wait(int device, void *context);

int spill_cuda_graph_reserved(int device, uint64_t *bytes);        /* backend_cuda_pool.c */
bool spill_cuda_can_move(void);                                    /* all that moving chunks needs is there */
void spill_cuda_events_ended(const struct spill_context_end *end); /* forgets spare events */
int spill_cuda_attribute(int device, CUdevice_attribute attribute); /* 0 if the driver does not know it */
int spill_cuda_host_node(int device); /* by host.numa, else the node nearest to the device */

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

#endif
