#include "driver.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define NON_BLOCKING 1u /* CU_STREAM_NON_BLOCKING */

/* Enough for every multiprocessor of any GPU; kernels.c counts on the threads of a block. */
#define BLOCKS 1056
#define THREADS 256

CUstream bench_stream;

static CUfunction functions[BENCH_KERNELS];

void bench_check(const char *what, CUresult result)
{
	const char *name = "?";

	if (!result)
		return;
	cuGetErrorName(result, &name);
	fflush(stdout);
	fprintf(stderr, "%s: %s: %s\n", program_invocation_short_name, what, name);
	exit(result == CUDA_ERROR_OUT_OF_MEMORY ? 3 : 2);
}

void bench_start(const char *kernels)
{
	static const char *const names[BENCH_KERNELS] = {"fill", "verify", "wide_sum", "wide_add"};
	CUcontext context;
	CUmodule module;

	bench_check("cuInit", cuInit(0));
	bench_check("context", cuDevicePrimaryCtxRetain(&context, 0));
	bench_check("context", cuCtxSetCurrent(context));
	bench_check("stream", cuStreamCreate(&bench_stream, NON_BLOCKING));
	bench_check("module", cuModuleLoad(&module, kernels));
	for (int i = 0; i < BENCH_KERNELS; i++)
		bench_check(names[i], cuModuleGetFunction(&functions[i], module, names[i]));
}

void bench_launch(enum bench_kernel kernel, uint64_t first, uint64_t second, uint64_t third, uint64_t fourth)
{
	void *parameters[] = {&first, &second, &third, &fourth};

	bench_check("launch", cuLaunchKernel(functions[kernel], BLOCKS, 1, 1, THREADS, 1, 1, 0, bench_stream,
	                                     parameters, NULL));
}

void bench_finish(void)
{
	bench_check("work", cuStreamSynchronize(bench_stream));
}

uint64_t bench_now_us(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (uint64_t)time.tv_sec * 1000000u + (uint64_t)time.tv_nsec / 1000;
}

static int compare(const void *left, const void *right)
{
	uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;

	return (a > b) - (a < b);
}

uint64_t bench_median(uint64_t *values, unsigned count)
{
	qsort(values, count, sizeof(*values), compare);
	return values[count / 2];
}

CUmemGenericAllocationHandle bench_create(uint64_t bytes, int on_host)
{
	CUmemAllocationProp properties = {
	    .type = CU_MEM_ALLOCATION_TYPE_PINNED,
	    .location = {on_host ? CU_MEM_LOCATION_TYPE_HOST_NUMA : CU_MEM_LOCATION_TYPE_DEVICE, 0}};
	CUmemGenericAllocationHandle handle;

	bench_check("cuMemCreate", cuMemCreate(&handle, bytes, &properties, 0));
	return handle;
}

void bench_map(CUdeviceptr at, uint64_t bytes, CUmemGenericAllocationHandle handle)
{
	CUmemAccessDesc access = {{CU_MEM_LOCATION_TYPE_DEVICE, 0}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};

	bench_check("map", cuMemMap(at, bytes, 0, handle, 0));
	bench_check("access", cuMemSetAccess(at, bytes, &access, 1));
}

uint64_t *bench_pinned_word(void)
{
	void *word;

	bench_check("pinned word", cuMemHostAlloc(&word, sizeof(uint64_t), CU_MEMHOSTALLOC_DEVICEMAP));
	*(uint64_t *)word = 0;
	return word;
}

uint64_t bench_free_bytes(void)
{
	size_t free_bytes, total;

	bench_check("free memory", cuMemGetInfo_v2(&free_bytes, &total));
	return free_bytes;
}

uint64_t bench_option(char **arguments, const char *name, uint64_t otherwise)
{
	for (; *arguments; arguments++)
		if (strncmp(*arguments, "--", 2) == 0 && strcmp(*arguments + 2, name) == 0 && arguments[1])
			return strtoull(arguments[1], NULL, 10);
	return otherwise;
}
