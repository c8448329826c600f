/*
 * The HIP backend against a runtime that is made of the functions below. The tests check which
 * memory it claims to make, for which device it asks, and the trial of chunks.
 */
#define SETUP setup
#include "unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "abi/hip.h"
#include "backend.h"
#include "backend_hip.h"
#include "mempolicy.h"
#include "numa.h"

#define UNIT 65536
#define LOCATION_HOST 2

static int version, current_device, device_of_create;
static bool attributes[128];
static hipError_t host_result, device_result, copy_result;
static bool damages;          /* copies to the device lose a bit */
static unsigned char *chunks; /* two of UNIT bytes */
static unsigned created, mapped, reserved, streams, trials;

static hipError_t runtime_version(int *out)
{
	*out = version;
	return hipSuccess;
}

static hipError_t attribute(int *out, hipDeviceAttribute_t which, int device)
{
	*out = attributes[which];
	return hipSuccess;
}

static hipError_t get_device(int *device)
{
	*device = current_device;
	return hipSuccess;
}

static unsigned set_fails_at; /* counted down; 0: never */

static hipError_t set_device(int device)
{
	if (set_fails_at && --set_fails_at == 0)
		return hipErrorUnknown;
	current_device = device;
	return hipSuccess;
}

static hipError_t granularity(size_t *out, const hipMemAllocationProp *properties,
                              hipMemAllocationGranularity_flags option)
{
	*out = option == hipMemAllocationGranularityRecommended ? UNIT : 4096;
	return hipSuccess;
}

/* Behind the type and the kind of handle ROCm 6 and later have the location. */
static hipError_t create(hipMemGenericAllocationHandle_t *handle, size_t bytes,
                         const hipMemAllocationProp *properties, unsigned long long flags)
{
	hipMemLocation location;
	memcpy(&location, (const char *)properties + 8, sizeof(location));
	hipError_t result = (int)location.type == LOCATION_HOST ? host_result : device_result;
	device_of_create = current_device;
	if (result)
		return result;
	*handle = (hipMemGenericAllocationHandle_t)(uintptr_t)++created;
	return hipSuccess;
}

static hipError_t release(hipMemGenericAllocationHandle_t handle)
{
	assert_int_equal((uintptr_t)handle, created--);
	return hipSuccess;
}

static hipError_t reserve(void **address, size_t bytes, size_t alignment, void *wanted,
                          unsigned long long flags)
{
	assert_int_equal(bytes, 2 * UNIT);
	*address = chunks;
	reserved++;
	trials++;
	return hipSuccess;
}

static hipError_t unreserve(void *address, size_t bytes)
{
	assert_true(address == chunks && bytes == 2 * UNIT);
	reserved--;
	return hipSuccess;
}

static hipError_t map(void *address, size_t bytes, size_t offset, hipMemGenericAllocationHandle_t handle,
                      unsigned long long flags)
{
	assert_true((unsigned char *)address == chunks + mapped * UNIT && bytes == UNIT);
	mapped++;
	assert_int_equal((uintptr_t)handle, mapped);
	return hipSuccess;
}

static hipError_t unmap(void *address, size_t bytes)
{
	mapped--;
	assert_true((unsigned char *)address == chunks + mapped * UNIT && bytes == UNIT);
	return hipSuccess;
}

static hipError_t set_access(void *address, size_t bytes, const hipMemAccessDesc *access, size_t count)
{
	assert_int_equal(bytes, 2 * UNIT); /* releases before 7.14 refuse a later part alone */
	return hipSuccess;
}

static hipError_t stream_create(hipStream_t *stream, unsigned int flags)
{
	assert_int_equal(flags, hipStreamNonBlocking);
	*stream = (hipStream_t)(uintptr_t)++streams;
	return hipSuccess;
}

static hipError_t stream_destroy(hipStream_t stream)
{
	streams--;
	return hipSuccess;
}

static hipError_t stream_synchronize(hipStream_t stream)
{
	return hipSuccess;
}

static hipError_t copy(void *to, const void *from, size_t bytes, hipMemcpyKind kind, hipStream_t stream)
{
	assert_non_null(stream);
	memcpy(to, from, bytes);
	if (damages && kind == hipMemcpyDeviceToDevice)
		((unsigned char *)to)[bytes - 1] ^= 1;
	return copy_result;
}

static hipError_t malloc_managed(void **address, size_t bytes, unsigned int flags)
{
	*address = chunks;
	return hipSuccess;
}

static int setup(void **state)
{
	spill_hip = (struct spill_hip){
	    .hipRuntimeGetVersion = runtime_version,
	    .hipDeviceGetAttribute = attribute,
	    .hipGetDevice = get_device,
	    .hipSetDevice = set_device,
	    .hipMemGetAllocationGranularity = granularity,
	    .hipMemCreate = create,
	    .hipMemRelease = release,
	    .hipMemAddressReserve = reserve,
	    .hipMemAddressFree = unreserve,
	    .hipMemMap = map,
	    .hipMemUnmap = unmap,
	    .hipMemSetAccess = set_access,
	    .hipStreamCreateWithFlags = stream_create,
	    .hipStreamDestroy = stream_destroy,
	    .hipStreamSynchronize = stream_synchronize,
	    .hipMemcpyAsync = copy,
	    .hipMallocManaged = malloc_managed,
	};
	memset(attributes, 0, sizeof(attributes));
	attributes[hipDeviceAttributeVirtualMemoryManagementSupported] = true;
	version = 70200000;
	host_result = device_result = copy_result = hipSuccess;
	damages = false;
	current_device = 0;
	created = mapped = reserved = streams = trials = 0;
	if (!chunks)
		chunks = malloc((size_t)2 * UNIT);
	return chunks ? 0 : -1;
}

static void expect_capabilities(int device, unsigned wanted)
{
	assert_int_equal(spill_backend_hip.devices->capabilities(device), wanted);
}

TEST(chunks_need_rocm_7_2_and_the_device)
{
	expect_capabilities(0, SPILL_CAN_SPLIT);
	version = 70199999;
	expect_capabilities(0, 0);
	version = 70200000;
	attributes[hipDeviceAttributeVirtualMemoryManagementSupported] = false;
	expect_capabilities(0, 0);
	attributes[hipDeviceAttributeVirtualMemoryManagementSupported] = true;
	spill_hip.hipMemSetAccess = NULL;
	expect_capabilities(0, 0);
}

TEST(chunks_need_each_of_their_functions)
{
#define KEPT(name) ((void **)(void *)&spill_hip.name)
	void **const needed[] = {KEPT(hipMemGetAllocationGranularity),
	                         KEPT(hipMemCreate),
	                         KEPT(hipMemRelease),
	                         KEPT(hipMemAddressReserve),
	                         KEPT(hipMemAddressFree),
	                         KEPT(hipMemMap),
	                         KEPT(hipMemUnmap),
	                         KEPT(hipMemSetAccess)};
	for (size_t i = 0; i < sizeof(needed) / sizeof(needed[0]); i++) {
		void *kept = *needed[i];
		*needed[i] = NULL;
		expect_capabilities(0, 0);
		*needed[i] = kept;
		expect_capabilities(0, SPILL_CAN_SPLIT);
	}
}

/* A lack of memory may pass. Another refusal does not, and it is of one device. */
TEST(a_refused_chunk_on_the_host_is_the_last)
{
	uint64_t handle;
	host_result = hipErrorOutOfMemory;
	assert_int_equal(spill_backend_hip.physical->create(1, true, UNIT, &handle), hipErrorOutOfMemory);
	expect_capabilities(1, SPILL_CAN_SPLIT);
	host_result = hipErrorInvalidValue;
	assert_int_equal(spill_backend_hip.physical->create(1, true, UNIT, &handle), hipErrorInvalidValue);
	expect_capabilities(1, 0);
	expect_capabilities(2, SPILL_CAN_SPLIT);
	device_result = hipErrorInvalidValue;
	assert_int_equal(spill_backend_hip.physical->create(2, false, UNIT, &handle), hipErrorInvalidValue);
	expect_capabilities(2, SPILL_CAN_SPLIT);
}

TEST(memory_is_made_while_its_device_is_current)
{
	uint64_t handle;
	assert_int_equal(spill_backend_hip.physical->create(3, false, UNIT, &handle), 0);
	assert_int_equal(device_of_create, 3);
	assert_int_equal(current_device, 0);
	/* An error of earlier work, which the call back to the program's device returns. */
	set_fails_at = 2;
	assert_int_equal(spill_backend_hip.physical->create(3, false, UNIT, &handle), 0);
	assert_int_equal(current_device, 0);
	assert_int_equal(set_fails_at, 0);
}

/* Each trial below is of a device of its own, because a verdict is for good. */
static void expect_trial(int device, bool works)
{
	assert_int_equal(spill_backend_hip.vmm->works(device, UNIT), works);
	assert_int_equal(created + mapped + reserved + streams, 0);
	assert_int_equal(current_device, 0);
}

TEST(chunks_that_work_are_tried_once)
{
	memset(chunks, 0, (size_t)2 * UNIT);
	expect_trial(4, true);
	expect_trial(4, true);
	assert_int_equal(trials, 1);
	/* half of the bytes were in each chunk */
	assert_memory_equal(chunks, chunks + UNIT - 2048, 4096);
	assert_int_not_equal(chunks[UNIT], 0);
}

TEST(chunks_that_damage_data_are_not_used)
{
	damages = true;
	expect_trial(5, false);
	damages = false;
	expect_trial(5, false);
	assert_int_equal(trials, 1);
}

TEST(chunks_that_cannot_be_copied_are_not_used)
{
	copy_result = hipErrorInvalidValue;
	expect_trial(6, false);
	copy_result = hipSuccess;
	expect_trial(6, false);
}

/* Then both chunks are on the host. */
TEST(a_full_device_is_no_reason)
{
	device_result = hipErrorOutOfMemory;
	expect_trial(7, true);
	assert_int_equal(trials, 1);
	device_result = hipErrorInvalidValue;
	expect_trial(9, false);
}

/* The program may make smaller pieces. */
TEST(chunks_are_of_the_recommended_size)
{
	uint64_t bytes;
	assert_int_equal(spill_backend_hip.physical->granularity(0, true, &bytes), 0);
	assert_int_equal(bytes, 4096);
	assert_int_equal(spill_backend_hip.vmm->granularity(0, &bytes), 0);
	assert_int_equal(bytes, UNIT);
}

TEST(without_host_memory_the_trial_is_repeated)
{
	host_result = hipErrorOutOfMemory;
	expect_trial(8, false);
	host_result = hipSuccess;
	expect_trial(8, true);
}

/* XNACK is pageable access. HMM is managed memory and concurrent access. */
TEST(managed_memory_migrates)
{
	static const struct {
		bool managed, concurrent, xnack, integrated;
		unsigned can;
	} cases[] = {
	    {true, true, true, false, SPILL_CAN_MANAGED},
	    {true, true, false, true, SPILL_CAN_MANAGED | SPILL_IS_INTEGRATED},
	    {true, true, false, false, 0},
	    {true, false, true, false, 0},
	    {true, false, false, true, SPILL_IS_INTEGRATED},
	    {false, false, true, false, 0},
	    {false, true, false, true, SPILL_IS_INTEGRATED},
	};
	uint64_t ptr;
	version = 60400000;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		attributes[hipDeviceAttributeManagedMemory] = cases[i].managed;
		attributes[hipDeviceAttributeConcurrentManagedAccess] = cases[i].concurrent;
		attributes[hipDeviceAttributePageableMemoryAccess] = cases[i].xnack;
		attributes[hipDeviceAttributeIntegrated] = cases[i].integrated;
		expect_capabilities(0, cases[i].can);
		/* A chain that the user wrote gets what the runtime makes without a fault. */
		assert_int_equal(spill_backend_hip.memory->managed_alloc(UNIT, &ptr),
		                 cases[i].managed && cases[i].concurrent ? hipSuccess : hipErrorNotSupported);
	}
}

static hipError_t two_devices(int *count)
{
	*count = 2;
	return hipSuccess;
}

static hipError_t name_of(char *name, int size, int device)
{
	snprintf(name, (size_t)size, "device %d", device);
	return hipSuccess;
}

static hipError_t address_of(char *address, int size, int device)
{
	snprintf(address, (size_t)size, "0000:0%d:00.0", device);
	return hipSuccess;
}

static hipError_t bytes_of(size_t *bytes, int device)
{
	*bytes = 1000 + (size_t)device;
	return device ? hipErrorUnknown : hipSuccess;
}

/* As many as there is room for, each with what the runtime tells of it. */
TEST(the_list_of_devices)
{
	struct spill_log_device list[3];
	spill_hip.hipGetDeviceCount = two_devices;
	assert_int_equal(spill_backend_hip.devices->list(list, 1), 1);
	assert_true(!list[0].name[0] && !list[0].pci[0] && !list[0].bytes);
	spill_hip.hipDeviceGetName = name_of;
	spill_hip.hipDeviceGetPCIBusId = address_of;
	spill_hip.hipDeviceTotalMem = bytes_of;
	assert_int_equal(spill_backend_hip.devices->list(list, 3), 2);
	assert_string_equal(list[0].name, "device 0");
	assert_string_equal(list[1].name, "device 1");
	assert_string_equal(list[0].pci, "0000:00:00.0");
	assert_string_equal(list[1].pci, "0000:01:00.0");
	assert_int_equal(list[0].bytes, 1000);
	assert_int_equal(list[1].bytes, 0);
}

static hipStreamCaptureStatus capture_status;
static hipError_t capture_result;

static hipError_t is_capturing(hipStream_t stream, hipStreamCaptureStatus *status)
{
	*status = capture_status;
	return capture_result;
}

/* A runtime that does not know captures has none. The default stream cannot be asked while another one captures. */
TEST(a_stream_that_captures)
{
	spill_hip.hipStreamIsCapturing = NULL;
	assert_false(spill_backend_hip.streams->capturing(NULL));
	spill_hip.hipStreamIsCapturing = is_capturing;
	capture_result = hipSuccess;
	capture_status = hipStreamCaptureStatusNone;
	assert_false(spill_backend_hip.streams->capturing(NULL));
	capture_status = hipStreamCaptureStatusActive;
	assert_true(spill_backend_hip.streams->capturing(NULL));
	capture_result = hipErrorStreamCaptureImplicit;
	capture_status = hipStreamCaptureStatusNone;
	assert_true(spill_backend_hip.streams->capturing(NULL));
	capture_result = hipErrorNotSupported;
	assert_false(spill_backend_hip.streams->capturing(NULL));
}

static uint64_t pool_reserved_bytes, pool_used_bytes;
static hipError_t used_result;

static hipError_t pool_attribute(hipMemPool_t pool, hipMemPoolAttr which, void *value)
{
	bool used = which == hipMemPoolAttrUsedMemCurrent;
	assert_true(used || which == hipMemPoolAttrReservedMemCurrent);
	*(uint64_t *)value = used ? pool_used_bytes : pool_reserved_bytes;
	return used ? used_result : hipSuccess;
}

/* A runtime without such questions tells nothing. Another thread may allocate between the two. */
TEST(the_figures_of_a_pool)
{
	const struct spill_vendor_pools *pools = spill_backend_hip.pools;
	uint64_t bytes = 0;
	assert_int_equal(pools->reserved(&version, &bytes), hipErrorNotSupported);
	assert_int_equal(pools->unused(&version, &bytes), hipErrorNotSupported);
	assert_int_equal(bytes, 0);
	spill_hip.hipMemPoolGetAttribute = pool_attribute;
	pool_reserved_bytes = 5 * UNIT;
	pool_used_bytes = 2 * UNIT;
	assert_int_equal(pools->reserved(&version, &bytes), hipSuccess);
	assert_int_equal(bytes, 5 * UNIT);
	assert_int_equal(pools->unused(&version, &bytes), hipSuccess);
	assert_int_equal(bytes, 3 * UNIT);
	used_result = hipErrorNotSupported;
	assert_int_equal(pools->unused(&version, &bytes), hipErrorNotSupported);
	used_result = hipSuccess;
	pool_used_bytes = 6 * UNIT;
	assert_int_equal(pools->unused(&version, &bytes), hipSuccess);
	assert_int_equal(bytes, 0);
}

static int mode_within;
static unsigned long nodes_within;
static hipError_t host_answer;
static unsigned flags_within;

static hipError_t host_malloc(void **host, size_t bytes, unsigned int flags)
{
	mode_within = mempolicy_now(&nodes_within);
	flags_within = flags;
	*host = &host_answer;
	return host_answer;
}

static hipError_t device_pointer(void **pointer, void *host, unsigned int flags)
{
	*pointer = host;
	return hipSuccess;
}

/* Of the thread, during the call only, whether it succeeds or not. The flag tells the vendor to heed it. */
TEST(host_memory_is_made_on_the_node_that_is_named)
{
	unsigned long nodes;
	uint64_t ptr;
	void *host;
	int usual = mempolicy_now(&nodes);
	if (usual < 0)
		skip();
	spill_hip.hipHostMalloc = host_malloc;
	spill_hip.hipHostGetDevicePointer = device_pointer;
	for (unsigned i = 0; i < 4; i++) {
		bool named = i % 2;
		host_answer = i / 2 ? hipErrorOutOfMemory : hipSuccess;
		assert_true(spill_numa_use("/nonexistent", named ? 0 : SPILL_NODE_NEAREST));
		assert_int_equal(spill_backend_hip.memory->host_alloc(4096, &ptr, &host), host_answer);
		assert_int_equal(mode_within, named ? MPOL_PREFERRED : usual);
		assert_true(!named || nodes_within == 1);
		assert_int_equal(!!(flags_within & hipHostMallocNumaUser), named);
		assert_int_equal(mempolicy_now(&nodes), usual);
	}
	spill_numa_use("", SPILL_NODE_NEAREST);
}

/* The first and the last one of the table as any other. Behind it is none. */
TEST(a_refused_chunk_of_the_first_and_of_the_last_device)
{
	static const int devices[] = {0, SPILL_DEVICES - 1, SPILL_DEVICES};
	uint64_t handle;
	for (unsigned i = 0; i < 3; i++) {
		host_result = hipSuccess;
		expect_capabilities(devices[i], i < 2 ? SPILL_CAN_SPLIT : 0);
		host_result = hipErrorInvalidValue;
		assert_int_equal(spill_backend_hip.physical->create(devices[i], true, UNIT, &handle),
		                 host_result);
		expect_capabilities(devices[i], 0);
	}
}
