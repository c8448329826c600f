/*
 * CUDA's contexts and streams: the current and the primary context, waiting for a context, its end.
 */
#include "backend_cuda.h"

#include <stdatomic.h>

#include "context_end.h"

/* The primary context of each device, as it was last retained, and when (context_end.h). */
static struct {
	_Atomic(CUcontext) context;
	_Atomic uint64_t generation;
} primaries[SPILL_DEVICES];

static void primary_retained(int device, void *context)
{
	if (device < 0 || device >= SPILL_DEVICES)
		return;
	atomic_store(&primaries[device].generation, spill_context_generation());
	atomic_store(&primaries[device].context, (CUcontext)context);
}

static void context_ended(const struct spill_context_end *end)
{
	spill_cuda_events_ended(end);
	for (int device = 0; device < SPILL_DEVICES; device++) {
		CUcontext known = atomic_load(&primaries[device].context);
		if (spill_context_end_covers(end, &spill_backend_cuda, device, known,
		                             atomic_load(&primaries[device].generation)))
			atomic_compare_exchange_strong(&primaries[device].context, &known, NULL);
	}
}

/* A reference of ours, for a moment. If it is the last one by then, the context ends unseen. */
static CUcontext retain_and_release(int device)
{
	CUcontext found;
	if (!spill_cuda.cuDevicePrimaryCtxRetain || !spill_cuda.cuDevicePrimaryCtxRelease_v2 ||
	    spill_cuda.cuDevicePrimaryCtxRetain(&found, device))
		return NULL;
	spill_cuda.cuDevicePrimaryCtxRelease_v2(device);
	primary_retained(device, found);
	return found;
}

/* The driver has no function for the handle. So it is the one that the program got, where its retain was seen. */
static bool primary_context(int device, void **context)
{
	unsigned int flags;
	int active = 0;
	if (!spill_cuda.cuDevicePrimaryCtxGetState ||
	    spill_cuda.cuDevicePrimaryCtxGetState(device, &flags, &active) || !active)
		return false;
	CUcontext found = device < SPILL_DEVICES ? atomic_load(&primaries[device].context) : NULL;
	if (!found)
		found = retain_and_release(device);
	if (found)
		*context = found;
	return found != NULL;
}

static uint64_t context_id(void *context)
{
	unsigned long long id = 0;
	if (!spill_cuda.cuCtxGetId || spill_cuda.cuCtxGetId(context, &id))
		return 0;
	return id;
}

static bool context_device(void *context, int *device)
{
	CUcontext popped;
	CUdevice ordinal;
	if (spill_cuda.cuCtxPushCurrent_v2(context))
		return false;
	bool found = spill_cuda.cuCtxGetDevice(&ordinal) == CUDA_SUCCESS;
	spill_cuda.cuCtxPopCurrent_v2(&popped);
	if (found)
		*device = ordinal;
	return found;
}

const struct spill_vendor_contexts spill_cuda_contexts = {
    .device = context_device,
    .id = context_id,
    .primary = primary_context,
    .primary_retained = primary_retained,
    .ended = context_ended,
};

bool spill_cuda_current(int *device, void **context)
{
	CUcontext now = NULL;
	CUdevice ordinal;
	if (spill_cuda.cuCtxGetCurrent(&now) || !now || spill_cuda.cuCtxGetDevice(&ordinal))
		return false;
	*device = ordinal;
	*context = now;
	return true;
}

/* The driver knows what is free only for the context that is current. */
int spill_cuda_device_memory(int device, uint64_t *free, uint64_t *total)
{
	size_t free_bytes = 0, total_bytes;
	CUdevice now;
	void *context;
	CUcontext popped;
	int result;
	if (spill_cuda.cuCtxGetDevice(&now) == CUDA_SUCCESS && now == device) {
		result = spill_cuda.cuMemGetInfo_v2(&free_bytes, &total_bytes);
	} else if (primary_context(device, &context) && !spill_cuda.cuCtxPushCurrent_v2(context)) {
		result = spill_cuda.cuMemGetInfo_v2(&free_bytes, &total_bytes);
		spill_cuda.cuCtxPopCurrent_v2(&popped);
	} else {
		result = spill_cuda.cuDeviceTotalMem_v2(&total_bytes, device);
	}
	if (result)
		return result;
	*free = free_bytes;
	*total = total_bytes;
	return 0;
}

/*
 * A primary context that nobody has made is made and kept, as the vendor's runtime keeps it. *before: what was pushed, or
 * NULL.
 */
int spill_cuda_device_enter(int device, void **before)
{
	CUcontext context;
	CUdevice ordinal;
	void *made;
	*before = NULL;
	if (spill_cuda_now() && !spill_cuda.cuCtxGetDevice(&ordinal) && ordinal == device)
		return CUDA_SUCCESS;
	if (primary_context(device, &made)) {
		*before = spill_cuda.cuCtxPushCurrent_v2(made) ? NULL : made;
		return *before ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
	}
	if (!spill_cuda.cuDevicePrimaryCtxRetain)
		return CUDA_ERROR_NOT_SUPPORTED;
	int result = spill_cuda.cuDevicePrimaryCtxRetain(&context, device);
	if (!result)
		primary_retained(device, context);
	if (!result)
		result = spill_cuda.cuCtxPushCurrent_v2(context);
	if (!result)
		*before = context;
	return result;
}

void spill_cuda_device_leave(void *before)
{
	CUcontext gone;
	if (before)
		spill_cuda.cuCtxPopCurrent_v2(&gone);
}

/* pre: the context to be waited for is current. A device too full for a byte: a pinned page, whose free waits likewise. */
static int free_something(void)
{
	CUdeviceptr small;
	void *page;
	int result = spill_cuda.cuMemAlloc_v2(&small, 1);
	if (result == CUDA_ERROR_OUT_OF_MEMORY) {
		result = spill_cuda.cuMemHostAlloc(&page, 4096, 0);
		if (!result)
			result = spill_cuda.cuMemFreeHost(page);
		return result;
	}
	if (result)
		return result;
	result = spill_cuda.cuMemFree_v2(small);
	if (result) /* an error of work before it: this one gives it back */
		(void)spill_cuda.cuMemFree_v2(small);
	return result;
}

/*
 * By the vendor's own free, of a small allocation: it waits for all work of its context (docs/measurements.md), as the
 * free that this is part of would, and unlike cuCtxSynchronize it leaves a capture alone that another thread begins at
 * this moment. By push and pop: the current context may be another.
 */
int spill_cuda_wait(int device, void *context)
{
	CUcontext popped;
	int result = spill_cuda.cuCtxPushCurrent_v2(context);
	if (result)
		return result;
	result = free_something();
	spill_cuda.cuCtxPopCurrent_v2(&popped);
	return result;
}

static int stream_owner(void *stream, int *device, void **context)
{
	CUcontext before = spill_cuda_now(), owner = before;
	CUdevice ordinal;
	bool explicit = stream && stream != SPILL_CUDA_LEGACY && stream != SPILL_CUDA_PER_THREAD &&
	                spill_cuda.cuStreamGetCtx;
	int result = explicit ? spill_cuda.cuStreamGetCtx(stream, &owner) : CUDA_SUCCESS;
	if (!result && !owner)
		result = CUDA_ERROR_INVALID_CONTEXT;
	if (!result)
		result = spill_cuda_enter(before, owner);
	if (result)
		return result;
	result = spill_cuda.cuCtxGetDevice(&ordinal);
	spill_cuda_leave(before, owner);
	if (result)
		return result;
	*device = ordinal;
	*context = owner;
	return CUDA_SUCCESS;
}

/* The legacy stream captures nothing, but is refused while a stream that synchronises with it captures. */
static bool capturing(void *stream)
{
	CUstreamCaptureStatus status;
	if (!spill_cuda.cuStreamIsCapturing)
		return false;
	CUresult result = spill_cuda.cuStreamIsCapturing(stream, &status);
	return result ? result == CUDA_ERROR_STREAM_CAPTURE_IMPLICIT
	              : status != CU_STREAM_CAPTURE_STATUS_NONE;
}

const struct spill_vendor_streams spill_cuda_streams = {
    .owner = stream_owner,
    .capturing = capturing,
};
