/* Access between two devices: contract tests as test_driver.c, skipped with one device. */
#include "driver_test.h"

#include <pthread.h>

DRIVER_TEST(peers)
{
	CUcontext other;
	CUdeviceptr p, q;
	int can = 0, count;

	setenv("SPILL_SIM_DEVICES", "2", 1);
	start();
	OK(d.cuDeviceGetCount(&count));
	if (count < 2)
		_exit(SKIP);
	OK(d.cuDeviceCanAccessPeer(&can, 0, 1));
	CHECK(can);
	size_t here = free_memory();
	OK(d.cuDevicePrimaryCtxRetain(&other, 1));
	OK(d.cuCtxSetCurrent(other));
	OK(d.cuMemAlloc_v2(&p, 8 * MIB));
	OK(d.cuMemsetD8_v2(p, 0, 8 * MIB));
	OK(d.cuCtxSynchronize());
	OK(d.cuCtxSetCurrent(context));
	if (simulated)
		CHECK(free_memory() == here);
	OK(d.cuMemAlloc_v2(&q, 8 * MIB));
	fill(q, 8 * MIB, 1);
	OK(d.cuMemcpyPeer(p, other, q, context, 8 * MIB));
	OK(d.cuCtxEnablePeerAccess(other, 0));
	GIVES(CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED, d.cuCtxEnablePeerAccess(other, 0));
	CHECK(mismatches(p, 8 * MIB, 1) == 0);
	OK(d.cuCtxDisablePeerAccess(other));
	fill(p, 8 * MIB, 1);
	GIVES(CUDA_ERROR_ILLEGAL_ADDRESS, d.cuCtxSynchronize());
}

DRIVER_TEST(peers_ask_first)
{
	CUcontext other;
	CUdeviceptr p;
	int count;

	setenv("SPILL_SIM_DEVICES", "2", 1);
	start();
	OK(d.cuDeviceGetCount(&count));
	if (count < 2)
		_exit(SKIP);
	OK(d.cuDevicePrimaryCtxRetain(&other, 1));
	OK(d.cuCtxSetCurrent(other));
	OK(d.cuMemAlloc_v2(&p, 8 * MIB));
	OK(d.cuCtxSetCurrent(context));
	fill(p, 8 * MIB, 1);
	GIVES(CUDA_ERROR_ILLEGAL_ADDRESS, d.cuCtxSynchronize());
}

static CUcontext other; /* the primary context of device 1 */

static void start_two(void)
{
	int count;

	setenv("SPILL_SIM_DEVICES", "2", 1);
	start();
	OK(d.cuDeviceGetCount(&count));
	if (count < 2)
		_exit(SKIP);
	OK(d.cuDevicePrimaryCtxRetain(&other, 1));
}

static CUdeviceptr alloc_in(CUcontext owner, size_t bytes)
{
	CUdeviceptr p;

	OK(d.cuCtxPushCurrent_v2(owner));
	OK(d.cuMemAlloc_v2(&p, bytes));
	OK(d.cuMemsetD8_v2(p, 0, bytes));
	OK(d.cuCtxSynchronize());
	OK(d.cuCtxPopCurrent_v2(NULL));
	return p;
}

DRIVER_TEST(peer_errors)
{
	int value = -1;

	start_two();
	OK(d.cuDeviceCanAccessPeer(&value, 0, 0));
	CHECK(value == 0);
	GIVES(CUDA_ERROR_INVALID_DEVICE, d.cuDeviceCanAccessPeer(&value, 0, 1000));
	OK(d.cuDeviceGetP2PAttribute(&value, 2, 0, 1)); /* CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED */
	CHECK(value == 1);
	GIVES(CUDA_ERROR_INVALID_CONTEXT, d.cuCtxEnablePeerAccess(NULL, 0));
	GIVES(CUDA_ERROR_INVALID_CONTEXT, d.cuCtxEnablePeerAccess(context, 0));
	GIVES(CUDA_ERROR_INVALID_VALUE, d.cuCtxEnablePeerAccess(other, 1));
	GIVES(CUDA_ERROR_PEER_ACCESS_NOT_ENABLED, d.cuCtxDisablePeerAccess(other));
}

/* Access covers earlier and later allocations of one context, and ends with it. */
DRIVER_TEST(peers_by_owner)
{
	CUcontext second;

	start_two();
	need_simulator();
	CUdeviceptr before = alloc_in(other, 8 * MIB);
	OK(d.cuCtxEnablePeerAccess(other, 0));
	CUdeviceptr after = alloc_in(other, 8 * MIB);
	fill(before, 8 * MIB, 1);
	fill(after, 8 * MIB, 2);
	OK(d.cuCtxSynchronize());
	OK(d.cuCtxCreate_v2(&second, 0, 1));
	OK(d.cuCtxPopCurrent_v2(NULL));
	GIVES(CUDA_ERROR_PEER_ACCESS_NOT_ENABLED, d.cuCtxDisablePeerAccess(second));
	CUdeviceptr not_shared = alloc_in(second, 8 * MIB);
	fill(not_shared, 8 * MIB, 3);
	GIVES(CUDA_ERROR_ILLEGAL_ADDRESS, d.cuCtxSynchronize());
}

DRIVER_TEST(peers_end_with_context)
{
	CUcontext mine;

	start_two();
	need_simulator();
	CUdeviceptr p = alloc_in(other, 8 * MIB);
	OK(d.cuCtxCreate_v2(&mine, 0, 0));
	OK(d.cuCtxEnablePeerAccess(other, 0));
	OK(d.cuCtxDestroy_v2(mine));
	OK(d.cuCtxSetCurrent(context));
	fill(p, 8 * MIB, 1);
	GIVES(CUDA_ERROR_ILLEGAL_ADDRESS, d.cuCtxSynchronize());
}

DRIVER_TEST(pinned_is_for_all)
{
	start_two();
	OK(d.cuCtxSetCurrent(other));
	uint64_t *word = pinned();
	OK(d.cuCtxSetCurrent(context));
	fill((CUdeviceptr)word, 4096, 5);
	CHECK(mismatches((CUdeviceptr)word, 4096, 5) == 0);
}

/* Peer access of contexts does not cover VMM memory. cuMemSetAccess does. */
DRIVER_TEST(vmm_asks_set_access)
{
	CUmemAccessDesc both[] = {{{CU_MEM_LOCATION_TYPE_DEVICE, 0}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE},
	                          {{CU_MEM_LOCATION_TYPE_DEVICE, 1}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE}};
	CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
	                            .location = {CU_MEM_LOCATION_TYPE_DEVICE, 1}};
	CUmemGenericAllocationHandle handle;
	CUdeviceptr p;

	start_two();
	need(CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED);
	OK(d.cuMemCreate(&handle, GRANULE, &prop, 0));
	OK(d.cuMemAddressReserve(&p, GRANULE, 0, 0, 0));
	OK(d.cuMemMap(p, GRANULE, 0, handle, 0));
	OK(d.cuMemSetAccess(p, GRANULE, both, 2));
	fill(p, GRANULE, 1);
	CHECK(mismatches(p, GRANULE, 1) == 0);
	both[0].flags = CU_MEM_ACCESS_FLAGS_PROT_NONE;
	OK(d.cuMemSetAccess(p, GRANULE, both, 1));
	OK(d.cuCtxEnablePeerAccess(other, 0));
	fill(p, GRANULE, 1);
	GIVES(CUDA_ERROR_ILLEGAL_ADDRESS, d.cuCtxSynchronize());
}

/* Nor pools. cuMemPoolSetAccess does, also for existing memory. */
DRIVER_TEST(pool_asks_set_access)
{
	CUmemAccessDesc access = {{CU_MEM_LOCATION_TYPE_DEVICE, 0}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
	CUmemAccess_flags flags;
	CUmemoryPool pool;
	CUdeviceptr p, q;

	start_two();
	OK(d.cuDeviceGetDefaultMemPool(&pool, 1));
	OK(d.cuCtxSetCurrent(other));
	OK(d.cuMemAllocFromPoolAsync(&p, 4 * MIB, pool, NULL));
	OK(d.cuCtxSynchronize());
	OK(d.cuCtxSetCurrent(context));
	OK(d.cuMemPoolGetAccess(&flags, pool, &access.location));
	CHECK(flags == CU_MEM_ACCESS_FLAGS_PROT_NONE);
	OK(d.cuMemPoolSetAccess(pool, &access, 1));
	OK(d.cuMemPoolGetAccess(&flags, pool, &access.location));
	CHECK(flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
	fill(p, 4 * MIB, 1);
	CHECK(mismatches(p, 4 * MIB, 1) == 0);
	OK(d.cuMemAllocFromPoolAsync(&q, 64 * MIB, pool, NULL)); /* more than the pool has */
	fill(q, 64 * MIB, 2);
	CHECK(mismatches(q, 64 * MIB, 2) == 0);
	access.flags = CU_MEM_ACCESS_FLAGS_PROT_NONE;
	OK(d.cuMemPoolSetAccess(pool, &access, 1));
	OK(d.cuCtxEnablePeerAccess(other, 0));
	fill(p, 4 * MIB, 1);
	GIVES(CUDA_ERROR_ILLEGAL_ADDRESS, d.cuCtxSynchronize());
}

/* -- a mover beside another device that is busy ------------------------------------------------ */

static CUmodule module_of_other;
static CUdeviceptr plain;
static void *host, *registered;
static CUstream busy_stream, full_stream;
static uint64_t *flag;
static atomic_uint passed;

static CUresult run_in_other(CUstream stream, const char *name, uint64_t value)
{
	CUfunction function;
	void *parameters[] = {&value};

	OK(d.cuModuleGetFunction(&function, module_of_other, name));
	return d.cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, stream, parameters, NULL);
}

static CUresult wait_for_context(void)
{
	return d.cuCtxSynchronize();
}

static CUresult free_plain(void)
{
	return d.cuMemFree_v2(plain);
}

static CUresult free_host(void)
{
	return d.cuMemFreeHost(host);
}

static CUresult unregister(void)
{
	return d.cuMemHostUnregister(registered);
}

static CUresult load_module(void)
{
	CUmodule another;

	return d.cuModuleLoad(&another, kernels_path);
}

static CUresult fill_the_queue(void)
{
	CUresult result = CUDA_SUCCESS;

	for (unsigned i = 0; i < 3000 && !result; i++)
		result = run_in_other(full_stream, "hold", (uint64_t)flag);
	return result;
}

static CUresult alloc_plain(void)
{
	CUdeviceptr p;

	return d.cuMemAlloc_v2(&p, 8 * MIB);
}

static void *in_other(void *data)
{
	CUresult (*const *call)(void) = data;

	OK(d.cuCtxSetCurrent(other));
	OK((*call)());
	return NULL;
}

/* What a move needs was made before: its copy's stream and event, addresses, a chunk. */
static struct {
	CUdeviceptr chunk, view;
	CUmemGenericAllocationHandle old, new;
	CUstream stream;
	CUevent event;
} ahead;

static void make_ahead(void)
{
	OK(d.cuMemAddressReserve(&ahead.chunk, GRANULE, 0, 0, 0));
	OK(d.cuMemAddressReserve(&ahead.view, GRANULE, 0, 0, 0));
	OK(d.cuStreamCreate(&ahead.stream, CU_STREAM_NON_BLOCKING));
	OK(d.cuEventCreate(&ahead.event, CU_EVENT_DISABLE_TIMING));
	ahead.old = chunk(CU_MEM_LOCATION_TYPE_DEVICE, GRANULE);
	ahead.new = chunk(CU_MEM_LOCATION_TYPE_DEVICE, GRANULE);
	OK(d.cuMemMap(ahead.chunk, GRANULE, 0, ahead.old, 0));
	OK(allow(ahead.chunk, GRANULE, CU_MEM_ACCESS_FLAGS_PROT_READWRITE));
}

enum { CALLS = 5 };

/* The calls of a move on device 0, counted. */
static void *move_once(void *unused)
{
	CUmemGenericAllocationHandle old = ahead.old;

	OK(d.cuCtxSetCurrent(context));
	OK(d.cuMemMap(ahead.view, GRANULE, 0, ahead.new, 0));
	passed++;
	OK(allow(ahead.view, GRANULE, CU_MEM_ACCESS_FLAGS_PROT_READWRITE));
	passed++;
	OK(d.cuMemcpyDtoDAsync_v2(ahead.view, ahead.chunk, GRANULE, ahead.stream));
	OK(d.cuEventRecord(ahead.event, ahead.stream));
	while (d.cuEventQuery(ahead.event) == CUDA_ERROR_NOT_READY)
		usleep(100);
	passed++;
	OK(d.cuMemUnmap(ahead.view, GRANULE));
	OK(d.cuMemUnmap(ahead.chunk, GRANULE));
	passed++;
	OK(d.cuMemMap(ahead.chunk, GRANULE, 0, ahead.new, 0));
	OK(allow(ahead.chunk, GRANULE, CU_MEM_ACCESS_FLAGS_PROT_READWRITE));
	passed++;
	ahead.old = ahead.new;
	ahead.new = old;
	return unused;
}

static void start_busy(void)
{
	OK(d.cuCtxSetCurrent(other));
	OK(d.cuModuleLoad(&module_of_other, kernels_path));
	OK(d.cuStreamCreate(&busy_stream, CU_STREAM_NON_BLOCKING));
	OK(d.cuStreamCreate(&full_stream, CU_STREAM_NON_BLOCKING));
	OK(d.cuMemAlloc_v2(&plain, 8 * MIB));
	OK(d.cuMemHostAlloc(&host, 8 * MIB, 0));
	registered = aligned_alloc(4096, 8 * MIB);
	memset(registered, 0, 8 * MIB);
	OK(d.cuMemHostRegister_v2(registered, 8 * MIB, 0));
}

/* A kernel of device 1 that waits for the host, and threads in calls that may wait for it. */
struct wait {
	const char *name;
	CUresult (*calls[2])(void);
	pthread_t threads[2];
};

static void begin_wait(struct wait *wait)
{
	word_at(flag)[0] = 0;
	OK(d.cuCtxSetCurrent(other));
	OK(run_in_other(busy_stream, "hold", (uint64_t)flag));
	for (int i = 0; i < 2 && wait->calls[i]; i++) {
		CHECK(!pthread_create(&wait->threads[i], NULL, in_other, &wait->calls[i]));
		usleep(simulated ? 5000 : 100000); /* until it waits */
	}
}

static void end_wait(struct wait *wait)
{
	word_at(flag)[0] = 1;
	for (int i = 0; i < 2 && wait->calls[i]; i++)
		pthread_join(wait->threads[i], NULL);
	OK(d.cuCtxSynchronize());
}

/*
 * Does a move on device 0 wait, too? If so, it would wait for ever if it held up the thread that
 * ends the kernel (docs/adr/0030). A real GPU's answers are only printed.
 */
DRIVER_TEST(moves_beside_a_busy_device)
{
	struct wait waits[] = {{"cuCtxSynchronize", {wait_for_context}, {0}},
	                       {"cuMemFree", {free_plain}, {0}},
	                       {"cuMemFreeHost", {free_host}, {0}},
	                       {"cuMemHostUnregister", {unregister}, {0}},
	                       {"cuModuleLoad", {load_module}, {0}},
	                       {"cuLaunchKernel with a full queue", {fill_the_queue}, {0}},
	                       {"that and cuMemAlloc", {fill_the_queue, alloc_plain}, {0}}};
	pthread_t mover;

	setenv("SPILL_SIM_QUEUE", "100", 1);
	start_two();
	need(CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED);
	flag = pinned();
	make_ahead();
	start_busy();
	for (size_t i = 0; i < sizeof(waits) / sizeof(*waits); i++) {
		begin_wait(&waits[i]);
		passed = 0;
		CHECK(!pthread_create(&mover, NULL, move_once, NULL));
		unsigned count = at_rest(&passed, CALLS);
		printf("# beside a busy device and %s, %u of %d calls of a move pass\n", waits[i].name, count,
		       CALLS);
		CHECK(!simulated || count == CALLS);
		end_wait(&waits[i]);
		pthread_join(mover, NULL);
	}
}
