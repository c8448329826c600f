/* Which requests are part of a capture, by the table of captures, the thread and its mode. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>
#include <errno.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ended.h"
#include "fake_libc.h"
#include "capture.h"
#include "engine.h"
#include "registry.h"

enum { GLOBAL, THREAD_LOCAL, RELAXED };

#define STREAM ((void *)0x1000)
#define JOINED ((void *)0x2000)
#define PER_THREAD ((void *)2)

static int device_now;
static void *context_now;
static unsigned asked;

static bool current(int *device, void **context)
{
	*device = device_now;
	*context = context_now;
	return true;
}

/* The driver's word about streams that joined by an event. */
static bool joined(void *stream)
{
	asked++;
	return stream == JOINED;
}

/* The driver knows no owner, so the current context counts. */
static int no_owner(void *stream, int *device, void **context)
{
	return 1;
}

static bool started(spill_resolve_fn *resolve)
{
	return true;
}

static const struct spill_backend backend = {
    .start = started,
    .devices = &(const struct spill_vendor_devices){.current = current},
    .streams = &(const struct spill_vendor_streams){.owner = no_owner, .capturing = joined},
};

/* A whole call with the vendor's result. */
static void call(enum spill_op op, void *stream, unsigned mode, int result)
{
	struct spill_request request = {.op = op, .stream = stream, .mode = mode};
	unsigned exchanged = mode;
	if (op == SPILL_OP_CAPTURE_MODE)
		request.out = &exchanged;
	assert_true(spill_engine_capture(&request));
	exchanged = 99; /* the vendor stores the old one */
	request.result = result;
	assert_false(spill_engine_capture(&request));
}

static void begin(void *stream, unsigned mode)
{
	call(SPILL_OP_CAPTURE_BEGIN, stream, mode, 0);
}

static void end(void *stream)
{
	call(SPILL_OP_CAPTURE_END, stream, 0, 0);
}

static void exchange(unsigned mode)
{
	call(SPILL_OP_CAPTURE_MODE, NULL, mode, 0);
}

static bool here(enum spill_op op, void *stream)
{
	struct spill_request request = {.op = op, .stream = stream};
	return spill_engine_in_capture(&request);
}

struct elsewhere {
	void *stream;
	unsigned mode;
};

static void *begin_elsewhere(void *data)
{
	const struct elsewhere *what = data;
	begin(what->stream, what->mode);
	return NULL;
}

/* Begun by another thread, which has ended since: the capture has not. */
static void begin_by_another(void *stream, unsigned mode)
{
	struct elsewhere what = {stream, mode};
	pthread_t thread;
	assert_int_equal(pthread_create(&thread, NULL, begin_elsewhere, &what), 0);
	pthread_join(thread, NULL);
}

static int setup(void **state)
{
	spill_registry_use_backend(SPILL_CUDA_DRIVER, &backend);
	device_now = 0;
	context_now = (void *)0xc0;
	exchange(GLOBAL);
	asked = 0;
	fake_libc_reset();
	return 0;
}

static int nothing_left(void **state)
{
	return spill_capture_any() ? -1 : 0;
}

static void nothing_captures_and_nobody_is_asked(void **state)
{
	assert_false(spill_capture_any());
	assert_false(here(SPILL_OP_ALLOC, NULL));
	assert_false(here(SPILL_OP_ALLOC_ASYNC, JOINED));
	assert_int_equal(asked, 0);
}

static void begin_counts_on_success_only(void **state)
{
	call(SPILL_OP_CAPTURE_BEGIN, STREAM, GLOBAL, 900);
	assert_false(spill_capture_any());
	begin(STREAM, GLOBAL);
	assert_true(spill_capture_any());
	end(STREAM);
	assert_false(spill_capture_any());
}

/* An invalidated capture (901), an unjoined one (904): the call fails and the capture is over. */
static void a_failed_end_is_one(void **state)
{
	static const int failures[] = {1, 900, 901, 904};
	for (size_t i = 0; i < 4; i++) {
		begin(STREAM, GLOBAL);
		call(SPILL_OP_CAPTURE_END, STREAM, 0, failures[i]);
		assert_false(spill_capture_any());
	}
}

static void but_not_one_by_the_wrong_thread_or_of_another_stream(void **state)
{
	begin(STREAM, GLOBAL);
	call(SPILL_OP_CAPTURE_END, STREAM, 0, 908);
	assert_true(spill_capture_any());
	call(SPILL_OP_CAPTURE_END, JOINED, 0, 903);
	assert_true(spill_capture_any());
	end(STREAM);
}

static void a_destroyed_stream_leaves_nothing(void **state)
{
	begin(STREAM, GLOBAL);
	call(SPILL_OP_STREAM_END, STREAM, 0, 400);
	assert_true(spill_capture_any());
	call(SPILL_OP_STREAM_END, JOINED, 0, 0);
	assert_true(spill_capture_any());
	call(SPILL_OP_STREAM_END, STREAM, 0, 0);
	assert_false(spill_capture_any());
}

static void an_ended_context_leaves_nothing_of_its_own(void **state)
{
	begin(STREAM, GLOBAL);
	context_now = (void *)0xc1;
	begin(JOINED, GLOBAL);
	spill_capture_context_ended(ENDED(&backend, 0, (void *)0xc0));
	assert_true(spill_capture_any());
	spill_capture_context_ended(ENDED(&backend, 0, (void *)0xc1));
	assert_false(spill_capture_any());
	/* Without contexts: by device. */
	context_now = NULL;
	device_now = 1;
	begin(STREAM, GLOBAL);
	spill_capture_context_ended(ENDED(&backend, 0, NULL));
	assert_true(spill_capture_any());
	spill_capture_context_ended(ENDED(&backend, 1, NULL));
}

static void a_begin_whose_end_was_not_seen_counts_once(void **state)
{
	begin(STREAM, GLOBAL);
	begin(STREAM, GLOBAL);
	end(STREAM);
}

static void the_thread_that_began_it_is_in_it(void **state)
{
	for (unsigned mode = GLOBAL; mode <= RELAXED; mode++) {
		begin(STREAM, mode);
		for (unsigned thread = GLOBAL; thread <= RELAXED; thread++) {
			exchange(thread);
			assert_true(here(SPILL_OP_ALLOC, NULL));
			assert_true(here(SPILL_OP_CREATE, NULL));
		}
		exchange(GLOBAL);
		end(STREAM);
		assert_false(here(SPILL_OP_ALLOC, NULL));
	}
}

/* Measured (H200): what of another thread's calls ends a capture of that mode, with this thread's mode. */
static void another_thread_s_stops_us_only_where_the_vendor_would(void **state)
{
	for (unsigned mode = GLOBAL; mode <= RELAXED; mode++) {
		begin_by_another(STREAM, mode);
		for (unsigned thread = GLOBAL; thread <= RELAXED; thread++) {
			exchange(thread);
			bool forbidden = mode == GLOBAL && thread == GLOBAL;
			assert_int_equal(here(SPILL_OP_ALLOC, NULL), forbidden);
			assert_int_equal(here(SPILL_OP_ALLOC_ASYNC, (void *)0x3000), forbidden);
			assert_false(here(SPILL_OP_CREATE, NULL));
			assert_true(spill_capture_any());
		}
		exchange(GLOBAL);
		end(STREAM);
	}
}

static void a_stream_that_joined_captures(void **state)
{
	begin_by_another(STREAM, RELAXED);
	assert_true(here(SPILL_OP_ALLOC_ASYNC, JOINED));
	assert_true(here(SPILL_OP_FREE_ASYNC, JOINED));
	assert_false(here(SPILL_OP_ALLOC_ASYNC, (void *)0x3000));
	end(STREAM);
}

/* A stream that does not capture is not in this thread's capture, which may forbid the call all the same. */
static void another_stream_of_the_capturing_thread(void **state)
{
	begin(STREAM, RELAXED);
	assert_false(here(SPILL_OP_ALLOC_ASYNC, (void *)0x3000));
	end(STREAM);
	begin(STREAM, THREAD_LOCAL);
	assert_true(here(SPILL_OP_ALLOC_ASYNC, (void *)0x3000));
	exchange(RELAXED);
	assert_false(here(SPILL_OP_ALLOC_ASYNC, (void *)0x3000));
	end(STREAM);
}

/* It is another stream in each thread, with two names. */
static void per_thread_default_streams(void **state)
{
	struct spill_request ends = {.op = SPILL_OP_CAPTURE_END, .per_thread = true};
	begin_by_another(PER_THREAD, RELAXED);
	end(PER_THREAD); /* of this thread, which captures nothing */
	assert_true(spill_capture_any());
	begin(PER_THREAD, RELAXED);
	assert_true(here(SPILL_OP_ALLOC, NULL));
	assert_true(spill_engine_capture(&ends));
	assert_false(spill_engine_capture(&ends));
	assert_false(here(SPILL_OP_ALLOC, NULL));
	spill_capture_context_ended(ENDED(&backend, 0, context_now));
}

static void a_refused_exchange_changes_nothing(void **state)
{
	begin_by_another(STREAM, GLOBAL);
	call(SPILL_OP_CAPTURE_MODE, NULL, RELAXED, 1);
	assert_true(here(SPILL_OP_ALLOC, NULL));
	end(STREAM);
}

static void a_forked_child_captures_nothing(void **state)
{
	int status;
	begin(STREAM, GLOBAL);
	exchange(RELAXED);
	spill_fork_lock_take(&spill_capture_fork_lock);
	pid_t child = fork();
	spill_fork_lock_release(&spill_capture_fork_lock, child == 0);
	if (child == 0) {
		bool left = spill_capture_any();
		begin_by_another(STREAM, GLOBAL);
		_exit(left || !here(SPILL_OP_ALLOC, NULL)); /* its mode is the first one again */
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	assert_true(spill_capture_any());
	end(STREAM);
}

/* A wait would break a capture that is not known (error 901). */
static void a_capture_is_known_without_memory(void **state)
{
	fake_libc_fail(FAKE_malloc, 1, FAKE_LIBC_FOR_EVER, ENOMEM);
	fake_libc_fail(FAKE_calloc, 1, FAKE_LIBC_FOR_EVER, ENOMEM);
	begin(STREAM, GLOBAL);
	assert_true(spill_capture_any());
	assert_true(here(SPILL_OP_ALLOC, NULL));
	call(SPILL_OP_CAPTURE_END, STREAM, 0, 908);
	assert_true(spill_capture_any());
	end(STREAM);
	assert_false(spill_capture_any());
	begin(STREAM, GLOBAL);
	call(SPILL_OP_STREAM_END, STREAM, 0, 0);
	assert_false(spill_capture_any());
	begin(STREAM, GLOBAL);
	spill_capture_context_ended(ENDED(&backend, 0, context_now));
	assert_false(spill_capture_any());
}

/* More captures at once than any table holds. */
#define VERY_MANY 5000

static void *many(unsigned number)
{
	return (void *)(uintptr_t)(0x10000 + 16 * number);
}

/* Those without a record count until as many captures have ended. */
static void very_many_captures_are_all_respected(void **state)
{
	for (unsigned i = 0; i < VERY_MANY; i++)
		begin(many(i), RELAXED);
	for (unsigned i = 0; i < VERY_MANY; i++) {
		assert_true(spill_capture_any());
		assert_true(here(SPILL_OP_ALLOC, NULL));
		end(many(i));
	}
	assert_false(here(SPILL_OP_ALLOC, NULL));
}

/* Nobody knows whose they are and how strict: each thread keeps to the strictest. */
static void captures_without_a_record_stop_all_threads(void **state)
{
	for (unsigned i = 0; i < VERY_MANY; i++)
		begin_by_another(many(i), RELAXED);
	assert_true(here(SPILL_OP_ALLOC, NULL));
	assert_true(here(SPILL_OP_CREATE, NULL));
	assert_true(here(SPILL_OP_ALLOC_ASYNC, (void *)0x3000));
	for (unsigned i = VERY_MANY; i > 0; i--)
		end(many(i - 1));
	assert_false(here(SPILL_OP_ALLOC, NULL));
}

/* Each of these leaves the number of captures as it is. */
static void an_end_that_ends_nothing_hides_none_without_a_record(void **state)
{
	static const int failures[] = {1, 400, 401, 903, 908};

	for (unsigned i = 0; i < VERY_MANY; i++)
		begin(many(i), RELAXED);
	for (unsigned i = 0; i < VERY_MANY; i++)
		call(SPILL_OP_CAPTURE_END, STREAM, 0, failures[i % 5]);
	for (unsigned i = 0; i < VERY_MANY; i++)
		call(SPILL_OP_STREAM_END, STREAM, 0, 0); /* it captured nothing, or joined */
	for (unsigned i = 0; i < VERY_MANY; i++) {
		assert_true(spill_capture_any());
		call(SPILL_OP_CAPTURE_END, many(i), 0, i % 2 ? 901 : 904);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(nothing_captures_and_nobody_is_asked, setup, nothing_left),
	    cmocka_unit_test_setup_teardown(begin_counts_on_success_only, setup, nothing_left),
	    cmocka_unit_test_setup_teardown(a_failed_end_is_one, setup, nothing_left),
	    cmocka_unit_test_setup_teardown(but_not_one_by_the_wrong_thread_or_of_another_stream, setup,
	                                    nothing_left),
	    cmocka_unit_test_setup_teardown(a_destroyed_stream_leaves_nothing, setup, nothing_left),
	    cmocka_unit_test_setup_teardown(an_ended_context_leaves_nothing_of_its_own, setup, nothing_left),
	    cmocka_unit_test_setup_teardown(a_begin_whose_end_was_not_seen_counts_once, setup, nothing_left),
	    cmocka_unit_test_setup_teardown(the_thread_that_began_it_is_in_it, setup, nothing_left),
	    cmocka_unit_test_setup_teardown(another_thread_s_stops_us_only_where_the_vendor_would, setup,
	                                    nothing_left),
	    cmocka_unit_test_setup_teardown(a_stream_that_joined_captures, setup, nothing_left),
	    cmocka_unit_test_setup_teardown(another_stream_of_the_capturing_thread, setup, nothing_left),
	    cmocka_unit_test_setup_teardown(per_thread_default_streams, setup, nothing_left),
	    cmocka_unit_test_setup_teardown(a_refused_exchange_changes_nothing, setup, nothing_left),
	    cmocka_unit_test_setup_teardown(a_forked_child_captures_nothing, setup, nothing_left),
	    cmocka_unit_test_setup_teardown(a_capture_is_known_without_memory, setup, nothing_left),
	    cmocka_unit_test_setup_teardown(very_many_captures_are_all_respected, setup, nothing_left),
	    cmocka_unit_test_setup_teardown(captures_without_a_record_stop_all_threads, setup, nothing_left),
	    cmocka_unit_test_setup_teardown(an_end_that_ends_nothing_hides_none_without_a_record, setup,
	                                    nothing_left),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
