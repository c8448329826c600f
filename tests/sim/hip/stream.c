/* Streams and events: HIP's handles are the core's. */
#include "hip_entry.h"

hipError_t hip_stream(hipStream_t stream, struct sim_stream **out)
{
	struct sim_context *context;

	if (stream && stream != hipStreamPerThread) {
		*out = (struct sim_stream *)stream;
		return sim_stream_alive(*out) ? hipSuccess : hipErrorInvalidHandle;
	}
	hipError_t error = hip_context(hip_device(), &context);
	if (!error)
		*out = stream ? sim_stream_per_thread(context) : sim_stream_default(context);
	return error;
}

static hipError_t event_check(hipEvent_t event, struct sim_event **out)
{
	*out = (struct sim_event *)event;
	return event && sim_event_alive(*out) ? hipSuccess : hipErrorInvalidHandle;
}

static hipError_t create_stream(hipStream_t *stream, unsigned int flags, int priority)
{
	struct sim_context *context;
	struct sim_stream *made;

	if (!stream || (flags & ~hipStreamNonBlocking))
		return hipErrorInvalidValue;
	hipError_t error = hip_context(hip_device(), &context);
	if (!error)
		error = hip_error(sim_stream_create(context, flags & hipStreamNonBlocking, priority, &made));
	if (!error)
		*stream = (hipStream_t)made;
	return error;
}

hipError_t hipStreamCreate(hipStream_t *stream)
{
	HIP_ENTER();
	return hip_leave(create_stream(stream, hipStreamDefault, 0));
}

hipError_t hipStreamCreateWithFlags(hipStream_t *stream, unsigned int flags)
{
	HIP_ENTER();
	return hip_leave(create_stream(stream, flags, 0));
}

hipError_t hipStreamCreateWithPriority(hipStream_t *stream, unsigned int flags, int priority)
{
	HIP_ENTER();
	return hip_leave(create_stream(stream, flags, priority));
}

hipError_t hipStreamDestroy(hipStream_t stream)
{
	struct sim_stream *on;

	HIP_ENTER();
	HIP_TRY(stream && stream != hipStreamPerThread ? hip_stream(stream, &on) : hipErrorInvalidHandle);
	return hip_return(sim_stream_destroy(on));
}

hipError_t hipStreamSynchronize(hipStream_t stream)
{
	struct sim_stream *on;

	HIP_ENTER();
	HIP_TRY(hip_stream(stream, &on));
	HIP_TRY(hip_capture_forbids_waiting(on));
	enum sim_status status = sim_stream_synchronize(on);
	sim_pools_synchronized(sim_context_device(sim_stream_context(on)), sim_stream_id(on));
	return hip_return(status);
}

hipError_t hipStreamQuery(hipStream_t stream)
{
	struct sim_stream *on;

	HIP_ENTER();
	HIP_TRY(hip_stream(stream, &on));
	HIP_TRY(hip_capture_forbids_waiting(on));
	return hip_return(sim_stream_query(on));
}

hipError_t hipStreamWaitEvent(hipStream_t stream, hipEvent_t event, unsigned int flags)
{
	struct sim_stream *on;
	struct sim_event *what;

	HIP_ENTER();
	HIP_TRY(flags ? hipErrorInvalidValue : event_check(event, &what));
	HIP_TRY(hip_stream(stream, &on));
	return hip_return(sim_stream_wait(on, what));
}

hipError_t hipStreamGetFlags(hipStream_t stream, unsigned int *flags)
{
	struct sim_stream *on;

	HIP_ENTER();
	HIP_TRY(flags ? hip_stream(stream, &on) : hipErrorInvalidValue);
	*flags = sim_stream_non_blocking(on) ? hipStreamNonBlocking : hipStreamDefault;
	return hip_leave(hipSuccess);
}

hipError_t hipStreamGetPriority(hipStream_t stream, int *priority)
{
	struct sim_stream *on;

	HIP_ENTER();
	HIP_TRY(priority ? hip_stream(stream, &on) : hipErrorInvalidValue);
	*priority = sim_stream_priority(on);
	return hip_leave(hipSuccess);
}

hipError_t hipDeviceGetStreamPriorityRange(int *leastPriority, int *greatestPriority)
{
	HIP_ENTER();
	if (leastPriority)
		*leastPriority = 1;
	if (greatestPriority)
		*greatestPriority = -1;
	return hip_leave(hipSuccess);
}

static hipError_t event_create(hipEvent_t *event, unsigned flags)
{
	struct sim_context *context;
	struct sim_event *made;

	if (!event)
		return hipErrorInvalidValue;
	hipError_t error = hip_context(hip_device(), &context);
	if (!error)
		error = hip_error(sim_event_create(context, !(flags & hipEventDisableTiming), &made));
	if (!error)
		*event = (hipEvent_t)made;
	return error;
}

hipError_t hipEventCreate(hipEvent_t *event)
{
	HIP_ENTER();
	return hip_leave(event_create(event, hipEventDefault));
}

hipError_t hipEventCreateWithFlags(hipEvent_t *event, unsigned flags)
{
	HIP_ENTER();
	return hip_leave(event_create(event, flags));
}

hipError_t hipEventDestroy(hipEvent_t event)
{
	struct sim_event *what;

	HIP_ENTER();
	HIP_TRY(event_check(event, &what));
	return hip_return(sim_event_destroy(what));
}

hipError_t hipEventRecord(hipEvent_t event, hipStream_t stream)
{
	struct sim_stream *on;
	struct sim_event *what;

	HIP_ENTER();
	HIP_TRY(event_check(event, &what));
	HIP_TRY(hip_stream(stream, &on));
	return hip_return(sim_event_record(what, on));
}

hipError_t hipEventQuery(hipEvent_t event)
{
	struct sim_event *what;

	HIP_ENTER();
	HIP_TRY(event_check(event, &what));
	return hip_return(sim_event_query(what));
}

hipError_t hipEventSynchronize(hipEvent_t event)
{
	struct sim_event *what;

	HIP_ENTER();
	HIP_TRY(event_check(event, &what));
	enum sim_status status = sim_event_synchronize(what);
	sim_pools_synchronized(sim_context_device(sim_event_context(what)), sim_event_stream(what));
	return hip_return(status);
}

hipError_t hipEventElapsedTime(float *ms, hipEvent_t start, hipEvent_t stop)
{
	struct sim_event *first, *second;

	HIP_ENTER();
	HIP_TRY(ms ? event_check(start, &first) : hipErrorInvalidValue);
	HIP_TRY(event_check(stop, &second));
	enum sim_status status = sim_event_elapsed(first, second, ms);
	return status == SIM_INVALID ? hip_leave(hipErrorInvalidHandle) : hip_return(status);
}
