/* HIP, linked. */
#include "hip_api.h"

#include "prog.h"

static hipModule_t module;

static int start(void)
{
	return hipInit(0);
}

static int load(const char *path)
{
	return hipModuleLoad(&module, path);
}

static int kernel(const char *name, void **out)
{
	hipFunction_t found;
	hipError_t error = hipModuleGetFunction(&found, module, name);

	if (!error)
		*out = found;
	return error;
}

static int launch(void *function, void **parameters)
{
	return hipModuleLaunchKernel(function, BLOCKS, 1, 1, THREADS, 1, 1, 0, NULL, parameters, NULL);
}

static int synchronize(void)
{
	return hipDeviceSynchronize();
}

static int alloc(uint64_t *address, size_t bytes)
{
	void *pointer = (void *)(uintptr_t)*address;
	hipError_t error = hipMalloc(&pointer, bytes);

	*address = (uint64_t)(uintptr_t)pointer;
	return error;
}

static int release(uint64_t address)
{
	return hipFree((void *)(uintptr_t)address);
}

static int alloc_host(void **pointer, size_t bytes)
{
	return hipHostMalloc(pointer, bytes, hipHostMallocMapped);
}

static int release_host(void *pointer)
{
	return hipHostFree(pointer);
}

static int info(size_t *free, size_t *total)
{
	return hipMemGetInfo(free, total);
}

static int about(uint64_t address, struct about *out)
{
	hipPointerAttribute_t attributes;
	hipDeviceptr_t base = NULL;
	size_t size = 0;
	hipError_t error = hipPointerGetAttributes(&attributes, (void *)(uintptr_t)address);

	if (!error)
		error = hipMemGetAddressRange(&base, &size, (void *)(uintptr_t)address);
	if (!error)
		*out = (struct about){(int)attributes.memoryType, address - (uint64_t)(uintptr_t)base, size};
	return error;
}

static int copy_out(void *to, uint64_t from, size_t bytes)
{
	return hipMemcpy(to, (void *)(uintptr_t)from, bytes, hipMemcpyDeviceToHost);
}

static int last_error(void)
{
	return hipPeekAtLastError();
}

static const char *error_name(int error)
{
	return hipGetErrorName((hipError_t)error);
}

const struct way way = {
    "hip",      start,        load, kernel, launch,   synchronize, alloc,      release,
    alloc_host, release_host, info, about,  copy_out, last_error,  error_name,
};
