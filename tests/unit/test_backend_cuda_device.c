/* CUDA's devices, call by call: what the driver is asked, what a refusal leaves, and whether the current context is as before. */
#define SETUP setup
#include "unit.h"

#include "cuda_driver.h"

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
