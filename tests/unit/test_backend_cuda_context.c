/*
 * CUDA's contexts, streams and events, call by call: what the driver is asked, and what is left undone where the context cannot be
 * entered.
 */
#define SETUP setup
#include "unit.h"

#include "cuda_driver.h"

/* -- contexts and streams ---------------------------------------------------------------------- */

TEST(the_number_of_a_context)
{
	assert_int_equal(spill_cuda_contexts.id(OWN), 77);
	world.refused = "id";
	assert_int_equal(spill_cuda_contexts.id(OWN), 0);
	spill_cuda.cuCtxGetId = NULL;
	assert_int_equal(spill_cuda_contexts.id(OWN), 0);
}

TEST(the_device_of_a_context)
{
	int device = -1;
	be_current(ELSEWHERE);
	assert_true(spill_cuda_contexts.device(OWN, &device));
	assert_int_equal(device, DEVICE);
	assert_string_equal(what_was_said(), "push:3 pop:3");
	device = -1;
	world.refused = "device";
	assert_false(spill_cuda_contexts.device(OWN, &device));
	assert_string_equal(what_was_said(), "push:3 pop:3");
	world.refused = "push";
	assert_false(spill_cuda_contexts.device(OWN, &device));
	assert_string_equal(what_was_said(), "push:3");
	assert_int_equal(device, -1);
}

/* Those beyond all are kept nowhere, and their answers are the driver's. */
TEST(primary_contexts_of_devices_that_there_are_not)
{
	void *context = NULL;
	spill_cuda_contexts.primary_retained(-1, OWN);
	spill_cuda_contexts.primary_retained(SPILL_DEVICES, OWN);
	spill_cuda_contexts.primary_retained(SPILL_DEVICES - 1, ELSEWHERE);
	assert_false(spill_cuda_contexts.primary(SPILL_DEVICES, &context));
	spill_cuda.cuDevicePrimaryCtxGetState = NULL;
	be_active();
	assert_false(spill_cuda_contexts.primary(DEVICE, &context));
	assert_null(context);
	spill_cuda_contexts.ended(ENDED(&spill_backend_cuda, SPILL_DEVICES - 1, ELSEWHERE));
}

/* A default stream is of the current context, others are asked. */
TEST(the_owner_of_a_stream)
{
	void *const streams[] = {NULL, SPILL_CUDA_LEGACY, SPILL_CUDA_PER_THREAD};
	void *const stream = &world;
	int device = -1;
	void *context = NULL;
	be_current(ELSEWHERE);
	world.owner = OWN;
	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(spill_cuda_streams.owner(streams[i], &device, &context), 0);
		assert_true(device == OTHER && context == ELSEWHERE);
		assert_string_equal(what_was_said(), "");
	}
	assert_int_equal(spill_cuda_streams.owner(stream, &device, &context), 0);
	assert_true(device == DEVICE && context == OWN);
	assert_string_equal(what_was_said(), "stream:0 push:3 pop:3");
	spill_cuda.cuStreamGetCtx = NULL;
	assert_int_equal(spill_cuda_streams.owner(stream, &device, &context), 0);
	assert_true(device == OTHER && context == ELSEWHERE);
}

TEST(a_stream_whose_owner_is_not_told)
{
	static const char *const cases[][2] = {
	    {"stream", "stream:0"}, {"push", "stream:0 push:3"}, {"device", "stream:0 push:3 pop:3"}};
	int device = -1;
	void *context = NULL;
	be_current(ELSEWHERE);
	world.owner = OWN;
	for (unsigned i = 0; i < 3; i++) {
		world.refused = cases[i][0];
		assert_int_equal(spill_cuda_streams.owner(&world, &device, &context), REFUSED);
		assert_string_equal(what_was_said(), cases[i][1]);
	}
	world.refused = NULL;
	be_current(NULL);
	assert_int_equal(spill_cuda_streams.owner(NULL, &device, &context), CUDA_ERROR_INVALID_CONTEXT);
	assert_string_equal(what_was_said(), "");
	assert_true(device == -1 && !context);
}

static CUresult is_capturing_implicitly(CUstream stream, CUstreamCaptureStatus *status)
{
	return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
}

TEST(streams_that_capture)
{
	assert_false(spill_cuda_streams.capturing(NULL));
	world.status = CU_STREAM_CAPTURE_STATUS_ACTIVE;
	assert_true(spill_cuda_streams.capturing(NULL));
	world.refused = "capture";
	assert_false(spill_cuda_streams.capturing(NULL));
	spill_cuda.cuStreamIsCapturing = is_capturing_implicitly;
	assert_true(spill_cuda_streams.capturing(NULL));
	spill_cuda.cuStreamIsCapturing = NULL;
	assert_false(spill_cuda_streams.capturing(NULL));
}

/* -- events, timers and copies ----------------------------------------------------------------- */

static CUresult event_create(CUevent *event, unsigned int flags)
{
	*event = (CUevent)&world;
	return answer("create", flags);
}

static CUresult event_destroy(CUevent event)
{
	return answer("destroy", 0);
}

static CUresult event_record(CUevent event, CUstream stream)
{
	return answer("record", (uintptr_t)stream);
}

static CUresult event_query(CUevent event)
{
	return answer("query", 0);
}

static CUresult context_record(CUcontext context, CUevent event)
{
	return answer("mark", number_of(context));
}

static CUresult context_synchronize(void)
{
	return answer("synchronize", 0);
}

static float ms;

static CUresult elapsed(float *out, CUevent begin, CUevent end)
{
	*out = ms;
	return answer("elapsed", 0);
}

static CUresult stream_create(CUstream *stream, unsigned int flags)
{
	*stream = (CUstream)&world;
	return answer("stream", flags);
}

static CUresult stream_destroy(CUstream stream)
{
	return answer("end_stream", 0);
}

static CUresult copy(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream)
{
	return answer("copy", bytes);
}

static void have_events(void)
{
	spill_cuda.cuEventCreate = event_create;
	spill_cuda.cuEventDestroy_v2 = event_destroy;
	spill_cuda.cuEventRecord = event_record;
	spill_cuda.cuEventQuery = event_query;
	spill_cuda.cuCtxRecordEvent = context_record;
	spill_cuda.cuCtxSynchronize = context_synchronize;
	spill_cuda.cuEventElapsedTime = elapsed;
	spill_cuda.cuStreamCreate = stream_create;
	spill_cuda.cuStreamDestroy_v2 = stream_destroy;
	spill_cuda.cuMemcpyAsync = copy;
	be_current(ELSEWHERE);
}

#define PUSHED(calls) "push:3 " calls " pop:3"

TEST(in_a_context_that_is_not_current)
{
	void *out = NULL;
	have_events();
	assert_int_equal(spill_cuda_moves.synchronize(DEVICE, OWN), 0);
	assert_string_equal(what_was_said(), PUSHED("synchronize:0"));
	world.refused = "synchronize";
	assert_int_equal(spill_cuda_moves.synchronize(DEVICE, OWN), REFUSED);
	assert_string_equal(what_was_said(), PUSHED("synchronize:0"));
	world.refused = NULL;
	assert_int_equal(spill_cuda_moves.copier_create(DEVICE, OWN, &out), 0);
	assert_ptr_equal(out, &world);
	assert_string_equal(what_was_said(), PUSHED("stream:1"));
	spill_cuda_moves.copier_destroy(DEVICE, OWN, out);
	assert_string_equal(what_was_said(), PUSHED("end_stream:0"));
	assert_int_equal(spill_cuda_moves.copy(DEVICE, OWN, out, 1, 2, 64), 0);
	assert_string_equal(what_was_said(), PUSHED("copy:64"));
}

/* Nothing is done in another context, and no output is written. */
TEST(in_a_context_that_cannot_be_entered)
{
	const struct spill_vendor_timers *timers = &spill_cuda_timers;
	void *out = NULL, *object = &world;
	uint64_t ns = 5;
	bool passed = true;
	have_events();
	world.refused = "push";
	assert_int_equal(spill_cuda_moves.synchronize(DEVICE, OWN), REFUSED);
	assert_int_equal(spill_cuda_moves.copier_create(DEVICE, OWN, &out), REFUSED);
	assert_int_equal(spill_cuda_moves.copy(DEVICE, OWN, object, 1, 2, 64), REFUSED);
	assert_int_equal(spill_cuda_moves.mark(DEVICE, OWN, &out), REFUSED);
	assert_int_equal(spill_cuda_moves.events_ahead(DEVICE, OWN, 1), REFUSED);
	assert_int_equal(spill_cuda_events.record(DEVICE, OWN, NULL, false, &out), REFUSED);
	assert_false(spill_cuda_events.passed(DEVICE, OWN, object));
	assert_int_equal(timers->create(DEVICE, OWN, &out), REFUSED);
	assert_int_equal(timers->record(DEVICE, OWN, NULL, false, object), REFUSED);
	assert_int_equal(timers->passed(DEVICE, OWN, object, &passed), REFUSED);
	assert_int_equal(timers->between(DEVICE, OWN, object, object, &ns), REFUSED);
	assert_true(!out && ns == 5 && passed);
	what_was_said();
	spill_cuda_moves.copier_destroy(DEVICE, OWN, object);
	spill_cuda_events.destroy(DEVICE, OWN, object);
	timers->destroy(DEVICE, OWN, object);
	assert_string_equal(what_was_said(), "push:3 push:3 push:3");
}

/* No time is a time, too. So many days are none. */
TEST(bounds_of_times)
{
	uint64_t ns = 5;
	have_events();
	ms = 0;
	assert_int_equal(spill_cuda_timers.between(DEVICE, OWN, &world, &world, &ns), 0);
	assert_int_equal(ns, 0);
	ms = 1e9f;
	assert_int_not_equal(spill_cuda_timers.between(DEVICE, OWN, &world, &world, &ns), 0);
	assert_int_equal(ns, 0);
}

/* -- green contexts ---------------------------------------------------------------------------- */

/* What is current for it is not its handle. */
static char green;

static CUresult from_green(CUcontext *context, CUgreenCtx handle)
{
	*context = GREEN;
	return answer("from", handle == (CUgreenCtx)&green);
}

/* Once for a test; the next one begins with none. */
static void divide(void)
{
	int device;
	spill_cuda_contexts.green_ends(&green, &device);
	spill_cuda.cuCtxFromGreenCtx = from_green;
	be_active();
	assert_true(spill_cuda_contexts.green_made(&green, DEVICE));
	assert_string_equal(what_was_said(), "from:1");
}

TEST(what_a_green_context_owns_is_the_primary_ones)
{
	int device = -1;
	void *context = NULL;
	divide();
	be_current(GREEN);
	assert_true(devices->current(&device, &context));
	assert_true(device == DEVICE && context == OWN);
	assert_ptr_equal(spill_cuda_streams.green(), &green);
	void *const streams[] = {NULL, SPILL_CUDA_LEGACY, SPILL_CUDA_PER_THREAD, &world};
	world.owner = GREEN;
	for (unsigned i = 0; i < 4; i++) {
		context = NULL;
		assert_int_equal(spill_cuda_streams.owner(streams[i], &device, &context), 0);
		assert_true(device == DEVICE && context == OWN);
	}
	assert_ptr_equal(spill_cuda_contexts.owner(GREEN), OWN);
	assert_ptr_equal(spill_cuda_contexts.owner(ELSEWHERE), ELSEWHERE);
	be_current(ELSEWHERE);
	assert_true(devices->current(&device, &context));
	assert_true(device == OTHER && context == ELSEWHERE);
	assert_null(spill_cuda_streams.green());
	be_current(NULL);
	assert_null(spill_cuda_streams.green());
}

TEST(a_green_context_ends)
{
	int device = -1;
	void *context = NULL;
	divide();
	assert_false(spill_cuda_contexts.green_ends(&world, &device));
	assert_true(spill_cuda_contexts.green_ends(&green, &device));
	assert_int_equal(device, DEVICE);
	assert_false(spill_cuda_contexts.green_ends(&green, &device));
	be_current(GREEN);
	assert_null(spill_cuda_streams.green());
	world.refused = "id";
	assert_false(devices->current(&device, &context));
	assert_int_not_equal(spill_cuda_streams.owner(NULL, &device, &context), 0);
	spill_cuda.cuCtxGetId = NULL;
	assert_false(devices->current(&device, &context));
	assert_null(context);
}

/* The handle of an ended one comes back. */
TEST(a_context_like_an_ended_green_one)
{
	int device = -1;
	void *context = NULL;
	divide();
	assert_true(spill_cuda_contexts.green_ends(&green, &device));
	be_current(GREEN);
	assert_true(devices->current(&device, &context));
	assert_ptr_equal(context, GREEN);
	what_was_said();
}

TEST(a_green_context_that_cannot_be_noted)
{
	int device;
	spill_cuda_contexts.green_ends(&green, &device);
	assert_false(spill_cuda_contexts.green_made(&green, DEVICE)); /* the driver is too old */
	spill_cuda.cuCtxFromGreenCtx = from_green;
	assert_false(spill_cuda_contexts.green_made(&green, DEVICE)); /* no primary context is known */
	be_active();
	world.refused = "from";
	assert_false(spill_cuda_contexts.green_made(&green, DEVICE));
	assert_false(spill_cuda_contexts.green_ends(&green, &device));
}

/* Places of ended ones are used again. */
TEST(so_many_green_contexts_are_noted)
{
	enum { MOST = 256 };
	static char handles[MOST + 1];
	int device;
	divide();
	spill_cuda_contexts.green_ends(&green, &device);
	for (unsigned round = 0; round < 2; round++) {
		for (unsigned i = 0; i < MOST; i++)
			assert_true(spill_cuda_contexts.green_made(&handles[i], DEVICE));
		assert_false(spill_cuda_contexts.green_made(&handles[MOST], DEVICE));
		for (unsigned i = 0; i < MOST; i++)
			assert_true(spill_cuda_contexts.green_ends(&handles[i], &device));
	}
	what_was_said();
}

/* Its default stream is recorded where it is current. Everything else is the primary context's. */
TEST(records_in_a_green_context)
{
	void *event = NULL;
	have_events();
	divide();
	be_current(GREEN);
	assert_int_equal(spill_cuda_events.record(DEVICE, OWN, NULL, false, &event), 0);
	assert_string_equal(what_was_said(), "create:2 record:0");
	assert_int_equal(spill_cuda_timers.record(DEVICE, OWN, NULL, false, event), 0);
	assert_string_equal(what_was_said(), "record:0");
	assert_int_equal(spill_cuda_timers.record(DEVICE, OWN, &world, false, event), 0);
	assert_memory_equal(what_was_said(), "push:3 record:", 14);
	assert_int_equal(spill_cuda_moves.mark(DEVICE, OWN, &event), 0);
	assert_string_equal(what_was_said(), "push:3 create:2 mark:3 pop:3");
	be_current(OWN);
	assert_int_equal(spill_cuda_timers.record(DEVICE, OWN, NULL, false, event), 0);
	assert_string_equal(what_was_said(), "record:0");
	be_current(ELSEWHERE);
	assert_int_equal(spill_cuda_timers.record(DEVICE, OWN, NULL, false, event), 0);
	assert_string_equal(what_was_said(), "push:3 record:0 pop:3");
}
