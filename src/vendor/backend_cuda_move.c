/*
 * What moving chunks needs of CUDA: events, marks behind all work of a context, copies on a stream of ours. CUDA Driver
 * API, "Event Management", "Context Management" (cuCtxRecordEvent, since 12.5), "Memory Management". Events are made without
 * timing, in the context that they are of.
 */
#include "backend_cuda.h"
#include "context_end.h"

#include <stdatomic.h>

static bool has_events(void)
{
	return spill_cuda.cuEventCreate && spill_cuda.cuEventRecord && spill_cuda.cuEventQuery &&
	       spill_cuda.cuEventDestroy_v2;
}

bool spill_cuda_can_move(void)
{
	return has_events() && spill_cuda.cuCtxRecordEvent && spill_cuda.cuStreamCreate &&
	       spill_cuda.cuStreamDestroy_v2 && spill_cuda.cuMemcpyAsync;
}

/*
 * Events that are not in use, for their context. Slots are taken by their state alone, as no lock may be held across a vendor
 * call. An event whose context has ended is forgotten with it. The driver refuses one that was missed: with 709 or, if another
 * context has that address, with 400 for the wrong context (measured, H200).
 */
#define SPARES 64
enum { EMPTY, BUSY, FULL };
static struct spare {
	_Atomic int state;
	_Atomic(CUcontext) context;
	uint64_t generation; /* in which it was put here (context_end.h) */
	CUevent event;
} spares[SPARES];

static bool take_slot(struct spare *spare, int state)
{
	return atomic_load_explicit(&spare->state, memory_order_relaxed) == state &&
	       atomic_compare_exchange_strong(&spare->state, &state, BUSY);
}

static bool take(CUcontext context, CUevent *event)
{
	for (struct spare *spare = spares; spare < spares + SPARES; spare++) {
		if (atomic_load(&spare->context) != context || !take_slot(spare, FULL))
			continue;
		bool mine = atomic_load(&spare->context) == context &&
		            !spill_context_dead(&spill_backend_cuda, 0, context, spare->generation);
		if (mine)
			*event = spare->event;
		atomic_store(&spare->state, mine ? EMPTY : FULL);
		if (mine)
			return true;
	}
	return false;
}

/* A slot that is the caller's: empty, or of a context that has ended. NULL if all are in use. */
static struct spare *slot(void)
{
	for (struct spare *spare = spares; spare < spares + SPARES; spare++)
		if (take_slot(spare, EMPTY))
			return spare;
	for (struct spare *spare = spares; spare < spares + SPARES; spare++) {
		if (!take_slot(spare, FULL))
			continue;
		CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
		spill_cuda_exchange(&mode);
		int result = spill_cuda.cuEventQuery(spare->event);
		spill_cuda_exchange(&mode);
		if (result == CUDA_ERROR_CONTEXT_IS_DESTROYED)
			return spare;
		atomic_store(&spare->state, FULL);
	}
	return NULL;
}

static void give(CUcontext context, CUevent event)
{
	struct spare *spare = slot();
	if (!spare) {
		spill_cuda.cuEventDestroy_v2(event);
		return;
	}
	spare->event = event;
	spare->generation = spill_context_generation();
	atomic_store(&spare->context, context);
	atomic_store(&spare->state, FULL);
}

static unsigned spares_of(CUcontext context)
{
	unsigned count = 0;
	for (unsigned i = 0; i < SPARES; i++)
		count += atomic_load(&spares[i].state) == FULL && atomic_load(&spares[i].context) == context;
	return count;
}

static int make(CUcontext context, unsigned count)
{
	CUevent made;
	int result = CUDA_SUCCESS;
	for (unsigned there = spares_of(context); there < count && !result; there++) {
		result = spill_cuda.cuEventCreate(&made, CU_EVENT_DISABLE_TIMING);
		if (!result)
			give(context, made);
	}
	return result;
}

void spill_cuda_events_ended(const struct spill_context_end *end)
{
	for (struct spare *spare = spares; spare < spares + SPARES; spare++) {
		if (!take_slot(spare, FULL))
			continue;
		bool ended = spill_context_end_covers(end, &spill_backend_cuda, 0,
		                                      atomic_load(&spare->context), spare->generation);
		atomic_store(&spare->state, ended ? EMPTY : FULL);
	}
}

static int events_ahead(int device, void *context, unsigned count)
{
	CUcontext before = spill_cuda_now();
	if (!has_events())
		return CUDA_ERROR_NOT_SUPPORTED;
	int result = spill_cuda_enter(before, context);
	if (result)
		return result;
	result = make(context, count);
	spill_cuda_leave(before, context);
	return result;
}

/* On a stream or, without one, behind all work of the context. */
static int record_one(CUcontext context, CUevent event, const CUstream *stream)
{
	return stream ? spill_cuda.cuEventRecord(event, *stream)
	              : spill_cuda.cuCtxRecordEvent(context, event);
}

/* A spare one, or, if there is none that the driver knows, a new one. pre: the context is current */
static int record(CUcontext context, const CUstream *stream, void **event)
{
	CUevent one;
	int result = CUDA_ERROR_CONTEXT_IS_DESTROYED;
	while ((result == CUDA_ERROR_CONTEXT_IS_DESTROYED || result == CUDA_ERROR_INVALID_HANDLE) &&
	       take(context, &one))
		result = record_one(context, one, stream);
	if (result == CUDA_ERROR_CONTEXT_IS_DESTROYED || result == CUDA_ERROR_INVALID_HANDLE) {
		result = spill_cuda.cuEventCreate(&one, CU_EVENT_DISABLE_TIMING);
		if (result)
			return result;
		result = record_one(context, one, stream);
	}
	if (result)
		give(context, one);
	else
		*event = one;
	return result;
}

static int event_record(int device, void *context, void *stream, bool per_thread, void **event)
{
	CUcontext before = spill_cuda_now();
	CUstream on = spill_cuda_stream(stream, per_thread);
	if (!has_events())
		return CUDA_ERROR_NOT_SUPPORTED;
	int result = spill_cuda_enter(before, context);
	if (result)
		return result;
	result = record(context, &on, event);
	spill_cuda_leave(before, context);
	return result;
}

static int context_mark(int device, void *context, void **event)
{
	CUcontext before = spill_cuda_now();
	if (!has_events() || !spill_cuda.cuCtxRecordEvent)
		return CUDA_ERROR_NOT_SUPPORTED;
	int result = spill_cuda_enter(before, context);
	if (result)
		return result;
	result = record(context, NULL, event);
	spill_cuda_leave(before, context);
	return result;
}

/* Asking is among what breaks a capture; one may begin at any moment. */
static bool event_passed(int device, void *context, void *event)
{
	CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
	CUcontext before = spill_cuda_now();
	if (spill_cuda_enter(before, context))
		return false;
	spill_cuda_exchange(&mode);
	int result = spill_cuda.cuEventQuery(event);
	spill_cuda_exchange(&mode);
	spill_cuda_leave(before, context);
	return result == CUDA_SUCCESS;
}

static void event_destroy(int device, void *context, void *event)
{
	CUcontext before = spill_cuda_now();
	if (spill_cuda_enter(before, context))
		return;
	give(context, event);
	spill_cuda_leave(before, context);
}

static int copier_create(int device, void *context, void **stream)
{
	CUcontext before = spill_cuda_now();
	CUstream made;
	if (!spill_cuda_can_move())
		return CUDA_ERROR_NOT_SUPPORTED;
	int result = spill_cuda_enter(before, context);
	if (result)
		return result;
	result = spill_cuda.cuStreamCreate(&made, CU_STREAM_NON_BLOCKING);
	spill_cuda_leave(before, context);
	if (!result)
		*stream = made;
	return result;
}

static void copier_destroy(int device, void *context, void *stream)
{
	CUcontext before = spill_cuda_now();
	if (spill_cuda_enter(before, context))
		return;
	spill_cuda.cuStreamDestroy_v2(stream);
	spill_cuda_leave(before, context);
}

/* The copy that asks the addresses: both kinds of mapping are device memory to some calls and host memory to others. */
static int copier_copy(int device, void *context, void *stream, uint64_t to, uint64_t from, uint64_t bytes)
{
	CUcontext before = spill_cuda_now();
	int result = spill_cuda_enter(before, context);
	if (result)
		return result;
	result = spill_cuda.cuMemcpyAsync(to, from, bytes, stream);
	spill_cuda_leave(before, context);
	return result;
}

const struct spill_vendor_events spill_cuda_events = {
    .record = event_record,
    .passed = event_passed,
    .destroy = event_destroy,
};

const struct spill_vendor_moves spill_cuda_moves = {
    .mark = context_mark,
    .events_ahead = events_ahead,
    .copier_create = copier_create,
    .copier_destroy = copier_destroy,
    .copy = copier_copy,
};
