/*
 * The CUDA backend against a driver made of the functions that a test allows: which spelling of a call is used with an
 * older and a newer driver, and what a driver without something says it can do.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "abi/cuda.h"
#include "backend.h"
#include "backend_cuda.h"

static CUdevice advised_device;
static CUmemLocation advised_location;
static unsigned old_calls, new_calls;

static CUresult old_advise(CUdeviceptr ptr, size_t bytes, CUmem_advise advice, CUdevice device)
{
	old_calls++;
	advised_device = device;
	return CUDA_SUCCESS;
}

static CUresult new_advise(CUdeviceptr ptr, size_t bytes, CUmem_advise advice, CUmemLocation location)
{
	new_calls++;
	advised_location = location;
	return CUDA_SUCCESS;
}

static CUresult old_prefetch(CUdeviceptr ptr, size_t bytes, CUdevice device, CUstream stream)
{
	old_calls++;
	advised_device = device;
	return CUDA_SUCCESS;
}

static CUresult new_prefetch(CUdeviceptr ptr, size_t bytes, CUmemLocation location, unsigned int flags,
                             CUstream stream)
{
	new_calls++;
	advised_location = location;
	return CUDA_SUCCESS;
}

static CUresult attribute(int *value, CUdevice_attribute which, CUdevice device)
{
	*value = 1;
	return CUDA_SUCCESS;
}

static int setup(void **state)
{
	memset(&spill_cuda, 0, sizeof(spill_cuda));
	spill_cuda.cuDeviceGetAttribute = attribute;
	old_calls = new_calls = 0;
	return 0;
}

static void a_driver_before_12_2_gets_a_device(void **state)
{
	spill_cuda.cuMemAdvise = old_advise;
	spill_cuda.cuMemPrefetchAsync = old_prefetch;
	assert_int_equal(spill_backend_cuda.advise_preferred(0, 1, SPILL_LOCATION_HOST, 3), 0);
	assert_int_equal(advised_device, CU_DEVICE_CPU);
	assert_int_equal(spill_backend_cuda.advise_accessed_by(0, 1, SPILL_LOCATION_DEVICE, 3), 0);
	assert_int_equal(advised_device, 3);
	assert_int_equal(spill_backend_cuda.prefetch(0, 1, 3), 0);
	assert_int_equal(advised_device, 3);
	assert_int_equal(old_calls, 3);
}

static void a_driver_that_has_the_location_form_gets_it(void **state)
{
	spill_cuda.cuMemAdvise = old_advise;
	spill_cuda.cuMemAdvise_v2 = new_advise;
	spill_cuda.cuMemPrefetchAsync = old_prefetch;
	spill_cuda.cuMemPrefetchAsync_v2 = new_prefetch;
	assert_int_equal(spill_backend_cuda.advise_preferred(0, 1, SPILL_LOCATION_HOST, 3), 0);
	assert_int_equal(advised_location.type, CU_MEM_LOCATION_TYPE_HOST);
	assert_int_equal(spill_backend_cuda.prefetch(0, 1, 3), 0);
	assert_int_equal(advised_location.type, CU_MEM_LOCATION_TYPE_DEVICE);
	assert_int_equal(advised_location.id, 3);
	assert_int_equal(old_calls, 0);
	assert_int_equal(new_calls, 2);
}

static void a_driver_without_either_says_so(void **state)
{
	assert_int_equal(spill_backend_cuda.prefetch(0, 1, 0), CUDA_ERROR_NOT_SUPPORTED);
	assert_int_equal(spill_backend_cuda.advise_read_mostly(0, 1, 0), CUDA_ERROR_NOT_SUPPORTED);
	assert_int_equal(spill_backend_cuda.capabilities(0), SPILL_CAN_HOST);
}

/* A driver that lacks what is required is passed through whole. */
static void *resolve_nothing(enum spill_domain domain, const char *symbol)
{
	return NULL;
}

static void an_unknown_driver_is_refused(void **state)
{
	assert_false(spill_backend_cuda.start(resolve_nothing));
}

static void a_plain_allocation_takes_whole_blocks(void **state)
{
	const uint64_t mib = 1 << 20;
	assert_int_equal(spill_backend_cuda.footprint(1), 512);
	assert_int_equal(spill_backend_cuda.footprint(mib), mib);
	assert_int_equal(spill_backend_cuda.footprint(mib + 1), 2 * mib);
	assert_int_equal(spill_backend_cuda.footprint(UINT64_MAX), UINT64_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup(a_driver_before_12_2_gets_a_device, setup),
	    cmocka_unit_test_setup(a_driver_that_has_the_location_form_gets_it, setup),
	    cmocka_unit_test_setup(a_driver_without_either_says_so, setup),
	    cmocka_unit_test_setup(a_plain_allocation_takes_whole_blocks, setup),
	    cmocka_unit_test(an_unknown_driver_is_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
