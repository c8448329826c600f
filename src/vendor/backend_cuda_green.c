/*
 * Green contexts (CUDA 12.4): parts of a device. What is made while one is current is its device's primary context's, and
 * outlives it (tests/sim/test/test_driver_green.c, also on an H200). So that is the context of all that libspill makes.
 *
 * The driver tells the primary context by cuStreamGetCtx_v2 of a default stream, but refuses that beside a capture. So the
 * program's green contexts are noted here.
 */
#include "backend_cuda.h"

#include <stdatomic.h>

#define MOST_GREENS 256

struct green {
	_Atomic(CUgreenCtx) handle; /* NULL: the slot is free */
	_Atomic(CUcontext) context; /* as it is current; NULL: it is not known yet, or any more */
	CUcontext primary;          /* written before `context` */
	int device;
	_Atomic(CUcontext) ended; /* `context` of the last one here that has ended */
};

static struct green greens[MOST_GREENS];
static _Atomic unsigned used_slots; /* slots behind this index were never used */

static struct green *find_green(CUcontext context)
{
	unsigned count = atomic_load_explicit(&used_slots, memory_order_acquire);
	for (struct green *green = greens; green < greens + count; green++)
		if (context && atomic_load_explicit(&green->context, memory_order_acquire) == context)
			return green;
	return NULL;
}

/*
 * The end of a green context leaves it current. The driver refuses every use of it, but not the question for its device
 * (measured, H200). A later context with that handle has a number.
 */
static bool has_ended(CUcontext context)
{
	unsigned count = atomic_load_explicit(&used_slots, memory_order_acquire);
	unsigned long long id;
	for (struct green *green = greens; green < greens + count; green++)
		if (context && atomic_load_explicit(&green->ended, memory_order_acquire) == context)
			return !spill_cuda.cuCtxGetId || spill_cuda.cuCtxGetId(context, &id);
	return false;
}

CUcontext spill_cuda_owner_context(CUcontext context)
{
	const struct green *green = find_green(context);
	if (green)
		return green->primary;
	return has_ended(context) ? NULL : context;
}

const void *spill_cuda_current_green(void)
{
	if (!atomic_load_explicit(&used_slots, memory_order_relaxed))
		return NULL;
	const struct green *green = find_green(spill_cuda_current_context());
	return green ? green->handle : NULL;
}

CUcontext spill_cuda_context_of_stream(CUcontext context, CUstream stream)
{
	if (!atomic_load_explicit(&used_slots, memory_order_relaxed) || !spill_cuda_is_default(stream))
		return context;
	CUcontext current = spill_cuda_current_context();
	return spill_cuda_owner_context(current) == context ? current : context;
}

/* NULL: all are taken */
static struct green *take_slot(CUgreenCtx handle)
{
	for (unsigned i = 0; i < MOST_GREENS; i++) {
		CUgreenCtx none = NULL;
		unsigned used = i;
		if (!atomic_compare_exchange_strong(&greens[i].handle, &none, handle))
			continue;
		while (used <= i && !atomic_compare_exchange_strong(&used_slots, &used, i + 1))
			;
		return &greens[i];
	}
	return NULL;
}

bool spill_cuda_green_made(void *handle, int device)
{
	CUcontext context;
	void *primary;
	if (!spill_cuda.cuCtxFromGreenCtx || spill_cuda.cuCtxFromGreenCtx(&context, handle) ||
	    !spill_cuda_contexts.primary(device, &primary))
		return false;
	struct green *green = take_slot(handle);
	if (!green)
		return false;
	green->primary = primary;
	green->device = device;
	atomic_store_explicit(&green->context, context, memory_order_release);
	return true;
}

bool spill_cuda_green_ends(void *handle, int *device)
{
	unsigned count = atomic_load(&used_slots);
	for (struct green *green = greens; green < greens + count; green++) {
		CUcontext context = NULL;
		if (atomic_load(&green->handle) == handle)
			context = atomic_exchange(&green->context, NULL);
		if (!context)
			continue;
		*device = green->device;
		atomic_store(&green->ended, context);
		atomic_store(&green->handle, NULL);
		return true;
	}
	return false;
}
