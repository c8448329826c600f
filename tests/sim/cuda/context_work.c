/* Events of all streams of a context. No device can be divided, so there are no green contexts. */
#include "cuda_entry.h"

/*
 * Follows cuda.h, and an H200 with driver 580.159 where that says more. Work of each stream is
 * recorded, and so is work of other threads' default streams.
 */
CUresult cuCtxRecordEvent(CUcontext hCtx, CUevent hEvent)
{
	struct sim_context *context = (struct sim_context *)hCtx;

	ENTER(cuCtxRecordEvent, INIT);
	if (!sim_context_alive(context))
		return hCtx ? CUDA_ERROR_CONTEXT_IS_DESTROYED : CUDA_ERROR_INVALID_CONTEXT;
	if (!driver_event(hEvent) || sim_event_context(driver_event(hEvent)) != context)
		return CUDA_ERROR_INVALID_HANDLE;
	enum sim_status status = sim_context_status(context);
	return driver_result(status ? status : sim_event_record_context(driver_event(hEvent)));
}

CUresult cuGreenCtxCreate(CUgreenCtx *phCtx, CUdevResourceDesc desc, CUdevice dev, unsigned int flags)
{
	ENTER(cuGreenCtxCreate, INIT);
	if (!phCtx || !desc || flags != CU_GREEN_CTX_DEFAULT_STREAM)
		return CUDA_ERROR_INVALID_VALUE;
	return driver_device(dev) ? CUDA_ERROR_NOT_SUPPORTED : CUDA_ERROR_INVALID_DEVICE;
}

CUresult cuGreenCtxStreamCreate(CUstream *phStream, CUgreenCtx greenCtx, unsigned int flags, int priority)
{
	ENTER(cuGreenCtxStreamCreate, INIT);
	return phStream ? CUDA_ERROR_INVALID_HANDLE : CUDA_ERROR_INVALID_VALUE;
}
