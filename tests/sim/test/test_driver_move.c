/* Chunks that move while other work runs: contract tests as test_driver.c. */
#include "driver_test.h"

#include <sched.h>

#define CHUNK (4 * MIB)
#define COUNT 4

static CUdeviceptr va;
static CUmemGenericAllocationHandle handle[COUNT];

static void map(CUdeviceptr at, CUmemGenericAllocationHandle chunk_of)
{
	OK(d.cuMemMap(at, CHUNK, 0, chunk_of, 0));
	OK(allow(at, CHUNK, CU_MEM_ACCESS_FLAGS_PROT_READWRITE));
}

static void start_chunked(void)
{
	start();
	need(CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED);
	need(CU_DEVICE_ATTRIBUTE_HOST_NUMA_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED);
	OK(d.cuMemAddressReserve(&va, COUNT * CHUNK, 0, 0, 0));
	for (int i = 0; i < COUNT; i++) {
		handle[i] = chunk(CU_MEM_LOCATION_TYPE_DEVICE, CHUNK);
		map(va + i * CHUNK, handle[i]);
	}
}

static CUstream new_stream(void)
{
	CUstream stream;

	OK(d.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	return stream;
}

/* Moves chunk `i` to new memory of that type. No work uses it meanwhile. */
static void move(int i, CUmemLocationType type, CUstream stream, CUdeviceptr staging)
{
	CUmemGenericAllocationHandle home = chunk(type, CHUNK);

	map(staging, home);
	OK(d.cuMemcpyDtoDAsync_v2(staging, va + i * CHUNK, CHUNK, stream));
	OK(d.cuStreamSynchronize(stream));
	OK(d.cuMemUnmap(staging, CHUNK));
	OK(d.cuMemUnmap(va + i * CHUNK, CHUNK));
	map(va + i * CHUNK, home);
	OK(d.cuMemRelease(handle[i]));
	handle[i] = home;
}

DRIVER_TEST(moves_beside_running_work)
{
	CUdeviceptr staging;

	start_chunked();
	uint64_t *flag = pinned();
	CUstream busy = new_stream(), ours = new_stream();
	OK(d.cuMemAddressReserve(&staging, CHUNK, 0, 0, 0));
	fill(va, COUNT * CHUNK, 5);
	OK(d.cuCtxSynchronize());
	OK(RUN(busy, "fill_until", (uint64_t)flag, va, CHUNK / 8, 5)); /* the first chunk is always in use */
	for (int round = 0; round < 3; round++)
		for (int i = 1; i < COUNT; i++) {
			move(i,
			     (round + i) % 2 ? CU_MEM_LOCATION_TYPE_DEVICE : CU_MEM_LOCATION_TYPE_HOST_NUMA,
			     ours, staging);
			GIVES(CUDA_ERROR_NOT_READY, d.cuStreamQuery(busy));
		}
	word_at(flag)[0] = 1;
	OK(d.cuStreamSynchronize(busy));
	CHECK(mismatches(va, COUNT * CHUNK, 5) == 0);
	CHECK(type_of(va + CHUNK) != type_of(va + 2 * CHUNK));
	/* Addresses in memory stay valid. */
	uint64_t *array = flag + 64;
	for (int i = 0; i < COUNT; i++) {
		array[i] = va + (uint64_t)i * CHUNK;
		fill(va + i * CHUNK, CHUNK, 20 + (uint64_t)i);
	}
	for (int i = 1; i < COUNT; i++) {
		OK(d.cuCtxSynchronize());
		move(i, CU_MEM_LOCATION_TYPE_HOST_NUMA, ours, staging);
	}
	OK(RUN(NULL, "verify_all", (uint64_t)array, COUNT, CHUNK / 8, 20, (uint64_t)(flag + 8)));
	OK(d.cuCtxSynchronize());
	CHECK(flag[8] == 0);
}

DRIVER_TEST(mapped_twice)
{
	CUdeviceptr there;

	start_chunked();
	OK(d.cuMemAddressReserve(&there, CHUNK, 0, 0, 0));
	fill(va, CHUNK, 1);
	OK(d.cuCtxSynchronize());
	map(there, handle[0]);
	CHECK(mismatches(there, CHUNK, 1) == 0);
	fill(there, CHUNK, 2);
	CHECK(mismatches(va, CHUNK, 2) == 0);
	/* One mapping ends and the other stays. The handle may be released before both. */
	OK(d.cuMemUnmap(va, CHUNK));
	OK(d.cuMemRelease(handle[0]));
	CHECK(mismatches(there, CHUNK, 2) == 0);
	GIVES(CUDA_ERROR_INVALID_VALUE, d.cuMemUnmap(there, CHUNK / 2));
	OK(d.cuMemUnmap(there, CHUNK));
}

DRIVER_TEST(refused_maps)
{
	start_chunked();
	CUmemGenericAllocationHandle spare = chunk(CU_MEM_LOCATION_TYPE_HOST_NUMA, CHUNK);
	CHECK(d.cuMemMap(va, CHUNK, 0, spare, 0) != CUDA_SUCCESS); /* taken */
	GIVES(CUDA_ERROR_INVALID_VALUE, d.cuMemAddressFree(va, COUNT * CHUNK));
	OK(d.cuMemUnmap(va, 2 * CHUNK)); /* whole mappings, in one call */
	OK(d.cuMemUnmap(va, CHUNK));     /* an unmapped range is valid */
	map(va, spare);
	fill(va, CHUNK, 9);
	CHECK(mismatches(va, CHUNK, 9) == 0);
	OK(d.cuMemUnmap(va, CHUNK));
	CHECK(allow(va, CHUNK, CU_MEM_ACCESS_FLAGS_PROT_READWRITE) != CUDA_SUCCESS);
	OK(d.cuMemUnmap(va + 2 * CHUNK, 2 * CHUNK));
	OK(d.cuMemAddressFree(va, COUNT * CHUNK));
}

/* A move of a chunk in use breaks the program's context, and an error says so. */
DRIVER_TEST(unmapped_under_work)
{
	start_chunked();
	uint64_t *flag = pinned();
	CUstream stream = new_stream();
	OK(RUN(stream, "hold_fill", (uint64_t)flag, va, COUNT * CHUNK / 8, 1));
	OK(d.cuMemUnmap(va + 2 * CHUNK, CHUNK));
	word_at(flag)[0] = 1;
	GIVES(CUDA_ERROR_ILLEGAL_ADDRESS, d.cuStreamSynchronize(stream));
	GIVES(CUDA_ERROR_ILLEGAL_ADDRESS, d.cuCtxSynchronize());
}

/* Submitted work that has not begun: a copy engine misses the page as a kernel does. */
DRIVER_TEST(unmapped_under_copies)
{
	start_chunked();
	uint64_t *flag = pinned();
	CUstream stream = new_stream();
	OK(RUN(stream, "hold", (uint64_t)flag));
	OK(d.cuMemcpyDtoDAsync_v2(va, va + CHUNK, CHUNK, stream));
	OK(d.cuMemUnmap(va + CHUNK, CHUNK));
	word_at(flag)[0] = 1;
	CHECK(d.cuStreamSynchronize(stream) != CUDA_SUCCESS);
}

/* A page that is back before the work begins has no effect on it. */
DRIVER_TEST(moved_before_work)
{
	CUdeviceptr staging;

	start_chunked();
	uint64_t *flag = pinned();
	CUstream stream = new_stream(), ours = new_stream();
	OK(d.cuMemAddressReserve(&staging, CHUNK, 0, 0, 0));
	fill(va, COUNT * CHUNK, 3);
	/* Loaded before: code that loads while a kernel runs may have to wait for it. */
	OK(RUN(stream, "verify_part", va + CHUNK, 0, 3, CHUNK / 8, (uint64_t)(flag + 8)));
	OK(d.cuCtxSynchronize());
	OK(RUN(stream, "hold", (uint64_t)flag));
	OK(RUN(stream, "verify_part", va + CHUNK, CHUNK / 8, 3, CHUNK / 8, (uint64_t)(flag + 8)));
	move(1, CU_MEM_LOCATION_TYPE_HOST_NUMA, ours, staging);
	word_at(flag)[0] = 1;
	OK(d.cuStreamSynchronize(stream));
	CHECK(flag[8] == 0 && flag[9] == CHUNK / 8);
}
