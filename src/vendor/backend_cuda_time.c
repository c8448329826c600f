/*
 * How long work takes, by CUDA's events with timing. CUDA Driver API, "Event Management": completion is
 * asked for with cuEventQuery, and cuEventElapsedTime is for the time alone. Its second version (12.8) has
 * the same prototype; the first is there before it.
 */
#include "backend_cuda.h"

typedef CUresult elapsed_fn(float *, CUevent, CUevent);

static elapsed_fn *elapsed(void)
{
	return spill_cuda.cuEventElapsedTime_v2 ? spill_cuda.cuEventElapsedTime_v2
	                                        : spill_cuda.cuEventElapsedTime;
}

/* All of them, or none. */
static bool has_timers(void)
{
	return spill_cuda.cuEventCreate && spill_cuda.cuEventRecord && spill_cuda.cuEventQuery &&
	       spill_cuda.cuEventDestroy_v2 && elapsed();
}

static int timer_create(int device, void *context, void **timer)
{
	CUcontext before = spill_cuda_now();
	CUevent made;
	if (!has_timers())
		return CUDA_ERROR_NOT_SUPPORTED;
	int result = spill_cuda_enter(before, context);
	if (result)
		return result;
	result = spill_cuda.cuEventCreate(&made, CU_EVENT_DEFAULT);
	spill_cuda_leave(before, context);
	if (!result)
		*timer = made;
	return result;
}

/*
 * Breaks no capture but of a stream that the legacy stream waits for (measured, H200): nothing may capture.
 */
static int timer_record(int device, void *context, void *stream, bool per_thread, void *timer)
{
	CUcontext before = spill_cuda_now();
	int result = spill_cuda_enter(before, context);
	if (result)
		return result;
	result = spill_cuda.cuEventRecord(timer, spill_cuda_stream(stream, per_thread));
	spill_cuda_leave(before, context);
	return result;
}

/* As spill_cuda_event_passed: asking is among what breaks a capture, and one may begin at any moment. */
static int timer_passed(int device, void *context, void *timer, bool *passed)
{
	CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
	CUcontext before = spill_cuda_now();
	int result = spill_cuda_enter(before, context);
	if (result)
		return result;
	spill_cuda_exchange(&mode);
	result = spill_cuda.cuEventQuery(timer);
	spill_cuda_exchange(&mode);
	spill_cuda_leave(before, context);
	if (result && result != CUDA_ERROR_NOT_READY)
		return result;
	*passed = result == CUDA_SUCCESS;
	return CUDA_SUCCESS;
}

/* The vendor's number is ms, with a resolution of half a microsecond. */
static int timer_between(int device, void *context, void *begin, void *end, uint64_t *ns)
{
	CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
	CUcontext before = spill_cuda_now();
	float ms = -1;
	int result = spill_cuda_enter(before, context);
	if (result)
		return result;
	spill_cuda_exchange(&mode);
	result = elapsed()(&ms, begin, end);
	spill_cuda_exchange(&mode);
	spill_cuda_leave(before, context);
	if (result)
		return result;
	if (!(ms >= 0 && ms < 1e9f))
		return CUDA_ERROR_UNKNOWN;
	*ns = (uint64_t)((double)ms * 1e6);
	return CUDA_SUCCESS;
}

static void timer_destroy(int device, void *context, void *timer)
{
	CUcontext before = spill_cuda_now();
	if (spill_cuda_enter(before, context))
		return;
	spill_cuda.cuEventDestroy_v2(timer);
	spill_cuda_leave(before, context);
}

const struct spill_vendor_timers spill_cuda_timers = {
    .create = timer_create,
    .record = timer_record,
    .passed = timer_passed,
    .between = timer_between,
    .destroy = timer_destroy,
};
