/* Plain, managed and stream-ordered memory: contract tests as test_driver.c. */
#include "driver_test.h"

#include <signal.h>
#include <sys/wait.h>

/* -- plain memory ------------------------------------------------------------------------------ */

DRIVER_TEST(plain)
{
	CUdeviceptr a, b, base;
	size_t bytes;

	start();
	size_t before = free_memory();
	OK(d.cuMemAlloc_v2(&a, 5 * MIB));
	CHECK(a % 512 == 0);
	CHECK(before - free_memory() == 6 * MIB);
	OK(d.cuMemAlloc_v2(&b, 2 * MIB));
	CHECK(before - free_memory() == 8 * MIB);
	OK(d.cuMemGetAddressRange_v2(&base, &bytes, a + 4096));
	CHECK(base == a && bytes == 5 * MIB);
	CHECK(type_of(a + 4096) == CU_MEMORYTYPE_DEVICE);
	fill(a, 5 * MIB, 1);
	fill(b, 2 * MIB, 2);
	CHECK(mismatches(a, 5 * MIB, 1) == 0);
	CHECK(mismatches(b, 2 * MIB, 2) == 0);
	CHECK(mismatches(a, 5 * MIB, 2) > 600000);
	GIVES(CUDA_ERROR_INVALID_VALUE, d.cuMemFree_v2(a + 512));
	GIVES(CUDA_ERROR_INVALID_VALUE, d.cuMemAlloc_v2(&base, 0));
	OK(d.cuMemFree_v2(a));
	OK(d.cuMemFree_v2(b));
	OK(d.cuMemFree_v2(0));
	GIVES(CUDA_ERROR_INVALID_VALUE, d.cuMemFree_v2(a));
	CHECK(free_memory() == before);
}

DRIVER_TEST(small_ones_share)
{
	CUdeviceptr p[1000];

	start();
	size_t before = free_memory();
	for (int i = 0; i < 1000; i++) {
		OK(d.cuMemAlloc_v2(&p[i], 4096));
		CHECK(p[i] % 512 == 0);
		fill(p[i], 4096, (uint64_t)i);
	}
	CHECK(before - free_memory() <= 8 * MIB);
	for (int i = 0; i < 1000; i += 2)
		OK(d.cuMemFree_v2(p[i]));
	for (int i = 1; i < 1000; i += 2)
		CHECK(mismatches(p[i], 4096, (uint64_t)i) == 0);
	for (int i = 1; i < 1000; i += 2)
		OK(d.cuMemFree_v2(p[i]));
	if (simulated)
		CHECK(free_memory() == before);
}

DRIVER_TEST(capacity)
{
	CUdeviceptr a, b, c = 77;

	start();
	size_t all = free_memory();
	GIVES(CUDA_ERROR_OUT_OF_MEMORY, d.cuMemAlloc_v2(&c, all + 4 * MIB));
	CHECK(c == 0); /* an H200 sets it to 0 */
	OK(d.cuMemAlloc_v2(&a, all / 2));
	OK(d.cuMemAlloc_v2(&b, all / 4));
	GIVES(CUDA_ERROR_OUT_OF_MEMORY, d.cuMemAlloc_v2(&c, all / 2));
	OK(d.cuMemFree_v2(b));
	if (simulated) {
		OK(d.cuMemAlloc_v2(&b, free_memory()));
		CHECK(free_memory() == 0);
		GIVES(CUDA_ERROR_OUT_OF_MEMORY, d.cuMemAlloc_v2(&c, 1));
		OK(d.cuMemFree_v2(b));
	}
	OK(d.cuMemFree_v2(a));
	CHECK(free_memory() == all);
}

/* Ended by the signal, or by a sanitizer that reports it and exits. */
static bool crashed(int status)
{
	return WIFSIGNALED(status) ? WTERMSIG(status) == SIGSEGV : WEXITSTATUS(status) != 0;
}

DRIVER_TEST(host_sees_nothing)
{
	CUdeviceptr p;
	int status;

	start();
	OK(d.cuMemAlloc_v2(&p, 4 * MIB));
	pid_t child = fork();
	if (!child) {
		signal(SIGSEGV, SIG_DFL);
		*(volatile char *)p = 1;
		_exit(0);
	}
	CHECK(waitpid(child, &status, 0) == child);
	CHECK(crashed(status));
	/* In this process, with the driver's own handler in place. */
	child = fork();
	if (!child) {
		*(volatile char *)p = 1;
		_exit(0);
	}
	CHECK(waitpid(child, &status, 0) == child);
	CHECK(crashed(status));
}

DRIVER_TEST(pinned_host)
{
	CUdeviceptr mapped;
	unsigned flags;

	start();
	size_t before = free_memory();
	uint64_t *p;
	OK(d.cuMemHostAlloc((void **)&p, 4 * MIB, CU_MEMHOSTALLOC_DEVICEMAP));
	CHECK(free_memory() == before);
	OK(d.cuMemHostGetDevicePointer_v2(&mapped, p, 0));
	CHECK(mapped == (CUdeviceptr)p);
	OK(d.cuMemHostGetFlags(&flags, p));
	CHECK(flags & CU_MEMHOSTALLOC_DEVICEMAP);
	CHECK(type_of(mapped) == CU_MEMORYTYPE_HOST);
	fill(mapped, 4 * MIB, 3);
	OK(d.cuCtxSynchronize());
	uint64_t sum = 0, *total = pinned();
	for (size_t i = 0; i < 4 * MIB / 8; i++)
		sum += p[i];
	OK(RUN(NULL, "checksum", mapped, 4 * MIB / 8, (uint64_t)total));
	OK(d.cuCtxSynchronize());
	CHECK(*total == sum && sum);
	GIVES(CUDA_ERROR_INVALID_VALUE, d.cuMemFree_v2(mapped));
	OK(d.cuMemFreeHost(p));
	GIVES(CUDA_ERROR_INVALID_VALUE, d.cuMemFreeHost(p));
}

DRIVER_TEST(registered)
{
	char *own = aligned_alloc(4096, MIB);

	start();
	memset(own, 0, MIB);
	OK(d.cuMemHostRegister_v2(own, MIB, 0));
	GIVES(CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED, d.cuMemHostRegister_v2(own, MIB, 0));
	CHECK(type_of((CUdeviceptr)own) == CU_MEMORYTYPE_HOST);
	fill((CUdeviceptr)own, MIB, 4);
	CHECK(mismatches((CUdeviceptr)own, MIB, 4) == 0);
	OK(d.cuMemHostUnregister(own));
	GIVES(CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED, d.cuMemHostUnregister(own));
}

DRIVER_TEST(pageable_is_out_of_reach)
{
	static char own[8192];

	start();
	if (has(CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS))
		_exit(SKIP);
	fill((CUdeviceptr)own / 8 * 8 + 8, 4096, 1);
	GIVES(CUDA_ERROR_ILLEGAL_ADDRESS, d.cuCtxSynchronize());
}

DRIVER_TEST(copies)
{
	enum { BYTES = 3 * 1024 * 1024 + 17 };
	CUdeviceptr a, b;
	char *one = malloc(BYTES), *two = malloc(BYTES);

	start();
	OK(d.cuMemAlloc_v2(&a, BYTES));
	OK(d.cuMemAlloc_v2(&b, BYTES));
	for (size_t i = 0; i < BYTES; i++)
		one[i] = (char)(i * 7 + i / 4096);
	OK(d.cuMemcpyHtoD_v2(a, one, BYTES));
	OK(d.cuMemcpyDtoD_v2(b, a, BYTES));
	OK(d.cuMemcpyDtoH_v2(two, b, BYTES));
	CHECK(!memcmp(one, two, BYTES));
	OK(d.cuMemsetD8_v2(b + 100, 0x5a, 1000));
	OK(d.cuMemsetD32_v2(b + 4096, 0x01020304, 256));
	OK(d.cuMemcpy((CUdeviceptr)two, b, BYTES));
	CHECK(two[99] == one[99] && two[100] == 0x5a && two[1099] == 0x5a && two[1100] == one[1100]);
	CHECK(((uint32_t *)(two + 4096))[255] == 0x01020304 && two[4096 + 1024] == one[4096 + 1024]);
	/* A pageable source may change as soon as the asynchronous call returns. */
	OK(d.cuMemcpyHtoDAsync_v2(a, one, BYTES, NULL));
	memset(one, 0, 4096);
	OK(d.cuMemcpyDtoHAsync_v2(two, a, BYTES, NULL));
	OK(d.cuStreamSynchronize(NULL));
	CHECK(two[1] == 7 && two[4095] == (char)(4095 * 7));
	GIVES(CUDA_ERROR_INVALID_VALUE, d.cuMemcpyHtoD_v2(a, one, (size_t)BYTES + 8 * MIB));
	GIVES(CUDA_ERROR_INVALID_VALUE, d.cuMemcpyHtoD_v2((CUdeviceptr)two, one, 16));
	GIVES(CUDA_ERROR_INVALID_VALUE, d.cuMemsetD32_v2(b + 2, 1, 4));
	CUDA_MEMCPY2D rows = {.srcMemoryType = CU_MEMORYTYPE_HOST,
	                      .srcHost = one,
	                      .srcPitch = 128,
	                      .dstMemoryType = CU_MEMORYTYPE_DEVICE,
	                      .dstDevice = b,
	                      .dstPitch = 512,
	                      .WidthInBytes = 100,
	                      .Height = 50};
	OK(d.cuMemcpy2D_v2(&rows));
	OK(d.cuMemcpyDtoH_v2(two, b + 49 * 512, 100));
	CHECK(!memcmp(two, one + 49 * 128, 100));
}

/* -- managed memory ---------------------------------------------------------------------------- */

DRIVER_TEST(managed)
{
	CUdeviceptr p;
	unsigned is_managed = 0;
	int place;

	start();
	OK(d.cuMemAllocManaged(&p, 8 * MIB, CU_MEM_ATTACH_GLOBAL));
	OK(d.cuPointerGetAttribute(&is_managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, p));
	CHECK(is_managed);
	((uint64_t *)p)[7] = 1; /* also by the host */
	fill(p, 8 * MIB, 9);
	CHECK(mismatches(p, 8 * MIB, 9) == 0);
	CHECK(((volatile uint64_t *)p)[0] != ((volatile uint64_t *)p)[1]);
	if (has(CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS)) {
		OK(d.cuMemAdvise(p, 8 * MIB, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, CU_DEVICE_CPU));
		OK(d.cuMemAdvise_v2(p, 8 * MIB, CU_MEM_ADVISE_SET_ACCESSED_BY,
		                    (CUmemLocation){CU_MEM_LOCATION_TYPE_DEVICE, 0}));
		OK(d.cuMemRangeGetAttribute(&place, sizeof(place), CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION,
		                            p, 8 * MIB));
		CHECK(place == CU_DEVICE_CPU);
		OK(d.cuMemRangeGetAttribute(&place, sizeof(place), CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY, p,
		                            8 * MIB));
		CHECK(place == 0);
		OK(d.cuMemPrefetchAsync_v2(p, 8 * MIB, (CUmemLocation){CU_MEM_LOCATION_TYPE_DEVICE, 0}, 0,
		                           NULL));
		OK(d.cuCtxSynchronize());
		OK(d.cuMemRangeGetAttribute(&place, sizeof(place),
		                            CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION, p, 8 * MIB));
		CHECK(place == 0);
	}
	OK(d.cuMemFree_v2(p));
	GIVES(CUDA_ERROR_INVALID_VALUE, d.cuMemAllocManaged(&p, MIB, 0));
}

/* On the simulator only: a real driver would need the whole device. */
DRIVER_TEST(managed_moves)
{
	CUdeviceptr p, plain_one;
	CUmemLocation host = {CU_MEM_LOCATION_TYPE_HOST, 0}, device = {CU_MEM_LOCATION_TYPE_DEVICE, 0};

	start();
	need_simulator();
	need(CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS);
	size_t all = free_memory();
	OK(d.cuMemAllocManaged(&p, all + 32 * MIB, CU_MEM_ATTACH_GLOBAL));
	CHECK(free_memory() == all);
	OK(d.cuMemPrefetchAsync_v2(p, 16 * MIB, device, 0, NULL));
	OK(d.cuCtxSynchronize());
	CHECK(all - free_memory() == 16 * MIB);
	OK(d.cuMemPrefetchAsync_v2(p, 8 * MIB, host, 0, NULL));
	OK(d.cuCtxSynchronize());
	CHECK(all - free_memory() == 8 * MIB);
	/* A kernel's access brings pages until the device is full. */
	fill(p, all + 32 * MIB, 12);
	OK(d.cuCtxSynchronize());
	CHECK(free_memory() == 0);
	CHECK(mismatches(p, all + 32 * MIB, 12) == 0);
	/* Managed pages make room for memory that cannot move. */
	OK(d.cuMemAlloc_v2(&plain_one, all / 2));
	fill(plain_one, all / 2, 13);
	CHECK(mismatches(p, all + 32 * MIB, 12) == 0);
	CHECK(mismatches(plain_one, all / 2, 13) == 0);
	OK(d.cuMemFree_v2(p));
	CHECK(all - free_memory() == all / 2);
	/* Memory that prefers the host is read there. */
	OK(d.cuMemFree_v2(plain_one));
	OK(d.cuMemAllocManaged(&p, 32 * MIB, CU_MEM_ATTACH_GLOBAL));
	OK(d.cuMemAdvise_v2(p, 32 * MIB, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, host));
	fill(p, 32 * MIB, 14);
	CHECK(mismatches(p, 32 * MIB, 14) == 0);
	CHECK(free_memory() == all);
}

DRIVER_TEST(managed_without_faults)
{
	CUdeviceptr p;

	start();
	need_simulator();
	if (has(CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS))
		_exit(SKIP);
	size_t all = free_memory();
	GIVES(CUDA_ERROR_OUT_OF_MEMORY, d.cuMemAllocManaged(&p, all + 4 * MIB, CU_MEM_ATTACH_GLOBAL));
	CHECK(free_memory() == all);
	OK(d.cuMemAllocManaged(&p, 32 * MIB, CU_MEM_ATTACH_GLOBAL));
	CHECK(all - free_memory() == 32 * MIB);
	GIVES(CUDA_ERROR_INVALID_DEVICE, d.cuMemPrefetchAsync(p, 32 * MIB, 0, NULL));
	OK(d.cuMemFree_v2(p));
	CHECK(free_memory() == all);
}

/* -- pools ------------------------------------------------------------------------------------- */

DRIVER_TEST(stream_ordered)
{
	CUdeviceptr p, plain_one, host;
	CUmemoryPool pool, of;
	CUstream stream;

	start();
	OK(d.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	uint64_t *flag = pinned();
	OK(d.cuMemAllocAsync(&p, 8 * MIB, stream));
	OK(d.cuDeviceGetDefaultMemPool(&pool, 0));
	OK(d.cuPointerGetAttribute(&of, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, p));
	CHECK(of == pool);
	/* Freed in stream order, after its use. */
	OK(RUN(stream, "hold_fill", (uint64_t)flag, p, MIB, 1));
	OK(d.cuMemFreeAsync(p, stream));
	*word_at(flag) = 1;
	OK(d.cuStreamSynchronize(stream));
	OK(d.cuMemAlloc_v2(&plain_one, 4 * MIB));
	OK(d.cuMemFreeAsync(plain_one, stream));
	OK(d.cuMemAllocManaged(&host, 4 * MIB, CU_MEM_ATTACH_GLOBAL));
	GIVES(CUDA_ERROR_NOT_SUPPORTED, d.cuMemFreeAsync(host, stream));
	OK(d.cuMemAllocAsync(&p, 8 * MIB, stream));
	OK(d.cuMemFree_v2(p));
	OK(d.cuStreamSynchronize(stream));
}
