/* The vendors' functions: started at first use, once. And the device of a handle of NVML. */
#define SETUP setup
#include "unit.h"

#include <stdio.h>
#include <string.h>

#include "abi/nvml.h"
#include "registry.h"

static unsigned starts, listed;
static bool works, has_function;
static nvmlReturn_t result;
static spill_resolve_fn *given;

static void *resolve(enum spill_domain domain, const char *symbol)
{
	return NULL;
}

static bool start(spill_resolve_fn *with)
{
	starts++;
	given = with;
	return works;
}

/* Devices GPU-0, one without a UUID, and GPU-2. */
static unsigned list(struct spill_log_device *devices, unsigned room)
{
	assert_int_equal(room, SPILL_DEVICES);
	for (unsigned i = 0; i < 4; i++)
		snprintf(devices[i].uuid, sizeof(devices[i].uuid), i == 1 ? "" : "GPU-%u", i);
	return listed;
}

static nvmlReturn_t uuid(nvmlDevice_t device, char *text, unsigned room)
{
	assert_int_equal(room, NVML_DEVICE_UUID_V2_BUFFER_SIZE);
	snprintf(text, room, device == (nvmlDevice_t)9 ? "" : "GPU-%u", (unsigned)(uintptr_t)device);
	return result;
}

static void *beside(const void *real, const char *symbol)
{
	assert_ptr_equal(real, &works);
	assert_string_equal(symbol, "nvmlDeviceGetUUID");
	return has_function ? (void *)uuid : NULL;
}

static const struct spill_vendor_devices devices = {.list = list};
static const struct spill_backend backend = {.start = start, .devices = &devices};

static int setup(void **state)
{
	static const struct spill_vendor_symbols symbols = {resolve, beside};
	starts = 0;
	works = has_function = true;
	result = NVML_SUCCESS;
	listed = 3;
	spill_registry_use(&symbols);
	spill_registry_use_backend(SPILL_CUDA_DRIVER, &backend);
	return 0;
}

TEST(a_vendor_is_started_at_the_first_use)
{
	assert_null(spill_backend_in_use(SPILL_CUDA_DRIVER));
	assert_int_equal(starts, 0);
	for (unsigned i = 0; i < 2; i++)
		assert_ptr_equal(spill_backend_for(SPILL_CUDA_DRIVER), &backend);
	assert_int_equal(starts, 1);
	assert_true(given == resolve);
	assert_ptr_equal(spill_backend_in_use(SPILL_CUDA_DRIVER), &backend);
	spill_registry_fork_child();
	assert_null(spill_backend_in_use(SPILL_CUDA_DRIVER));
	assert_ptr_equal(spill_backend_for(SPILL_CUDA_DRIVER), &backend);
	assert_int_equal(starts, 2);
	spill_registry_use_backend(SPILL_CUDA_DRIVER, &backend);
	assert_null(spill_backend_in_use(SPILL_CUDA_DRIVER));
}

TEST(a_vendor_that_does_not_start_is_none)
{
	works = false;
	for (unsigned i = 0; i < 2; i++)
		assert_null(spill_backend_for(SPILL_CUDA_DRIVER));
	assert_int_equal(starts, 1);
	assert_null(spill_backend_in_use(SPILL_CUDA_DRIVER));
	spill_registry_use_backend(SPILL_CUDA_DRIVER, NULL);
	assert_null(spill_backend_for(SPILL_CUDA_DRIVER));
}

static int device_of(uint64_t handle)
{
	return spill_nvml_device(&backend, &works, handle);
}

TEST(the_device_of_a_handle_of_nvml)
{
	assert_int_equal(device_of(0), 0);
	assert_int_equal(device_of(2), 2);
	assert_int_equal(device_of(3), -1); /* behind those that the process sees */
	assert_int_equal(device_of(9), -1); /* without a UUID it equals no other such */
	result = !NVML_SUCCESS;
	assert_int_equal(device_of(2), -1);
	result = NVML_SUCCESS;
	has_function = false;
	assert_int_equal(device_of(2), -1);
	spill_registry_use(NULL);
	assert_int_equal(device_of(2), -1);
}

TEST(before_the_start_there_is_no_search_for_functions)
{
	spill_registry_use(NULL);
	given = resolve;
	assert_ptr_equal(spill_backend_for(SPILL_CUDA_DRIVER), &backend);
	assert_true(given == NULL);
}
