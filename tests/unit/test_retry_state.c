/*
 * Honest first in the library: the callers it applies to, per thread, by the clock, and never in a
 * capture. Also the log lines.
 */
#define SETUP setup
#include "unit.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <pthread.h>

#include "captures.h"
#include "fake_clock.h"
#include "fake_objects.h"
#include "retry_state.h"
#include "retry.h"
#include "process.h"

#define S 1000000000ull
#define TORCH "/x/torch/lib/libc10_cuda.so"

static struct spill_policy policy;

/* An address is the number of a library; 9: generated code. */
enum { PROGRAM, TORCH_LIBRARY, PLAIN_LIBRARY, OTHER_TORCH, GENERATED = 9 };

static struct spill_request request(enum spill_op op, uint64_t bytes, uintptr_t caller)
{
	return (struct spill_request){.op = op, .bytes = bytes, .caller = (const void *)caller};
}

/* The device is full for a new request: what is decided, and what the library remembers of it. */
static bool surfaces(enum spill_op op, uint64_t bytes, uintptr_t caller)
{
	struct spill_request asked = request(op, bytes, caller);
	const struct spill_ask ask = {.bytes = bytes, .placeable = true};
	struct spill_full_view view = {.any_capture = spill_capture_any(), .capabilities = SPILL_CAN_HOST};
	spill_retry_state_view(&asked, &view);
	bool answer = spill_decide_full(&policy, NULL, &ask, &view).surfaces;
	if (answer)
		spill_retry_state_surfaced(&asked);
	return answer;
}

static void succeeds(enum spill_op op, uint64_t bytes, uintptr_t caller)
{
	struct spill_request served = request(op, bytes, caller);
	spill_retry_state_succeeded(&served);
}

/* As many new ones as are remembered, all repeated: nothing of an earlier test is left. */
static void forget(void)
{
	policy.honest_first = SPILL_HONEST_ON;
	for (uintptr_t caller = 0; caller < SPILL_FAILURES; caller++)
		assert_true(surfaces(SPILL_OP_ALLOC_ASYNC, 1, caller));
	for (uintptr_t caller = 0; caller < SPILL_FAILURES; caller++)
		succeeds(SPILL_OP_ALLOC_ASYNC, 1, caller);
}

static int setup(void **state)
{
	static uint64_t hours;
	spill_process_use_policy(&policy);
	spill_policy_default(&policy);
	set_capturing(false);
	fake_clock_use(++hours * 3600 * S); /* nothing of an earlier test is in the window */
	USE_FAKE_OBJECTS({0, 1, ""}, {1, 1, TORCH}, {2, 1, "/x/libplain.so"}, {3, 1, "/y/libc10_cuda.so"});
	forget();
	spill_policy_default(&policy);
	unsetenv("PYTORCH_NO_CUDA_MEMORY_CACHING");
	return 0;
}

TEST(the_first_surfaces_and_the_repeat_does_not)
{
	assert_true(surfaces(SPILL_OP_ALLOC, 100, TORCH_LIBRARY));
	assert_false(surfaces(SPILL_OP_ALLOC, 100, TORCH_LIBRARY));
	succeeds(SPILL_OP_ALLOC, 100, TORCH_LIBRARY);
	assert_true(surfaces(SPILL_OP_ALLOC, 100, TORCH_LIBRARY));
}

/* Whoever looks has not failed yet. */
TEST(a_look_changes_nothing)
{
	struct spill_request asked = request(SPILL_OP_ALLOC, 100, TORCH_LIBRARY);
	struct spill_full_view view = {0};
	for (int i = 0; i < 3; i++) {
		spill_retry_state_view(&asked, &view);
		assert_true(view.asks_again && !view.repeats);
	}
	spill_retry_state_surfaced(&asked);
	spill_retry_state_view(&asked, &view);
	assert_true(view.asks_again && view.repeats);
}

TEST(a_plain_program_never_sees_one)
{
	static const enum spill_op operations[] = {SPILL_OP_ALLOC, SPILL_OP_CREATE, SPILL_OP_ALLOC_ASYNC,
	                                           SPILL_OP_GRAPH_ALLOC};
	static const uintptr_t callers[] = {PROGRAM, PLAIN_LIBRARY, GENERATED};
	for (size_t op = 0; op < 4; op++)
		for (size_t caller = 0; caller < 3; caller++)
			for (int again = 0; again < 3; again++)
				assert_false(surfaces(operations[op], 100, callers[caller]));
}

/* Even between a failure of PyTorch's in the same thread and its repeat. */
TEST(a_plain_library_beside_a_retrier)
{
	assert_true(surfaces(SPILL_OP_ALLOC, 100, TORCH_LIBRARY));
	assert_false(surfaces(SPILL_OP_ALLOC, 100, PLAIN_LIBRARY));
	succeeds(SPILL_OP_ALLOC, 100, PLAIN_LIBRARY);
	assert_false(surfaces(SPILL_OP_ALLOC, 100, TORCH_LIBRARY));
}

TEST(stream_ordered_requests_of_pytorch_are_not_repeated)
{
	assert_false(surfaces(SPILL_OP_ALLOC_ASYNC, 100, TORCH_LIBRARY));
}

TEST(caches_switched_off)
{
	setenv("PYTORCH_NO_CUDA_MEMORY_CACHING", "1", 1);
	assert_false(surfaces(SPILL_OP_ALLOC, 100, TORCH_LIBRARY));
	unsetenv("PYTORCH_NO_CUDA_MEMORY_CACHING");
	assert_true(surfaces(SPILL_OP_ALLOC, 100, TORCH_LIBRARY));
}

TEST(on_is_everyone_and_off_is_none)
{
	policy.honest_first = SPILL_HONEST_OFF;
	assert_false(surfaces(SPILL_OP_ALLOC, 100, TORCH_LIBRARY));
	policy.honest_first = SPILL_HONEST_ON;
	static const uintptr_t callers[] = {PROGRAM, TORCH_LIBRARY, PLAIN_LIBRARY, GENERATED};
	for (size_t i = 0; i < 4; i++) {
		assert_true(surfaces(SPILL_OP_ALLOC_ASYNC, 100, callers[i]));
		assert_false(surfaces(SPILL_OP_ALLOC_ASYNC, 100, callers[i]));
		succeeds(SPILL_OP_ALLOC_ASYNC, 100, callers[i]);
	}
}

TEST(the_window_is_the_policy_s)
{
	policy.honest_window_us = 250000;
	assert_true(surfaces(SPILL_OP_ALLOC, 100, TORCH_LIBRARY));
	fake_clock.ns += S / 4;
	assert_false(surfaces(SPILL_OP_ALLOC, 100, TORCH_LIBRARY));
	fake_clock.ns += 1000;
	assert_true(surfaces(SPILL_OP_ALLOC, 100, TORCH_LIBRARY));
}

/* Two copies of a library are two allocators. */
TEST(the_caller_is_the_library_not_its_name)
{
	assert_true(surfaces(SPILL_OP_ALLOC, 100, TORCH_LIBRARY));
	assert_true(surfaces(SPILL_OP_ALLOC, 100, OTHER_TORCH));
	/* And neither forgets because of the other. */
	assert_false(surfaces(SPILL_OP_ALLOC, 100, TORCH_LIBRARY));
	assert_false(surfaces(SPILL_OP_ALLOC, 100, OTHER_TORCH));
	succeeds(SPILL_OP_ALLOC, 100, TORCH_LIBRARY);
	assert_false(surfaces(SPILL_OP_ALLOC, 100, OTHER_TORCH));
	assert_true(surfaces(SPILL_OP_ALLOC, 100, TORCH_LIBRARY));
}

/* A run of each that maps at the end: what is mapped ends the runs of its own caller. */
TEST(runs_of_two_allocators)
{
	struct spill_request map = request(SPILL_OP_MAP, 100, OTHER_TORCH);
	assert_true(surfaces(SPILL_OP_CREATE, 20, TORCH_LIBRARY));
	assert_true(surfaces(SPILL_OP_CREATE, 20, OTHER_TORCH));
	spill_retry_state_mapped(&map);
	assert_false(surfaces(SPILL_OP_CREATE, 20, TORCH_LIBRARY));
	assert_true(surfaces(SPILL_OP_CREATE, 20, OTHER_TORCH));
}

/* Below a runtime's function the driver is called by the runtime; the caller is who called that. */
TEST(the_outermost_caller_counts)
{
	struct spill_request frame = request(SPILL_OP_FRAME, 100, TORCH_LIBRARY);
	spill_thread.frame = &frame;
	assert_true(surfaces(SPILL_OP_ALLOC, 100, PLAIN_LIBRARY));
	frame.caller = (const void *)PLAIN_LIBRARY;
	assert_false(surfaces(SPILL_OP_ALLOC, 100, TORCH_LIBRARY));
	spill_thread.frame = NULL;
}

TEST(never_while_anything_captures)
{
	set_capturing(true);
	assert_false(surfaces(SPILL_OP_ALLOC, 100, TORCH_LIBRARY));
	set_capturing(false);
	assert_true(surfaces(SPILL_OP_ALLOC, 100, TORCH_LIBRARY));
}

TEST(a_run_ends_when_it_is_mapped)
{
	struct spill_request map = request(SPILL_OP_MAP, 100, TORCH_LIBRARY);
	assert_true(surfaces(SPILL_OP_CREATE, 20, TORCH_LIBRARY));
	for (int i = 0; i < 4; i++) {
		succeeds(SPILL_OP_CREATE, 20, TORCH_LIBRARY);
		assert_false(surfaces(SPILL_OP_CREATE, 20, TORCH_LIBRARY));
	}
	spill_retry_state_mapped(&map);
	assert_true(surfaces(SPILL_OP_CREATE, 20, TORCH_LIBRARY));
}

static void *another_thread(void *unused)
{
	assert_true(surfaces(SPILL_OP_ALLOC, 100, TORCH_LIBRARY));
	return NULL;
}

TEST(each_thread_has_its_own)
{
	pthread_t thread;
	assert_true(surfaces(SPILL_OP_ALLOC, 100, TORCH_LIBRARY));
	assert_int_equal(pthread_create(&thread, NULL, another_thread, NULL), 0);
	pthread_join(thread, NULL);
	assert_false(surfaces(SPILL_OP_ALLOC, 100, TORCH_LIBRARY));
}

/* What is served is not searched for its caller, unless it may be a repeat. */
TEST(success_costs_nothing)
{
	assert_true(surfaces(SPILL_OP_ALLOC, 100, TORCH_LIBRARY));
	succeeds(SPILL_OP_ALLOC, 100, TORCH_LIBRARY);
	fake_object_looks = 0;
	for (int i = 0; i < 10; i++)
		succeeds(SPILL_OP_ALLOC, 100, TORCH_LIBRARY);
	assert_int_equal(fake_object_looks, 0);
	assert_true(surfaces(SPILL_OP_ALLOC, 100, TORCH_LIBRARY));
	fake_object_looks = 0;
	succeeds(SPILL_OP_ALLOC, 99, TORCH_LIBRARY);
	assert_int_equal(fake_object_looks, 0);
}
