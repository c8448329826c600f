/* What a backend reads in the structures that a program hands to its vendor, and sizes that it computes. */
#include "unit.h"

#include <string.h>

#include "abi/cuda.h"
#include "abi/hip.h"
#include "backend.h"
#include "backend_cuda.h"
#include "backend_hip.h"

TEST(physical_memory_of_cuda)
{
	static const struct {
		CUmemAllocationType type;
		CUmemLocationType at;
		enum spill_location where;
		int device;
	} cases[] = {
	    {CU_MEM_ALLOCATION_TYPE_PINNED, CU_MEM_LOCATION_TYPE_DEVICE, SPILL_LOCATION_DEVICE, 3},
	    {CU_MEM_ALLOCATION_TYPE_PINNED, CU_MEM_LOCATION_TYPE_HOST, SPILL_LOCATION_HOST, 0},
	    {CU_MEM_ALLOCATION_TYPE_PINNED, CU_MEM_LOCATION_TYPE_HOST_NUMA, SPILL_LOCATION_HOST, 0},
	    {CU_MEM_ALLOCATION_TYPE_PINNED, CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT, SPILL_LOCATION_HOST, 0},
	    {CU_MEM_ALLOCATION_TYPE_PINNED, CU_MEM_LOCATION_TYPE_INVALID, SPILL_LOCATION_NONE, 0},
	    {CU_MEM_ALLOCATION_TYPE_MANAGED, CU_MEM_LOCATION_TYPE_DEVICE, SPILL_LOCATION_NONE, 0},
	    {CU_MEM_ALLOCATION_TYPE_MANAGED, CU_MEM_LOCATION_TYPE_HOST, SPILL_LOCATION_NONE, 0},
	};
	struct spill_physical physical;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		CUmemAllocationProp asked = {.type = cases[i].type, .location = {cases[i].at, 3}};
		spill_backend_cuda.physical->describe(&asked, &physical);
		assert_int_equal(physical.where, cases[i].where);
		assert_int_equal(physical.device, cases[i].device);
		assert_false(physical.device_only || physical.exportable);
		assert_memory_equal(physical.asked, &asked, sizeof(asked));
	}
}

/* A program that asks what it got sees no compression, and all else as it asked. */
TEST(the_purposes_of_physical_memory_of_cuda)
{
	CUmemAllocationProp asked = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
	                             .location = {CU_MEM_LOCATION_TYPE_DEVICE, 1}};
	struct spill_physical physical;
	asked.allocFlags.usage = 1;
	spill_backend_cuda.physical->describe(&asked, &physical);
	assert_true(physical.device_only && !physical.exportable);
	asked.allocFlags.usage = 0;
	asked.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
	CUmemAllocationProp told = asked;
	asked.allocFlags.compressionType = 1;
	spill_backend_cuda.physical->describe(&asked, &physical);
	assert_true(!physical.device_only && physical.exportable);
	assert_memory_equal(physical.asked, &told, sizeof(told));
	assert_int_equal(asked.allocFlags.compressionType, 1);
}

TEST(where_a_pool_of_cuda_is)
{
	const struct spill_vendor_pools *pools = spill_backend_cuda.pools;
	CUmemPoolProps wanted = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
	                         .location = {CU_MEM_LOCATION_TYPE_DEVICE, 3}};
	int device = -1;
	assert_int_equal(pools->place(&wanted, &device), SPILL_PLACE_DEVICE);
	assert_int_equal(device, 3);
	device = -1;
	wanted.location.type = CU_MEM_LOCATION_TYPE_HOST;
	assert_int_equal(pools->place(&wanted, &device), SPILL_PLACE_HOST);
	wanted.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
	wanted.allocType = CU_MEM_ALLOCATION_TYPE_MANAGED;
	assert_int_equal(pools->place(&wanted, &device), SPILL_PLACE_MANAGED);
	assert_int_equal(device, -1);
}

TEST(pools_of_cuda_that_chunks_cannot_stand_for)
{
	const struct spill_vendor_pools *pools = spill_backend_cuda.pools;
	CUmemPoolProps plain = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED}, exported = plain,
	               bounded = plain, purposed = plain;
	exported.handleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
	bounded.maxSize = 1;
	purposed.usage = 1;
	assert_false(pools->special(&plain));
	assert_true(pools->special(&exported));
	assert_true(pools->special(&bounded));
	assert_true(pools->special(&purposed));
}

static const CUmemAccessDesc descriptions[] = {
    {{CU_MEM_LOCATION_TYPE_DEVICE, 4}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE},
    {{CU_MEM_LOCATION_TYPE_DEVICE, 5}, CU_MEM_ACCESS_FLAGS_PROT_NONE},
    {{CU_MEM_LOCATION_TYPE_HOST, 6}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE},
};
static unsigned shared;

static CUresult set_access(CUdeviceptr va, size_t bytes, const CUmemAccessDesc *access, size_t count)
{
	assert_true(va == 7 && bytes == 8 && count == 1);
	assert_ptr_equal(access, &descriptions[shared]);
	return CUDA_ERROR_NOT_SUPPORTED;
}

TEST(who_shares_a_pool_of_cuda)
{
	static const int devices[] = {4, SPILL_SHARED_WITH_NOBODY, SPILL_SHARED_WITH_OTHERS};
	const struct spill_vendor_pools *pools = spill_backend_cuda.pools;
	spill_cuda.cuMemSetAccess = set_access;
	for (shared = 0; shared < 3; shared++) {
		assert_int_equal(pools->share_device(descriptions, shared), devices[shared]);
		assert_int_equal(pools->share(descriptions, shared, 7, 8), CUDA_ERROR_NOT_SUPPORTED);
	}
}

static int version;

static hipError_t runtime_version(int *told)
{
	*told = version;
	return hipSuccess;
}

/* ROCm 6 moved the members: there, `usage` is 26 bytes from the begin, and the location 8. */
TEST(physical_memory_of_both_layouts_of_hip)
{
	static const struct {
		int type, at;
		enum spill_location where;
	} cases[] = {
	    {hipMemAllocationTypePinned, hipMemLocationTypeDevice, SPILL_LOCATION_DEVICE},
	    {hipMemAllocationTypePinned, 2, SPILL_LOCATION_HOST},
	    {hipMemAllocationTypePinned, 3, SPILL_LOCATION_NONE},
	    {hipMemAllocationTypeInvalid, hipMemLocationTypeDevice, SPILL_LOCATION_NONE},
	};
	struct spill_physical physical;
	spill_hip.hipRuntimeGetVersion = runtime_version;
	for (size_t i = 0; i < 2 * sizeof(cases) / sizeof(cases[0]); i++) {
		int type = cases[i / 2].type, at = cases[i / 2].at, usage = i % 2;
		hipMemLocation location = {(hipMemLocationType)at, 3};
		hipMemAllocationProp rocm5 = {
		    .type = (hipMemAllocationType)type, .location = location, .usage = (unsigned short)usage};
		int rocm6[8] = {type, 0, at, 3, 0, 0, usage << 16};
		version = 50700000;
		spill_backend_hip.physical->describe(&rocm5, &physical);
		assert_int_equal(physical.where, cases[i / 2].where);
		assert_int_equal(physical.device, 3);
		assert_int_equal(physical.device_only, usage);
		assert_memory_equal(physical.asked, &rocm5, sizeof(rocm5));
		version = 60000000;
		spill_backend_hip.physical->describe(rocm6, &physical);
		assert_int_equal(physical.where, cases[i / 2].where);
		assert_int_equal(physical.device, 3);
		assert_int_equal(physical.device_only, usage);
		assert_memory_equal(physical.asked, rocm6, sizeof(rocm6));
	}
}

static hipError_t granularity(size_t *bytes, const hipMemAllocationProp *properties,
                              hipMemAllocationGranularity_flags which)
{
	hipMemLocation location = properties->location;
	if (version >= 60000000)
		memcpy(&location, (const char *)properties + 8, sizeof(location));
	*bytes = (size_t)location.id;
	return hipSuccess;
}

/* As it reads them, so it writes them. */
TEST(both_layouts_of_hip_are_written)
{
	uint64_t bytes;
	spill_hip.hipRuntimeGetVersion = runtime_version;
	spill_hip.hipMemGetAllocationGranularity = granularity;
	for (version = 59999999; version <= 60000001; version++) {
		assert_int_equal(spill_backend_hip.physical->granularity(5, false, &bytes), hipSuccess);
		assert_int_equal(bytes, 5);
		/* Those releases have no handles of host memory. */
		assert_int_equal(spill_backend_hip.physical->granularity(5, true, &bytes),
		                 hipErrorNotSupported);
	}
	spill_hip.hipMemGetAllocationGranularity = NULL;
	assert_int_equal(spill_backend_hip.physical->granularity(5, false, &bytes), hipErrorNotSupported);
}

static hipError_t create(hipMemGenericAllocationHandle_t *handle, size_t bytes,
                         const hipMemAllocationProp *properties, unsigned long long flags)
{
	return hipSuccess;
}

static hipError_t release(hipMemGenericAllocationHandle_t handle)
{
	return hipSuccess;
}

/* Memory that cannot be given back is not made. */
TEST(physical_memory_of_hip_needs_both_functions)
{
	uint64_t handle;
	for (unsigned has = 0; has < 4; has++) {
		spill_hip.hipMemCreate = has & 1 ? create : NULL;
		spill_hip.hipMemRelease = has & 2 ? release : NULL;
		assert_int_equal(spill_backend_hip.physical->create_as(&handle, 1, &handle),
		                 has == 3 ? hipSuccess : hipErrorNotSupported);
	}
}

TEST(where_a_pool_of_hip_is)
{
	hipMemPoolProps wanted = {.location = {hipMemLocationTypeDevice, 3}};
	int device = -1;
	assert_int_equal(spill_backend_hip.pools->place(&wanted, &device), SPILL_PLACE_DEVICE);
	assert_int_equal(device, 3);
	wanted.location = (hipMemLocation){(hipMemLocationType)2, 4};
	assert_int_equal(spill_backend_hip.pools->place(&wanted, &device), SPILL_PLACE_HOST);
	assert_int_equal(device, 3);
}

/* Rows are multiples of the vendor's alignment, as far as 64 bits reach. */
TEST(rows_of_padded_memory)
{
	static const struct {
		const struct spill_backend *backend;
		uint64_t unit;
	} vendors[] = {{&spill_backend_cuda, 512}, {&spill_backend_hip, 256}};
	for (unsigned i = 0; i < 2; i++) {
		uint64_t unit = vendors[i].unit, last = UINT64_MAX - unit + 1;
		uint64_t (*pitch)(uint64_t) = vendors[i].backend->memory->pitch;
		assert_int_equal(pitch(1), unit);
		assert_int_equal(pitch(unit), unit);
		assert_int_equal(pitch(unit + 1), 2 * unit);
		assert_int_equal(pitch(last), last);
		assert_int_equal(pitch(last + 1), 0);
		assert_int_equal(pitch(UINT64_MAX), 0);
	}
}
