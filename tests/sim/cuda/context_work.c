/* Events of all streams of a context. */
#include "green.h"

/*
 * Follows cuda.h, and an H200 with driver 580.159 where that says more. Work of each stream is
 * recorded, and so is work of other threads' default streams. For a green context that is more than its own.
 */
CUresult cuCtxRecordEvent(CUcontext hCtx, CUevent hEvent)
{
	struct sim_green *green = driver_green(hCtx);
	struct sim_context *context = green ? driver_green_primary(green) : (struct sim_context *)hCtx;

	ENTER(cuCtxRecordEvent, INIT);
	if (!sim_context_alive(context))
		return hCtx ? CUDA_ERROR_CONTEXT_IS_DESTROYED : CUDA_ERROR_INVALID_CONTEXT;
	if (!driver_event(hEvent) || sim_event_context(driver_event(hEvent)) != context)
		return CUDA_ERROR_INVALID_HANDLE;
	enum sim_status status = sim_context_status(context);
	return driver_result(status ? status : sim_event_record_context(driver_event(hEvent)));
}
