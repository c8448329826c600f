/* Streams and events. */
#include "green.h"

#include <stdlib.h>

struct sim_stream *driver_stream(CUstream stream)
{
	struct sim_green *green = driver_current_green();
	if (!stream || stream == CU_STREAM_LEGACY)
		return green ? driver_green_default(green) : sim_stream_default(driver_current());
	if (stream == CU_STREAM_PER_THREAD)
		return green ? NULL : sim_stream_per_thread(driver_current());
	return sim_stream_alive((struct sim_stream *)stream) ? (struct sim_stream *)stream : NULL;
}

static CUresult create_stream(CUstream *out, unsigned flags, int priority)
{
	struct sim_stream *stream;

	if (!out || flags & ~CU_STREAM_NON_BLOCKING)
		return CUDA_ERROR_INVALID_VALUE;
	sim_context_unblocked(driver_current());
	priority = priority > 0 ? 0 : priority < -5 ? -5 : priority;
	CUresult result = driver_result(sim_stream_create(driver_current(), flags, priority, &stream));
	if (result)
		return result;
	driver_green_made_stream(driver_current_green(), stream);
	*out = (CUstream)stream;
	return CUDA_SUCCESS;
}

CUresult cuStreamCreate(CUstream *phStream, unsigned int Flags)
{
	ENTER(cuStreamCreate, CONTEXT);
	return create_stream(phStream, Flags, 0);
}

CUresult cuStreamCreateWithPriority(CUstream *phStream, unsigned int flags, int priority)
{
	ENTER(cuStreamCreateWithPriority, CONTEXT);
	return create_stream(phStream, flags, priority);
}

static CUresult destroy_handle(CUstream hStream)
{
	if (!hStream || hStream == CU_STREAM_LEGACY || hStream == CU_STREAM_PER_THREAD ||
	    !driver_stream(hStream))
		return CUDA_ERROR_INVALID_HANDLE;
	return driver_result(sim_stream_destroy((struct sim_stream *)hStream));
}

CUresult cuStreamDestroy_v2(CUstream hStream)
{
	ENTER(cuStreamDestroy_v2, CONTEXT);
	return destroy_handle(hStream);
}

CUresult cuStreamDestroy(CUstream hStream)
{
	ENTER(cuStreamDestroy, CONTEXT);
	return destroy_handle(hStream);
}

/* The stream, or CUDA_ERROR_INVALID_HANDLE. */
#define STREAM_OR_RETURN(name) \
	struct sim_stream *name = driver_stream(hStream); \
	if (!name) \
	return CUDA_ERROR_INVALID_HANDLE

WITH_STREAM(cuStreamGetPriority, cuStreamGetPriority_ptsz, (CUstream hStream, int *priority),
            (hStream, priority))
{
	STREAM_OR_RETURN(stream);
	if (!priority)
		return CUDA_ERROR_INVALID_VALUE;
	*priority = sim_stream_priority(stream);
	return CUDA_SUCCESS;
}

WITH_STREAM(cuStreamGetFlags, cuStreamGetFlags_ptsz, (CUstream hStream, unsigned int *flags),
            (hStream, flags))
{
	STREAM_OR_RETURN(stream);
	if (!flags)
		return CUDA_ERROR_INVALID_VALUE;
	*flags = sim_stream_non_blocking(stream) ? CU_STREAM_NON_BLOCKING : CU_STREAM_DEFAULT;
	return CUDA_SUCCESS;
}

WITH_STREAM(cuStreamGetId, cuStreamGetId_ptsz, (CUstream hStream, unsigned long long *streamId),
            (hStream, streamId))
{
	STREAM_OR_RETURN(stream);
	if (!streamId)
		return CUDA_ERROR_INVALID_VALUE;
	*streamId = sim_stream_id(stream);
	return CUDA_SUCCESS;
}

/* A default stream is the current green context's. */
static struct sim_green *green_of(CUstream handle, struct sim_stream *stream)
{
	return (struct sim_stream *)handle == stream ? driver_green_of_stream(stream)
	                                             : driver_current_green();
}

WITH_STREAM(cuStreamGetCtx, cuStreamGetCtx_ptsz, (CUstream hStream, CUcontext *pctx), (hStream, pctx))
{
	STREAM_OR_RETURN(stream);
	if (!pctx)
		return CUDA_ERROR_INVALID_VALUE;
	struct sim_green *green = green_of(hStream, stream);
	*pctx = green ? (CUcontext)green : (CUcontext)sim_stream_context(stream);
	return CUDA_SUCCESS;
}

WITH_STREAM(cuStreamGetCtx_v2, cuStreamGetCtx_v2_ptsz,
            (CUstream hStream, CUcontext *pctx, CUgreenCtx *pGreenCtx), (hStream, pctx, pGreenCtx))
{
	STREAM_OR_RETURN(stream);
	struct sim_capture_info info;
	if (!pctx || !pGreenCtx)
		return CUDA_ERROR_INVALID_VALUE;
	if (sim_capture_query(stream, &info) == SIM_CAPTURE_IMPLICIT)
		return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
	*pctx = (CUcontext)sim_stream_context(stream);
	*pGreenCtx = (CUgreenCtx)green_of(hStream, stream);
	return CUDA_SUCCESS;
}

WITH_STREAM(cuStreamGetDevice, cuStreamGetDevice_ptsz, (CUstream hStream, CUdevice *device),
            (hStream, device))
{
	STREAM_OR_RETURN(stream);
	if (!device)
		return CUDA_ERROR_INVALID_VALUE;
	*device = sim_context_device(sim_stream_context(stream));
	return CUDA_SUCCESS;
}

WITH_STREAM(cuStreamQuery, cuStreamQuery_ptsz, (CUstream hStream), (hStream))
{
	STREAM_OR_RETURN(stream);
	enum sim_status forbidden = sim_capture_asks(stream);
	return driver_result(forbidden ? forbidden : sim_stream_query(stream));
}

WITH_STREAM(cuStreamSynchronize, cuStreamSynchronize_ptsz, (CUstream hStream), (hStream))
{
	STREAM_OR_RETURN(stream);
	enum sim_status forbidden = sim_capture_asks(stream);
	if (forbidden)
		return driver_result(forbidden);
	CUresult result = driver_result(sim_stream_synchronize(stream));
	sim_pools_synchronized(sim_context_device(sim_stream_context(stream)), sim_stream_id(stream));
	return result;
}

struct sim_event *driver_event(CUevent event)
{
	return sim_event_alive((struct sim_event *)event) ? (struct sim_event *)event : NULL;
}

WITH_STREAM(cuStreamWaitEvent, cuStreamWaitEvent_ptsz, (CUstream hStream, CUevent hEvent, unsigned int Flags),
            (hStream, hEvent, Flags))
{
	STREAM_OR_RETURN(stream);
	if (!driver_event(hEvent))
		return CUDA_ERROR_INVALID_HANDLE;
	if (Flags > CU_EVENT_WAIT_EXTERNAL)
		return CUDA_ERROR_INVALID_VALUE;
	if (Flags && sim_capturing(stream))
		return driver_result(sim_capture_external(stream, SIM_NODE_WAIT, driver_event(hEvent)));
	return driver_result(sim_stream_wait(stream, driver_event(hEvent)));
}

WITH_STREAM(cuLaunchHostFunc, cuLaunchHostFunc_ptsz, (CUstream hStream, CUhostFn fn, void *userData),
            (hStream, fn, userData))
{
	STREAM_OR_RETURN(stream);
	return fn ? driver_result(sim_host_function(stream, fn, userData)) : CUDA_ERROR_INVALID_VALUE;
}

struct callback {
	CUstreamCallback function;
	CUstream stream;
	void *data;
};

static void call_back(void *made)
{
	struct callback callback = *(struct callback *)made;
	free(made);
	callback.function(callback.stream, CUDA_SUCCESS, callback.data);
}

WITH_STREAM(cuStreamAddCallback, cuStreamAddCallback_ptsz,
            (CUstream hStream, CUstreamCallback callback, void *userData, unsigned int flags),
            (hStream, callback, userData, flags))
{
	STREAM_OR_RETURN(stream);
	if (!callback || flags)
		return CUDA_ERROR_INVALID_VALUE;
	struct callback *made = malloc(sizeof(*made));
	if (!made)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*made = (struct callback){callback, hStream, userData};
	CUresult result = driver_result(sim_host_function(stream, call_back, made));
	if (result)
		free(made);
	return result;
}

/* No memory or semaphore of another API can be imported, so none is valid. */
WITH_STREAM(cuWaitExternalSemaphoresAsync, cuWaitExternalSemaphoresAsync_ptsz,
            (const CUexternalSemaphore *extSemArray, const CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS *paramsArray,
             unsigned int numExtSems, CUstream hStream),
            (extSemArray, paramsArray, numExtSems, hStream))
{
	return extSemArray && paramsArray && numExtSems ? CUDA_ERROR_INVALID_HANDLE
	                                                : CUDA_ERROR_INVALID_VALUE;
}

/* No wait is necessary: both sides always reach every managed page. */
WITH_STREAM(cuStreamAttachMemAsync, cuStreamAttachMemAsync_ptsz,
            (CUstream hStream, CUdeviceptr dptr, size_t length, unsigned int flags),
            (hStream, dptr, length, flags))
{
	struct sim_pointer about;

	STREAM_OR_RETURN(stream);
	if (!sim_pointer(dptr, &about) || about.kind != SIM_MANAGED || about.base != dptr ||
	    (length && length != about.size))
		return CUDA_ERROR_INVALID_VALUE;
	if (flags != 1 && flags != 2 && flags != 4)
		return CUDA_ERROR_INVALID_VALUE;
	return driver_result(sim_capture_refuse(stream));
}

/* -- events ------------------------------------------------------------------------------------ */

CUresult cuEventCreate(CUevent *phEvent, unsigned int Flags)
{
	struct sim_event *event;

	ENTER(cuEventCreate, CONTEXT);
	if (!phEvent || Flags > 7 || (Flags & 4 && !(Flags & CU_EVENT_DISABLE_TIMING)))
		return CUDA_ERROR_INVALID_VALUE;
	sim_context_unblocked(driver_current());
	CUresult result =
	    driver_result(sim_event_create(driver_current(), !(Flags & CU_EVENT_DISABLE_TIMING), &event));
	if (!result)
		*phEvent = (CUevent)event;
	return result;
}

CUresult cuEventDestroy_v2(CUevent hEvent)
{
	ENTER(cuEventDestroy_v2, CONTEXT);
	return driver_event(hEvent) ? driver_result(sim_event_destroy(driver_event(hEvent)))
	                            : CUDA_ERROR_INVALID_HANDLE;
}

static CUresult record_event(CUevent event, CUstream hStream, unsigned flags)
{
	STREAM_OR_RETURN(stream);
	if (!driver_event(event) || sim_stream_context(stream) != sim_event_context(driver_event(event)))
		return CUDA_ERROR_INVALID_HANDLE;
	if (flags & CU_EVENT_RECORD_EXTERNAL && sim_capturing(stream))
		return driver_result(sim_capture_external(stream, SIM_NODE_RECORD, driver_event(event)));
	return driver_result(sim_event_record(driver_event(event), stream));
}

WITH_STREAM(cuEventRecord, cuEventRecord_ptsz, (CUevent hEvent, CUstream hStream), (hEvent, hStream))
{
	return record_event(hEvent, hStream, 0);
}

WITH_STREAM(cuEventRecordWithFlags, cuEventRecordWithFlags_ptsz,
            (CUevent hEvent, CUstream hStream, unsigned int flags), (hEvent, hStream, flags))
{
	return flags > 1 ? CUDA_ERROR_INVALID_VALUE : record_event(hEvent, hStream, flags);
}

CUresult cuEventQuery(CUevent hEvent)
{
	ENTER(cuEventQuery, CONTEXT);
	if (!driver_event(hEvent))
		return CUDA_ERROR_INVALID_HANDLE;
	enum sim_status forbidden = sim_capture_asks_event(driver_event(hEvent));
	return driver_result(forbidden ? forbidden : sim_event_query(driver_event(hEvent)));
}

CUresult cuEventSynchronize(CUevent hEvent)
{
	ENTER(cuEventSynchronize, CONTEXT);
	if (!driver_event(hEvent))
		return CUDA_ERROR_INVALID_HANDLE;
	enum sim_status forbidden = sim_capture_asks_event(driver_event(hEvent));
	if (forbidden)
		return driver_result(forbidden);
	CUresult result = driver_result(sim_event_synchronize(driver_event(hEvent)));
	sim_pools_synchronized(sim_context_device(sim_event_context(driver_event(hEvent))),
	                       sim_event_stream(driver_event(hEvent)));
	return result;
}

static CUresult elapsed_time(float *milliseconds, CUevent start, CUevent end)
{
	if (!milliseconds)
		return CUDA_ERROR_INVALID_VALUE;
	if (!driver_event(start) || !driver_event(end))
		return CUDA_ERROR_INVALID_HANDLE;
	enum sim_status status = sim_event_elapsed(driver_event(start), driver_event(end), milliseconds);
	return status == SIM_INVALID ? CUDA_ERROR_INVALID_HANDLE : driver_result(status);
}

CUresult cuEventElapsedTime(float *pMilliseconds, CUevent hStart, CUevent hEnd)
{
	ENTER(cuEventElapsedTime, CONTEXT);
	return elapsed_time(pMilliseconds, hStart, hEnd);
}

CUresult cuEventElapsedTime_v2(float *pMilliseconds, CUevent hStart, CUevent hEnd)
{
	ENTER(cuEventElapsedTime_v2, CONTEXT);
	return elapsed_time(pMilliseconds, hStart, hEnd);
}
