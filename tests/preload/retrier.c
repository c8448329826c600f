/*
 * An allocator like PyTorch's: it keeps freed memory in a cache. When the driver is out of memory,
 * it frees the cache and asks once more. With `segments`, memory is made in pieces of 2 MiB. All
 * pieces are made before the first is mapped. A library, so that the tests can give it any name;
 * also a program.
 *
 *	retrier LIBRARY WORD…                loads LIBRARY, made of this file, and lets it do the words
 *	retrier_program WORD…                does them itself
 *
 *	segments                             from now on
 *	take:A:MIB give:A check:A            A, a letter; check: the data are what take wrote
 *	wait                                 reads a byte from the standard input
 *	on:N                                 goes on on device N
 *
 * Prints for each word its result, and how often the driver has failed so far.
 */
#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cuda_api.h"

/* By the runtime, as PyTorch does; the driver is then called by the runtime's library. */
#ifdef RUNTIME
extern int cudaMalloc(void **address, size_t bytes);
extern int cudaFree(void *address);
#define ALLOC(address, bytes) cudaMalloc((void **)(address), bytes)
#define FREE(address) cudaFree((void *)(uintptr_t)(address))
#else
#define ALLOC cuMemAlloc_v2
#define FREE cuMemFree_v2
#endif

__attribute__((visibility("default"))) int retrier_run(int count, char **words);

#ifdef HOST

int main(int argc, char **argv)
{
	int (*run)(int, char **);
	void *library = argc > 1 ? dlopen(argv[1], RTLD_NOW) : NULL;

	if (!library)
		return 64;
	*(void **)&run = dlsym(library, "retrier_run");
	int status = run(argc - 2, argv + 2);
	fflush(stdout); /* so that no tail call leaves us out of the stack */
	return status;
}

#else

#define SEGMENT ((size_t)2 << 20)
#define MOST 64

static struct block {
	CUdeviceptr address;
	size_t bytes;
	bool kept; /* given back, and not freed */
	unsigned char value;
	CUmemGenericAllocationHandle handles[MOST];
} blocks[26];

static bool segments;
static unsigned failures;

static const CUmemAllocationProp wanted = {
    .type = CU_MEM_ALLOCATION_TYPE_PINNED,
    .requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
    .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0},
};
static const CUmemAccessDesc allowed = {{CU_MEM_LOCATION_TYPE_DEVICE, 0}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};

/* Ends the program if the call failed. */
static void must(CUresult result, const char *what)
{
	if (!result)
		return;
	printf("%s: error %d\n", what, result);
	exit(1);
}

static bool make_segments(struct block *block, size_t bytes)
{
	size_t count = bytes / SEGMENT;

	for (size_t i = 0; i < count; i++) {
		if (!cuMemCreate(&block->handles[i], SEGMENT, &wanted, 0))
			continue;
		failures++;
		while (i)
			must(cuMemRelease(block->handles[--i]), "release");
		return false;
	}
	must(cuMemAddressReserve(&block->address, bytes, 0, 0, 0), "reserve");
	for (size_t i = 0; i < count; i++)
		must(cuMemMap(block->address + i * SEGMENT, SEGMENT, 0, block->handles[i], 0), "map");
	must(cuMemSetAccess(block->address, bytes, &allowed, 1), "access");
	return true;
}

static bool make(struct block *block, size_t bytes)
{
	if (segments)
		return make_segments(block, bytes);
	if (!ALLOC(&block->address, bytes))
		return true;
	failures++;
	return false;
}

static void destroy(struct block *block)
{
	must(cuCtxSynchronize(), "synchronise"); /* to unmap does not wait for the device */
	for (size_t at = 0; segments && at < block->bytes; at += SEGMENT) {
		must(cuMemUnmap(block->address + at, SEGMENT), "unmap");
		must(cuMemRelease(block->handles[at / SEGMENT]), "release");
	}
	must(segments ? cuMemAddressFree(block->address, block->bytes) : (CUresult)FREE(block->address),
	     "free");
	*block = (struct block){0};
}

static void free_kept(void)
{
	for (size_t i = 0; i < 26; i++)
		if (blocks[i].kept)
			destroy(&blocks[i]);
}

static const char *take(struct block *block, size_t bytes)
{
	static unsigned char values;
	const char *how = "made";

	for (size_t i = 0; i < 26 && !block->address; i++)
		if (blocks[i].kept && blocks[i].bytes == bytes) {
			*block = blocks[i];
			block->kept = false;
			if (block != &blocks[i])
				blocks[i] = (struct block){0};
			how = "kept";
		}
	if (!block->address && !make(block, bytes)) {
		free_kept();
		if (!make(block, bytes))
			return "FAILED";
		how = "again";
	}
	block->bytes = bytes;
	block->value = ++values;
	must(cuMemsetD8_v2(block->address, block->value, bytes), "set");
	return how;
}

static const char *check(const struct block *block)
{
	unsigned char *copy = malloc(block->bytes);
	bool right = true;

	must(cuMemcpyDtoH_v2(copy, block->address, block->bytes), "copy");
	for (size_t i = 0; i < block->bytes; i++)
		right = right && copy[i] == block->value;
	free(copy);
	return right ? "right" : "WRONG";
}

static void use_device(int device)
{
	CUcontext context;

	must(cuDevicePrimaryCtxRetain(&context, device), "retain");
	must(cuCtxSetCurrent(context), "current");
}

static const char *word(const char *text)
{
	char byte;
	const char *colon = strchr(text, ':');
	struct block *block = &blocks[colon ? colon[1] - 'a' : 0];

	if (!strncmp(text, "take:", 5))
		return take(block, (size_t)atoi(text + 7) << 20);
	if (!strncmp(text, "check:", 6))
		return check(block);
	if (!strncmp(text, "give:", 5))
		block->kept = true;
	else if (!strcmp(text, "segments"))
		segments = true;
	else if (!strncmp(text, "on:", 3))
		use_device(atoi(text + 3));
	else if (strcmp(text, "wait") || read(STDIN_FILENO, &byte, 1) != 1)
		exit(64);
	return "done";
}

int retrier_run(int count, char **words)
{
	must(cuInit(0), "init");
	use_device(0);
	for (int i = 0; i < count; i++) {
		printf("%s %s", words[i], word(words[i]));
		printf(" %u\n", failures);
		fflush(stdout);
	}
	return 0;
}

#ifdef PROGRAM
int main(int argc, char **argv)
{
	return retrier_run(argc - 1, argv + 1);
}
#endif

#endif
