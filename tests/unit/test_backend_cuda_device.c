/*
 * CUDA's devices, contexts and streams, call by call: what the driver is asked, what a refusal leaves, and whether the current
 * context is as before. The driver is replaced. Each of its calls can be refused by name.
 */
#define SETUP setup
#include "unit.h"

#include <string.h>

#include "abi/cuda.h"
#include "backend.h"
#include "backend_cuda.h"
#include "ended.h"
#include "said.h"

enum { REFUSED = 700, DEVICE = 3, OTHER = 4 };

static char contexts[2]; /* those of DEVICE and OTHER */
#define OWN ((CUcontext)&contexts[0])
#define ELSEWHERE ((CUcontext)&contexts[1])

static struct {
	CUcontext stack[4];
	unsigned depth;
	const char *refused; /* the call with this word */
	bool keeps;          /* a refused pop, or free, has no effect */
	CUresult alloc;      /* of a small allocation */
	bool active;         /* the primary context of DEVICE, as the driver tells it */
	int count;
	const char *name;
	CUcontext owner; /* of any stream */
	CUstreamCaptureStatus status;
} world;

static CUresult answer(const char *word, uint64_t number)
{
	say(word, number);
	return world.refused && !strcmp(world.refused, word) ? (CUresult)REFUSED : CUDA_SUCCESS;
}

static uint64_t number_of(CUcontext context)
{
	return context == OWN ? DEVICE : context == ELSEWHERE ? OTHER : 0;
}

/* -- in place of the driver -------------------------------------------------------------------- */

static CUresult current_context(CUcontext *context)
{
	*context = world.depth ? world.stack[world.depth - 1] : NULL;
	return CUDA_SUCCESS;
}

static CUresult current_device(CUdevice *device)
{
	*device = world.depth ? (int)number_of(world.stack[world.depth - 1]) : 0;
	return !world.depth                                        ? CUDA_ERROR_INVALID_CONTEXT
	       : world.refused && !strcmp(world.refused, "device") ? REFUSED
	                                                           : CUDA_SUCCESS;
}

static CUresult push(CUcontext context)
{
	CUresult result = answer("push", number_of(context));
	if (!result)
		world.stack[world.depth++] = context;
	return result;
}

static CUresult pop(CUcontext *context)
{
	CUresult result = answer("pop", number_of(world.stack[world.depth - 1]));
	if (!result || !world.keeps)
		*context = world.stack[--world.depth];
	if (result)
		world.refused = NULL; /* once */
	return result;
}

static CUresult memory(size_t *free, size_t *total)
{
	*free = 10;
	*total = 20;
	return answer("memory", 0);
}

static CUresult total_memory(size_t *total, CUdevice device)
{
	*total = 1000 + (size_t)device;
	return answer("total", (uint64_t)device);
}

static CUresult primary_state(CUdevice device, unsigned int *flags, int *active)
{
	*active = world.active && device == DEVICE;
	return CUDA_SUCCESS;
}

static CUresult context_id(CUcontext context, unsigned long long *id)
{
	*id = 77;
	return answer("id", number_of(context));
}

static CUresult stream_context(CUstream stream, CUcontext *context)
{
	*context = world.owner;
	return answer("stream", 0);
}

static CUresult is_capturing(CUstream stream, CUstreamCaptureStatus *status)
{
	*status = world.status;
	return world.refused ? REFUSED : CUDA_SUCCESS;
}

static CUresult is_capturing_implicitly(CUstream stream, CUstreamCaptureStatus *status)
{
	return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
}

static CUresult small_alloc(CUdeviceptr *ptr, size_t bytes)
{
	*ptr = 55;
	say("alloc", bytes);
	return world.alloc;
}

static CUresult small_free(CUdeviceptr ptr)
{
	return answer("free", ptr);
}

static CUresult page_alloc(void **page, size_t bytes, unsigned int flags)
{
	*page = &world;
	return answer("page", bytes);
}

static CUresult page_free(void *page)
{
	assert_ptr_equal(page, &world);
	return answer("unpage", 0);
}

static CUresult exchange(CUstreamCaptureMode *mode)
{
	CUstreamCaptureMode wanted = *mode;
	*mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
	say("mode", wanted);
	return CUDA_SUCCESS;
}

static CUresult device_handle(CUdevice *handle, int ordinal)
{
	*handle = ordinal + 10;
	return answer("handle", (uint64_t)ordinal);
}

static CUresult device_name(char *name, int size, CUdevice handle)
{
	snprintf(name, (size_t)size, "device %d", handle);
	return CUDA_SUCCESS;
}

static CUresult uuid(CUuuid *out, CUdevice handle)
{
	for (int i = 0; i < 16; i++)
		out->bytes[i] = (char)(0x12 + 0x11 * i);
	return answer("uuid", (uint64_t)handle);
}

static CUresult uuid_of_instance(CUuuid *out, CUdevice handle)
{
	memset(out->bytes, 0xab, sizeof(out->bytes));
	return answer("instance", (uint64_t)handle);
}

static CUresult bus(char *text, int size, CUdevice handle)
{
	snprintf(text, (size_t)size, "0000:%02d:00.0", handle);
	return CUDA_SUCCESS;
}

static CUresult device_count(int *count)
{
	*count = world.count;
	return answer("count", 0);
}

static CUresult version(int *version)
{
	*version = 12040;
	return CUDA_SUCCESS;
}

static CUresult error_text(CUresult error, const char **name)
{
	*name = world.name;
	return answer("name", (uint64_t)error);
}

static CUresult kernel_name(const char **name, CUkernel kernel)
{
	*name = "of a kernel";
	return answer("kernel", 0);
}

static CUresult function_name(const char **name, CUfunction function)
{
	*name = "of a function";
	return answer("function", 0);
}

/* ---------------------------------------------------------------------------------------------- */

static const struct spill_vendor_devices *devices;

static int setup(void **state)
{
	spill_cuda_contexts.ended(ENDED(&spill_backend_cuda, DEVICE, OWN));
	memset(&world, 0, sizeof(world));
	world.count = 2;
	spill_cuda = (struct spill_cuda){.cuCtxGetCurrent = current_context,
	                                 .cuCtxGetDevice = current_device,
	                                 .cuCtxPushCurrent_v2 = push,
	                                 .cuCtxPopCurrent_v2 = pop,
	                                 .cuMemGetInfo_v2 = memory,
	                                 .cuDeviceTotalMem_v2 = total_memory,
	                                 .cuDevicePrimaryCtxGetState = primary_state,
	                                 .cuCtxGetId = context_id,
	                                 .cuStreamGetCtx = stream_context,
	                                 .cuStreamIsCapturing = is_capturing,
	                                 .cuMemAlloc_v2 = small_alloc,
	                                 .cuMemFree_v2 = small_free,
	                                 .cuMemHostAlloc = page_alloc,
	                                 .cuMemFreeHost = page_free,
	                                 .cuThreadExchangeStreamCaptureMode = exchange,
	                                 .cuDeviceGet = device_handle,
	                                 .cuDeviceGetName = device_name,
	                                 .cuDeviceGetUuid = uuid,
	                                 .cuDeviceGetUuid_v2 = uuid_of_instance,
	                                 .cuDeviceGetPCIBusId = bus,
	                                 .cuDeviceGetCount = device_count,
	                                 .cuDriverGetVersion = version,
	                                 .cuGetErrorName = error_text,
	                                 .cuKernelGetName = kernel_name,
	                                 .cuFuncGetName = function_name};
	devices = spill_backend_cuda.devices;
	what_was_said();
	return 0;
}

static void be_current(CUcontext context)
{
	world.stack[0] = context;
	world.depth = context ? 1 : 0;
}

/* The primary context of DEVICE is there, and libspill saw the program make it. */
static void be_active(void)
{
	world.active = true;
	spill_cuda_contexts.primary_retained(DEVICE, OWN);
}

/* -- names ------------------------------------------------------------------------------------- */

TEST(names_of_errors)
{
	world.name = "CUDA_ERROR_X";
	assert_string_equal(spill_backend_cuda.error_name(1), "CUDA_ERROR_X");
	world.refused = "name";
	assert_string_equal(spill_backend_cuda.error_name(1), "unknown error");
	world.refused = world.name = NULL;
	assert_string_equal(spill_backend_cuda.error_name(1), "unknown error");
}

/* A handle of one kind, of the other, and of none; and drivers that lack either function. */
TEST(names_of_kernels)
{
	assert_string_equal(spill_backend_cuda.kernel_name(&world), "of a kernel");
	world.refused = "kernel";
	assert_string_equal(spill_backend_cuda.kernel_name(&world), "of a function");
	spill_cuda.cuKernelGetName = NULL;
	assert_string_equal(spill_backend_cuda.kernel_name(&world), "of a function");
	world.refused = "function";
	assert_null(spill_backend_cuda.kernel_name(&world));
	spill_cuda.cuFuncGetName = NULL;
	assert_null(spill_backend_cuda.kernel_name(&world));
}

TEST(the_version)
{
	assert_int_equal(spill_backend_cuda.driver_version(), 12040);
}

/* -- the list of devices ----------------------------------------------------------------------- */

TEST(devices_are_counted)
{
	assert_int_equal(devices->count(), 2);
	world.count = 0;
	assert_int_equal(devices->count(), 0);
	world.count = -1;
	assert_int_equal(devices->count(), 0);
	world.count = 2;
	world.refused = "count";
	assert_int_equal(devices->count(), 0);
}

TEST(devices_are_described)
{
	struct spill_log_device list[3] = {[2] = {.bytes = 5}};
	assert_int_equal(devices->list(list, 3), 2);
	assert_string_equal(list[1].name, "device 11");
	assert_string_equal(list[1].uuid, "GPU-abababab-abab-abab-abab-abababababab");
	assert_string_equal(list[1].pci, "0000:11:00.0");
	assert_int_equal(list[1].bytes, 1011);
	assert_int_equal(list[2].bytes, 5);
	assert_int_equal(devices->list(list + 1, 1), 1);
	assert_string_equal(list[1].name, "device 10");
	assert_int_equal(list[2].bytes, 5);
}

/* Without an instance the device's own number, without either none. */
TEST(a_device_that_tells_little)
{
	struct spill_log_device one[1];
	static const char own[] = "GPU-12233445-5667-7889-9aab-bccddeef0011";
	world.refused = "instance";
	devices->list(one, 1);
	assert_string_equal(one->uuid, own);
	spill_cuda.cuDeviceGetUuid_v2 = NULL;
	world.refused = "total";
	spill_cuda.cuDeviceGetPCIBusId = NULL;
	devices->list(one, 1);
	assert_string_equal(one->uuid, own);
	assert_string_equal(one->pci, "");
	assert_int_equal(one->bytes, 0);
	world.refused = "uuid";
	devices->list(one, 1);
	assert_string_equal(one->uuid, "");
	spill_cuda.cuDeviceGetUuid = NULL;
	devices->list(one, 1);
	assert_string_equal(one->uuid, "");
	world.refused = "handle";
	assert_int_equal(devices->list(one, 1), 1);
	assert_string_equal(one->name, "");
}

/* -- the current context ----------------------------------------------------------------------- */

TEST(the_current_device)
{
	int device = -1;
	void *context = NULL;
	assert_false(devices->current(&device, &context));
	be_current(OWN);
	world.refused = "device";
	assert_false(devices->current(&device, &context));
	assert_true(device == -1 && !context);
	world.refused = NULL;
	assert_true(devices->current(&device, &context));
	assert_true(device == DEVICE && context == OWN);
}

/* Of the current device at once, of another one in its primary context, and else only how much there is. */
TEST(memory_of_a_device)
{
	uint64_t free = 5, total = 6;
	be_current(OWN);
	assert_int_equal(devices->memory(DEVICE, &free, &total), 0);
	assert_true(free == 10 && total == 20);
	assert_string_equal(what_was_said(), "memory:0");
	be_current(ELSEWHERE);
	be_active();
	assert_int_equal(devices->memory(DEVICE, &free, &total), 0);
	assert_string_equal(what_was_said(), "push:3 memory:0 pop:3");
	be_current(NULL);
	assert_int_equal(devices->memory(DEVICE, &free, &total), 0);
	assert_string_equal(what_was_said(), "push:3 memory:0 pop:3");
	be_current(ELSEWHERE);
	world.refused = "push";
	assert_int_equal(devices->memory(DEVICE, &free, &total), 0);
	assert_true(free == 0 && total == 1003);
	assert_string_equal(what_was_said(), "push:3 total:3");
	world.refused = "memory";
	free = 5;
	assert_int_equal(devices->memory(DEVICE, &free, &total), REFUSED);
	assert_true(free == 5 && total == 1003);
	assert_string_equal(what_was_said(), "push:3 memory:0 pop:3");
}

/* -- waiting ----------------------------------------------------------------------------------- */

static int wait_in(CUcontext now)
{
	be_current(now);
	int result = devices->wait(DEVICE, OWN);
	assert_int_equal(world.depth, now != NULL);
	return result;
}

#define RELAXED(calls) "mode:2 " calls " mode:0"

TEST(the_free_of_a_small_allocation_waits)
{
	assert_int_equal(wait_in(OWN), 0);
	assert_string_equal(what_was_said(), RELAXED("alloc:1 free:55"));
	assert_int_equal(wait_in(ELSEWHERE), 0);
	assert_string_equal(what_was_said(), "push:3 " RELAXED("alloc:1 free:55") " pop:3");
	/* On a full device that of a page. */
	world.alloc = CUDA_ERROR_OUT_OF_MEMORY;
	assert_int_equal(wait_in(OWN), 0);
	assert_string_equal(what_was_said(), RELAXED("alloc:1 page:4096 unpage:0"));
}

/* A free that tells an error of earlier work has freed nothing. */
TEST(errors_while_it_waits)
{
	world.refused = "push";
	assert_int_equal(wait_in(ELSEWHERE), REFUSED);
	assert_string_equal(what_was_said(), "push:3");
	world.refused = "free";
	assert_int_equal(wait_in(OWN), REFUSED);
	assert_string_equal(what_was_said(), RELAXED("alloc:1 free:55 free:55"));
	world.alloc = (CUresult)REFUSED;
	assert_int_equal(wait_in(OWN), REFUSED);
	assert_string_equal(what_was_said(), RELAXED("alloc:1"));
	world.alloc = CUDA_ERROR_OUT_OF_MEMORY;
	world.refused = "page";
	assert_int_equal(wait_in(OWN), REFUSED);
	assert_string_equal(what_was_said(), RELAXED("alloc:1 page:4096"));
	world.refused = "unpage";
	assert_int_equal(wait_in(OWN), REFUSED);
	assert_string_equal(what_was_said(), RELAXED("alloc:1 page:4096 unpage:0 unpage:0"));
}

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

/* A pop may tell an error of earlier work, with or without effect. */
TEST(a_pop_with_an_error)
{
	for (unsigned keeps = 0; keeps < 2; keeps++) {
		world.keeps = keeps;
		world.refused = "pop";
		assert_int_equal(wait_in(ELSEWHERE), 0);
		assert_ptr_equal(world.stack[0], ELSEWHERE);
		assert_string_equal(what_was_said(), keeps
		                                         ? "push:3 " RELAXED("alloc:1 free:55") " pop:3 pop:3"
		                                         : "push:3 " RELAXED("alloc:1 free:55") " pop:3");
	}
}
