/*
 * A caching allocator like PyTorch's native one, and a program like a training: each step takes blocks of its segments one after the
 * other and fills them, and then checks them in reverse order and gives them back. A few blocks are kept for all steps.
 *
 *	blocks KERNELS SEGMENTS STEPS [capture|export] [expandable]
 *
 * It tells libc10.so of each block (c10.c). With `capture` it captures something before the first step. With `expandable` it
 * maps its segments side by side, like PyTorch's expandable ones, and every second block reaches over two. The last one is
 * mapped anew after each step. With `export` each third segment gets a handle for other processes after the first step. Prints what happened; exit status 1: data was wrong.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cuda_api.h"

#define MIB (1ull << 20)
#define BLOCK (2 * MIB)
#define SEGMENT (2 * BLOCK)
#define BLOCKS 256
#define KEPT 4
#define WORDS (BLOCK / 8)

struct device {
	int8_t type, index;
};

extern void _ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE(void *ptr, int64_t bytes, size_t allocated,
                                                                  size_t reserved, struct device device);
extern uint64_t c10_reports(void);

static CUdeviceptr blocks[BLOCKS];
static uint64_t *mismatches;
static CUfunction fill, verify;
static uint64_t told;

static void must(CUresult result, const char *what)
{
	if (!result)
		return;
	printf("%s %d\n", what, (int)result);
	exit(64);
}

static void tell(CUdeviceptr block, bool taken, int8_t type)
{
	_ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE(
	    (void *)block, taken ? (int64_t)BLOCK : -(int64_t)BLOCK, 7, 8, (struct device){type, 3});
	told++;
}

static void fill_block(unsigned block, uint64_t seed)
{
	uint64_t words = WORDS;
	void *parameters[] = {&blocks[block], &words, &seed};

	must(cuLaunchKernel(fill, 4, 1, 1, 64, 1, 1, 0, NULL, parameters, NULL), "fill");
}

static void check_block(unsigned block, uint64_t seed)
{
	uint64_t words = WORDS, out = (uint64_t)(uintptr_t)mismatches;
	void *parameters[] = {&blocks[block], &words, &seed, &out};

	must(cuLaunchKernel(verify, 4, 1, 1, 64, 1, 1, 0, NULL, parameters, NULL), "verify");
}

static const CUmemAllocationProp properties = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                               .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
static CUdeviceptr last_segment; /* expandable; 0: none */
static CUmemGenericAllocationHandle last_handle;

static void map_last(void)
{
	const CUmemAccessDesc access = {properties.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};

	must(cuMemMap(last_segment, SEGMENT, 0, last_handle, 0), "map");
	must(cuMemSetAccess(last_segment, SEGMENT, &access, 1), "access");
}

static void step(unsigned number, unsigned count)
{
	for (unsigned i = KEPT; i < count; i++) {
		tell(blocks[i], true, 1);
		fill_block(i, number * 1000 + i);
		check_block(i % KEPT, i % KEPT);
	}
	for (unsigned i = count; i-- > KEPT;) {
		check_block(i, number * 1000 + i);
		tell(blocks[i], false, 1);
	}
	must(cuCtxSynchronize(), "synchronize");
	if (last_segment) {
		must(cuMemUnmap(last_segment, SEGMENT), "unmap");
		map_last();
	}
}

static void begin(const char *kernels)
{
	CUcontext context;
	CUmodule module;
	void *memory;

	must(cuInit(0), "init");
	must(cuDevicePrimaryCtxRetain(&context, 0), "retain");
	must(cuCtxSetCurrent(context), "current");
	must(cuModuleLoad(&module, kernels), "load");
	must(cuModuleGetFunction(&fill, module, "fill"), "function");
	must(cuModuleGetFunction(&verify, module, "verify"), "function");
	must(cuMemHostAlloc(&memory, 4096, CU_MEMHOSTALLOC_DEVICEMAP), "pinned");
	mismatches = memory;
	*mismatches = 0;
}

/* While it is captured, a block is taken and given back: the memory of a graph. */
static void capture(CUdeviceptr block)
{
	CUstream stream;
	CUgraph graph;

	must(cuStreamCreate(&stream, 1), "stream");
	must(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_RELAXED), "capture");
	tell(block, true, 1);
	tell(block, false, 1);
	must(cuStreamEndCapture(stream, &graph), "end");
}

/* As torch.multiprocessing does for a tensor. */
static void export_segments(unsigned segments)
{
	CUipcMemHandle handle;

	for (unsigned i = 0; i < segments; i += 3)
		must(cuIpcGetMemHandle(&handle, blocks[2 * i]), "export");
}

/* Returns the number of blocks. */
static unsigned make_segments(unsigned segments)
{
	for (unsigned i = 0; i < segments; i++) {
		must(cuMemAlloc_v2(&blocks[2 * i], SEGMENT), "segment");
		blocks[2 * i + 1] = blocks[2 * i] + BLOCK;
	}
	return 2 * segments;
}

static unsigned make_expandable_segments(unsigned segments)
{
	CUdeviceptr base;

	must(cuMemAddressReserve(&base, segments * SEGMENT, 0, 0, 0), "reserve");
	for (unsigned i = 0; i < segments; i++) {
		last_segment = base + i * SEGMENT;
		must(cuMemCreate(&last_handle, SEGMENT, &properties, 0), "create");
		map_last();
	}
	for (unsigned i = 0; i < 2 * segments - 1; i++)
		blocks[i] = base + BLOCK / 2 + i * BLOCK;
	return 2 * segments - 1;
}

int main(int argc, char **argv)
{
	unsigned segments = argc > 3 ? (unsigned)atoi(argv[2]) : 0;
	bool captures = argc > 4 && !strcmp(argv[4], "capture");
	bool exports = argc > 4 && !strcmp(argv[4], "export");
	bool expandable = argc > 4 && !strcmp(argv[argc - 1], "expandable");

	if (!segments || 2 * segments > BLOCKS)
		return 64;
	begin(argv[1]);
	unsigned count = expandable ? make_expandable_segments(segments) : make_segments(segments);
	for (unsigned i = 0; i < KEPT; i++) {
		tell(blocks[i], true, 1);
		fill_block(i, i);
	}
	tell(0x1000, true, 0); /* memory of the host */
	if (captures)
		capture(blocks[count - 1]);
	for (int i = 0; i < atoi(argv[3]); i++) {
		step((unsigned)i + 1, count);
		if (exports && i == 0)
			export_segments(segments);
	}
	printf("told %llu, arrived %llu\n", (unsigned long long)told, (unsigned long long)c10_reports());
	printf("mismatches %llu\n", (unsigned long long)*mismatches);
	return *mismatches != 0;
}
