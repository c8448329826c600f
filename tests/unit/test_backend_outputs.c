/*
 * What each call of a backend tells: the vendor's output if it succeeds, and nothing if it fails
 * (backend.h). The vendors here write their outputs also when they fail, as vendors do.
 */
#include "unit.h"

#include <string.h>

#include "abi/cuda.h"
#include "abi/hip.h"
#include "backend.h"
#include "backend_cuda.h"
#include "backend_hip.h"

#define GIVEN 0x5000 /* the vendor's outputs */
#define OLD 0x77

static int answer, pointer_answer;
static unsigned freed;

/* `call` writes to `out`. Both vendors' code of success is 0. */
#define EXPECT(out, wanted, result, call) \
	do { \
		memset(&(out), 0, sizeof(out)); \
		memcpy(&(out), &(int){OLD}, sizeof(int)); \
		assert_int_equal(call, result); \
		assert_int_equal((uintptr_t)(out), (result) ? OLD : (wanted)); \
	} while (0)
#define GIVES(out, call) EXPECT(out, GIVEN, answer, call)

static void expect_outputs(const struct spill_backend *backend)
{
	uint64_t out;
	void *object;
	for (int failing = 0; failing < 2; failing++) {
		answer = failing ? 2 : 0; /* out of memory, of both */
		GIVES(out, backend->memory->device_alloc(1, &out));
		GIVES(out, backend->memory->managed_alloc(1, &out));
		GIVES(out, backend->physical->granularity(0, false, &out));
		GIVES(out, backend->physical->create(0, false, 1, &out));
		GIVES(out, backend->physical->create_as(&(char[SPILL_PROPERTIES_BYTES]){0}, 1, &out));
		GIVES(out, backend->vmm->reserve(1, 1, &out));
		GIVES(out, backend->pools->alloc(NULL, 1, NULL, false, &out));
		GIVES(out, backend->pools->reserved(NULL, &out));
		GIVES(object, backend->pools->current(0, &object));
		GIVES(object, backend->pools->device_default(0, &object));
	}
}

/* Host memory that the device cannot reach is given back. */
static void expect_host_memory(const struct spill_backend *backend)
{
	uint64_t out;
	void *host;
	for (int failing = 0; failing < 3; failing++) {
		answer = failing == 1 ? 2 : 0;
		pointer_answer = failing == 2 ? 1 : 0;
		freed = 0;
		EXPECT(out, GIVEN, answer + pointer_answer, backend->memory->host_alloc(1, &out, &host));
		EXPECT(host, GIVEN + 1, answer + pointer_answer, backend->memory->host_alloc(1, &out, &host));
		assert_int_equal(freed, failing == 2 ? 2 : 0);
	}
	pointer_answer = 0;
}

/* -- CUDA ---------------------------------------------------------------------------------------------------- */

static CUresult cuda_number(CUdeviceptr *out, size_t bytes)
{
	*out = GIVEN;
	return answer;
}

static CUresult cuda_managed(CUdeviceptr *out, size_t bytes, unsigned int flags)
{
	return cuda_number(out, bytes);
}

static CUresult cuda_host(void **out, size_t bytes, unsigned int flags)
{
	*out = (void *)(GIVEN + 1);
	return answer;
}

static CUresult cuda_pointer(CUdeviceptr *out, void *host, unsigned int flags)
{
	*out = GIVEN;
	return pointer_answer;
}

static CUresult cuda_host_free(void *host)
{
	assert_ptr_equal(host, GIVEN + 1);
	freed++;
	return CUDA_SUCCESS;
}

static CUresult cuda_granularity(size_t *out, const CUmemAllocationProp *properties,
                                 CUmemAllocationGranularity_flags which)
{
	*out = GIVEN;
	return answer;
}

static CUresult cuda_create(CUmemGenericAllocationHandle *out, size_t bytes,
                            const CUmemAllocationProp *properties, unsigned long long flags)
{
	*out = GIVEN;
	return answer;
}

static CUresult cuda_reserve(CUdeviceptr *out, size_t bytes, size_t alignment, CUdeviceptr wanted,
                             unsigned long long flags)
{
	return cuda_number(out, bytes);
}

static CUresult cuda_retain(CUmemGenericAllocationHandle *out, void *address)
{
	*out = GIVEN;
	return answer;
}

static CUresult cuda_export(void *out, CUmemGenericAllocationHandle handle, CUmemAllocationHandleType type,
                            unsigned long long flags)
{
	*(int *)out = GIVEN;
	return answer;
}

static CUresult cuda_import(CUmemGenericAllocationHandle *out, void *descriptor,
                            CUmemAllocationHandleType type)
{
	*out = GIVEN;
	return answer;
}

static CUresult cuda_pool_alloc(CUdeviceptr *out, size_t bytes, CUmemoryPool pool, CUstream stream)
{
	return cuda_number(out, bytes);
}

static CUresult cuda_pool_figure(CUmemoryPool pool, CUmemPool_attribute which, void *out)
{
	*(cuuint64_t *)out = GIVEN;
	return answer;
}

static CUresult cuda_pool_of(CUmemoryPool *out, CUdevice device)
{
	*out = (CUmemoryPool)GIVEN;
	return answer;
}

static CUresult cuda_graph_figure(CUdevice device, CUgraphMem_attribute which, void *out)
{
	*(cuuint64_t *)out = GIVEN;
	return answer;
}

TEST(the_outputs_of_cuda)
{
	uint64_t out;
	int descriptor;
	spill_cuda = (struct spill_cuda){
	    .cuMemAlloc_v2 = cuda_number,
	    .cuMemAllocManaged = cuda_managed,
	    .cuMemHostAlloc = cuda_host,
	    .cuMemHostGetDevicePointer_v2 = cuda_pointer,
	    .cuMemFreeHost = cuda_host_free,
	    .cuMemGetAllocationGranularity = cuda_granularity,
	    .cuMemCreate = cuda_create,
	    .cuMemAddressReserve = cuda_reserve,
	    .cuMemRetainAllocationHandle = cuda_retain,
	    .cuMemExportToShareableHandle = cuda_export,
	    .cuMemImportFromShareableHandle = cuda_import,
	    .cuMemAllocFromPoolAsync = cuda_pool_alloc,
	    .cuMemPoolGetAttribute = cuda_pool_figure,
	    .cuDeviceGetMemPool = cuda_pool_of,
	    .cuDeviceGetDefaultMemPool = cuda_pool_of,
	    .cuDeviceGetGraphMemAttribute = cuda_graph_figure,
	};
	expect_outputs(&spill_backend_cuda);
	expect_host_memory(&spill_backend_cuda);
	for (int failing = 0; failing < 2; failing++) {
		answer = failing ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
		GIVES(out, spill_backend_cuda.physical->retain(0, &out));
		GIVES(out, spill_backend_cuda.physical->from_descriptor(0, &out));
		GIVES(descriptor, spill_backend_cuda.physical->to_descriptor(0, &descriptor));
		GIVES(out, spill_backend_cuda.graph_reserved(0, &out));
	}
	/* A driver that lacks the functions. */
	spill_cuda = (struct spill_cuda){0};
	EXPECT(out, 0, CUDA_ERROR_NOT_SUPPORTED, spill_backend_cuda.memory->managed_alloc(1, &out));
	EXPECT(out, 0, CUDA_ERROR_NOT_SUPPORTED, spill_backend_cuda.graph_reserved(0, &out));
	EXPECT(out, 0, CUDA_ERROR_NOT_SUPPORTED, spill_backend_cuda.pools->reserved(NULL, &out));
	assert_int_equal(spill_backend_cuda.pools->trim(NULL), CUDA_ERROR_NOT_SUPPORTED);
}

/* -- HIP ----------------------------------------------------------------------------------------------------- */

static hipError_t hip_device(int *device)
{
	*device = 0;
	return hipSuccess;
}

static hipError_t hip_version(int *version)
{
	*version = 70200000;
	return hipSuccess;
}

static hipError_t hip_attribute(int *value, hipDeviceAttribute_t which, int device)
{
	*value = 1;
	return hipSuccess;
}

static hipError_t hip_address(void **out, size_t bytes)
{
	*out = (void *)GIVEN;
	return answer;
}

static hipError_t hip_managed(void **out, size_t bytes, unsigned int flags)
{
	return hip_address(out, bytes);
}

static hipError_t hip_host(void **out, size_t bytes, unsigned int flags)
{
	*out = (void *)(GIVEN + 1);
	return answer;
}

static hipError_t hip_pointer(void **out, void *host, unsigned int flags)
{
	*out = (void *)GIVEN;
	return pointer_answer;
}

static hipError_t hip_host_free(void *host)
{
	assert_ptr_equal(host, GIVEN + 1);
	freed++;
	return hipSuccess;
}

static hipError_t hip_granularity(size_t *out, const hipMemAllocationProp *properties,
                                  hipMemAllocationGranularity_flags which)
{
	*out = GIVEN;
	return answer;
}

static hipError_t hip_create(hipMemGenericAllocationHandle_t *out, size_t bytes,
                             const hipMemAllocationProp *properties, unsigned long long flags)
{
	*out = (hipMemGenericAllocationHandle_t)GIVEN;
	return answer;
}

static hipError_t hip_release(hipMemGenericAllocationHandle_t handle)
{
	return hipSuccess;
}

static hipError_t hip_reserve(void **out, size_t bytes, size_t alignment, void *wanted,
                              unsigned long long flags)
{
	return hip_address(out, bytes);
}

static hipError_t hip_pool_alloc(void **out, size_t bytes, hipMemPool_t pool, hipStream_t stream)
{
	return hip_address(out, bytes);
}

static hipError_t hip_pool_figure(hipMemPool_t pool, hipMemPoolAttr which, void *out)
{
	*(uint64_t *)out = GIVEN;
	return answer;
}

static hipError_t hip_pool_of(hipMemPool_t *out, int device)
{
	*out = (hipMemPool_t)GIVEN;
	return answer;
}

static int advised_device;
static hipMemoryAdvise advice;

static hipError_t hip_advise(const void *address, size_t bytes, hipMemoryAdvise which, int device)
{
	advice = which;
	advised_device = device;
	return hipSuccess;
}

static void expect_advice(int result, hipMemoryAdvise wanted, int device)
{
	assert_int_equal(result, hipSuccess);
	assert_int_equal(advice, wanted);
	assert_int_equal(advised_device, device);
}

TEST(the_outputs_of_hip)
{
	const struct spill_vendor_memory *memory = spill_backend_hip.memory;
	uint64_t out;
	spill_hip = (struct spill_hip){
	    .hipGetDevice = hip_device,
	    .hipRuntimeGetVersion = hip_version,
	    .hipDeviceGetAttribute = hip_attribute,
	    .hipMalloc = hip_address,
	    .hipMallocManaged = hip_managed,
	    .hipHostMalloc = hip_host,
	    .hipHostGetDevicePointer = hip_pointer,
	    .hipHostFree = hip_host_free,
	    .hipMemGetAllocationGranularity = hip_granularity,
	    .hipMemCreate = hip_create,
	    .hipMemRelease = hip_release,
	    .hipMemAddressReserve = hip_reserve,
	    .hipMallocFromPoolAsync = hip_pool_alloc,
	    .hipMemPoolGetAttribute = hip_pool_figure,
	    .hipDeviceGetMemPool = hip_pool_of,
	    .hipDeviceGetDefaultMemPool = hip_pool_of,
	    .hipMemAdvise = hip_advise,
	};
	expect_outputs(&spill_backend_hip);
	expect_host_memory(&spill_backend_hip);
	for (int failing = 0; failing < 2; failing++) {
		answer = failing ? hipErrorOutOfMemory : hipSuccess;
		GIVES(out, spill_backend_hip.vmm->granularity(0, &out));
	}
	/* The host is a device of its own there. */
	expect_advice(memory->advise_preferred(0, 1, SPILL_LOCATION_HOST, 3),
	              hipMemAdviseSetPreferredLocation, hipCpuDeviceId);
	expect_advice(memory->advise_preferred(0, 1, SPILL_LOCATION_DEVICE, 3),
	              hipMemAdviseSetPreferredLocation, 3);
	expect_advice(memory->advise_accessed_by(0, 1, SPILL_LOCATION_HOST, 3), hipMemAdviseSetAccessedBy,
	              hipCpuDeviceId);
	expect_advice(memory->advise_read_mostly(0, 1, 3), hipMemAdviseSetReadMostly, 3);
	/* A runtime that lacks the functions. */
	spill_hip.hipMemAdvise = NULL;
	spill_hip.hipMemPoolGetAttribute = NULL;
	assert_int_equal(memory->advise_read_mostly(0, 1, 3), hipErrorNotSupported);
	assert_int_equal(memory->prefetch(0, 1, 3), hipErrorNotSupported);
	assert_int_equal(spill_backend_hip.pools->trim(NULL), hipErrorNotSupported);
	EXPECT(out, 0, hipErrorNotSupported, spill_backend_hip.pools->reserved(NULL, &out));
}

static int record_answer, query_answer, set_answer;
static unsigned events, pools;
static hipStream_t recorded_on;

static hipError_t hip_event_create(hipEvent_t *out, unsigned int flags)
{
	*out = (hipEvent_t)GIVEN;
	events += !answer;
	return answer;
}

static hipError_t hip_event_record(hipEvent_t event, hipStream_t stream)
{
	assert_ptr_equal(event, GIVEN);
	recorded_on = stream;
	return record_answer;
}

static hipError_t hip_event_query(hipEvent_t event)
{
	return query_answer;
}

static hipError_t hip_event_destroy(hipEvent_t event)
{
	assert_ptr_equal(event, GIVEN);
	events--;
	return hipSuccess;
}

/* One that cannot be recorded is of no use. */
TEST(events_of_hip)
{
	const struct spill_vendor_events *ours = spill_backend_hip.events;
	void *out, *stream = &out;
	spill_hip = (struct spill_hip){
	    .hipGetDevice = hip_device,
	    .hipEventCreateWithFlags = hip_event_create,
	    .hipEventRecord = hip_event_record,
	    .hipEventQuery = hip_event_query,
	    .hipEventDestroy = hip_event_destroy,
	};
	for (int failing = 0; failing < 3; failing++) {
		answer = failing == 1 ? 2 : 0;
		record_answer = failing == 2 ? 1 : 0;
		EXPECT(out, GIVEN, answer + record_answer, ours->record(0, NULL, stream, true, &out));
		assert_int_equal(events, failing == 0);
		if (failing == 0)
			ours->destroy(0, NULL, out);
	}
	answer = record_answer = 0;
	assert_ptr_equal(recorded_on, stream);
	assert_int_equal(ours->record(0, NULL, NULL, true, &out), 0);
	assert_ptr_equal(recorded_on, hipStreamPerThread);
	assert_int_equal(ours->record(0, NULL, NULL, false, &out), 0);
	assert_null(recorded_on);
	for (query_answer = 0; query_answer < 2; query_answer++)
		assert_int_equal(ours->passed(0, NULL, out), !query_answer);
	events = 0;
}

static hipError_t hip_pool_create(hipMemPool_t *out, const hipMemPoolProps *wanted)
{
	*out = (hipMemPool_t)GIVEN;
	pools += !answer;
	return answer;
}

static hipError_t hip_pool_destroy(hipMemPool_t pool)
{
	assert_ptr_equal(pool, GIVEN);
	pools--;
	return hipSuccess;
}

static hipError_t hip_pool_set(hipMemPool_t pool, hipMemPoolAttr which, void *value)
{
	assert_true(*(uint64_t *)value == UINT64_MAX);
	return set_answer;
}

static hipError_t hip_free_async(void *address, hipStream_t stream)
{
	return hipSuccess;
}

/* One that would not keep its memory is no use. On the host there is none. */
TEST(pools_of_hip)
{
	const struct spill_vendor_pools *ours = spill_backend_hip.pools;
	void *out;
	spill_hip = (struct spill_hip){
	    .hipDeviceGetAttribute = hip_attribute,
	    .hipMallocFromPoolAsync = hip_pool_alloc,
	    .hipFreeAsync = hip_free_async,
	    .hipMemPoolCreate = hip_pool_create,
	    .hipMemPoolDestroy = hip_pool_destroy,
	    .hipMemPoolSetAttribute = hip_pool_set,
	};
	for (int failing = 0; failing < 3; failing++) {
		answer = failing == 1 ? 2 : 0;
		set_answer = failing == 2 ? 1 : 0;
		pools = 0;
		EXPECT(out, GIVEN, answer + set_answer,
		       ours->create(0, SPILL_PLACE_DEVICE, SPILL_LOCATION_NONE, &out));
		assert_int_equal(pools, failing == 0);
	}
	answer = set_answer = 0;
	EXPECT(out, 0, hipErrorNotSupported, ours->create(0, SPILL_PLACE_HOST, SPILL_LOCATION_HOST, &out));
	spill_hip.hipFreeAsync = NULL;
	EXPECT(out, 0, hipErrorNotSupported, ours->create(0, SPILL_PLACE_DEVICE, SPILL_LOCATION_NONE, &out));
}
