/*
 * A program whose memory comes from an allocator in libraries of its own, as that of llama.cpp
 * does: weights and a cache by libggml-base.so, which asks libggml-cuda.so, which asks the driver.
 * CUDA, BASE: the libraries; else the program. requester PATH_OF_BASE
 */
#include <dlfcn.h>
#include <stddef.h>
#include <stdio.h>

#include "cuda_api.h"

#ifdef __clang__
#define APART __attribute__((noinline))
#else
#define APART __attribute__((noinline, noclone))
#endif
#define EXPORTED __attribute__((visibility("default")))

EXPORTED int device_alloc(CUdeviceptr *address, size_t bytes);
EXPORTED int buffer_alloc(CUdeviceptr *address, size_t bytes);

#if defined(CUDA)

static APART int take_range(CUdeviceptr *address, size_t bytes)
{
	int result = cuMemAlloc_v2(address, bytes);
	__asm__ volatile(""); /* no tail call */
	return result;
}

int device_alloc(CUdeviceptr *address, size_t bytes)
{
	int result = take_range(address, bytes);
	__asm__ volatile("");
	return result;
}

#elif defined(BASE)

int buffer_alloc(CUdeviceptr *address, size_t bytes)
{
	int result = device_alloc(address, bytes);
	__asm__ volatile("");
	return result;
}

#else

static int (*alloc)(CUdeviceptr *address, size_t bytes);

static APART int load_weights(void)
{
	CUdeviceptr address;
	int result = 0;
	for (int i = 0; i < 2 && !result; i++)
		result = alloc(&address, (size_t)6 << 20);
	return result;
}

static APART int make_cache(size_t bytes)
{
	CUdeviceptr address;
	int result = alloc(&address, bytes);
	__asm__ volatile("");
	return result;
}

int main(int argc, char **argv)
{
	CUcontext context;
	void *library = argc == 2 ? dlopen(argv[1], RTLD_NOW) : NULL;
	if (!library || cuInit(0) || cuDevicePrimaryCtxRetain(&context, 0) || cuCtxSetCurrent(context))
		return 64;
	*(void **)&alloc = dlsym(library, "buffer_alloc");
	int weights = load_weights(), cache = make_cache((size_t)12 << 20),
	    more = make_cache((size_t)64 << 20);
	printf("%d %d %d\n", weights, cache, more);
	return 0;
}

#endif
