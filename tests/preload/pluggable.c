/*
 * Uses spill_malloc and spill_free as PyTorch's CUDAPluggableAllocator does: found by dlopen, from a thread without a
 * context, the device given as an ordinal. Knows nothing else of libspill. CUDA, or HIP with -DHIP.
 *
 * *       pluggable LIBRARY COUNT MIB ROUNDS
 *
 * Prints what happens, without addresses; exit status 1 if data was wrong.
 */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef HIP
#include "abi/hip.h"
extern hipError_t hipInit(unsigned flags);
extern hipError_t hipMemset(void *to, int value, size_t bytes);
extern hipError_t hipMemcpy(void *to, const void *from, size_t bytes, hipMemcpyKind kind);
extern hipError_t hipDeviceSynchronize(void);
#else
#include "cuda_api.h"
#endif

#define ROOM 64

static void must(int result, const char *what)
{
	if (!result)
		return;
	printf("%s %d\n", what, result);
	exit(64);
}

static void begin(void)
{
#ifdef HIP
	must(hipInit(0), "init");
#else
	must(cuInit(0), "init");
#endif
}

static void context_is_current(void)
{
#ifndef HIP
	CUcontext context;
	must(cuCtxGetCurrent(&context), "current");
	printf("context %s\n", context ? "current" : "none");
	must(cuDevicePrimaryCtxRetain(&context, 0), "retain");
	must(cuCtxSetCurrent(context), "set");
#endif
}

static void set(void *to, unsigned char value, size_t bytes)
{
#ifdef HIP
	must(hipMemset(to, value, bytes), "set");
	must(hipDeviceSynchronize(), "sync");
#else
	must(cuMemsetD8_v2((uintptr_t)to, value, bytes), "set");
	must(cuCtxSynchronize(), "sync");
#endif
}

static int wrong(const void *from, unsigned char value, size_t bytes)
{
	unsigned char *copy = malloc(bytes);
	int bad = 0;
#ifdef HIP
	must(hipMemcpy(copy, from, bytes, hipMemcpyDeviceToHost), "copy");
#else
	must(cuMemcpyDtoH_v2(copy, (uintptr_t)from, bytes), "copy");
#endif
	for (size_t i = 0; i < bytes; i++)
		bad |= copy[i] != value;
	free(copy);
	return bad;
}

typedef void *malloc_fn(size_t bytes, int device, void *stream);
typedef void free_fn(void *pointer, size_t bytes, int device, void *stream);

int main(int argc, char **argv)
{
	void *pointers[ROOM];
	int bad = 0;
	if (argc < 5)
		return 64;
	begin();
	void *library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
	malloc_fn *allocate = library ? (malloc_fn *)dlsym(library, "spill_malloc") : NULL;
	free_fn *give_back = library ? (free_fn *)dlsym(library, "spill_free") : NULL;
	if (!allocate || !give_back)
		return 64;
	size_t bytes = strtoull(argv[3], NULL, 10) << 20;
	int count = atoi(argv[2]), first = 1;
	printf("nothing %d\n", allocate(0, 0, NULL) != NULL);
	give_back(NULL, 0, 0, NULL);
	for (int round = 0; round < atoi(argv[4]); round++) {
		int got = 0;
		while (got < count && (pointers[got] = allocate(bytes, 0, NULL)))
			got++;
		if (first)
			context_is_current();
		first = 0;
		printf("got %d\n", got);
		for (int i = 0; i < got; i++)
			set(pointers[i], (unsigned char)(i + 1), bytes);
		for (int i = 0; i < got; i++)
			bad |= wrong(pointers[i], (unsigned char)(i + 1), bytes);
		for (int i = 0; i < got; i++)
			give_back(pointers[i], bytes, 0, NULL);
	}
	printf("huge %d\n", allocate((size_t)1 << 50, 0, NULL) != NULL);
	printf("no device %d\n", allocate(4096, 99, NULL) != NULL);
	dlclose(library);
	printf("stays %d\n", dlopen(argv[1], RTLD_NOW | RTLD_NOLOAD) != NULL);
	puts(bad ? "wrong" : "all data right");
	return bad;
}
