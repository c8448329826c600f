/* CUDA's contexts and streams: primary contexts, the end of a context, the owner of a stream. */
#include "backend_cuda.h"

#include <stdatomic.h>

#include "context_end.h"

/* The primary contexts as last retained, and the generation then (context_end.h). */
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

/* Holds a reference for a moment. If that has become the last, libspill misses the end. */
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

/*
 * The driver does not tell the handle. The program's own retain does, if libspill saw that. Libspill
 * also saw its end, so a handle that is known stands if the driver gives no answer.
 */
static bool primary_context(int device, void **context)
{
	unsigned int flags;
	int active = 0;
	if (!spill_cuda.cuDevicePrimaryCtxGetState)
		return false;
	int error = spill_cuda.cuDevicePrimaryCtxGetState(device, &flags, &active);
	if (!error && !active)
		return false;
	CUcontext found = device < SPILL_DEVICES ? atomic_load(&primaries[device].context) : NULL;
	if (!found && !error)
		found = retain_and_release(device);
	if (found)
		*context = found;
	return found != NULL;
}

void spill_cuda_pop(CUcontext pushed)
{
	CUcontext popped;
	if (spill_cuda.cuCtxPopCurrent_v2(&popped) && spill_cuda_current_context() == pushed)
		spill_cuda.cuCtxPopCurrent_v2(&popped);
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
	CUcontext before = spill_cuda_current_context();
	CUdevice ordinal;
	if (spill_cuda_enter(before, context))
		return false;
	bool found = spill_cuda.cuCtxGetDevice(&ordinal) == CUDA_SUCCESS;
	spill_cuda_leave(before, context);
	if (found)
		*device = ordinal;
	return found;
}

static void *context_owner(void *context)
{
	return spill_cuda_owner_context(context);
}

const struct spill_vendor_contexts spill_cuda_contexts = {
    .device = context_device,
    .owner = context_owner,
    .id = context_id,
    .primary = primary_context,
    .primary_retained = primary_retained,
    .green_made = spill_cuda_green_made,
    .green_ends = spill_cuda_green_ends,
    .ended = context_ended,
};

/* A default stream is the current context's. */
static int stream_context(CUstream stream, CUcontext *owner)
{
	CUcontext context = NULL;
	int result = CUDA_SUCCESS;
	if (spill_cuda_is_default(stream) || !spill_cuda.cuStreamGetCtx)
		context = spill_cuda_current_context();
	else
		result = spill_cuda.cuStreamGetCtx(stream, &context);
	*owner = spill_cuda_owner_context(context);
	return result;
}

static int stream_owner(void *stream, int *device, void **context)
{
	CUcontext before = spill_cuda_current_context(), owner = NULL;
	CUdevice ordinal;
	int result = stream_context(stream, &owner);
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

/* The driver refuses the legacy stream while a stream that synchronises with it captures. */
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
    .green = spill_cuda_current_green,
};
