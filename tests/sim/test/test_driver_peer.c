/* Access between two devices: contract tests as test_driver.c, skipped with one device. */
#include "driver_test.h"

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
