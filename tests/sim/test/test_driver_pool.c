/* Stream-ordered memory and pools: contract tests as test_driver.c. */
#include "driver_test.h"

#define CHUNK (32 * MIB) /* growth of a pool */

static CUstream stream;

static uint64_t attribute(CUmemoryPool pool, CUmemPool_attribute attr)
{
	uint64_t value = 0;

	OK(d.cuMemPoolGetAttribute(pool, attr, &value));
	return value;
}

static uint64_t reserved(CUmemoryPool pool)
{
	return attribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT);
}

static uint64_t used(CUmemoryPool pool)
{
	return attribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT);
}

static CUmemPoolProps props(CUmemLocationType type, int id)
{
	return (CUmemPoolProps){.allocType = CU_MEM_ALLOCATION_TYPE_PINNED, .location = {type, id}};
}

static CUmemoryPool own_pool(uint64_t threshold)
{
	CUmemPoolProps made = props(CU_MEM_LOCATION_TYPE_DEVICE, 0);
	CUmemoryPool pool;

	OK(d.cuMemPoolCreate(&pool, &made));
	OK(d.cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &threshold));
	return pool;
}

static void start_with_stream(void)
{
	start();
	need(115); /* CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED */
	OK(d.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
}

static CUdeviceptr take(CUmemoryPool pool, size_t bytes)
{
	CUdeviceptr p = 0;

	OK(d.cuMemAllocFromPoolAsync(&p, bytes, pool, stream));
	return p;
}

DRIVER_TEST(pool_errors)
{
	CUdeviceptr p = 1, plain, managed;
	void *host;

	start_with_stream();
	CUmemoryPool pool = own_pool(0);
	OK(d.cuMemAllocAsync(&p, 0, stream));
	CHECK(p == 0);
	GIVES(CUDA_ERROR_INVALID_VALUE, d.cuMemAllocAsync(NULL, MIB, stream));
	p = 1;
	GIVES(CUDA_ERROR_OUT_OF_MEMORY, d.cuMemAllocAsync(&p, SIZE_MAX, stream));
	CHECK(p == 0);
	GIVES(CUDA_ERROR_OUT_OF_MEMORY, d.cuMemAllocFromPoolAsync(&p, (size_t)1 << 40, pool, stream));
	GIVES(CUDA_ERROR_INVALID_VALUE, d.cuMemAllocFromPoolAsync(&p, MIB, NULL, stream));
	OK(d.cuMemFreeAsync(0, stream));
	p = take(pool, MIB);
	GIVES(CUDA_ERROR_INVALID_VALUE, d.cuMemFreeAsync(p + 512, stream));
	GIVES(CUDA_ERROR_INVALID_VALUE, d.cuMemFree_v2(p + 512));
	OK(d.cuMemFreeAsync(p, stream));
	GIVES(CUDA_ERROR_INVALID_VALUE, d.cuMemFreeAsync(p, stream));
	GIVES(CUDA_ERROR_INVALID_VALUE, d.cuMemFree_v2(p));
	OK(d.cuMemAlloc_v2(&plain, MIB));
	GIVES(CUDA_ERROR_INVALID_VALUE, d.cuMemFreeAsync(plain + 512, stream));
	OK(d.cuMemFreeAsync(plain, stream));
	OK(d.cuStreamSynchronize(stream)); /* before that a real driver may accept a second free */
	GIVES(CUDA_ERROR_INVALID_VALUE, d.cuMemFreeAsync(plain, stream));
	OK(d.cuMemHostAlloc(&host, 4096, 0));
	GIVES(CUDA_ERROR_INVALID_VALUE, d.cuMemFreeAsync((CUdeviceptr)host, stream));
	if (has(CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY)) {
		OK(d.cuMemAllocManaged(&managed, MIB, CU_MEM_ATTACH_GLOBAL));
		GIVES(CUDA_ERROR_NOT_SUPPORTED, d.cuMemFreeAsync(managed, stream));
	}
	OK(d.cuStreamSynchronize(stream));
}

DRIVER_TEST(pool_attributes)
{
	uint64_t value = 1;
	int on = 0;

	start_with_stream();
	CUmemoryPool pool = own_pool(UINT64_MAX);
	CUdeviceptr p = take(pool, 1000), q = take(pool, 40 * MIB);
	CHECK(p % 512 == 0 && q % 512 == 0);
	CHECK(used(pool) == 1000 + 40 * MIB);
	CHECK(reserved(pool) % CHUNK == 0 && reserved(pool) >= 64 * MIB);
	OK(d.cuMemFreeAsync(q, stream));
	CHECK(used(pool) == 1000); /* at the call */
	OK(d.cuStreamSynchronize(stream));
	CHECK(attribute(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH) == 1000 + 40 * MIB);
	GIVES(CUDA_ERROR_INVALID_VALUE,
	      d.cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH, &value));
	value = 0;
	OK(d.cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH, &value));
	CHECK(attribute(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH) == 1000);
	OK(d.cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC, &on));
	CHECK(on == 1);
	GIVES(CUDA_ERROR_INVALID_VALUE, d.cuMemPoolGetAttribute(pool, (CUmemPool_attribute)99, &value));
	GIVES(CUDA_ERROR_INVALID_VALUE, d.cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH, NULL));
}

DRIVER_TEST(pool_keeps_below_threshold)
{
	start_with_stream();
	CUmemoryPool pool = own_pool(UINT64_MAX);
	size_t before = free_memory();
	CUdeviceptr p = take(pool, 64 * MIB);
	fill(p, 64 * MIB, 1);
	CHECK(mismatches(p, 64 * MIB, 1) == 0);
	OK(d.cuMemFreeAsync(p, stream));
	OK(d.cuStreamSynchronize(stream));
	CHECK(reserved(pool) == 64 * MIB && used(pool) == 0);
	if (simulated)
		CHECK(before - free_memory() == 64 * MIB);
	/* And reuses it. */
	p = take(pool, 64 * MIB);
	CHECK(reserved(pool) == 64 * MIB);
	OK(d.cuMemPoolTrimTo(pool, 0));
	CHECK(reserved(pool) == 64 * MIB); /* in use */
	OK(d.cuMemFreeAsync(p, stream));
	OK(d.cuStreamSynchronize(stream));
	OK(d.cuMemPoolTrimTo(pool, 64 * MIB));
	CHECK(reserved(pool) == 64 * MIB);
	OK(d.cuMemPoolTrimTo(pool, 0));
	CHECK(reserved(pool) == 0);
	if (simulated)
		CHECK(free_memory() == before);
}

DRIVER_TEST(pool_gives_back_when_synchronized)
{
	start_with_stream();
	CUmemoryPool pool = own_pool(0);
	uint64_t *flag = pinned();
	CUdeviceptr p = take(pool, 64 * MIB);
	OK(RUN(stream, "hold_fill", (uint64_t)flag, p, 8 * MIB, 1));
	OK(d.cuMemFreeAsync(p, stream));
	CHECK(reserved(pool) == 64 * MIB && used(pool) == 0);
	OK(d.cuMemPoolTrimTo(pool, 0)); /* the stream has not reached the free */
	CHECK(reserved(pool) == 64 * MIB);
	*word_at(flag) = 1;
	OK(d.cuStreamSynchronize(stream));
	CHECK(reserved(pool) == 0);
}

/*
 * A free in stream order counts when the host has waited behind it. To ask whether it is done, a mark
 * behind all work and a wait for another stream do not count (tests/gpu/vendor_facts_pools.py).
 */
DRIVER_TEST(pool_trim_knows_what_was_waited_for)
{
	CUstream second, blocking;
	CUevent event;

	start_with_stream();
	CUmemoryPool pool = own_pool(UINT64_MAX);
	OK(d.cuStreamCreate(&second, CU_STREAM_NON_BLOCKING));
	OK(d.cuStreamCreate(&blocking, 0));
	OK(d.cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
	for (unsigned way = 0; way < 4; way++) {
		CUdeviceptr p = take(pool, 32 * MIB);
		OK(d.cuStreamSynchronize(stream));
		OK(d.cuMemFreeAsync(p, way == 3 ? blocking : stream));
		OK(d.cuEventRecord(event, way == 3 ? blocking : stream));
		while (d.cuEventQuery(event) == CUDA_ERROR_NOT_READY)
			;
		OK(d.cuStreamQuery(stream));
		OK(d.cuStreamSynchronize(second));
		OK(d.cuMemPoolTrimTo(pool, 0));
		CHECK(reserved(pool) == 32 * MIB);
		OK(way == 0   ? d.cuStreamSynchronize(stream)
		   : way == 1 ? d.cuEventSynchronize(event)
		   : way == 2 ? d.cuCtxSynchronize()
		              : d.cuStreamSynchronize(NULL));
		OK(d.cuMemPoolTrimTo(pool, 0));
		CHECK(reserved(pool) == 0);
	}
	CUdeviceptr p = take(pool, 32 * MIB);
	OK(d.cuMemFreeAsync(p, stream));
	OK(d.cuCtxRecordEvent(context, event));
	OK(d.cuEventSynchronize(event));
	OK(d.cuMemPoolTrimTo(pool, 0));
	CHECK(reserved(pool) == 32 * MIB);
	/* Another stream may use it. */
	OK(d.cuMemAllocFromPoolAsync(&p, 32 * MIB, pool, second));
	CHECK(reserved(pool) == 32 * MIB);
	OK(d.cuMemFreeAsync(p, second));
}

/* cuMemFree of a pool's pointer does not wait, and is not counted (driver 580). */
DRIVER_TEST(pool_free_now)
{
	start_with_stream();
	CUmemoryPool pool = own_pool(0);
	uint64_t *flag = pinned();
	CUdeviceptr p = take(pool, 64 * MIB), other = take(own_pool(0), 4 * MIB);
	/* On a real GPU work on this pool's memory would fault: its pages go at once. */
	OK(RUN(stream, "hold_fill", (uint64_t)flag, other, MIB / 2, 1));
	OK(d.cuMemFree_v2(p));
	*word_at(flag) = 1;
	OK(d.cuStreamSynchronize(stream));
	OK(d.cuCtxSynchronize());
	CHECK(reserved(pool) == 0 && used(pool) == 64 * MIB);
	p = take(pool, 64 * MIB);
	OK(d.cuStreamSynchronize(stream));
	OK(d.cuMemFree_v2(p));
	CHECK(reserved(pool) == 0); /* within the call */
}

DRIVER_TEST(pool_reuses_in_stream_order)
{
	start_with_stream();
	CUmemoryPool pool = own_pool(UINT64_MAX);
	uint64_t *flag = pinned(), *count = pinned();
	OK(RUN(stream, "hold", (uint64_t)flag));
	for (uint64_t i = 0; i < 8; i++) {
		CUdeviceptr p = take(pool, 32 * MIB);

		OK(RUN(stream, "fill", p, 4 * MIB, i));
		OK(RUN(stream, "verify", p, 4 * MIB, i, (uint64_t)count));
		OK(d.cuMemFreeAsync(p, stream));
	}
	CHECK(reserved(pool) == 32 * MIB); /* one chunk for all, before any work ran */
	*word_at(flag) = 1;
	OK(d.cuStreamSynchronize(stream));
	CHECK(*count == 0);
}

/* When memory is short, another stream takes memory of a held one, and waits in its own order. */
DRIVER_TEST(pool_waits_for_another_stream)
{
	CUstream second;

	start_with_stream();
	need_simulator();
	OK(d.cuStreamCreate(&second, CU_STREAM_NON_BLOCKING));
	CUmemoryPool pool = own_pool(UINT64_MAX);
	uint64_t *flag = pinned(), *count = pinned();
	CUdeviceptr p = take(pool, 128 * MIB), rest, q;
	size_t left = free_memory() / CHUNK * CHUNK;
	OK(d.cuMemAlloc_v2(&rest, left));
	OK(RUN(stream, "hold_fill", (uint64_t)flag, p, 16 * MIB, 1));
	OK(d.cuMemFreeAsync(p, stream));
	OK(d.cuMemAllocFromPoolAsync(&q, 128 * MIB, pool, second));
	OK(RUN(second, "fill", q, 16 * MIB, 2));
	OK(RUN(second, "verify", q, 16 * MIB, 2, (uint64_t)count));
	GIVES(CUDA_ERROR_NOT_READY, d.cuStreamQuery(second));
	*word_at(flag) = 1;
	OK(d.cuStreamSynchronize(second));
	CHECK(*count == 0);
	int off = 0;
	OK(d.cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES, &off));
	*word_at(flag) = 0;
	OK(RUN(second, "hold_fill", (uint64_t)flag, q, 16 * MIB, 1));
	OK(d.cuMemFreeAsync(q, second));
	GIVES(CUDA_ERROR_OUT_OF_MEMORY, d.cuMemAllocFromPoolAsync(&p, 128 * MIB, pool, stream));
	*word_at(flag) = 1;
	OK(d.cuStreamSynchronize(second));
}

/* Unused memory serves all pools. Memory of an unfinished free serves none, without waiting. */
DRIVER_TEST(pool_memory_is_taken_back)
{
	CUdeviceptr p, plain;

	start_with_stream();
	need_simulator(); /* on a real GPU this would take the whole device */
	CUmemoryPool pool = own_pool(UINT64_MAX), another = own_pool(0);
	uint64_t *flag = pinned();
	size_t all = free_memory();
	p = take(pool, 128 * MIB);
	OK(RUN(stream, "hold_fill", (uint64_t)flag, p, 16 * MIB, 1));
	OK(d.cuMemFreeAsync(p, stream));
	GIVES(CUDA_ERROR_OUT_OF_MEMORY, d.cuMemAlloc_v2(&plain, all - 64 * MIB));
	GIVES(CUDA_ERROR_OUT_OF_MEMORY, d.cuMemAllocFromPoolAsync(&plain, all - 64 * MIB, another, stream));
	*word_at(flag) = 1;
	OK(d.cuStreamSynchronize(stream));
	CHECK(reserved(pool) == 128 * MIB && all - free_memory() == 128 * MIB);
	OK(d.cuMemAlloc_v2(&plain, all - 64 * MIB));
	CHECK(reserved(pool) == 0);
	OK(d.cuMemFree_v2(plain));
	CHECK(free_memory() == all);
}

DRIVER_TEST(pool_outlives_contexts)
{
	start_with_stream();
	CUmemoryPool pool = own_pool(UINT64_MAX), before, after;
	CUdeviceptr p = take(pool, 32 * MIB), q;
	OK(d.cuMemAllocAsync(&q, MIB, stream));
	OK(d.cuDeviceGetDefaultMemPool(&before, 0));
	OK(d.cuStreamSynchronize(stream));
	OK(d.cuDevicePrimaryCtxReset_v2(0));
	OK(d.cuDevicePrimaryCtxRetain(&context, 0));
	OK(d.cuCtxSetCurrent(context));
	OK(d.cuModuleLoad(&module, kernels_path));
	OK(d.cuDeviceGetDefaultMemPool(&after, 0));
	CHECK(before == after);
	CHECK(used(pool) == 32 * MIB && reserved(pool) == 32 * MIB && used(after) == MIB);
	CHECK(type_of(p) == CU_MEMORYTYPE_DEVICE);
	fill(p, 32 * MIB, 3);
	CHECK(mismatches(p, 32 * MIB, 3) == 0);
	OK(d.cuMemFree_v2(p));
	OK(d.cuMemFree_v2(q));
	GIVES(CUDA_ERROR_INVALID_VALUE, d.cuMemFree_v2(p));
}

DRIVER_TEST(pool_destroyed_in_use)
{
	CUmemoryPool current;

	start_with_stream();
	size_t before = free_memory();
	CUmemoryPool pool = own_pool(UINT64_MAX);
	CUdeviceptr p = take(pool, 32 * MIB);
	OK(d.cuMemPoolDestroy(pool));
	fill(p, 32 * MIB, 4);
	CHECK(mismatches(p, 32 * MIB, 4) == 0);
	OK(d.cuMemFreeAsync(p, stream));
	OK(d.cuStreamSynchronize(stream));
	if (simulated)
		CHECK(free_memory() == before);
	OK(d.cuDeviceGetDefaultMemPool(&current, 0));
	GIVES(CUDA_ERROR_INVALID_VALUE, d.cuMemPoolDestroy(current));
}

DRIVER_TEST(pool_of_the_device)
{
	CUmemoryPool fallback, current, of;
	CUdeviceptr p;

	start_with_stream();
	CUmemoryPool pool = own_pool(0);
	OK(d.cuDeviceGetDefaultMemPool(&fallback, 0));
	OK(d.cuDeviceGetMemPool(&current, 0));
	CHECK(current == fallback);
	OK(d.cuDeviceSetMemPool(0, pool));
	OK(d.cuDeviceGetMemPool(&current, 0));
	CHECK(current == pool);
	OK(d.cuMemAllocAsync(&p, MIB, stream));
	OK(d.cuPointerGetAttribute(&of, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, p));
	CHECK(of == pool);
	OK(d.cuMemFreeAsync(p, stream));
	OK(d.cuMemPoolDestroy(pool));
	OK(d.cuDeviceGetMemPool(&current, 0));
	CHECK(current == fallback);
	GIVES(CUDA_ERROR_INVALID_VALUE, d.cuDeviceSetMemPool(0, NULL));
	GIVES(CUDA_ERROR_INVALID_VALUE, d.cuDeviceGetMemPool(&current, 1000));
}

DRIVER_TEST(pool_has_a_limit)
{
	CUmemPoolProps made = props(CU_MEM_LOCATION_TYPE_DEVICE, 0);
	CUmemoryPool pool;
	CUdeviceptr p;

	start_with_stream();
	made.maxSize = 64 * MIB;
	OK(d.cuMemPoolCreate(&pool, &made));
	OK(d.cuMemAllocFromPoolAsync(&p, 32 * MIB, pool, stream));
	GIVES(CUDA_ERROR_OUT_OF_MEMORY, d.cuMemAllocFromPoolAsync(&p, 96 * MIB, pool, stream));
}

DRIVER_TEST(pool_on_host)
{
	CUmemPoolProps made = props(CU_MEM_LOCATION_TYPE_HOST_NUMA, 0);
	CUmemAccessDesc access = {{CU_MEM_LOCATION_TYPE_DEVICE, 0}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
	CUmemLocation host = {CU_MEM_LOCATION_TYPE_HOST, 0};
	CUmemAccess_flags flags;
	CUmemoryPool pool;
	CUcontext of = (CUcontext)1;
	CUdeviceptr base = 1;
	size_t bytes;
	void *pointer;

	start_with_stream();
	need(CU_DEVICE_ATTRIBUTE_HOST_NUMA_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED);
	size_t before = free_memory();
	OK(d.cuMemPoolCreate(&pool, &made));
	CUdeviceptr p = take(pool, 8 * MIB);
	OK(d.cuMemPoolGetAccess(&flags, pool, &access.location));
	CHECK(flags == CU_MEM_ACCESS_FLAGS_PROT_NONE);
	OK(d.cuMemPoolGetAccess(&flags, pool, &host));
	CHECK(flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
	GIVES(CUDA_ERROR_INVALID_VALUE, d.cuMemsetD8Async(p, 1, MIB, stream));
	OK(d.cuMemPoolSetAccess(pool, &access, 1));
	OK(d.cuMemsetD8Async(p, 1, MIB, stream));
	OK(d.cuStreamSynchronize(stream));
	CHECK(((volatile char *)p)[MIB - 1] == 1);
	fill(p, 8 * MIB, 6);
	CHECK(mismatches(p, 8 * MIB, 6) == 0);
	CHECK(before - free_memory() <= GRANULE);
	CHECK(type_of(p + 5) == CU_MEMORYTYPE_HOST);
	OK(d.cuPointerGetAttribute(&of, CU_POINTER_ATTRIBUTE_CONTEXT, p));
	OK(d.cuPointerGetAttribute(&pointer, CU_POINTER_ATTRIBUTE_HOST_POINTER, p));
	OK(d.cuPointerGetAttribute(&base, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, p));
	OK(d.cuPointerGetAttribute(&bytes, CU_POINTER_ATTRIBUTE_RANGE_SIZE, p));
	CHECK(of == NULL && pointer == (void *)p && base == 0 && bytes == 8 * MIB);
	OK(d.cuMemGetAddressRange_v2(&base, &bytes, p + 4096));
	CHECK(base == p && bytes == 8 * MIB);
	OK(d.cuMemFreeAsync(p, stream));
	OK(d.cuStreamSynchronize(stream));
	made.location.type = CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT;
	GIVES(CUDA_ERROR_INVALID_VALUE, d.cuMemPoolCreate(&pool, &made));
	made = props(CU_MEM_LOCATION_TYPE_HOST_NUMA, 1000);
	GIVES(CUDA_ERROR_INVALID_VALUE, d.cuMemPoolCreate(&pool, &made));
	GIVES(CUDA_ERROR_INVALID_VALUE, d.cuMemPoolCreate(&pool, NULL));
}

DRIVER_TEST(pool_of_managed_memory)
{
	CUmemPoolProps made = props(CU_MEM_LOCATION_TYPE_DEVICE, 0);
	CUmemoryPool pool;
	unsigned is_managed = 0;

	start_with_stream();
	need(CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS);
	made.allocType = (CUmemAllocationType)2;
	OK(d.cuMemPoolCreate(&pool, &made));
	CUdeviceptr p = take(pool, 8 * MIB);
	OK(d.cuStreamSynchronize(stream));
	OK(d.cuPointerGetAttribute(&is_managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, p));
	CHECK(is_managed && type_of(p) == CU_MEMORYTYPE_DEVICE);
	((volatile uint64_t *)p)[3] = 7;
	fill(p, 8 * MIB, 8);
	CHECK(mismatches(p, 8 * MIB, 8) == 0);
	OK(d.cuMemFreeAsync(p, stream));
	OK(d.cuStreamSynchronize(stream));
}

DRIVER_TEST(pool_pointers)
{
	CUcontext of = (CUcontext)1;
	CUmemoryPool from;
	unsigned ipc = 9;
	size_t mapping;
	CUdeviceptr base;

	start_with_stream();
	CUmemoryPool pool = own_pool(0);
	CUdeviceptr p = take(pool, 3000);
	OK(d.cuPointerGetAttribute(&of, CU_POINTER_ATTRIBUTE_CONTEXT, p));
	OK(d.cuPointerGetAttribute(&from, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, p));
	OK(d.cuPointerGetAttribute(&ipc, CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE, p));
	OK(d.cuPointerGetAttribute(&mapping, CU_POINTER_ATTRIBUTE_MAPPING_SIZE, p));
	OK(d.cuPointerGetAttribute(&base, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, p + 100));
	CHECK(!of && from == pool && !ipc && mapping == CHUNK && base == p);
	OK(d.cuMemFreeAsync(p, stream));
	OK(d.cuStreamSynchronize(stream));
	GIVES(CUDA_ERROR_INVALID_VALUE, d.cuPointerGetAttribute(&ipc, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, p));
}
