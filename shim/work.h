/*
 * Stubs for GATE rows, which submit work (hooks_cuda_work.def). A stub passes the gate, calls the
 * real function and counts. It adds a few nanoseconds: it makes no request, uses no locked
 * instruction and makes no other call.
 *
 * Rare cases are functions of work.c: the first call of a thread or row, libspill off, a closed
 * gate, out of memory. Hints are read only while memory is on the host (hints.c).
 */
#ifndef SPILL_WORK_H
#define SPILL_WORK_H

#include <stdbool.h>

#include "launch_access.h"
#include "gate.h"
#include "graph_launch.h"
#include "hints.h"
#include "hooks.h"
#include "real.h"
#include "process.h"

enum spill_work {
#define HOOK(domain, ret, symbol, ...) SPILL_WORK_##symbol,
#include "hooks_cuda_work.def"
#undef HOOK
	SPILL_WORKS
};

/* The driver's functions by enum spill_work, set at the first call. */
extern _Atomic(void *) spill_work_real[SPILL_WORKS];

#define SPILL_WORK_COUNTERS (SPILL_WORKS * SPILL_WAYS_COUNT) /* per thread */

static inline unsigned spill_work_counter(unsigned work, enum spill_way way)
{
	return work * SPILL_WAYS_COUNT + way;
}

/* The program wants the row's function. Some cannot use chunks and forbid them from now on. */
void spill_work_wanted(const struct spill_row *row);

/*
 * The slow begin of a call. Finds the real function; NULL: there is no driver. Adds the thread to
 * the gate. If it cannot, counts the call in spill_row_hits. Keeps errno.
 */
void *spill_work_begin(enum spill_hook hook, enum spill_work work, enum spill_way way);

/*
 * True if the driver should be asked again after its refusal number `attempt`, because room was
 * made. `graph`: the executable graph of the launch, or NULL. Keeps errno.
 */
bool spill_work_room(enum spill_hook hook, int result, const void *graph, const void *caller,
                     unsigned attempt);

/* CUDA_ERROR_OUT_OF_MEMORY: the driver may accept the work after room was made. */
#define SPILL_WORK_FULL 2

/* Calls the driver, and again after each time that room was made. */
#define SPILL_WORK_CALL(symbol, args, graph) \
	do { \
		outer = self && spill_gate_enter(self); \
		result = real args; \
		if (outer) \
			spill_gate_leave(self); \
	} while (__builtin_expect(result == (__typeof__(result))SPILL_WORK_FULL, 0) && outer && \
	         spill_work_room(SPILL_HOOK_##symbol, (int)result, graph, __builtin_return_address(0), \
	                         attempt++))

/* True if this is the program's own outermost call. */
static inline bool spill_work_is_outermost(const struct spill_gate_thread *self)
{
	return self && !atomic_load_explicit(&self->inside, memory_order_relaxed) && !spill_thread.depth;
}

/* The same, and hints are wanted. */
static inline bool spill_work_followed(const struct spill_gate_thread *self)
{
	return __builtin_expect(atomic_load_explicit(&spill_launch_access_wanted, memory_order_relaxed), 0) &&
	       spill_work_is_outermost(self);
}

/* A stub writes no array: its hint is only read. A guard of its stack would cost each call five instructions. */
#if __has_attribute(no_stack_protector)
#define SPILL_WORK_UNGUARDED __attribute__((no_stack_protector))
#else
#define SPILL_WORK_UNGUARDED
#endif

#define SPILL_WORK_STUB_WITH(followed, graph, linkage, function, way, ret, symbol, params, args) \
	linkage SPILL_WORK_UNGUARDED ret function params \
	{ \
		typedef ret real_function params; \
		unsigned attempt = 0; \
		bool outer; \
		ret result; \
		struct spill_gate_thread *self = spill_gate_self; \
		real_function *real = (real_function *)atomic_load_explicit( \
		    &spill_work_real[SPILL_WORK_##symbol], memory_order_acquire); \
		if (__builtin_expect(!self || !real, 0)) { \
			real = (real_function *)spill_work_begin(SPILL_HOOK_##symbol, SPILL_WORK_##symbol, \
			                                         SPILL_WAY_##way); \
			if (!real) \
				return (ret)SPILL_NOT_INITIALIZED; \
			self = spill_gate_self; \
		} \
		if (self) \
			spill_gate_count(self, spill_work_counter(SPILL_WORK_##symbol, SPILL_WAY_##way)); \
		followed SPILL_WORK_CALL(symbol, args, graph); \
		return result; \
	}

#define SPILL_WORK_STUB(...) SPILL_WORK_STUB_WITH(, NULL, __VA_ARGS__)

/* The last arguments are the hint's initialisers. */
#define SPILL_HINTED_STUB(linkage, function, way, ret, symbol, params, args, ...) \
	SPILL_WORK_STUB_WITH( \
	    if (((const struct spill_hint){__VA_ARGS__}.graph) && spill_graph_launch_looks() && \
	        spill_work_is_outermost(self) && \
	        spill_graph_launch(&(const struct spill_hint){__VA_ARGS__}, spill_work_followed(self), \
	                           (CUresult *)&result)) return result; \
	    if (spill_work_followed(self)) { \
		    void *stopwatch = spill_hint(&(const struct spill_hint){__VA_ARGS__}); \
		    SPILL_WORK_CALL(symbol, args, ((const struct spill_hint){__VA_ARGS__}.graph)); \
		    if (stopwatch) \
			    spill_after_launch(stopwatch); \
		    return result; \
	    }, \
	    ((const struct spill_hint){__VA_ARGS__}.graph), linkage, function, way, ret, symbol, params, \
	    args)

#endif
