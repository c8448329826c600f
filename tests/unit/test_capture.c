/* Which requests are part of a capture, by the table of captures, the thread and its mode. */
#define SETUP setup
#define TEARDOWN nothing_left
#include "unit.h"

#include <stdlib.h>

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

static void *ask_number(void *numbers)
{
	uint64_t *number = numbers;
	number[0] = spill_capture_thread();
	number[1] = spill_capture_thread();
	return NULL;
}

/* 0 is no thread's. The first test, because the second thread's number would be 0 if they were counted down. */
TEST(each_thread_has_a_number_of_its_own)
{
	uint64_t numbers[4][2];
	pthread_t thread;
	ask_number(numbers[0]);
	for (unsigned i = 1; i < 4; i++) {
		assert_int_equal(pthread_create(&thread, NULL, ask_number, numbers[i]), 0);
		pthread_join(thread, NULL);
	}
	for (unsigned i = 0; i < 4; i++) {
		assert_int_not_equal(numbers[i][0], 0);
		assert_int_equal(numbers[i][0], numbers[i][1]);
		for (unsigned j = 0; j < i; j++)
			assert_int_not_equal(numbers[i][0], numbers[j][0]);
	}
}

TEST(nothing_captures_and_nobody_is_asked)
{
	assert_false(spill_capture_any());
	assert_false(here(SPILL_OP_ALLOC, NULL));
	assert_false(here(SPILL_OP_ALLOC_ASYNC, JOINED));
	assert_int_equal(asked, 0);
}

TEST(begin_counts_on_success_only)
{
	call(SPILL_OP_CAPTURE_BEGIN, STREAM, GLOBAL, 900);
	assert_false(spill_capture_any());
	begin(STREAM, GLOBAL);
	assert_true(spill_capture_any());
	end(STREAM);
	assert_false(spill_capture_any());
}

/* An invalidated capture (901), an unjoined one (904): the call fails and the capture is over. */
TEST(a_failed_end_is_one)
{
	static const int failures[] = {1, 900, 901, 904};
	for (size_t i = 0; i < 4; i++) {
		begin(STREAM, GLOBAL);
		call(SPILL_OP_CAPTURE_END, STREAM, 0, failures[i]);
		assert_false(spill_capture_any());
	}
}

TEST(but_not_one_by_the_wrong_thread_or_of_another_stream)
{
	begin(STREAM, GLOBAL);
	call(SPILL_OP_CAPTURE_END, STREAM, 0, 908);
	assert_true(spill_capture_any());
	call(SPILL_OP_CAPTURE_END, JOINED, 0, 903);
	assert_true(spill_capture_any());
	end(STREAM);
}

TEST(a_destroyed_stream_leaves_nothing)
{
	begin(STREAM, GLOBAL);
	call(SPILL_OP_STREAM_END, STREAM, 0, 400);
	assert_true(spill_capture_any());
	call(SPILL_OP_STREAM_END, JOINED, 0, 0);
	assert_true(spill_capture_any());
	call(SPILL_OP_STREAM_END, STREAM, 0, 0);
	assert_false(spill_capture_any());
}

TEST(an_ended_context_leaves_nothing_of_its_own)
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

TEST(a_begin_whose_end_was_not_seen_counts_once)
{
	begin(STREAM, GLOBAL);
	begin(STREAM, GLOBAL);
	end(STREAM);
}

/* Measured (H200): what of its own calls ends a thread's capture of that mode, with the thread's mode. */
TEST(the_thread_that_began_it_is_stopped_only_where_the_vendor_would)
{
	for (unsigned mode = GLOBAL; mode <= RELAXED; mode++) {
		begin(STREAM, mode);
		for (unsigned thread = GLOBAL; thread <= RELAXED; thread++) {
			exchange(thread);
			bool forbidden = mode != RELAXED && thread != RELAXED;
			assert_int_equal(here(SPILL_OP_ALLOC, NULL), forbidden);
			assert_false(here(SPILL_OP_CREATE, NULL));
			assert_true(here(SPILL_OP_ALLOC_ASYNC, JOINED));
		}
		exchange(GLOBAL);
		end(STREAM);
		assert_false(here(SPILL_OP_ALLOC, NULL));
	}
}

/* Measured (H200): what of another thread's calls ends a capture of that mode, with this thread's mode. */
TEST(another_thread_s_stops_us_only_where_the_vendor_would)
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

TEST(a_stream_that_joined_captures)
{
	begin_by_another(STREAM, RELAXED);
	assert_true(here(SPILL_OP_ALLOC_ASYNC, JOINED));
	assert_true(here(SPILL_OP_FREE_ASYNC, JOINED));
	assert_false(here(SPILL_OP_ALLOC_ASYNC, (void *)0x3000));
	end(STREAM);
}

/* A stream that does not capture is not in this thread's capture, which may forbid the call all the same. */
TEST(another_stream_of_the_capturing_thread)
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

/* Only NULL means another stream in the variants of a function for the default stream of each thread. */
TEST(the_stream_that_is_meant)
{
	assert_null(spill_capture_stream(NULL, false));
	assert_ptr_equal(spill_capture_stream(NULL, true), PER_THREAD);
	assert_ptr_equal(spill_capture_stream(STREAM, false), STREAM);
	assert_ptr_equal(spill_capture_stream(STREAM, true), STREAM);
}

/* It is another stream in each thread, with two names. */
TEST(per_thread_default_streams)
{
	struct spill_request ends = {.op = SPILL_OP_CAPTURE_END, .per_thread = true};
	begin_by_another(PER_THREAD, RELAXED);
	end(PER_THREAD); /* of this thread, which captures nothing */
	assert_true(spill_capture_any());
	begin(PER_THREAD, GLOBAL);
	assert_true(here(SPILL_OP_ALLOC, NULL));
	assert_true(spill_engine_capture(&ends));
	assert_false(spill_engine_capture(&ends));
	assert_false(here(SPILL_OP_ALLOC, NULL));
	spill_capture_context_ended(ENDED(&backend, 0, context_now));
}

TEST(a_refused_exchange_changes_nothing)
{
	begin_by_another(STREAM, GLOBAL);
	call(SPILL_OP_CAPTURE_MODE, NULL, RELAXED, 1);
	assert_true(here(SPILL_OP_ALLOC, NULL));
	end(STREAM);
}

TEST(a_forked_child_captures_nothing)
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
TEST(a_capture_is_known_without_memory)
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
TEST(very_many_captures_are_all_respected)
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
TEST(captures_without_a_record_stop_all_threads)
{
	for (unsigned i = 0; i < VERY_MANY; i++)
		begin_by_another(many(i), RELAXED);
	assert_true(here(SPILL_OP_ALLOC, NULL));
	assert_false(here(SPILL_OP_CREATE, NULL)); /* the strictest allows that, too */
	assert_true(here(SPILL_OP_ALLOC_ASYNC, (void *)0x3000));
	for (unsigned i = VERY_MANY; i > 0; i--)
		end(many(i - 1));
	assert_false(here(SPILL_OP_ALLOC, NULL));
}

/* Each of these leaves the number of captures as it is. */
TEST(an_end_that_ends_nothing_hides_none_without_a_record)
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
