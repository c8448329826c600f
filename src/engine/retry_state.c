#include "retry_state.h"

#include <stdlib.h>

#include "caller.h"
#include "clock.h"
#include "engine.h"
#include "retry.h"
#include "process.h"

static __thread struct spill_failure pending[SPILL_FAILURES] __attribute__((tls_model("initial-exec")));

static enum spill_retry operation_of(const struct spill_request *request)
{
	switch (request->op) {
	case SPILL_OP_ALLOC:
		return SPILL_RETRY_PLAIN;
	case SPILL_OP_CREATE:
	case SPILL_OP_MAP:
		return SPILL_RETRY_PHYSICAL;
	default:
		return SPILL_RETRY_STREAM_ORDERED;
	}
}

/*
 * The library of the outermost call: below a runtime's function the caller is the runtime. All
 * generated code counts as one caller.
 */
static void find_caller(const struct spill_request *request, struct spill_loaded_object *caller)
{
	if (!spill_loaded_object_of(spill_engine_site(request), caller))
		*caller = (struct spill_loaded_object){0};
}

static struct spill_failure describe_request(const struct spill_request *request,
                                             const struct spill_loaded_object *caller)
{
	return (struct spill_failure){
	    .bytes = request->bytes,
	    .time_us = spill_clock_ns() / 1000,
	    .caller = caller->base,
	    .device = request->device,
	    .operation = operation_of(request),
	};
}

static bool asks_again(const struct spill_loaded_object *caller, enum spill_retry operation)
{
	const struct spill_retrier *retrier = spill_retrier_find(caller->path, operation);
	return retrier && !(retrier->unless[0] && getenv(retrier->unless));
}

void spill_retry_state_view(const struct spill_request *request, struct spill_full_view *view)
{
	struct spill_loaded_object caller;
	find_caller(request, &caller);
	struct spill_failure now = describe_request(request, &caller);
	view->asks_again = asks_again(&caller, now.operation);
	view->repeats = false;
	for (unsigned i = 0; i < SPILL_FAILURES; i++)
		view->repeats |=
		    spill_failure_repeats(&pending[i], &now, spill_process_policy()->honest_window_us);
}

void spill_retry_state_surfaced(const struct spill_request *request)
{
	struct spill_loaded_object caller;
	find_caller(request, &caller);
	struct spill_failure now = describe_request(request, &caller);
	*spill_failure_slot(pending, &now) = now;
}

/* Not inlined: a path takes much of the program's stack. */
static __attribute__((noinline)) void forget_repeated(const struct spill_request *request)
{
	struct spill_loaded_object caller;
	find_caller(request, &caller);
	struct spill_failure now = describe_request(request, &caller);
	for (unsigned i = 0; i < SPILL_FAILURES; i++)
		spill_failure_served(&pending[i], &now, spill_process_policy()->honest_window_us);
}

/* Is a failure of at most `bytes` remembered? */
static bool is_failure_pending(uint64_t bytes)
{
	for (unsigned i = 0; i < SPILL_FAILURES; i++)
		if (pending[i].bytes && bytes >= pending[i].bytes)
			return true;
	return false;
}

/* A few loads if nothing failed. The caller is looked up only for a possible repeat. */
void spill_retry_state_succeeded(const struct spill_request *request)
{
	if (is_failure_pending(request->bytes))
		forget_repeated(request);
}

void spill_retry_state_mapped(const struct spill_request *request)
{
	struct spill_loaded_object caller;
	if (!is_failure_pending(UINT64_MAX))
		return;
	find_caller(request, &caller);
	for (unsigned i = 0; i < SPILL_FAILURES; i++)
		spill_failure_mapped(&pending[i], caller.base);
}
