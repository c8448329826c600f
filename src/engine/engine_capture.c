/* Calls that begin or end a capture, and the question whether a request is in one (capture.h). */
#include "capture.h"
#include "deferred.h"
#include "engine.h"
#include "gate.h"

static void begin(struct spill_request *request, const struct spill_backend *backend, bool ends)
{
	request->gated = spill_gate_enter_request();
	if (request->op == SPILL_OP_STREAM_END)
		spill_deferred_stream_ended(backend, spill_engine_stream(request));
	if (ends)
		request->capture =
		    spill_capture_take(backend, spill_capture_stream(request->stream, request->per_thread));
	if (request->op == SPILL_OP_CAPTURE_MODE && request->out)
		request->mode = *(const unsigned *)request->out; /* the vendor puts the old one there */
}

static void finish(const struct spill_request *request, const struct spill_backend *backend)
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
			begin(request, backend, ends);
		return true;
	}
	finish(request, backend);
	if (request->gated)
		spill_gate_leave(spill_gate_self);
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
