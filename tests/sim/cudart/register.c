/*
 * Code that nvcc puts into a host program calls these functions before main. The simulator cannot
 * run its GPU code. So the program loads, and its kernels are unknown: a launch fails with an
 * invalid handle.
 */
#include "cudart_entry.h"

#pragma GCC visibility push(default)
void **__cudaRegisterFatBinary(void *binary);
void __cudaRegisterFatBinaryEnd(void **handle);
void __cudaUnregisterFatBinary(void **handle);
void __cudaRegisterFunction(void);
void __cudaRegisterVar(void);
void __cudaRegisterManagedVar(void);
char __cudaInitModule(void **handle);
unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared, cudaStream_t stream);
cudaError_t __cudaPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared, void *stream);
#pragma GCC visibility pop

static _Thread_local struct {
	dim3 grid, block;
	size_t shared;
	cudaStream_t stream;
} configuration;

void **__cudaRegisterFatBinary(void *binary)
{
	static void *handle;

	(void)binary;
	return &handle;
}

void __cudaRegisterFatBinaryEnd(void **handle)
{
	(void)handle;
}

void __cudaUnregisterFatBinary(void **handle)
{
	(void)handle;
}

/* Ignores their parameters, up to ten. */
void __cudaRegisterFunction(void)
{
}

void __cudaRegisterVar(void)
{
}

void __cudaRegisterManagedVar(void)
{
}

char __cudaInitModule(void **handle)
{
	(void)handle;
	return 1;
}

/* The <<<…>>> of a launch: the stub reads the configuration back and calls cudaLaunchKernel. */
unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared, cudaStream_t stream)
{
	configuration.grid = grid;
	configuration.block = block;
	configuration.shared = shared;
	configuration.stream = stream;
	return 0;
}

cudaError_t __cudaPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared, void *stream)
{
	*grid = configuration.grid;
	*block = configuration.block;
	*shared = configuration.shared;
	*(cudaStream_t *)stream = configuration.stream;
	return cudaSuccess;
}
