/*
 * Events, timers, marks behind all work of a context, and the mover's copies. CUDA Driver API,
 * "Event Management", "Context Management" (cuCtxRecordEvent, since 12.5), "Memory Management".
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
 * Unused events, each for its context. A slot is taken by its state alone, because no lock may be
 * held across a vendor call. When a context ends, libspill forgets its events. The driver refuses
 * an event that libspill missed: with 709, or with 400 (wrong context) if another context has that
 * address (measured, H200).
 */
#define SPARES 64
enum { EMPTY, BUSY, FULL };
static struct spare {
	_Atomic int state;
	_Atomic(CUcontext) context;
	uint64_t generation; /* when the event was put here (context_end.h) */
	CUevent event;
} spares[SPARES];

static bool take_slot(struct spare *spare, int state)
{
	return atomic_load_explicit(&spare->state, memory_order_relaxed) == state &&
	       atomic_compare_exchange_strong(&spare->state, &state, BUSY);
}

static bool take_spare(CUcontext context, CUevent *event)
{
	for (struct spare *spare = spares; spare < spares + SPARES; spare++) {
		if (atomic_load(&spare->context) != context || !take_slot(spare, FULL))
			continue;
		bool usable = atomic_load(&spare->context) == context &&
		              !spill_context_dead(&spill_backend_cuda, 0, context, spare->generation);
		if (usable)
			*event = spare->event;
		atomic_store(&spare->state, usable ? EMPTY : FULL);
		if (usable)
			return true;
	}
	return false;
}

/* The context of the spare has ended, and the event with it. pre: the caller has taken the slot */
static bool is_spare_dead(const struct spare *spare)
{
	struct spill_context_hold hold;
	CUcontext context = atomic_load(&spare->context);
	if (spill_context_dead(&spill_backend_cuda, 0, context, spare->generation))
		return true;
	if (!spill_context_hold(&hold, &spill_backend_cuda, 0, context, spare->generation))
		return false; /* until it is known */
	bool dead = spill_cuda_query_event(spare->event) == CUDA_ERROR_CONTEXT_IS_DESTROYED;
	spill_context_release(&hold);
	return dead;
}

/* Takes an empty slot, or a slot of an ended context. NULL if all are in use. */
static struct spare *take_free_slot(void)
{
	for (struct spare *spare = spares; spare < spares + SPARES; spare++)
		if (take_slot(spare, EMPTY))
			return spare;
	for (struct spare *spare = spares; spare < spares + SPARES; spare++) {
		if (!take_slot(spare, FULL))
			continue;
		if (is_spare_dead(spare))
			return spare;
		atomic_store(&spare->state, FULL);
	}
	return NULL;
}

static void keep_or_destroy_event(CUcontext context, CUevent event)
{
	struct spare *spare = take_free_slot();
	if (!spare) {
		spill_cuda.cuEventDestroy_v2(event);
		return;
	}
	spare->event = event;
	spare->generation = spill_context_generation();
	atomic_store(&spare->context, context);
	atomic_store(&spare->state, FULL);
}

static unsigned count_spares(CUcontext context)
{
	unsigned count = 0;
	for (unsigned i = 0; i < SPARES; i++)
		count += atomic_load(&spares[i].state) == FULL && atomic_load(&spares[i].context) == context;
	return count;
}

/* pre: the context is current */
static int make_spares(CUcontext context, unsigned count)
{
	CUevent made;
	int result = CUDA_SUCCESS;
	for (unsigned spare_count = count_spares(context); spare_count < count && !result; spare_count++) {
		result = spill_cuda.cuEventCreate(&made, CU_EVENT_DISABLE_TIMING);
		if (!result)
			keep_or_destroy_event(context, made);
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

static int synchronize(int device, void *context)
{
	CUcontext before = spill_cuda_current_context();
	int result = spill_cuda_enter(before, context);
	if (result)
		return result;
	result = spill_cuda.cuCtxSynchronize();
	spill_cuda_leave(before, context);
	return result;
}

static int events_ahead(int device, void *context, unsigned count)
{
	CUcontext before = spill_cuda_current_context();
	if (!has_events())
		return CUDA_ERROR_NOT_SUPPORTED;
	int result = spill_cuda_enter(before, context);
	if (result)
		return result;
	result = make_spares(context, count);
	spill_cuda_leave(before, context);
	return result;
}

/* Records on a stream or, without one, behind all work of the context. */
static int record_event(CUcontext context, CUevent event, const CUstream *stream)
{
	return stream ? spill_cuda.cuEventRecord(event, *stream)
	              : spill_cuda.cuCtxRecordEvent(context, event);
}

/* A new event if the driver knows none of the spares. pre: the context is current */
static int record_spare_or_new(CUcontext context, const CUstream *stream, void **event)
{
	CUevent taken;
	int result = CUDA_ERROR_CONTEXT_IS_DESTROYED;
	while ((result == CUDA_ERROR_CONTEXT_IS_DESTROYED || result == CUDA_ERROR_INVALID_HANDLE) &&
	       take_spare(context, &taken))
		result = record_event(context, taken, stream);
	if (result == CUDA_ERROR_CONTEXT_IS_DESTROYED || result == CUDA_ERROR_INVALID_HANDLE) {
		result = spill_cuda.cuEventCreate(&taken, CU_EVENT_DISABLE_TIMING);
		if (result)
			return result;
		result = record_event(context, taken, stream);
	}
	if (result)
		keep_or_destroy_event(context, taken);
	else
		*event = taken;
	return result;
}

/* An event of the primary context may be recorded in a green one, and outlives it. */
static int record_in_context(CUcontext context, const CUstream *stream, void **event)
{
	CUcontext before = spill_cuda_current_context();
	CUcontext recorder = stream ? spill_cuda_context_of_stream(context, *stream) : context;
	if (!has_events())
		return CUDA_ERROR_NOT_SUPPORTED;
	int result = spill_cuda_enter(before, recorder);
	if (result)
		return result;
	result = record_spare_or_new(context, stream, event);
	spill_cuda_leave(before, recorder);
	return result;
}

static int event_record(int device, void *context, void *stream, bool per_thread, void **event)
{
	CUstream recorded = spill_cuda_stream(stream, per_thread);
	return record_in_context(context, &recorded, event);
}

static int context_mark(int device, void *context, void **event)
{
	return spill_cuda.cuCtxRecordEvent ? record_in_context(context, NULL, event)
	                                   : CUDA_ERROR_NOT_SUPPORTED;
}

static int ask_event(void *context, void *event)
{
	CUcontext before = spill_cuda_current_context();
	int result = spill_cuda_enter(before, context);
	if (result)
		return result;
	result = spill_cuda_query_event(event);
	spill_cuda_leave(before, context);
	return result;
}

static bool event_passed(int device, void *context, void *event)
{
	return ask_event(context, event) == CUDA_SUCCESS;
}

static bool event_will_pass(int device, void *context, void *event)
{
	int result = ask_event(context, event);
	return result == CUDA_SUCCESS || result == CUDA_ERROR_NOT_READY;
}

static void event_destroy(int device, void *context, void *event)
{
	CUcontext before = spill_cuda_current_context();
	if (spill_cuda_enter(before, context))
		return;
	keep_or_destroy_event(context, event);
	spill_cuda_leave(before, context);
}

const struct spill_vendor_events spill_cuda_events = {
    .record = event_record,
    .passed = event_passed,
    .will_pass = event_will_pass,
    .destroy = event_destroy,
};

static int copier_create(int device, void *context, void **stream)
{
	CUcontext before = spill_cuda_current_context();
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
	CUcontext before = spill_cuda_current_context();
	if (spill_cuda_enter(before, context))
		return;
	spill_cuda.cuStreamDestroy_v2(stream);
	spill_cuda_leave(before, context);
}

/* cuMemcpyAsync goes by address. Other copy calls want device memory or host memory named. */
static int copier_copy(int device, void *context, void *stream, uint64_t to, uint64_t from, uint64_t bytes)
{
	CUcontext before = spill_cuda_current_context();
	int result = spill_cuda_enter(before, context);
	if (result)
		return result;
	result = spill_cuda.cuMemcpyAsync(to, from, bytes, stream);
	spill_cuda_leave(before, context);
	return result;
}

const struct spill_vendor_moves spill_cuda_moves = {
    .mark = context_mark,
    .synchronize = synchronize,
    .events_ahead = events_ahead,
    .copier_create = copier_create,
    .copier_destroy = copier_destroy,
    .copy = copier_copy,
};

/* -- timers: events with timing; cuEventElapsedTime_v2 came with 12.8 -------------------------- */

static __typeof__(spill_cuda.cuEventElapsedTime) elapsed_time(void)
{
	return spill_cuda.cuEventElapsedTime_v2 ? spill_cuda.cuEventElapsedTime_v2
	                                        : spill_cuda.cuEventElapsedTime;
}

static int timer_create(int device, void *context, void **timer)
{
	CUcontext before = spill_cuda_current_context();
	CUevent made;
	if (!has_events() || !elapsed_time())
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

/* Breaks only captures that the legacy stream waits for (measured, H200). pre: nothing captures */
static int timer_record(int device, void *context, void *stream, bool per_thread, void *timer)
{
	CUstream recorded = spill_cuda_stream(stream, per_thread);
	CUcontext before = spill_cuda_current_context();
	CUcontext recorder = spill_cuda_context_of_stream(context, recorded);
	int result = spill_cuda_enter(before, recorder);
	if (result)
		return result;
	result = spill_cuda.cuEventRecord(timer, recorded);
	spill_cuda_leave(before, recorder);
	return result;
}

static int timer_passed(int device, void *context, void *timer, bool *passed)
{
	int result = ask_event(context, timer);
	if (result && result != CUDA_ERROR_NOT_READY)
		return result;
	*passed = result == CUDA_SUCCESS;
	return CUDA_SUCCESS;
}

/* The vendor answers in ms, with a resolution of half a microsecond. */
static int timer_between(int device, void *context, void *begin, void *end, uint64_t *ns)
{
	CUcontext before = spill_cuda_current_context();
	float ms = -1;
	int result = spill_cuda_enter(before, context);
	if (result)
		return result;
	result = SPILL_CUDA_RELAXED(elapsed_time()(&ms, begin, end));
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
	CUcontext before = spill_cuda_current_context();
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
