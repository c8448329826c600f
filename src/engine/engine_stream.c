/*
 * Streams: their names, calls that begin or end a capture, and requests inside a capture
 * (capture.h).
 */
#include "capture.h"
#include "deferred.h"
#include "engine.h"
#include "gate.h"
#include "ordered_pool.h"

/*
 * CU_STREAM_PER_THREAD and hipStreamPerThread are 2 in each thread. So each thread's own stream is
 * named by an odd number, which is no handle. The default stream of a green context is named by that.
 */
const void *spill_engine_stream(const struct spill_request *request)
{
	bool own = (!request->stream && request->per_thread) || request->stream == (void *)2;
	bool is_default = own || !request->stream || request->stream == (void *)1;
	const struct spill_backend *backend = is_default ? spill_backend_for(request->domain) : NULL;
	const void *green = backend ? spill_engine_green(backend) : NULL;
	if (green)
		return green;
	if (own)
		return (const void *)(uintptr_t)(spill_capture_thread() * 2 + 1);
	/* 1 is the other name of the legacy default stream. */
	return request->stream ? request->stream : (const void *)1;
}

static void begin_capture_call(struct spill_request *request, const struct spill_backend *backend, bool ends)
{
	request->gated = spill_gate_enter_request();
	if (request->op == SPILL_OP_STREAM_END) {
		spill_deferred_stream_ended(backend, spill_engine_stream(request));
		spill_ordered_stream_ended(backend, spill_engine_stream(request));
	}
	if (ends)
		request->capture =
		    spill_capture_take(backend, spill_capture_stream(request->stream, request->per_thread));
	if (request->op == SPILL_OP_CAPTURE_MODE && request->out)
		/* the vendor stores the old mode there */
		request->mode = *(const unsigned *)request->out;
}

static void finish_capture_call(const struct spill_request *request, const struct spill_backend *backend)
{
	void *stream = spill_capture_stream(request->stream, request->per_thread);
	if (request->op == SPILL_OP_CAPTURE_END)
		spill_capture_ended(request->capture, request->result);
	else if (request->op == SPILL_OP_STREAM_END)
		spill_capture_stream_ended(request->capture, request->result);
	else if (request->result == 0 && request->op == SPILL_OP_CAPTURE_BEGIN)
		spill_capture_begun(backend, stream, request->mode);
	else if (request->result == 0 && request->op == SPILL_OP_CAPTURE_MODE)
		spill_capture_thread_mode(request->mode);
}

bool spill_engine_capture(struct spill_request *request)
{
	const struct spill_backend *backend = spill_backend_for(request->domain);
	bool ends = request->op == SPILL_OP_CAPTURE_END || request->op == SPILL_OP_STREAM_END;
	if (request->step++ == 0) {
		request->pass = !backend;
		if (backend)
			begin_capture_call(request, backend, ends);
		return true;
	}
	finish_capture_call(request, backend);
	spill_gate_leave_request(request->gated);
	return false;
}

bool spill_engine_in_capture(const struct spill_request *request)
{
	if (!spill_capture_any())
		return false;
	const struct spill_capture_call call = {
	    .on_stream = request->op == SPILL_OP_ALLOC_ASYNC || request->op == SPILL_OP_FREE_ASYNC,
	    .stream = request->stream,
	    .per_thread = request->per_thread,
	    .safe = request->op == SPILL_OP_CREATE,
	};
	return spill_capture_forbids(spill_backend_for(request->domain), &call);
}
