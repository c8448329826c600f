/* The way in of most programs: the CUDA runtime, linked shared or static. */
#include "cudart_api.h"

#include "prog.h"

static cudaLibrary_t library;

static int start(void)
{
	return cudaFree(NULL);
}

static int load(const char *path)
{
	return cudaLibraryLoadFromFile(&library, path, NULL, NULL, 0, NULL, NULL, 0);
}

static int kernel(const char *name, void **out)
{
	cudaKernel_t found;
	cudaError_t error = cudaLibraryGetKernel(&found, library, name);

	if (!error)
		*out = found;
	return error;
}

static int launch(void *function, void **parameters)
{
	return cudaLaunchKernel(function, (dim3){BLOCKS, 1, 1}, (dim3){THREADS, 1, 1}, parameters, 0, NULL);
}

static int synchronize(void)
{
	return cudaDeviceSynchronize();
}

static int alloc(uint64_t *address, size_t bytes)
{
	void *pointer = (void *)(uintptr_t)*address;
	cudaError_t error = cudaMalloc(&pointer, bytes);

	*address = (uint64_t)(uintptr_t)pointer;
	return error;
}

static int release(uint64_t address)
{
	return cudaFree((void *)(uintptr_t)address);
}

static int alloc_host(void **pointer, size_t bytes)
{
	return cudaHostAlloc(pointer, bytes, cudaHostAllocMapped);
}

static int release_host(void *pointer)
{
	return cudaFreeHost(pointer);
}

static int info(size_t *free, size_t *total)
{
	return cudaMemGetInfo(free, total);
}

static int about(uint64_t address, struct about *out)
{
	struct cudaPointerAttributes attributes;
	cudaError_t error = cudaPointerGetAttributes(&attributes, (void *)(uintptr_t)address);

	if (!error)
		*out = (struct about){.type = (int)attributes.type};
	return error;
}

static int copy_out(void *to, uint64_t from, size_t bytes)
{
	return cudaMemcpy(to, (void *)(uintptr_t)from, bytes, cudaMemcpyDeviceToHost);
}

static int last_error(void)
{
	return cudaPeekAtLastError();
}

static const char *error_name(int error)
{
	return cudaGetErrorName((cudaError_t)error);
}

const struct way way = {
    "runtime",  start,        load, kernel, launch,   synchronize, alloc,      release,
    alloc_host, release_host, info, about,  copy_out, last_error,  error_name,
};
