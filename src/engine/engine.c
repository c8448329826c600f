/*
 * The engine's entry: finds the operation of a request and steps it. Each operation is a function
 * that is called until it returns false, and `step` counts the calls. request.h has the loop around
 * it.
 */
#include "engine.h"

#include <errno.h>
#include <stdatomic.h>

#include "caller.h"
#include "requester.h"
#include "launch_access.h"
#include "gate.h"
#include "note.h"
#include "promote.h"

typedef bool operation(struct spill_request *request);

static operation *const operations[SPILL_OPS_COUNT] = {
#define X(name, function, text) spill_engine_##function,
    // clang-format off
    SPILL_OPS(X)
#undef X
    // clang-format on
};

static void (*_Atomic on_memory_call)(const struct spill_backend *backend);

void spill_engine_on_memory_call(void (*open)(const struct spill_backend *backend))
{
	atomic_store(&on_memory_call, open);
}

void spill_engine_memory_call(const struct spill_backend *backend)
{
	void (*open)(const struct spill_backend *) =
	    atomic_load_explicit(&on_memory_call, memory_order_acquire);
	if (open)
		open(backend);
}

bool spill_engine_pass(struct spill_request *request)
{
	return request->step++ == 0;
}

/* The driver looks at addresses, and one whose chunk moves is not mapped for a moment. */
bool spill_engine_gated(struct spill_request *request)
{
	if (request->step++ == 0) {
		request->gated = spill_gate_enter_request();
		return true;
	}
	spill_gate_leave_request(request->gated);
	return false;
}

/* A driver row has seen the request for memory, so no runtime call above it was missed. */
static void mark_frames_taken(void)
{
	for (struct spill_request *frame = spill_thread.frame; frame; frame = frame->frame.outer)
		frame->frame.taken = true;
}

bool spill_request_next(struct spill_request *request)
{
	if (request->pass)
		return spill_engine_pass(request);
	int error = errno; /* the program's before the call, the vendor's after it */
	/*
	 * The driver rows below a frame or a resolver must be seen: a resolver may start the
	 * runtime.
	 */
	bool guard = request->op != SPILL_OP_FRAME && request->op != SPILL_OP_RESOLVE;
	if (request->step == 0 && request->op <= SPILL_OP_GRAPH_ALLOC)
		mark_frames_taken();
	if (guard && request->step == 0)
		spill_thread.depth++;
	bool again = operations[request->op](request);
	/* A call that is passed does not return here. A fork during the call began again at 0. */
	if (guard && (!again || request->pass) && spill_thread.depth)
		spill_thread.depth--;
	errno = error;
	return again;
}

/* A frame gives the driver call below it the API and the caller for the log. */
bool spill_engine_frame(struct spill_request *request)
{
	if (request->step++ == 0) {
		request->frame.outer = spill_thread.frame;
		spill_thread.frame = request;
		return true;
	}
	spill_thread.frame = request->frame.outer;
	if (request->result == 0 && request->bytes && !request->frame.taken)
		spill_note("unseen", "a runtime allocation reached the driver without libspill seeing it");
	return false;
}

void spill_engine_maintain(void)
{
	int cancel = spill_ours_begin();
	bool reserve = spill_reserve_maintain(), promote = spill_promote_maintain(),
	     follow = spill_launch_access_maintain();
	spill_ours_end(cancel);
	if (reserve || promote || follow)
		spill_gate_want_maintenance();
}

const char *spill_engine_api(const struct spill_request *request)
{
	return spill_thread.frame ? spill_thread.frame->api : request->api;
}

const void *spill_engine_site(const struct spill_request *request)
{
	return spill_thread.frame ? spill_thread.frame->caller : request->caller;
}

const char *spill_engine_caller(const struct spill_request *request)
{
	return spill_log_caller(spill_engine_site(request));
}

const char *spill_engine_requester(const struct spill_request *request)
{
	return spill_log_active() ? spill_requester(spill_engine_site(request)) : NULL;
}
