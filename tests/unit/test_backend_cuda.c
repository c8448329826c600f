/*
 * The CUDA backend against a driver that has only the functions that a test allows. The tests check
 * the spelling of calls with an older and a newer driver, and the abilities of a driver that lacks
 * functions.
 */
#define SETUP setup
#include "unit.h"

#include <pthread.h>
#include <sched.h>

#include <stdlib.h>
#include <string.h>

#include "abi/cuda.h"
#include "context_end.h"
#include "backend.h"
#include "backend_cuda.h"
#include "ended.h"
#include "mempolicy.h"
#include "numa.h"

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

/* Attributes that are 0; all others are 1. */
static CUdevice_attribute lacks[2];

static CUresult attribute(int *value, CUdevice_attribute which, CUdevice device)
{
	*value = which != lacks[0] && which != lacks[1];
	return CUDA_SUCCESS;
}

static int setup(void **state)
{
	memset(&spill_cuda, 0, sizeof(spill_cuda));
	spill_cuda.cuDeviceGetAttribute = attribute;
	lacks[0] = CU_DEVICE_ATTRIBUTE_INTEGRATED;
	lacks[1] = CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS_USES_HOST_PAGE_TABLES;
	old_calls = new_calls = 0;
	return 0;
}

TEST(a_driver_before_12_2_gets_a_device)
{
	spill_cuda.cuMemAdvise = old_advise;
	spill_cuda.cuMemPrefetchAsync = old_prefetch;
	assert_int_equal(spill_backend_cuda.memory->advise_preferred(0, 1, SPILL_LOCATION_HOST, 3), 0);
	assert_int_equal(advised_device, CU_DEVICE_CPU);
	assert_int_equal(spill_backend_cuda.memory->advise_accessed_by(0, 1, SPILL_LOCATION_DEVICE, 3), 0);
	assert_int_equal(advised_device, 3);
	assert_int_equal(spill_backend_cuda.memory->prefetch(0, 1, 3), 0);
	assert_int_equal(advised_device, 3);
	assert_int_equal(old_calls, 3);
}

TEST(a_driver_that_has_the_location_form_gets_it)
{
	spill_cuda.cuMemAdvise = old_advise;
	spill_cuda.cuMemAdvise_v2 = new_advise;
	spill_cuda.cuMemPrefetchAsync = old_prefetch;
	spill_cuda.cuMemPrefetchAsync_v2 = new_prefetch;
	assert_int_equal(spill_backend_cuda.memory->advise_preferred(0, 1, SPILL_LOCATION_HOST, 3), 0);
	assert_int_equal(advised_location.type, CU_MEM_LOCATION_TYPE_HOST);
	assert_int_equal(spill_backend_cuda.memory->prefetch(0, 1, 3), 0);
	assert_int_equal(advised_location.type, CU_MEM_LOCATION_TYPE_DEVICE);
	assert_int_equal(advised_location.id, 3);
	assert_int_equal(old_calls, 0);
	assert_int_equal(new_calls, 2);
}

TEST(a_driver_without_either_says_so)
{
	assert_int_equal(spill_backend_cuda.memory->prefetch(0, 1, 0), CUDA_ERROR_NOT_SUPPORTED);
	assert_int_equal(spill_backend_cuda.memory->advise_read_mostly(0, 1, 0), CUDA_ERROR_NOT_SUPPORTED);
	assert_int_equal(spill_backend_cuda.devices->capabilities(0), SPILL_CAN_HOST);
}

TEST(a_device_says_what_its_memory_is)
{
	lacks[0] = lacks[1];
	assert_int_equal(spill_backend_cuda.devices->capabilities(0), SPILL_CAN_HOST | SPILL_IS_INTEGRATED);
	lacks[1] = 0;
	assert_int_equal(spill_backend_cuda.devices->capabilities(0), SPILL_CAN_HOST | SPILL_IS_INTEGRATED);
	lacks[0] = CU_DEVICE_ATTRIBUTE_INTEGRATED;
	assert_int_equal(spill_backend_cuda.devices->capabilities(0), SPILL_CAN_HOST | SPILL_IS_COHERENT);
	lacks[1] = CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS;
	assert_int_equal(spill_backend_cuda.devices->capabilities(0), SPILL_CAN_HOST);
}

static int driver_version;
static CUresult told_result;

static CUresult version_of(int *version)
{
	*version = driver_version;
	return CUDA_SUCCESS;
}

/* A driver does not know the attributes of later ones. */
static CUresult attribute_of_version(int *value, CUdevice_attribute which, CUdevice device)
{
	if (which == CU_DEVICE_ATTRIBUTE_HOST_NUMA_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED && told_result)
		return told_result;
	return attribute(value, which, device);
}

TEST(host_chunks_are_told_from_12_9_on_and_there_from_12_2_on)
{
	static char function; /* is not called */
	spill_cuda.cuDriverGetVersion = version_of;
	spill_cuda.cuDeviceGetAttribute = attribute_of_version;
	*(void **)&spill_cuda.cuMemCreate = *(void **)&spill_cuda.cuMemRelease = &function;
	*(void **)&spill_cuda.cuMemMap = *(void **)&spill_cuda.cuMemUnmap = &function;
	*(void **)&spill_cuda.cuMemSetAccess = *(void **)&spill_cuda.cuMemAddressReserve = &function;
	*(void **)&spill_cuda.cuMemAddressFree = *(void **)&spill_cuda.cuMemGetAllocationGranularity =
	    &function;
	for (int told = 0; told < 2; told++) {
		told_result = told ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
		for (driver_version = 11040; driver_version < 13020; driver_version += 10) {
			bool can = spill_backend_cuda.devices->capabilities(0) & SPILL_CAN_SPLIT;
			assert_int_equal(can, driver_version >= 12020 && (told || driver_version < 12090));
		}
	}
}

static CUmemLocation created_at;

static CUresult create_physical(CUmemGenericAllocationHandle *handle, size_t size,
                                const CUmemAllocationProp *wanted, unsigned long long flags)
{
	created_at = wanted->location;
	return CUDA_SUCCESS;
}

#define POOL ((CUmemoryPool)0x77)

static CUmemPoolProps pool_of;
static CUresult create_answer, set_answer;
static unsigned pools_alive;

static CUresult create_pool(CUmemoryPool *pool, const CUmemPoolProps *wanted)
{
	pool_of = *wanted;
	if (create_answer)
		return create_answer;
	pools_alive++;
	*pool = POOL;
	return CUDA_SUCCESS;
}

static CUresult set_pool(CUmemoryPool pool, CUmemPool_attribute which, void *value)
{
	assert_ptr_equal(pool, POOL);
	assert_int_equal(which, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD);
	assert_true(*(cuuint64_t *)value == UINT64_MAX);
	return set_answer;
}

static CUresult destroy_pool(CUmemoryPool pool)
{
	assert_ptr_equal(pool, POOL);
	pools_alive--;
	return CUDA_SUCCESS;
}

static void never(void)
{
	abort();
}

static void use_pools(void)
{
	void *unused = (void *)never;
	spill_cuda.cuMemPoolCreate = create_pool;
	spill_cuda.cuMemPoolSetAttribute = set_pool;
	spill_cuda.cuMemPoolDestroy = destroy_pool;
	create_answer = set_answer = CUDA_SUCCESS;
	pools_alive = 0;
	memcpy(&spill_cuda.cuMemPoolSetAccess, &unused, sizeof(unused));
	memcpy(&spill_cuda.cuMemPoolGetAttribute, &unused, sizeof(unused));
	memcpy(&spill_cuda.cuMemPoolTrimTo, &unused, sizeof(unused));
	memcpy(&spill_cuda.cuMemAllocFromPoolAsync, &unused, sizeof(unused));
	memcpy(&spill_cuda.cuMemFreeAsync, &unused, sizeof(unused));
}

TEST(a_pool_is_on_the_node_that_is_named)
{
	void *pool;
	use_pools();
	for (int node = 1; node >= 0; node--) {
		assert_true(spill_numa_use("/nonexistent", node ? SPILL_NODE_NEAREST : 0));
		assert_int_equal(
		    spill_backend_cuda.pools->create(3, SPILL_PLACE_MANAGED, SPILL_LOCATION_HOST, &pool), 0);
		assert_int_equal(pool_of.location.type, CU_MEM_LOCATION_TYPE_HOST_NUMA);
		assert_int_equal(pool_of.location.id, node);
	}
	spill_numa_use("", SPILL_NODE_NEAREST);
}

/* One that would not keep its memory is no use. */
TEST(a_pool_that_cannot_be_made_is_none)
{
	const struct spill_vendor_pools *pools = spill_backend_cuda.pools;
	void *pool = NULL;
	use_pools();
	create_answer = CUDA_ERROR_OUT_OF_MEMORY;
	assert_int_equal(pools->create(3, SPILL_PLACE_DEVICE, SPILL_LOCATION_NONE, &pool), create_answer);
	create_answer = CUDA_SUCCESS;
	set_answer = CUDA_ERROR_INVALID_VALUE;
	assert_int_equal(pools->create(3, SPILL_PLACE_DEVICE, SPILL_LOCATION_NONE, &pool), set_answer);
	assert_int_equal(pools_alive, 0);
	assert_null(pool);
	set_answer = CUDA_SUCCESS;
	assert_int_equal(pools->create(3, SPILL_PLACE_DEVICE, SPILL_LOCATION_NONE, &pool), 0);
	assert_ptr_equal(pool, POOL);
	assert_int_equal(pools_alive, 1);
}

/* Pools of the device need nothing of the host. */
TEST(pools_on_the_host_need_a_device_that_has_them)
{
	static const CUdevice_attribute needed[] = {
	    CU_DEVICE_ATTRIBUTE_HOST_NUMA_MEMORY_POOLS_SUPPORTED,
	    CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS,
	};
	const struct spill_vendor_pools *pools = spill_backend_cuda.pools;
	void *pool;
	use_pools();
	for (unsigned i = 0; i < 2; i++) {
		lacks[0] = needed[i];
		assert_int_equal(pools->create(3, SPILL_PLACE_MANAGED, SPILL_LOCATION_HOST, &pool),
		                 CUDA_ERROR_NOT_SUPPORTED);
		assert_int_equal(pools->create(3, SPILL_PLACE_DEVICE, SPILL_LOCATION_NONE, &pool), 0);
		assert_int_equal(pool_of.location.type, CU_MEM_LOCATION_TYPE_DEVICE);
	}
	lacks[0] = CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED;
	assert_int_equal(pools->create(3, SPILL_PLACE_DEVICE, SPILL_LOCATION_NONE, &pool),
	                 CUDA_ERROR_NOT_SUPPORTED);
}

/* A function of the driver's, as the backend keeps it. */
#define KEPT(name) ((void **)(void *)&spill_cuda.name)

static bool can_split(void)
{
	return spill_backend_cuda.devices->capabilities(0) & SPILL_CAN_SPLIT;
}

static bool can_make_pools(void)
{
	void *pool;
	return !spill_backend_cuda.pools->create(3, SPILL_PLACE_DEVICE, SPILL_LOCATION_NONE, &pool);
}

/* Each of them: a driver that lacks one has none of what they do together. */
static void expect_all_needed(bool (*can)(void), void **const functions[], size_t count)
{
	assert_true(can());
	for (size_t i = 0; i < count; i++) {
		void *kept = *functions[i];
		assert_non_null(kept);
		*functions[i] = NULL;
		assert_false(can());
		*functions[i] = kept;
	}
	assert_true(can());
}

TEST(chunks_need_each_of_their_functions)
{
	static char function; /* is not called */
	void **const needed[] = {KEPT(cuMemCreate),      KEPT(cuMemRelease),
	                         KEPT(cuMemMap),         KEPT(cuMemUnmap),
	                         KEPT(cuMemSetAccess),   KEPT(cuMemAddressReserve),
	                         KEPT(cuMemAddressFree), KEPT(cuMemGetAllocationGranularity)};
	for (unsigned i = 0; i < sizeof(needed) / sizeof(needed[0]); i++)
		*needed[i] = &function;
	spill_cuda.cuDriverGetVersion = version_of;
	driver_version = 12080;
	expect_all_needed(can_split, needed, sizeof(needed) / sizeof(needed[0]));
}

TEST(pools_need_each_of_their_functions)
{
	void **const needed[] = {KEPT(cuMemPoolCreate),         KEPT(cuMemPoolDestroy),
	                         KEPT(cuMemPoolSetAccess),      KEPT(cuMemPoolSetAttribute),
	                         KEPT(cuMemPoolGetAttribute),   KEPT(cuMemPoolTrimTo),
	                         KEPT(cuMemAllocFromPoolAsync), KEPT(cuMemFreeAsync)};
	use_pools();
	expect_all_needed(can_make_pools, needed, sizeof(needed) / sizeof(needed[0]));
}

static struct {
	CUmemPool_attribute fails; /* 0: none */
	cuuint64_t reserved, used;
} figures;

static CUresult get_pool(CUmemoryPool pool, CUmemPool_attribute which, void *value)
{
	assert_ptr_equal(pool, POOL);
	if (which == figures.fails)
		return CUDA_ERROR_INVALID_VALUE;
	assert_true(which == CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT ||
	            which == CU_MEMPOOL_ATTR_USED_MEM_CURRENT);
	*(cuuint64_t *)value = which == CU_MEMPOOL_ATTR_USED_MEM_CURRENT ? figures.used : figures.reserved;
	return CUDA_SUCCESS;
}

/* An output is untouched on failure, whichever figure failed. */
TEST(a_pool_tells_its_figures_or_nothing)
{
	const struct spill_vendor_pools *pools = spill_backend_cuda.pools;
	uint64_t bytes = 77;
	assert_int_equal(pools->reserved(POOL, &bytes), CUDA_ERROR_NOT_SUPPORTED);
	assert_int_equal(pools->unused(POOL, &bytes), CUDA_ERROR_NOT_SUPPORTED);
	spill_cuda.cuMemPoolGetAttribute = get_pool;
	figures.reserved = 500;
	figures.used = 200;
	figures.fails = CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT;
	assert_int_equal(pools->reserved(POOL, &bytes), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(pools->unused(POOL, &bytes), CUDA_ERROR_INVALID_VALUE);
	figures.fails = CU_MEMPOOL_ATTR_USED_MEM_CURRENT;
	assert_int_equal(pools->unused(POOL, &bytes), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(bytes, 77);
	assert_int_equal(pools->reserved(POOL, &bytes), 0);
	assert_int_equal(bytes, 500);
	figures.fails = 0;
	assert_int_equal(pools->unused(POOL, &bytes), 0);
	assert_int_equal(bytes, 300);
	/* Another thread may take memory between the two questions. */
	figures.used = 600;
	assert_int_equal(pools->unused(POOL, &bytes), 0);
	assert_int_equal(bytes, 0);
}

/* The device says node 1. The root is that of a machine without NUMA, which has node 0. */
TEST(host_memory_is_on_the_node_that_is_named)
{
	uint64_t handle;
	spill_cuda.cuMemCreate = create_physical;
	spill_cuda.cuMemAdvise_v2 = new_advise;
	assert_int_equal(spill_backend_cuda.physical->create(3, true, 1, &handle), 0);
	assert_int_equal(created_at.type, CU_MEM_LOCATION_TYPE_HOST_NUMA);
	assert_int_equal(created_at.id, 1);
	assert_true(spill_numa_use("/nonexistent", 0));
	assert_int_equal(spill_backend_cuda.physical->create(3, true, 1, &handle), 0);
	assert_int_equal(created_at.type, CU_MEM_LOCATION_TYPE_HOST_NUMA);
	assert_int_equal(created_at.id, 0);
	assert_int_equal(spill_backend_cuda.physical->create(3, false, 1, &handle), 0);
	assert_int_equal(created_at.type, CU_MEM_LOCATION_TYPE_DEVICE);
	assert_int_equal(created_at.id, 3);
	assert_int_equal(spill_backend_cuda.memory->advise_preferred(0, 1, SPILL_LOCATION_HOST, 3), 0);
	assert_int_equal(advised_location.type, CU_MEM_LOCATION_TYPE_HOST_NUMA);
	assert_int_equal(advised_location.id, 0);
	assert_int_equal(spill_backend_cuda.memory->advise_preferred(0, 1, SPILL_LOCATION_DEVICE, 3), 0);
	assert_int_equal(advised_location.type, CU_MEM_LOCATION_TYPE_DEVICE);
	/* The vendor takes no node there. */
	assert_int_equal(spill_backend_cuda.memory->advise_accessed_by(0, 1, SPILL_LOCATION_HOST, 3), 0);
	assert_int_equal(advised_location.type, CU_MEM_LOCATION_TYPE_HOST);
	/* A driver that has only the older form. */
	spill_cuda.cuMemAdvise_v2 = NULL;
	spill_cuda.cuMemAdvise = old_advise;
	assert_int_equal(spill_backend_cuda.memory->advise_preferred(0, 1, SPILL_LOCATION_HOST, 3), 0);
	assert_int_equal(advised_device, CU_DEVICE_CPU);
	spill_numa_use("", SPILL_NODE_NEAREST);
}

/* A driver that has descriptors for some kinds of memory only, or is full. */
static CUmemLocationType no_descriptors_for;
static CUresult full;
static unsigned made[2]; /* without and with a descriptor. */

static CUresult create_some(CUmemGenericAllocationHandle *handle, size_t size,
                            const CUmemAllocationProp *wanted, unsigned long long flags)
{
	if (full)
		return full;
	if (wanted->requestedHandleTypes && wanted->location.type == no_descriptors_for)
		return CUDA_ERROR_NOT_SUPPORTED;
	made[wanted->requestedHandleTypes == CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR]++;
	*handle = made[0] + made[1];
	return CUDA_SUCCESS;
}

static void made_so_far(unsigned without, unsigned with)
{
	assert_int_equal(made[0], without);
	assert_int_equal(made[1], with);
}

TEST(memory_is_shareable_where_the_driver_can)
{
	const struct spill_vendor_physical *physical = spill_backend_cuda.physical;
	uint64_t handle = 0;
	spill_cuda.cuMemCreate = create_some;
	assert_int_equal(physical->create_shareable(4, false, 1, &handle), 0);
	assert_int_equal(handle, 1);
	made_so_far(1, 0); /* there is no function for descriptors */
	assert_int_equal(physical->to_descriptor(1, &(int){0}), CUDA_ERROR_NOT_SUPPORTED);
	assert_int_equal(physical->from_descriptor(1, &handle), CUDA_ERROR_NOT_SUPPORTED);
	assert_int_equal(physical->retain(1, &handle), CUDA_ERROR_NOT_SUPPORTED);
	void *unused = (void *)never;
	memcpy(&spill_cuda.cuMemExportToShareableHandle, &unused, sizeof(unused));
	memcpy(&spill_cuda.cuMemImportFromShareableHandle, &unused, sizeof(unused));
	memcpy(&spill_cuda.cuMemRetainAllocationHandle, &unused, sizeof(unused));
	no_descriptors_for = CU_MEM_LOCATION_TYPE_HOST_NUMA;
	/* The second one on the host does not ask for one again. */
	full = CUDA_ERROR_OUT_OF_MEMORY;
	assert_int_equal(physical->create_shareable(4, true, 1, &handle), CUDA_ERROR_OUT_OF_MEMORY);
	assert_int_equal(handle, 1); /* as it was */
	full = CUDA_SUCCESS;
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(physical->create_shareable(4, false, 1, &handle), 0);
		assert_int_equal(physical->create_shareable(4, true, 1, &handle), 0);
	}
	made_so_far(3, 2);
	no_descriptors_for = CU_MEM_LOCATION_TYPE_INVALID;
	assert_int_equal(physical->create_shareable(4, true, 1, &handle), 0);
	made_so_far(4, 2);
	/* What the program asks for is made as it asks. */
	assert_int_equal(physical->create(4, false, 1, &handle), 0);
	made_so_far(5, 2);
	assert_int_equal(handle, 7);
	/* A driver that has no attribute for them, as on WSL2. */
	lacks[0] = CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED;
	assert_int_equal(physical->create_shareable(5, false, 1, &handle), 0);
	made_so_far(6, 2);
}

static CUresult primary_error;
static int primary_active;

static CUresult primary_state(CUdevice device, unsigned int *flags, int *active)
{
	*flags = 0;
	*active = primary_active;
	return primary_error;
}

/* The first and the last one of the table are as any other. Of a device behind it, or of none, nothing is noted. */
TEST(what_a_driver_refuses_is_noted_of_each_device)
{
	static const int devices[] = {0, SPILL_DEVICES - 1, SPILL_DEVICES, -1};
	const struct spill_vendor_physical *physical = spill_backend_cuda.physical;
	static char function; /* is not called */
	uint64_t handle = 0;
	void *context = NULL;
	spill_cuda.cuMemCreate = create_some;
	spill_cuda.cuDevicePrimaryCtxGetState = primary_state;
	primary_error = CUDA_ERROR_UNKNOWN; /* so only what is known counts */
	*(void **)&spill_cuda.cuMemExportToShareableHandle = &function;
	*(void **)&spill_cuda.cuMemImportFromShareableHandle = &function;
	*(void **)&spill_cuda.cuMemRetainAllocationHandle = &function;
	for (unsigned i = 0; i < 4; i++) {
		bool in_table = i < 2;
		full = CUDA_SUCCESS;
		assert_int_equal(physical->shareable(devices[i], true), in_table);
		assert_false(spill_cuda_refused_host_chunk(devices[i]));
		full = CUDA_ERROR_NOT_SUPPORTED;
		assert_int_equal(physical->create(devices[i], true, 1, &handle), full);
		assert_int_equal(spill_cuda_refused_host_chunk(devices[i]), in_table);
		spill_backend_cuda.contexts->primary_retained(devices[i], &function);
		assert_int_equal(
		    devices[i] >= 0 && spill_backend_cuda.contexts->primary(devices[i], &context), in_table);
	}
	full = CUDA_SUCCESS;
}

static int mode_within;
static unsigned long nodes_within;
static CUresult host_answer;

static CUresult host_alloc(void **host, size_t bytes, unsigned int flags)
{
	mode_within = mempolicy_now(&nodes_within);
	*host = &host_answer;
	return host_answer;
}

static CUresult device_pointer(CUdeviceptr *pointer, void *host, unsigned int flags)
{
	*pointer = (CUdeviceptr)(uintptr_t)host;
	return CUDA_SUCCESS;
}

/* Of the thread, during the call only, whether it succeeds or not. */
TEST(pinned_memory_is_on_the_node_that_is_named)
{
	unsigned long nodes;
	uint64_t ptr;
	void *host;
	int usual = mempolicy_now(&nodes);
	if (usual < 0)
		skip();
	spill_cuda.cuMemHostAlloc = host_alloc;
	spill_cuda.cuMemHostGetDevicePointer_v2 = device_pointer;
	for (unsigned i = 0; i < 4; i++) {
		bool named = i % 2;
		host_answer = i / 2 ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
		assert_true(spill_numa_use("/nonexistent", named ? 0 : SPILL_NODE_NEAREST));
		assert_int_equal(spill_backend_cuda.memory->host_alloc(4096, &ptr, &host), host_answer);
		assert_int_equal(mode_within, named ? MPOL_PREFERRED : usual);
		assert_true(!named || nodes_within == 1);
		assert_int_equal(mempolicy_now(&nodes), usual);
	}
	spill_numa_use("", SPILL_NODE_NEAREST);
}

/* A driver that lacks what is required is passed through whole. */
static void *resolve_nothing(enum spill_domain domain, const char *symbol)
{
	return NULL;
}

TEST_WITH(an_unknown_driver_is_refused, NULL, NULL)
{
	assert_false(spill_backend_cuda.start(resolve_nothing));
}

TEST(a_plain_allocation_takes_whole_blocks)
{
	const uint64_t mib = 1 << 20;
	assert_int_equal(spill_backend_cuda.memory->footprint(1), 512);
	assert_int_equal(spill_backend_cuda.memory->footprint(mib), mib);
	assert_int_equal(spill_backend_cuda.memory->footprint(mib + 1), 2 * mib);
	assert_int_equal(spill_backend_cuda.memory->footprint(UINT64_MAX), UINT64_MAX);
}

/* -- moving ------------------------------------------------------------------------------------------------- */

/* A driver whose contexts and events are addresses: an event of a context that has ended, or of another, is refused. */
struct event {
	CUcontext of;
	CUstream on; /* what it was recorded on last, if on a stream */
	unsigned records, marks;
	bool passed;
};

static struct event events[80];
static unsigned events_made, events_ended, depth, relaxed;
static CUcontext stack[8], ended;
static CUresult create_result, stream_result;

static CUresult get_current(CUcontext *context)
{
	*context = stack[depth];
	return CUDA_SUCCESS;
}

static CUresult push(CUcontext context)
{
	stack[++depth] = context;
	return CUDA_SUCCESS;
}

static CUresult pop(CUcontext *context)
{
	*context = stack[depth--];
	return CUDA_SUCCESS;
}

static CUresult event_create(CUevent *event, unsigned int flags)
{
	assert_int_equal(flags, CU_EVENT_DISABLE_TIMING);
	if (create_result)
		return create_result;
	struct event *made = &events[events_made++];
	*made = (struct event){.of = stack[depth]};
	*event = (CUevent)made;
	return CUDA_SUCCESS;
}

static CUresult event_destroy(CUevent event)
{
	events_ended++;
	return CUDA_SUCCESS;
}

static CUresult judge(const struct event *event)
{
	if (event->of == ended)
		return CUDA_ERROR_CONTEXT_IS_DESTROYED;
	return event->of == stack[depth] ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

static CUresult event_record(CUevent event, CUstream stream)
{
	struct event *one = (struct event *)event;
	if (judge(one))
		return judge(one);
	one->records++;
	one->on = stream;
	return stream_result;
}

static CUresult context_record(CUcontext context, CUevent event)
{
	struct event *one = (struct event *)event;
	if (judge(one))
		return judge(one);
	assert_ptr_equal(context, stack[depth]);
	one->marks++;
	return CUDA_SUCCESS;
}

static CUresult event_query(CUevent event)
{
	const struct event *one = (const struct event *)event;
	assert_true(one->of == ended || relaxed || depth);
	if (one->of == ended)
		return CUDA_ERROR_CONTEXT_IS_DESTROYED;
	return one->passed ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}

static CUresult exchange(CUstreamCaptureMode *mode)
{
	CUstreamCaptureMode before = relaxed ? CU_STREAM_CAPTURE_MODE_RELAXED : CU_STREAM_CAPTURE_MODE_GLOBAL;
	relaxed = *mode == CU_STREAM_CAPTURE_MODE_RELAXED;
	*mode = before;
	return CUDA_SUCCESS;
}

static CUresult stream_create(CUstream *stream, unsigned int flags)
{
	assert_int_equal(flags, CU_STREAM_NON_BLOCKING);
	*stream = (CUstream)stack[depth];
	return stream_result;
}

static CUresult stream_destroy(CUstream stream)
{
	assert_ptr_equal(stream, stack[depth]);
	return CUDA_SUCCESS;
}

static CUdeviceptr copied_to, copied_from;

static CUresult memcpy_async(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream)
{
	copied_to = to;
	copied_from = from;
	assert_int_equal(bytes, 64);
	assert_ptr_equal(stream, stack[depth]);
	return CUDA_SUCCESS;
}

#define CONTEXT(number) ((CUcontext)(uintptr_t)(0x1000 * (number)))

static int setup_moving(void **state)
{
	setup(state);
	spill_cuda.cuCtxGetCurrent = get_current;
	spill_cuda.cuCtxPushCurrent_v2 = push;
	spill_cuda.cuCtxPopCurrent_v2 = pop;
	spill_cuda.cuEventCreate = event_create;
	spill_cuda.cuEventDestroy_v2 = event_destroy;
	spill_cuda.cuEventRecord = event_record;
	spill_cuda.cuEventQuery = event_query;
	spill_cuda.cuCtxRecordEvent = context_record;
	spill_cuda.cuThreadExchangeStreamCaptureMode = exchange;
	spill_cuda.cuStreamCreate = stream_create;
	spill_cuda.cuStreamDestroy_v2 = stream_destroy;
	spill_cuda.cuMemcpyAsync = memcpy_async;
	events_made = events_ended = depth = relaxed = 0;
	stack[0] = CONTEXT(99);
	create_result = stream_result = CUDA_SUCCESS;
	ended = NULL;
	return 0;
}

/* In the right context, which need not be the current one, and is not afterwards. */
TEST_WITH(marks_and_copies_are_made_in_their_context, setup_moving, NULL)
{
	void *mark, *event, *stream;
	assert_int_equal(spill_backend_cuda.moves->mark(0, CONTEXT(1), &mark), 0);
	assert_ptr_equal(((struct event *)mark)->of, CONTEXT(1));
	assert_int_equal(((struct event *)mark)->marks, 1);
	assert_int_equal(spill_backend_cuda.moves->copier_create(0, CONTEXT(1), &stream), 0);
	assert_int_equal(spill_backend_cuda.moves->copy(0, CONTEXT(1), stream, 7, 8, 64), 0);
	assert_true(copied_to == 7 && copied_from == 8);
	assert_int_equal(spill_backend_cuda.events->record(0, CONTEXT(1), stream, false, &event), 0);
	assert_ptr_equal(((struct event *)event)->on, stream);
	assert_false(spill_backend_cuda.events->passed(0, CONTEXT(1), event));
	((struct event *)event)->passed = true;
	assert_true(spill_backend_cuda.events->passed(0, CONTEXT(1), event));
	assert_int_equal(relaxed, 0);
	assert_ptr_not_equal(mark, event);
	spill_backend_cuda.moves->copier_destroy(0, CONTEXT(1), stream);
	assert_int_equal(depth, 0);
	stream_result = CUDA_ERROR_OUT_OF_MEMORY;
	stream = NULL;
	assert_int_equal(spill_backend_cuda.moves->copier_create(0, CONTEXT(1), &stream),
	                 CUDA_ERROR_OUT_OF_MEMORY);
	assert_null(stream);
	assert_int_equal(depth, 0);
}

/* The error of earlier work, from the calls that put the thread's state back: before or behind the change. */
static unsigned pop_errors, exchange_errors;
static bool popped_all_the_same;

static CUresult pop_with_error(CUcontext *context)
{
	if (!pop_errors)
		return pop(context);
	pop_errors--;
	if (popped_all_the_same)
		pop(context);
	return CUDA_ERROR_LAUNCH_FAILED;
}

static CUresult exchange_with_error(CUstreamCaptureMode *mode)
{
	if (exchange_errors != 1) {
		exchange_errors -= exchange_errors > 0;
		return exchange(mode);
	}
	exchange_errors--;
	return CUDA_ERROR_LAUNCH_FAILED;
}

TEST_WITH(errors_of_earlier_work_leave_the_thread_as_it_was, setup_moving, NULL)
{
	void *event;
	spill_cuda.cuCtxPopCurrent_v2 = pop_with_error;
	for (int way = 0; way < 2; way++) {
		popped_all_the_same = way;
		pop_errors = 1;
		assert_int_equal(spill_backend_cuda.moves->mark(0, CONTEXT(1), &event), 0);
		assert_int_equal(pop_errors, 0);
		assert_int_equal(depth, 0);
	}
	spill_cuda.cuThreadExchangeStreamCaptureMode = exchange_with_error;
	for (unsigned which = 1; which <= 2; which++) { /* the first exchange, or the one that puts it back */
		exchange_errors = which;
		assert_false(spill_backend_cuda.events->passed(0, CONTEXT(1), event));
		assert_int_equal(exchange_errors, 0);
		assert_int_equal(relaxed, 0);
		assert_int_equal(depth, 0);
	}
}

static unsigned primary_retains;

static CUresult primary_retain(CUcontext *context, CUdevice device)
{
	primary_retains++;
	*context = CONTEXT(7);
	return CUDA_SUCCESS;
}

/* Libspill saw the program retain it, and no end. */
TEST_WITH(a_primary_context_is_known_without_the_drivers_answer, setup_moving, NULL)
{
	const struct spill_vendor_contexts *contexts = spill_backend_cuda.contexts;
	void *context = NULL;
	spill_cuda.cuDevicePrimaryCtxGetState = primary_state;
	spill_cuda.cuDevicePrimaryCtxRetain = primary_retain;
	primary_error = CUDA_ERROR_UNKNOWN;
	assert_false(contexts->primary(2, &context)); /* nobody retained it */
	assert_int_equal(primary_retains, 0);
	contexts->primary_retained(2, CONTEXT(7));
	assert_true(contexts->primary(2, &context));
	assert_ptr_equal(context, CONTEXT(7));
	primary_error = CUDA_SUCCESS;
	assert_false(contexts->primary(2, &context)); /* it has ended */
}

/* An end that covers what was made before it leaves alone what was retained behind it, by the same handle. */
TEST_WITH(a_primary_context_that_is_made_again_stays, setup_moving, NULL)
{
	const struct spill_vendor_contexts *contexts = spill_backend_cuda.contexts;
	void *context = NULL;
	spill_cuda.cuDevicePrimaryCtxGetState = primary_state;
	primary_error = CUDA_ERROR_UNKNOWN;
	contexts->primary_retained(2, CONTEXT(7));
	const struct spill_context_end end = ended_now(&spill_backend_cuda, 2, CONTEXT(7));
	contexts->primary_retained(2, CONTEXT(7));
	contexts->ended(&end);
	assert_true(contexts->primary(2, &context));
	contexts->ended(ENDED(&spill_backend_cuda, 2, CONTEXT(7)));
	assert_false(contexts->primary(2, &context));
}

static unsigned primary_releases;

static CUresult primary_release(CUdevice device)
{
	primary_releases++;
	return CUDA_SUCCESS;
}

/* The program's own release must stay the last one: a reference of ours would keep all memory of the context. */
TEST_WITH(a_primary_context_is_held_for_a_moment, setup_moving, NULL)
{
	const struct spill_vendor_contexts *contexts = spill_backend_cuda.contexts;
	void *context = NULL;
	spill_cuda.cuDevicePrimaryCtxGetState = primary_state;
	spill_cuda.cuDevicePrimaryCtxRetain = primary_retain;
	spill_cuda.cuDevicePrimaryCtxRelease_v2 = primary_release;
	primary_error = CUDA_SUCCESS;
	primary_active = 1;
	primary_retains = primary_releases = 0;
	for (int i = 0; i < 3; i++) {
		assert_true(contexts->primary(3, &context));
		assert_ptr_equal(context, CONTEXT(7));
		assert_int_equal(primary_retains, 1); /* known from then on */
		assert_int_equal(primary_releases, 1);
	}
	primary_active = 0;
	assert_false(contexts->primary(3, &context));
}

static int device_of_current;
static CUresult retain_error, push_error;

static CUresult current_device(CUdevice *device)
{
	*device = device_of_current;
	return CUDA_SUCCESS;
}

static CUresult retain_or_not(CUcontext *context, CUdevice device)
{
	return retain_error ? retain_error : primary_retain(context, device);
}

static CUresult push_or_not(CUcontext context)
{
	return push_error ? push_error : push(context);
}

/* The context is kept, so it is known from then on. A driver that refuses leaves nothing behind. */
TEST_WITH(a_missing_primary_context_is_made_and_entered, setup_moving, NULL)
{
	const struct spill_vendor_devices *devices = spill_backend_cuda.devices;
	const struct spill_vendor_contexts *contexts = spill_backend_cuda.contexts;
	void *before = &device_of_current, *context = NULL;
	spill_cuda.cuCtxGetDevice = current_device;
	spill_cuda.cuCtxPushCurrent_v2 = push_or_not;
	spill_cuda.cuDevicePrimaryCtxGetState = primary_state;
	primary_error = CUDA_ERROR_UNKNOWN; /* so only what is known counts */
	primary_retains = 0;
	device_of_current = 4;
	assert_int_equal(devices->enter(5, &before), CUDA_ERROR_NOT_SUPPORTED);
	assert_null(before);
	spill_cuda.cuDevicePrimaryCtxRetain = retain_or_not;
	retain_error = CUDA_ERROR_OUT_OF_MEMORY;
	assert_int_equal(devices->enter(5, &before), CUDA_ERROR_OUT_OF_MEMORY);
	assert_false(contexts->primary(5, &context));
	assert_true(!before && depth == 0);
	retain_error = 0;
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(devices->enter(5, &before), CUDA_SUCCESS);
		assert_true(contexts->primary(5, &context));
		assert_true(context == CONTEXT(7) && before == context && depth == 1 && stack[1] == context);
		assert_int_equal(primary_retains, 1);
		devices->leave(before);
		assert_int_equal(depth, 0);
	}
	push_error = CUDA_ERROR_INVALID_CONTEXT;
	assert_int_equal(devices->enter(5, &before), CUDA_ERROR_INVALID_CONTEXT);
	assert_null(before);
	assert_int_equal(devices->enter(6, &before), CUDA_ERROR_INVALID_CONTEXT); /* made, but not entered */
	assert_null(before);
	push_error = 0;
	assert_int_equal(devices->enter(4, &before), CUDA_SUCCESS); /* the current one's */
	assert_null(before);
	devices->leave(before);
	assert_int_equal(depth, 0);
}

/* Making an event can wait for other threads, so those that are there are used, and used again. */
TEST_WITH(events_made_ahead_are_used, setup_moving, NULL)
{
	void *event[4];
	assert_int_equal(spill_backend_cuda.moves->events_ahead(0, CONTEXT(2), 3), 0);
	assert_int_equal(events_made, 3);
	assert_int_equal(spill_backend_cuda.moves->events_ahead(0, CONTEXT(2), 3), 0);
	assert_int_equal(events_made, 3);
	create_result = CUDA_ERROR_OUT_OF_MEMORY;
	for (unsigned round = 0; round < 3; round++) {
		for (unsigned i = 0; i < 3; i++)
			assert_int_equal(spill_backend_cuda.moves->mark(0, CONTEXT(2), &event[i]), 0);
		assert_int_equal(spill_backend_cuda.moves->mark(0, CONTEXT(2), &event[3]),
		                 CUDA_ERROR_OUT_OF_MEMORY);
		for (unsigned i = 0; i < 3; i++)
			spill_backend_cuda.events->destroy(0, CONTEXT(2), event[i]);
	}
	/* Another context has none of them. */
	assert_int_equal(spill_backend_cuda.moves->mark(0, CONTEXT(3), &event[3]), CUDA_ERROR_OUT_OF_MEMORY);
	/* One that cannot be recorded is not lost. */
	stream_result = CUDA_ERROR_UNKNOWN;
	for (unsigned i = 0; i < 9; i++)
		assert_int_equal(spill_backend_cuda.events->record(0, CONTEXT(2), NULL, false, &event[0]),
		                 CUDA_ERROR_UNKNOWN);
	assert_int_equal(depth, 0);
	assert_int_equal(events_ended, 0);
}

/* More often than there is room for events that wait to be used again. */
TEST_WITH(an_event_is_used_again_for_ever, setup_moving, NULL)
{
	void *event;
	assert_int_equal(spill_backend_cuda.moves->events_ahead(0, CONTEXT(5), 1), 0);
	for (unsigned i = 0; i < 1000; i++) {
		assert_int_equal(spill_backend_cuda.moves->mark(0, CONTEXT(5), &event), 0);
		spill_backend_cuda.events->destroy(0, CONTEXT(5), event);
	}
	assert_int_equal(events_made, 1);
	assert_int_equal(events_ended, 0);
}

/* An event of a context that has ended is not used, neither by another of the same address. */
TEST_WITH(events_of_an_ended_context_are_dropped, setup_moving, NULL)
{
	void *event;
	assert_int_equal(spill_backend_cuda.moves->events_ahead(0, CONTEXT(4), 2), 0);
	events[0].of = events[1].of = ended = CONTEXT(40); /* as the driver sees them */
	assert_int_equal(spill_backend_cuda.moves->mark(0, CONTEXT(4), &event), 0);
	assert_ptr_equal(event, &events[2]);
	spill_backend_cuda.events->destroy(0, CONTEXT(4), event);
	events[2].of = CONTEXT(41); /* the wrong one */
	assert_int_equal(spill_backend_cuda.moves->mark(0, CONTEXT(4), &event), 0);
	assert_ptr_equal(event, &events[3]);
}

/* They are forgotten with it: the driver would take one whose handle is another context's event by now. */
TEST_WITH(events_end_with_their_context, setup_moving, NULL)
{
	void *event;
	assert_int_equal(spill_backend_cuda.moves->events_ahead(0, CONTEXT(7), 2), 0);
	unsigned made = events_made;
	struct spill_context_end end = spill_context_end_begin(&spill_backend_cuda, 0, CONTEXT(7));
	spill_backend_cuda.contexts->ended(&end);
	spill_context_end_finish(&end, false);
	assert_int_equal(spill_backend_cuda.moves->mark(0, CONTEXT(7), &event), 0);
	assert_int_equal(events_made, made + 1);
	spill_backend_cuda.events->destroy(0, CONTEXT(7), event);
	assert_int_equal(spill_backend_cuda.moves->mark(0, CONTEXT(7), &event), 0);
	assert_int_equal(events_made, made + 1);
}

/* There is room for a number of them; the rest is destroyed, and ended ones make room. */
TEST_WITH(spare_events_are_bounded, setup_moving, NULL)
{
	assert_int_equal(spill_backend_cuda.moves->events_ahead(0, CONTEXT(5), 64), 0);
	unsigned kept = events_made - events_ended;
	assert_true(events_ended > 0 && kept > 32); /* what the tests before have left is there, too */
	ended = CONTEXT(5);
	assert_int_equal(spill_backend_cuda.moves->events_ahead(0, CONTEXT(6), 4), 0);
	assert_int_equal(events_made - events_ended, kept + 4);
}

/* Ends all contexts of the tests before. Then all places are taken by spares of one. */
static void fill_spares(CUcontext context)
{
	struct spill_context_end end = spill_context_end_begin(&spill_backend_cuda, 0, NULL);
	spill_backend_cuda.contexts->ended(&end);
	spill_context_end_finish(&end, false);
	ended = NULL;
	unsigned destroyed = events_ended;
	assert_int_equal(spill_backend_cuda.moves->events_ahead(0, context, 64), 0);
	assert_int_equal(events_ended, destroyed);
}

static void all_are_there(CUcontext context)
{
	unsigned made = events_made;
	assert_int_equal(spill_backend_cuda.moves->events_ahead(0, context, 64), 0);
	assert_int_equal(events_made, made);
}

static void makes_one_for(CUcontext context, unsigned makes)
{
	void *event;
	unsigned made = events_made;
	assert_int_equal(spill_backend_cuda.moves->mark(0, context, &event), 0);
	assert_int_equal(events_made, made + makes);
	spill_backend_cuda.events->destroy(0, context, event);
}

/* Its spares stay where they are. */
TEST_WITH(another_context_makes_no_room, setup_moving, NULL)
{
	fill_spares(CONTEXT(5));
	unsigned destroyed = events_ended;
	makes_one_for(CONTEXT(6), 1);
	assert_int_equal(events_ended, destroyed + 1);
	all_are_there(CONTEXT(5));
}

static void *end_and_undo(void *unused)
{
	struct spill_context_end end = spill_context_end_begin(&spill_backend_cuda, 0, CONTEXT(5));
	spill_context_end_finish(&end, true);
	return NULL;
}

/* An end waits for a thread that holds the context. Whether the spares live is not known yet, so they stay. */
TEST_WITH(a_context_whose_end_begins_makes_no_room, setup_moving, NULL)
{
	struct spill_context_hold hold;
	pthread_t thread;
	fill_spares(CONTEXT(5));
	unsigned destroyed = events_ended;
	assert_true(spill_context_hold(&hold, &spill_backend_cuda, 0, CONTEXT(5), UINT64_MAX));
	assert_int_equal(pthread_create(&thread, NULL, end_and_undo, NULL), 0);
	while (!spill_context_ending(&spill_backend_cuda, 0, CONTEXT(5), 0))
		sched_yield();
	makes_one_for(CONTEXT(6), 1);
	assert_int_equal(events_ended, destroyed + 1);
	spill_context_release(&hold);
	pthread_join(thread, NULL);
	all_are_there(CONTEXT(5));
}

/* A thread was late: it put its event here behind the end. The driver need not be asked. */
TEST_WITH(a_dead_context_makes_room, setup_moving, NULL)
{
	fill_spares(CONTEXT(5));
	unsigned destroyed = events_ended;
	struct spill_context_end end = spill_context_end_begin(&spill_backend_cuda, 0, CONTEXT(5));
	spill_context_end_finish(&end, false);
	makes_one_for(CONTEXT(6), 1);
	assert_int_equal(events_ended, destroyed);
	makes_one_for(CONTEXT(6), 0);
}

TEST_WITH(moves_need_each_of_their_functions, setup_moving, NULL)
{
	void **const needed[] = {KEPT(cuEventCreate),      KEPT(cuEventRecord),    KEPT(cuEventQuery),
	                         KEPT(cuEventDestroy_v2),  KEPT(cuCtxRecordEvent), KEPT(cuStreamCreate),
	                         KEPT(cuStreamDestroy_v2), KEPT(cuMemcpyAsync)};
	expect_all_needed(spill_cuda_can_move, needed, sizeof(needed) / sizeof(needed[0]));
}

TEST_WITH(a_driver_that_cannot_mark_moves_nothing, setup_moving, NULL)
{
	void *event;
	assert_true(spill_cuda_can_move());
	spill_cuda.cuCtxRecordEvent = NULL;
	assert_false(spill_cuda_can_move());
	assert_int_equal(spill_backend_cuda.moves->mark(0, CONTEXT(7), &event), CUDA_ERROR_NOT_SUPPORTED);
	setup_moving(state);
	spill_cuda.cuMemcpyAsync = NULL;
	assert_false(spill_cuda_can_move());
	setup_moving(state);
	spill_cuda.cuEventQuery = NULL;
	assert_false(spill_cuda_can_move());
	assert_int_equal(spill_backend_cuda.devices->capabilities(0) & SPILL_CAN_MOVE, 0);
}

/* -- timing ------------------------------------------------------------------------------------------------- */

static float first_ms, second_ms;
static CUresult elapsed_result;

static CUresult timed_create(CUevent *event, unsigned int flags)
{
	assert_int_equal(flags, CU_EVENT_DEFAULT);
	return event_create(event, CU_EVENT_DISABLE_TIMING);
}

static CUresult between(float *ms, CUevent begin, CUevent end, float value)
{
	assert_int_equal(judge((struct event *)begin), CUDA_SUCCESS);
	assert_int_equal(judge((struct event *)end), CUDA_SUCCESS);
	assert_true(begin < end && relaxed);
	if (!elapsed_result)
		*ms = value;
	return elapsed_result;
}

static CUresult elapsed_first(float *ms, CUevent begin, CUevent end)
{
	return between(ms, begin, end, first_ms);
}

static CUresult elapsed_second(float *ms, CUevent begin, CUevent end)
{
	return between(ms, begin, end, second_ms);
}

static int setup_timing(void **state)
{
	setup_moving(state);
	spill_cuda.cuEventCreate = timed_create;
	spill_cuda.cuEventElapsedTime = elapsed_first;
	spill_cuda.cuEventElapsedTime_v2 = elapsed_second;
	elapsed_result = CUDA_SUCCESS;
	return 0;
}

TEST_WITH(timers_are_of_their_context, setup_timing, NULL)
{
	const struct spill_backend *cuda = &spill_backend_cuda;
	void *begin, *end, *stream = (void *)0x77;
	bool passed = true;
	assert_int_equal(cuda->timers->create(0, CONTEXT(8), &begin), 0);
	assert_int_equal(cuda->timers->create(0, CONTEXT(8), &end), 0);
	assert_ptr_equal(((struct event *)begin)->of, CONTEXT(8));
	assert_int_equal(cuda->timers->record(0, CONTEXT(8), NULL, true, begin), 0);
	assert_ptr_equal(((struct event *)begin)->on, SPILL_CUDA_PER_THREAD);
	assert_int_equal(cuda->timers->record(0, CONTEXT(8), NULL, false, begin), 0);
	assert_null(((struct event *)begin)->on);
	assert_int_equal(cuda->timers->record(0, CONTEXT(8), stream, true, end), 0);
	assert_ptr_equal(((struct event *)end)->on, stream);
	assert_int_equal(cuda->timers->passed(0, CONTEXT(8), end, &passed), 0);
	assert_false(passed);
	((struct event *)end)->passed = true;
	assert_int_equal(cuda->timers->passed(0, CONTEXT(8), end, &passed), 0);
	assert_true(passed);
	ended = CONTEXT(8);
	assert_int_equal(cuda->timers->passed(0, CONTEXT(8), end, &passed), CUDA_ERROR_CONTEXT_IS_DESTROYED);
	ended = NULL;
	cuda->timers->destroy(0, CONTEXT(8), begin);
	cuda->timers->destroy(0, CONTEXT(8), end);
	assert_int_equal(events_ended, 2); /* those with timing are of no use to moving */
	create_result = CUDA_ERROR_OUT_OF_MEMORY;
	assert_int_equal(cuda->timers->create(0, CONTEXT(8), &begin), CUDA_ERROR_OUT_OF_MEMORY);
	assert_true(depth == 0 && !relaxed);
}

TEST_WITH(the_newer_clock_is_read_where_there_is_one, setup_timing, NULL)
{
	const struct spill_backend *cuda = &spill_backend_cuda;
	void *begin, *end;
	uint64_t ns = 5;
	cuda->timers->create(0, CONTEXT(9), &begin);
	cuda->timers->create(0, CONTEXT(9), &end);
	first_ms = 0.5f;
	second_ms = 488.25f;
	assert_int_equal(cuda->timers->between(0, CONTEXT(9), begin, end, &ns), 0);
	assert_true(ns == 488250000);
	spill_cuda.cuEventElapsedTime_v2 = NULL;
	assert_int_equal(cuda->timers->between(0, CONTEXT(9), begin, end, &ns), 0);
	assert_true(ns == 500000);
	/* What is no time is none. */
	static const float odd[] = {-1.f, __builtin_nanf(""), __builtin_inff()};
	for (unsigned i = 0; i < 3; i++) {
		first_ms = odd[i];
		assert_int_not_equal(cuda->timers->between(0, CONTEXT(9), begin, end, &ns), 0);
	}
	elapsed_result = CUDA_ERROR_NOT_READY;
	assert_int_equal(cuda->timers->between(0, CONTEXT(9), begin, end, &ns), CUDA_ERROR_NOT_READY);
	assert_true(ns == 500000);
	assert_true(depth == 0 && !relaxed);
	spill_cuda.cuEventElapsedTime = NULL;
	assert_int_equal(cuda->timers->create(0, CONTEXT(9), &begin), CUDA_ERROR_NOT_SUPPORTED);
}
