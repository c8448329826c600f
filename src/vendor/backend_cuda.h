/*
 * The driver functions of backend_cuda.def. backend_cuda.c looks them up once, in the driver that
 * the program loaded. Names are those of the CUDA Driver API reference.
 */
#ifndef SPILL_BACKEND_CUDA_H
#define SPILL_BACKEND_CUDA_H

#include "abi/cuda.h"
#include "abi/cuda_work.h"
#include "backend.h"
#include "relaxed.h"

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
extern const struct spill_vendor_events spill_cuda_events;     /* backend_cuda_event.c */
extern const struct spill_vendor_moves spill_cuda_moves;       /* backend_cuda_event.c */
extern const struct spill_vendor_timers spill_cuda_timers;     /* backend_cuda_event.c */

int spill_cuda_graph_reserved(int device, uint64_t *bytes); /* backend_cuda_pool.c */
/* True if the driver has every function that moving chunks needs. */
bool spill_cuda_can_move(void);
/* Forgets the spare events of a context that ended. */
void spill_cuda_events_ended(const struct spill_context_end *end);
/* 0 if the driver does not know the attribute. */
int spill_cuda_attribute(int device, CUdevice_attribute attribute);
#define SPILL_CUDA_SPLITS_FROM 12020 /* first version with chunks on the host */
/* The driver has refused to make memory on the host by cuMemCreate, and not for lack of memory. */
bool spill_cuda_refused_host_chunk(int device);
/* The NUMA node of host.numa, or the one nearest to the device. */
int spill_cuda_host_node(int device);

/* The current context of the calling thread; NULL if there is none. */
static inline CUcontext spill_cuda_current_context(void)
{
	CUcontext context = NULL;
	spill_cuda.cuCtxGetCurrent(&context);
	return context;
}

/*
 * Ends a push of a context that was not current. A call may return the error of earlier work (CUDA
 * Driver API), so the context is popped if it is still there.
 */
void spill_cuda_pop(CUcontext pushed);

/* -- green contexts (backend_cuda_green.c); members of spill_vendor_contexts and _streams ------ */

bool spill_cuda_green_made(void *green, int device);
bool spill_cuda_green_ends(void *green, int *device);
const void *spill_cuda_current_green(void);

/* The primary context, if the context is a green one. NULL: a green one that has ended, or none. */
CUcontext spill_cuda_owner_context(CUcontext context);

/*
 * Where to record on a stream of `context`, an owner: in the current green context, if that owner's, for a default stream,
 * which is then the green one's.
 */
CUcontext spill_cuda_context_of_stream(CUcontext context, CUstream stream);

/* Makes `context` current in place of `before`, the current one. spill_cuda_leave undoes this. */
static inline int spill_cuda_enter(CUcontext before, CUcontext context)
{
	return before == context ? CUDA_SUCCESS : spill_cuda.cuCtxPushCurrent_v2(context);
}

static inline void spill_cuda_leave(CUcontext before, CUcontext context)
{
	if (before != context)
		spill_cuda_pop(context);
}

/* Makes a call that a capture may forbid (relaxed.h). */
#define SPILL_CUDA_RELAXED(call) \
	SPILL_RELAXED(CUstreamCaptureMode, CU_STREAM_CAPTURE_MODE_RELAXED, \
	              spill_cuda.cuThreadExchangeStreamCaptureMode, call)

static inline CUresult spill_cuda_query_event(CUevent event)
{
	return SPILL_CUDA_RELAXED(spill_cuda.cuEventQuery(event));
}

/* The default streams. In libspill's own calls stream 0 is always the legacy one. */
#define SPILL_CUDA_LEGACY ((CUstream)0x1)
#define SPILL_CUDA_PER_THREAD ((CUstream)0x2)

static inline bool spill_cuda_is_default(CUstream stream)
{
	return !stream || stream == SPILL_CUDA_LEGACY || stream == SPILL_CUDA_PER_THREAD;
}

static inline CUstream spill_cuda_stream(void *stream, bool per_thread)
{
	return !stream && per_thread ? SPILL_CUDA_PER_THREAD : stream;
}

#endif
