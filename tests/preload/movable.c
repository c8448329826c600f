/*
 * A program whose memory may move. It carries out its arguments, one call for each word, and prints
 * `WORD RESULT` for each, without addresses.
 *
 *	movable KERNELS WORD…
 *
 *	alloc:A:SIZE       block A, a letter, of SIZE (4m, 100k) by cuMemAlloc
 *	early:A:SIZE       the same from another call site
 *	grow:A:SIZE:COUNT  COUNT times cuMemCreate, map, release, behind A's end, as llama.cpp's pool
 *	fill:A verify:A    by kernels and copies
 *	free:A             cuMemFree, or of a pool: unmaps all
 *	where:A            the driver's location of each 2 MiB, asked past libspill: `where A ddhh`
 *	ask:A              the answers of the driver's queries about A
 *	info sync          info: free device bytes
 *	export:A ipc:A     a file descriptor or handle for A
 *	retain:A           the handle behind its address
 *	memops:A wrong:A   sets SYNC_MEMOPS of A; sets an attribute that nobody can set
 *	map:FILE           dlopen
 *	brim:A             allocates all free memory except for less than 2 MiB
 *	back:A             does small work until all of A is on the device, a minute at most
 *	busy:COUNT         does small work COUNT times
 *	spare:SIZE         does small work until SIZE is free, some seconds at most
 *
 * More words are in movable_work.c, movable_room.c and movable_kinds.c. The code of some words is in
 * movable_memory.c and movable_ask.c.
 *
 * Exit status: 0; 1 data wrong; 64 usage.
 */
#include "movable.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

const char *movable_kernels;
CUcontext movable_context;
struct block movable_blocks[26];
struct shared *movable_shared;
CUstream movable_stream;
CUfunction movable_hold_fill, movable_verify, movable_fill;
bool movable_wrong;

static const char *name_of(CUresult result)
{
	const char *name = "?";

	cuGetErrorName(result, &name);
	return name;
}

CUresult movable_launch(CUfunction function, CUstream stream, void **parameters)
{
	return cuLaunchKernel(function, 4, 1, 1, 64, 1, 1, 0, stream, parameters, NULL);
}

uint64_t movable_seed(void)
{
	static uint64_t seeds;

	return ++seeds;
}

static CUresult fill(struct block *block)
{
	uint64_t words = block->bytes / 8;
	void *parameters[] = {&block->address, &words, &block->seed};

	block->seed = movable_seed();
	CUresult result = movable_launch(movable_fill, movable_stream, parameters);
	return result ? result : cuStreamSynchronize(movable_stream);
}

/* By a kernel, and on the host. */
static CUresult verify(struct block *block)
{
	uint64_t words = block->bytes / 8, out = (uintptr_t)&movable_shared->mismatches;
	void *parameters[] = {&block->address, &words, &block->seed, &out};
	uint64_t *copy = malloc(block->bytes), wrong = 0;

	movable_shared->mismatches = 0;
	CUresult result = movable_launch(movable_verify, movable_stream, parameters);
	if (!result)
		result = cuStreamSynchronize(movable_stream);
	if (!result)
		result = cuMemcpyDtoH_v2(copy, block->address, block->bytes);
	for (uint64_t i = 0; !result && i < words; i++)
		wrong += copy[i] != pattern(i, block->seed);
	free(copy);
	if (wrong + movable_shared->mismatches) {
		printf("wrong words: %llu %llu\n", (unsigned long long)movable_shared->mismatches,
		       (unsigned long long)wrong);
		movable_wrong = true;
	}
	return result;
}

/* A launch that touches nothing of the program's blocks. */
static CUresult busy(uint64_t count)
{
	uint64_t words = 1, address = (uintptr_t)&movable_shared->sum, seed = 1;
	void *parameters[] = {&address, &words, &seed};
	CUresult result = CUDA_SUCCESS;

	for (uint64_t i = 0; i < count && !result; i++) {
		result = movable_launch(movable_fill, movable_stream, parameters);
		result = result ? result : cuStreamSynchronize(movable_stream);
	}
	return result;
}

static CUresult back(const struct block *block)
{
	struct timespec pause = {.tv_nsec = 1000000};
	CUresult result = CUDA_SUCCESS;

	for (unsigned i = 0; i < 60000 && !result; i++) {
		uint64_t at = 0;
		while (at < block->bytes && movable_side(block->address + at) == 'd')
			at += MOVABLE_GRANULE;
		if (at >= block->bytes)
			return CUDA_SUCCESS;
		result = busy(1);
		nanosleep(&pause, NULL);
	}
	return result ? result : CUDA_ERROR_NOT_READY;
}

static uint64_t size_of(const char *text)
{
	char *end;

	if (!text)
		exit(64);
	uint64_t value = strtoull(text, &end, 10);
	return value << (*end == 'm' ? 20 : *end == 'k' ? 10 : 0);
}

static CUresult info(void)
{
	size_t free = 0, total = 0;
	CUresult result = cuMemGetInfo_v2(&free, &total);

	printf("free %zu\n", free);
	return result;
}

static CUresult spare(uint64_t bytes)
{
	struct timespec pause = {.tv_nsec = 1000000};
	size_t free = 0, total = 0;
	CUresult result = CUDA_SUCCESS;

	for (unsigned i = 0; i < 10000 && !result && free < bytes; i++) {
		result = busy(1);
		nanosleep(&pause, NULL);
		result = result ? result : cuMemGetInfo_v2(&free, &total);
	}
	return result || free >= bytes ? result : CUDA_ERROR_NOT_READY;
}

static CUresult other(const char *word, const char *first)
{
	if (!strcmp(word, "info"))
		return info();
	if (!strcmp(word, "sync"))
		return cuCtxSynchronize();
	if (!strcmp(word, "map") && first)
		return dlopen(first, RTLD_NOW) ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
	exit(64);
}

static CUresult word(const char *word, const char *first, const char *second, const char *third)
{
	CUresult result;

	if (movable_work_word(word, first, second, &result) || movable_room_word(word, first, &result) ||
	    movable_kinds_word(word, first, second ? size_of(second) : 0, third ? size_of(third) : 0,
	                       &result))
		return result;
	if (!first || !strcmp(word, "map"))
		return other(word, first);
	if (!strcmp(word, "busy"))
		return busy(size_of(first));
	if (!strcmp(word, "spare"))
		return spare(size_of(first));
	struct block *block = &movable_blocks[(first[0] - 'a') % 26u];
	if (!strcmp(word, "alloc"))
		return movable_alloc(block, size_of(second));
	if (!strcmp(word, "early"))
		return movable_alloc_early(block, size_of(second));
	if (!strcmp(word, "grow"))
		return movable_grow(block, size_of(second), size_of(third));
	if (!strcmp(word, "fill"))
		return fill(block);
	if (!strcmp(word, "verify"))
		return verify(block);
	if (!strcmp(word, "free"))
		return movable_give(block);
	if (!strcmp(word, "ask"))
		return movable_ask(block);
	if (!strcmp(word, "brim"))
		return movable_brim(block);
	if (!strcmp(word, "back"))
		return back(block);
	if (!strcmp(word, "where")) {
		movable_where(first, block);
		return CUDA_SUCCESS;
	}
	return movable_export(word, block);
}

static bool begin(void)
{
	CUmodule module;
	void *pinned;

	if (cuDevicePrimaryCtxRetain(&movable_context, 0) || cuCtxSetCurrent(movable_context) ||
	    cuModuleLoad(&module, movable_kernels) || cuModuleGetFunction(&movable_fill, module, "fill") ||
	    cuModuleGetFunction(&movable_verify, module, "verify") ||
	    cuModuleGetFunction(&movable_hold_fill, module, "hold_fill") ||
	    cuStreamCreate(&movable_stream, 1) ||
	    cuMemHostAlloc(&pinned, sizeof(*movable_shared), CU_MEMHOSTALLOC_DEVICEMAP))
		return false;
	movable_shared = pinned;
	return true;
}

int main(int argc, char **argv)
{
	if (argc < 2)
		return 64;
	movable_kernels = argv[1];
	printf("cuInit %s\n", name_of(cuInit(0)));
	if (!begin())
		return 64;
	for (int i = 2; i < argc; i++) {
		char copy[4096], *place = NULL;

		snprintf(copy, sizeof(copy), "%s", argv[i]);
		char *name = strtok_r(copy, ":", &place), *first = strtok_r(NULL, ":", &place);
		char *second = strtok_r(NULL, ":", &place), *third = strtok_r(NULL, ":", &place);
		CUresult result = word(name, first, second, third);

		printf("%s %s\n", argv[i], name_of(result));
		fflush(stdout);
	}
	cuMemFreeHost(movable_shared);
	return movable_wrong;
}
