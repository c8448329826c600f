/*
 * HIP's devices, streams and events, call by call: what the runtime is asked, what a refusal leaves, and whether the current device
 * is as before. The runtime is replaced. Each of its calls can be refused by name.
 */
#define SETUP setup
#include "unit.h"

#include <string.h>

#include "abi/hip.h"
#include "backend.h"
#include "backend_hip.h"
#include "said.h"

enum { REFUSED = 700, DEVICE = 3, OTHER = 4 };

static struct {
	int device, count, version;
	const char *refused; /* the call with this word */
	bool once;           /* only the next time */
	hipStreamCaptureStatus status;
	hipError_t capture;
} world;

static hipError_t answer(const char *word, uint64_t number)
{
	say(word, number);
	if (!world.refused || strcmp(world.refused, word) != 0)
		return hipSuccess;
	if (world.once)
		world.refused = NULL;
	return (hipError_t)REFUSED;
}

/* -- in place of the runtime ------------------------------------------------------------------- */

static hipError_t get_device(int *device)
{
	*device = world.device;
	return world.refused && !strcmp(world.refused, "get") ? (hipError_t)REFUSED : hipSuccess;
}

static hipError_t set_device(int device)
{
	hipError_t result = answer("set", (uint64_t)device);
	if (!result)
		world.device = device;
	return result;
}

static hipError_t memory(size_t *free, size_t *total)
{
	*free = 10;
	*total = 20;
	return answer("memory", 0);
}

static hipError_t synchronize(void)
{
	return answer("synchronize", (uint64_t)world.device);
}

static hipError_t device_count(int *count)
{
	*count = world.count;
	return answer("count", 0);
}

static hipError_t version(int *version)
{
	*version = world.version;
	return hipSuccess;
}

static hipError_t driver_version(int *version)
{
	*version = 50;
	return hipSuccess;
}

static hipError_t is_capturing(hipStream_t stream, hipStreamCaptureStatus *status)
{
	*status = world.status;
	return world.capture;
}

static hipError_t last_error(void)
{
	return answer("forget", 0);
}

static hipError_t alloc(void **ptr, size_t bytes)
{
	assert_true(bytes == (size_t)1 << 62);
	*ptr = &world;
	return answer("alloc", 0);
}

static hipError_t release(void *ptr)
{
	assert_ptr_equal(ptr, &world);
	return answer("free", 0);
}

static hipError_t event_create(hipEvent_t *event, unsigned flags)
{
	*event = (hipEvent_t)&world;
	return answer("create", 0);
}

static hipError_t event_record(hipEvent_t event, hipStream_t stream)
{
	return answer("record", (uintptr_t)stream);
}

static hipError_t event_query(hipEvent_t event)
{
	return answer("query", 0);
}

static hipError_t event_destroy(hipEvent_t event)
{
	return answer("destroy", 0);
}

/* ---------------------------------------------------------------------------------------------- */

static const struct spill_backend *const hip = &spill_backend_hip;

static int setup(void **state)
{
	memset(&world, 0, sizeof(world));
	world.device = OTHER;
	world.count = 2;
	spill_hip = (struct spill_hip){.hipGetDevice = get_device,
	                               .hipSetDevice = set_device,
	                               .hipMemGetInfo = memory,
	                               .hipDeviceSynchronize = synchronize,
	                               .hipGetDeviceCount = device_count,
	                               .hipRuntimeGetVersion = version,
	                               .hipDriverGetVersion = driver_version,
	                               .hipStreamIsCapturing = is_capturing,
	                               .hipGetLastError = last_error,
	                               .hipMalloc = alloc,
	                               .hipFree = release,
	                               .hipEventCreateWithFlags = event_create,
	                               .hipEventRecord = event_record,
	                               .hipEventQuery = event_query,
	                               .hipEventDestroy = event_destroy};
	what_was_said();
	return 0;
}

#define ON_DEVICE(calls) "set:3 " calls " set:4"

TEST(versions)
{
	assert_int_equal(hip->driver_version(), 50);
	world.version = 59999999;
	assert_int_equal(hip->device_memory_type(), hipMemoryTypeDevice);
	world.version = 60000000;
	assert_int_equal(hip->device_memory_type(), 2);
}

TEST(a_plain_allocation_takes_whole_pages)
{
	const uint64_t last = 0 - (uint64_t)4096;
	static const uint64_t few[][2] = {{1, 4096}, {4096, 4096}, {4097, 8192}};
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(hip->memory->footprint(few[i][0]), few[i][1]);
	assert_int_equal(hip->memory->footprint(last - 1), last);
	assert_int_equal(hip->memory->footprint(last), last);
	assert_int_equal(hip->memory->footprint(last + 1), last + 1); /* there is no more */
}

TEST(devices_are_counted)
{
	assert_int_equal(hip->devices->count(), 2);
	world.count = -1;
	assert_int_equal(hip->devices->count(), 0);
	world.count = 2;
	world.refused = "count";
	assert_int_equal(hip->devices->count(), 0);
}

TEST(the_current_device)
{
	int device = -1;
	void *context = &world;
	world.refused = "get";
	assert_false(hip->devices->current(&device, &context));
	assert_true(device == -1 && context == &world);
	assert_int_equal(hip->streams->owner(NULL, &device, &context), REFUSED);
	assert_true(device == -1 && context == &world);
	world.refused = NULL;
	assert_true(hip->devices->current(&device, &context));
	assert_true(device == OTHER && !context);
	device = -1;
	assert_int_equal(hip->streams->owner(NULL, &device, &context), 0);
	assert_int_equal(device, OTHER);
}

TEST(memory_of_a_device)
{
	uint64_t free = 5, total = 6;
	assert_int_equal(hip->devices->memory(DEVICE, &free, &total), 0);
	assert_true(free == 10 && total == 20 && world.device == OTHER);
	assert_string_equal(what_was_said(), ON_DEVICE("memory:0"));
	assert_int_equal(hip->devices->memory(OTHER, &free, &total), 0);
	assert_string_equal(what_was_said(), "memory:0");
	static const char *const cases[][2] = {
	    {"get", ""}, {"set", "set:3"}, {"memory", ON_DEVICE("memory:0")}};
	for (unsigned i = 0; i < 3; i++) {
		free = 5;
		world.refused = cases[i][0];
		assert_int_equal(hip->devices->memory(DEVICE, &free, &total), REFUSED);
		assert_string_equal(what_was_said(), cases[i][1]);
		assert_true(free == 5 && world.device == OTHER);
	}
}

TEST(work_of_a_device)
{
	static const char *const cases[][2] = {
	    {"get", ""}, {"set", "set:3"}, {"synchronize", ON_DEVICE("synchronize:3")}};
	assert_int_equal(hip->devices->wait(DEVICE, NULL), 0);
	assert_string_equal(what_was_said(), ON_DEVICE("synchronize:3"));
	assert_int_equal(world.device, OTHER);
	for (unsigned i = 0; i < 3; i++) {
		world.refused = cases[i][0];
		assert_int_equal(hip->devices->wait(DEVICE, NULL), REFUSED);
		assert_string_equal(what_was_said(), cases[i][1]);
		assert_int_equal(world.device, OTHER);
	}
}

static void refuse_the_next_set(void)
{
	world.refused = "set";
	world.once = true;
}

static hipError_t synchronize_and_refuse(void)
{
	refuse_the_next_set();
	return hipSuccess;
}

/* A call may tell an error of earlier work instead of doing what it is for. */
TEST(an_error_on_the_way_back)
{
	spill_hip.hipDeviceSynchronize = synchronize_and_refuse;
	assert_int_equal(hip->devices->wait(DEVICE, NULL), 0);
	assert_string_equal(what_was_said(), "set:3 set:4 set:4");
	assert_int_equal(world.device, OTHER);
}

TEST(streams_that_capture)
{
	assert_false(hip->streams->capturing(NULL));
	world.status = hipStreamCaptureStatusActive;
	assert_true(hip->streams->capturing(NULL));
	world.capture = (hipError_t)REFUSED;
	assert_false(hip->streams->capturing(NULL));
	world.capture = hipErrorStreamCaptureImplicit;
	assert_true(hip->streams->capturing(NULL));
	spill_hip.hipStreamIsCapturing = NULL;
	assert_false(hip->streams->capturing(NULL));
}

/* The runtime sets its own last error. What it gives all the same goes back. */
TEST(an_out_of_memory_is_raised)
{
	hip->last_error->forget();
	assert_string_equal(what_was_said(), "forget:0");
	assert_int_equal(hip->last_error->raise_out_of_memory(), hipErrorOutOfMemory);
	assert_string_equal(what_was_said(), "alloc:0 free:0");
	world.refused = "alloc";
	assert_int_equal(hip->last_error->raise_out_of_memory(), hipErrorOutOfMemory);
	assert_string_equal(what_was_said(), "alloc:0");
}

/* What is refused leaves no event. */
TEST(events)
{
	static const char *const cases[][2] = {{"get", ""},
	                                       {"set", "set:3"},
	                                       {"create", ON_DEVICE("create:0")},
	                                       {"record", ON_DEVICE("create:0 record:9 destroy:0")}};
	void *event = NULL, *const stream = (void *)9;
	assert_int_equal(hip->events->record(DEVICE, NULL, stream, true, &event), 0);
	assert_ptr_equal(event, &world);
	assert_string_equal(what_was_said(), ON_DEVICE("create:0 record:9"));
	for (unsigned i = 0; i < 4; i++) {
		event = NULL;
		world.refused = cases[i][0];
		assert_int_equal(hip->events->record(DEVICE, NULL, stream, false, &event), REFUSED);
		assert_string_equal(what_was_said(), cases[i][1]);
		assert_true(!event && world.device == OTHER);
	}
	world.refused = NULL;
	assert_true(hip->events->passed(DEVICE, NULL, &world));
	world.refused = "query";
	assert_false(hip->events->passed(DEVICE, NULL, &world));
	what_was_said();
	hip->events->destroy(DEVICE, NULL, &world);
	assert_non_null(strstr(what_was_said(), "destroy:0"));
}
