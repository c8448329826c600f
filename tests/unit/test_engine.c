/*
 * The entry of the engine: which operation is stepped, whether calls from within are seen, and the names of the outermost call. The
 * operations, and all else that engine.c calls, are replaced.
 */
#define SETUP setup
#define TEARDOWN teardown
#include "unit.h"

#include <errno.h>

#include "caller.h"
#include "engine.h"
#include "gate.h"
#include "launch_access.h"
#include "note.h"
#include "promote.h"
#include "requester.h"
#include "said.h"

static bool again, with_log, entered, maintained[3];
static unsigned depth_within;
static int cancel_within;

static bool step_of(const char *name, struct spill_request *request)
{
	say(name, request->op);
	depth_within = spill_thread.depth;
	errno = EDOM;
	return again;
}

#define OPERATION(name) \
	bool spill_engine_##name(struct spill_request *request) \
	{ \
		return step_of(#name, request); \
	}
OPERATION(alloc)
OPERATION(alloc_async)
OPERATION(account)
OPERATION(array)
OPERATION(create)
OPERATION(graph)
OPERATION(free)
OPERATION(release)
OPERATION(retain)
OPERATION(map)
OPERATION(unmap)
OPERATION(access)
OPERATION(properties)
OPERATION(pool)
OPERATION(synchronize)
OPERATION(export)
OPERATION(import)
OPERATION(import_end)
OPERATION(info)
OPERATION(attributes)
OPERATION(range)
OPERATION(pointer)
OPERATION(peer)
OPERATION(capture)
OPERATION(room)
OPERATION(context)

bool spill_gate_enter_request(void)
{
	say("enter", 0);
	return entered;
}

static struct spill_gate_thread self;
__thread struct spill_gate_thread *spill_gate_self __attribute__((tls_model("initial-exec")));

static bool maintain(const char *name, unsigned which)
{
	int state;
	say(name, spill_thread.depth);
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	cancel_within = state;
	return maintained[which];
}

bool spill_reserve_maintain(void)
{
	return maintain("reserve", 0);
}

bool spill_promote_maintain(void)
{
	return maintain("promote", 1);
}

bool spill_launch_access_maintain(void)
{
	return maintain("follow", 2);
}

void spill_gate_want_maintenance(void)
{
	say("again", spill_thread.depth);
}

void spill_note(const char *code, const char *text)
{
	say(code, 0);
}

bool spill_log_active(void)
{
	return with_log;
}

const char *spill_log_caller(const void *site)
{
	return site ? (const char *)site + 1 : "";
}

const char *spill_requester(const void *site)
{
	return (const char *)site + 2;
}

static int setup(void **state)
{
	again = with_log = entered = false;
	for (unsigned i = 0; i < 3; i++)
		maintained[i] = false;
	spill_thread = (struct spill_thread){0};
	what_was_said();
	return 0;
}

static int teardown(void **state)
{
	spill_thread = (struct spill_thread){0};
	return 0;
}

/* -- a step -------------------------------------------------------------------------------------------------------- */

/* The vendor calls its own functions within the call. Those are not seen, but for those below a frame or a resolver. */
TEST(calls_from_within)
{
	struct spill_request request = {.op = SPILL_OP_FREE};
	again = true;
	errno = ERANGE;
	assert_true(spill_request_next(&request));
	assert_string_equal(what_was_said(), "free:8");
	assert_int_equal(errno, ERANGE);
	assert_true(depth_within == 1 && spill_thread.depth == 1);
	request.step = 1;
	assert_true(spill_request_next(&request)); /* the same call */
	assert_int_equal(spill_thread.depth, 1);
	again = false;
	request.step = 2;
	assert_false(spill_request_next(&request));
	assert_int_equal(depth_within, 1);
	assert_int_equal(spill_thread.depth, 0);
	request.step = 3; /* a fork during the call began again at 0 */
	assert_false(spill_request_next(&request));
	assert_int_equal(spill_thread.depth, 0);
}

TEST(calls_below_a_frame_or_a_resolver)
{
	static const enum spill_op seen[] = {SPILL_OP_FRAME, SPILL_OP_RESOLVE};
	for (unsigned i = 0; i < 2; i++) {
		struct spill_request request = {.op = seen[i]};
		assert_true(spill_request_next(&request));
		assert_int_equal(spill_thread.depth, 0);
		assert_int_equal(request.step, 1);
		assert_false(spill_request_next(&request));
		assert_int_equal(spill_thread.depth, 0);
	}
}

/* The operation found that there is nothing to do but the vendor's call. */
TEST(a_call_that_is_passed_from_now_on)
{
	struct spill_request request = {.op = SPILL_OP_FREE, .pass = true};
	assert_true(spill_request_next(&request));
	assert_true(request.step == 1 && spill_thread.depth == 0);
	assert_false(spill_request_next(&request));
	assert_string_equal(what_was_said(), "");
}

TEST(an_operation_that_passes_the_call)
{
	struct spill_request request = {.op = SPILL_OP_GATE};
	assert_true(spill_request_next(&request));
	assert_int_equal(spill_thread.depth, 1);
	assert_false(spill_request_next(&request));
	assert_int_equal(spill_thread.depth, 0);
	assert_string_equal(what_was_said(), "");
}

TEST(a_call_within_the_gate)
{
	for (unsigned in = 0; in < 2; in++) {
		struct spill_request request = {.op = SPILL_OP_GRAPH_CHANGE};
		spill_gate_self = &self;
		entered = in;
		atomic_store(&self.inside, 1);
		assert_true(spill_request_next(&request));
		assert_string_equal(what_was_said(), "enter:0");
		assert_true(request.gated == in && atomic_load(&self.inside) == 1);
		assert_false(spill_request_next(&request));
		assert_int_equal(atomic_load(&self.inside), !in);
		spill_gate_self = NULL;
		assert_string_equal(what_was_said(), "");
	}
}

/* -- frames ---------------------------------------------------------------------------------------------------------- */

/* Calls of the runtime: `outer` calls `inner`, which calls the driver. */
static void call_below_frames(enum spill_op op, unsigned step, const char *note)
{
	struct spill_request
	    outer = {.op = SPILL_OP_FRAME, .bytes = 1, .api = "outer", .caller = "outer site"},
	    inner = {.op = SPILL_OP_FRAME, .bytes = 1, .api = "inner", .caller = "inner site"},
	    driver = {.op = op, .step = step, .api = "driver", .caller = "driver site"};
	spill_thread = (struct spill_thread){0};
	assert_string_equal(spill_engine_api(&driver), "driver");
	assert_string_equal(spill_engine_site(&driver), "driver site");
	assert_true(spill_request_next(&outer));
	assert_true(spill_request_next(&inner));
	assert_ptr_equal(spill_thread.frame, &inner);
	assert_string_equal(spill_engine_api(&driver), "inner");
	assert_string_equal(spill_engine_site(&driver), "inner site");
	assert_string_equal(spill_engine_caller(&driver), "nner site");
	spill_request_next(&driver);
	what_was_said();
	assert_false(spill_request_next(&inner));
	assert_string_equal(what_was_said(), note);
	assert_ptr_equal(spill_thread.frame, &outer);
	assert_false(spill_request_next(&outer));
	assert_string_equal(what_was_said(), note);
	assert_null(spill_thread.frame);
}

TEST(memory_that_came_by_without_a_driver_row)
{
	call_below_frames(SPILL_OP_ALLOC, 0, "");
	call_below_frames(SPILL_OP_GRAPH_ALLOC, 0, "");
	call_below_frames(SPILL_OP_ALLOC, 1, "unseen:0");
	call_below_frames(SPILL_OP_FREE, 0, "unseen:0");
}

TEST(frames_without_memory)
{
	struct spill_request failed = {.op = SPILL_OP_FRAME, .bytes = 1}, other = {.op = SPILL_OP_FRAME};
	assert_true(spill_request_next(&failed));
	failed.result = 2;
	assert_false(spill_request_next(&failed));
	assert_true(spill_request_next(&other));
	assert_false(spill_request_next(&other));
	assert_string_equal(what_was_said(), "");
}

TEST(who_asked_is_for_the_log)
{
	struct spill_request request = {.caller = "a site"};
	assert_null(spill_engine_requester(&request));
	with_log = true;
	assert_string_equal(spill_engine_requester(&request), "site");
}

/* -- the first call, and maintenance ------------------------------------------------------------------------------- */

static void open(const struct spill_backend *backend)
{
	say("open", backend == &spill_backend_hip);
}

TEST(who_opens_the_log)
{
	spill_engine_memory_call(&spill_backend_hip);
	assert_string_equal(what_was_said(), "");
	spill_engine_on_memory_call(open);
	spill_engine_memory_call(&spill_backend_hip);
	assert_string_equal(what_was_said(), "open:1");
	spill_engine_on_memory_call(NULL);
}

/* All are asked, in calls of our own; and again later if one of them wants that. */
TEST(maintenance)
{
	for (unsigned which = 0; which < 4; which++) {
		int cancel;
		for (unsigned i = 0; i < 3; i++)
			maintained[i] = i == which;
		spill_engine_maintain();
		assert_string_equal(what_was_said(), which < 3 ? "reserve:1 promote:1 follow:1 again:0"
		                                               : "reserve:1 promote:1 follow:1");
		assert_int_equal(cancel_within, PTHREAD_CANCEL_DISABLE);
		assert_int_equal(spill_thread.depth, 0);
		pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &cancel);
		assert_int_equal(cancel, PTHREAD_CANCEL_ENABLE);
	}
}
