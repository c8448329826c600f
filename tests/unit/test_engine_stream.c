/*
 * Streams: their names, and calls that begin or end a capture. All that engine_stream.c calls is replaced, but the gate, which
 * such a call is inside.
 */
#define SETUP setup
#include "unit.h"

#include "capture.h"
#include "deferred.h"
#include "engine.h"
#include "gate.h"
#include "ordered_pool.h"
#include "registry.h"
#include "said.h"

static int a_green_context;
static const void *green; /* the one that is current */

static const void *current_green(void)
{
	return green;
}

static const struct spill_vendor_streams streams = {.green = current_green};
static const struct spill_backend backend = {.streams = &streams};
static const struct spill_backend *found;
static char stream, name_in_table, taken;
static bool captures, forbids;
static struct spill_capture_call call;

const struct spill_backend *spill_backend_for(enum spill_domain domain)
{
	return found;
}

uint64_t spill_capture_thread(void)
{
	return 6;
}

void *spill_capture_stream(void *given, bool per_thread)
{
	assert_ptr_equal(given, &stream);
	return &name_in_table;
}

static void tell(const char *word, uint64_t number)
{
	assert_int_equal(atomic_load(&spill_gate_self->inside), 1);
	say(word, number);
}

void spill_deferred_stream_ended(const struct spill_backend *vendor, const void *name)
{
	tell("frees", name == &stream);
}

void spill_ordered_stream_ended(const struct spill_backend *vendor, const void *name)
{
	tell("ranges", name == &stream);
}

struct spill_capture *spill_capture_take(const struct spill_backend *vendor, const void *name)
{
	tell("take", name == &name_in_table);
	return (struct spill_capture *)&taken;
}

void spill_capture_ended(struct spill_capture *capture, int result)
{
	assert_ptr_equal(capture, &taken);
	tell("ended", (uint64_t)result);
}

void spill_capture_stream_ended(struct spill_capture *capture, int result)
{
	assert_ptr_equal(capture, &taken);
	tell("stream ended", (uint64_t)result);
}

void spill_capture_begun(const struct spill_backend *vendor, void *name, unsigned mode)
{
	assert_ptr_equal(name, &name_in_table);
	tell("begun", mode);
}

void spill_capture_thread_mode(unsigned mode)
{
	tell("mode", mode);
}

bool spill_capture_any(void)
{
	return captures;
}

bool spill_capture_forbids(const struct spill_backend *vendor, const struct spill_capture_call *given)
{
	call = *given;
	return forbids;
}

static int setup(void **state)
{
	found = &backend;
	green = NULL;
	captures = forbids = false;
	what_was_said();
	return 0;
}

/* -- names ------------------------------------------------------------------------------------------------------- */

TEST(names_of_streams)
{
	static const struct {
		uintptr_t stream;
		bool per_thread;
		uintptr_t name;
	} names[] = {{4096, false, 4096}, {4096, true, 4096}, {0, false, 1},  {1, false, 1},
	             {1, true, 1},        {0, true, 13},      {2, false, 13}, {2, true, 13}};
	for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		const struct spill_request request = {.stream = (void *)names[i].stream,
		                                      .per_thread = names[i].per_thread};
		assert_int_equal((uintptr_t)spill_engine_stream(&request), names[i].name);
	}
}

/* Whose default streams are none of the thread's, and no other context's. */
TEST(names_of_streams_in_a_green_context)
{
	green = &a_green_context;
	for (uintptr_t stream = 0; stream < 4; stream++) {
		const struct spill_request request = {.stream = (void *)stream, .per_thread = stream == 0};
		const void *name = spill_engine_stream(&request);
		assert_ptr_equal(name, stream == 3 ? (void *)stream : &a_green_context);
	}
}

/* -- captures ------------------------------------------------------------------------------------------------------ */

/* What is done before the vendor is asked, and behind its answer. */
static const struct {
	enum spill_op op;
	bool has_out;
	int result;
	const char *before, *behind;
} calls[] = {
    {SPILL_OP_CAPTURE_BEGIN, false, 0, "", "begun:3"},
    {SPILL_OP_CAPTURE_BEGIN, false, 1, "", ""},
    {SPILL_OP_CAPTURE_BEGIN, true, 0, "", "begun:3"},
    {SPILL_OP_CAPTURE_END, false, 0, "take:1", "ended:0"},
    {SPILL_OP_CAPTURE_END, false, 1, "take:1", "ended:1"},
    {SPILL_OP_STREAM_END, false, 0, "frees:1 ranges:1 take:1", "stream ended:0"},
    {SPILL_OP_STREAM_END, false, 1, "frees:1 ranges:1 take:1", "stream ended:1"},
    {SPILL_OP_CAPTURE_MODE, true, 0, "", "mode:9"},
    {SPILL_OP_CAPTURE_MODE, true, 1, "", ""},
    {SPILL_OP_CAPTURE_MODE, false, 0, "", "mode:3"},
};

TEST(calls_that_begin_or_end_a_capture)
{
	for (unsigned i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		unsigned mode = 9; /* the program's, where the vendor stores the old one */
		struct spill_request request = {
		    .op = calls[i].op, .stream = &stream, .mode = 3, .out = calls[i].has_out ? &mode : NULL};
		assert_true(spill_engine_capture(&request));
		assert_false(request.pass);
		assert_string_equal(what_was_said(), calls[i].before);
		assert_int_equal(atomic_load(&spill_gate_self->inside), 1);
		mode = 7;
		request.result = calls[i].result;
		assert_false(spill_engine_capture(&request));
		assert_string_equal(what_was_said(), calls[i].behind);
		assert_int_equal(atomic_load(&spill_gate_self->inside), 0);
	}
}

TEST(without_a_vendor_the_call_is_passed_on)
{
	struct spill_request request = {.op = SPILL_OP_STREAM_END, .stream = &stream};
	found = NULL;
	assert_true(spill_engine_capture(&request));
	assert_true(request.pass && !request.gated);
	assert_string_equal(what_was_said(), "");
}

/* What a request is for a capture: part of it by its stream, or a call that is allowed in any. */
TEST(requests_in_a_capture)
{
	static const struct {
		enum spill_op op;
		bool on_stream, safe;
	} requests[] = {{SPILL_OP_ALLOC_ASYNC, true, false},
	                {SPILL_OP_FREE_ASYNC, true, false},
	                {SPILL_OP_CREATE, false, true},
	                {SPILL_OP_ALLOC, false, false}};
	for (unsigned i = 0; i < sizeof(requests) / sizeof(requests[0]); i++) {
		const struct spill_request request = {
		    .op = requests[i].op, .stream = &stream, .per_thread = i % 2};
		captures = false;
		forbids = true;
		assert_false(spill_engine_in_capture(&request));
		captures = true;
		assert_true(spill_engine_in_capture(&request));
		assert_true(call.on_stream == requests[i].on_stream && call.safe == requests[i].safe);
		assert_true(call.stream == &stream && call.per_thread == i % 2);
		forbids = false;
		assert_false(spill_engine_in_capture(&request));
	}
}
