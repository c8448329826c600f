/*
 * Stream capture, with the errors of hipamd's hip_graph.cpp. The core decides which calls a capture
 * forbids. ROCm 5 refused the call and the capture went on. Later releases and this simulator also
 * invalidate the capture.
 */
#include "hip_later_api.h"
#include "graph.h"
#include "hip_entry.h"

hipError_t hip_capture_forbids(void)
{
	return hip_error(sim_capture_unsafe());
}

hipError_t hip_capture_forbids_waiting(struct sim_stream *stream)
{
	return hip_error(sim_capture_asks(stream));
}

/* An invalid stream handle: hip::isValid. */
static bool is_dead_stream(hipStream_t stream)
{
	return stream && stream != hipStreamPerThread && !sim_stream_alive((struct sim_stream *)stream);
}

static hipError_t begin_capture(hipStream_t stream, hipStreamCaptureMode mode)
{
	struct sim_stream *on;

	if (is_dead_stream(stream))
		return HIP_RELEASE < 6 ? hipErrorInvalidValue : hipErrorContextIsDestroyed;
	if (!stream)
		return hipErrorStreamCaptureUnsupported;
	if ((unsigned)mode > hipStreamCaptureModeRelaxed)
		return hipErrorInvalidValue;
	hipError_t error = hip_stream(stream, &on);
	return error ? error : hip_error(sim_capture_begin(on, (enum sim_capture_mode)mode, NULL));
}

static hipError_t end_capture(hipStream_t stream, hipGraph_t *graph)
{
	struct sim_graph *made = NULL;
	struct sim_stream *on;

	if (!graph)
		return hipErrorInvalidValue;
	if (!stream)
		return hipErrorIllegalState;
	if (is_dead_stream(stream))
		return hipErrorContextIsDestroyed;
	hipError_t error = hip_stream(stream, &on);
	if (error)
		return error;
	error = hip_error(sim_capture_end(on, &made));
	if (!error || error == hipErrorStreamCaptureInvalidated)
		*graph = (hipGraph_t)made;
	return error;
}

/* Not a stream of ours: it captures nothing, like the default stream. */
static hipError_t query_capture(hipStream_t stream, struct sim_capture_info *info)
{
	struct sim_stream *on;

	if (is_dead_stream(stream))
		return hipErrorContextIsDestroyed;
	hipError_t error = hip_stream(stream, &on);
	return error ? error : hip_error(sim_capture_query(on, info));
}

static hipError_t capture_status(hipStream_t stream, hipStreamCaptureStatus *out, unsigned long long *id)
{
	struct sim_capture_info info;

	if (!out)
		return hipErrorInvalidValue;
	hipError_t error = query_capture(stream, &info);
	if (error)
		return error;
	*out = (hipStreamCaptureStatus)info.status;
	if (id && info.status == SIM_CAPTURE_ACTIVE)
		*id = info.id;
	return hipSuccess;
}

static hipStream_t or_per_thread(hipStream_t stream)
{
	return stream ? stream : hipStreamPerThread;
}

hipError_t hipStreamBeginCapture(hipStream_t stream, hipStreamCaptureMode mode)
{
	HIP_ENTER();
	return hip_leave(begin_capture(stream, mode));
}

hipError_t hipStreamBeginCapture_spt(hipStream_t stream, hipStreamCaptureMode mode)
{
	HIP_ENTER();
	return hip_leave(begin_capture(or_per_thread(stream), mode));
}

hipError_t hipStreamEndCapture(hipStream_t stream, hipGraph_t *pGraph)
{
	HIP_ENTER();
	return hip_leave(end_capture(stream, pGraph));
}

hipError_t hipStreamEndCapture_spt(hipStream_t stream, hipGraph_t *pGraph)
{
	HIP_ENTER();
	return hip_leave(end_capture(or_per_thread(stream), pGraph));
}

hipError_t hipStreamIsCapturing(hipStream_t stream, hipStreamCaptureStatus *pCaptureStatus)
{
	HIP_ENTER();
	return hip_leave(capture_status(stream, pCaptureStatus, NULL));
}

hipError_t hipStreamIsCapturing_spt(hipStream_t stream, hipStreamCaptureStatus *pCaptureStatus)
{
	HIP_ENTER();
	return hip_leave(capture_status(or_per_thread(stream), pCaptureStatus, NULL));
}

hipError_t hipStreamGetCaptureInfo(hipStream_t stream, hipStreamCaptureStatus *pCaptureStatus,
                                   unsigned long long *pId)
{
	HIP_ENTER();
	return hip_leave(capture_status(stream, pCaptureStatus, pId));
}

hipError_t hipStreamGetCaptureInfo_spt(hipStream_t stream, hipStreamCaptureStatus *pCaptureStatus,
                                       unsigned long long *pId)
{
	HIP_ENTER();
	return hip_leave(capture_status(or_per_thread(stream), pCaptureStatus, pId));
}

hipError_t hipStreamGetCaptureInfo_v2(hipStream_t stream, hipStreamCaptureStatus *captureStatus_out,
                                      unsigned long long *id_out, hipGraph_t *graph_out,
                                      const hipGraphNode_t **dependencies_out, size_t *numDependencies_out)
{
	struct sim_capture_info info;

	HIP_ENTER();
	HIP_TRY(captureStatus_out ? query_capture(stream, &info) : hipErrorInvalidValue);
	*captureStatus_out = (hipStreamCaptureStatus)info.status;
	if (info.status != SIM_CAPTURE_ACTIVE)
		return hip_leave(hipSuccess);
	if (id_out)
		*id_out = info.id;
	if (graph_out)
		*graph_out = (hipGraph_t)info.graph;
	if (dependencies_out)
		*dependencies_out = (const hipGraphNode_t *)info.after;
	if (numDependencies_out)
		*numDependencies_out = info.count;
	return hip_leave(hipSuccess);
}

hipError_t hipStreamUpdateCaptureDependencies(hipStream_t stream, hipGraphNode_t *dependencies,
                                              size_t numDependencies, unsigned int flags)
{
	struct sim_stream *on;

	HIP_ENTER();
	HIP_TRY(flags > hipStreamSetCaptureDependencies || (numDependencies && !dependencies)
	            ? hipErrorInvalidValue
	            : hip_stream(stream, &on));
	return hip_return(sim_capture_depend(on, (struct sim_node *const *)dependencies, numDependencies,
	                                     flags == hipStreamSetCaptureDependencies));
}

hipError_t hipThreadExchangeStreamCaptureMode(hipStreamCaptureMode *mode)
{
	HIP_ENTER();
	HIP_TRY(mode && (unsigned)*mode <= hipStreamCaptureModeRelaxed ? hipSuccess : hipErrorInvalidValue);
	*mode = (hipStreamCaptureMode)sim_capture_exchange_mode((int)*mode);
	return hip_leave(hipSuccess);
}
