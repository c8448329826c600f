/*
 * The CUDA driver API, by four ways to get at its functions: WAY_LINK linked directly, WAY_DLSYM each by dlsym,
 * WAY_PROC=1 and WAY_PROC=2 each by cuGetProcAddress of that version.
 */
#include <dlfcn.h>
#include <stdio.h>

#ifdef REAL_HEADERS
#include <cuda.h>
#else
#include "abi/cuda.h"
#endif

#include "prog.h"

/* libspill has no use for these, so its own headers lack them. */
typedef struct CUmod_st *CUmodule;
typedef struct CUfunc_st *CUfunction;

static struct {
#define FUNCTION(base, symbol, since, parameters) CUresult(*symbol) parameters;
#include "way_driver.def"
} cu;

#if defined(WAY_LINK)

#define FUNCTION(base, symbol, since, parameters) extern CUresult symbol parameters;
#include "way_driver.def"

static void resolve(void)
{
#define FUNCTION(base, symbol, since, parameters) cu.symbol = symbol;
#include "way_driver.def"
}
#define NAME "driver linked"

#elif defined(WAY_DLSYM)

static void resolve(void)
{
	void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);

#define FUNCTION(base, symbol, since, parameters) \
	*(void **)&cu.symbol = library ? dlsym(library, #symbol) : NULL;
#include "way_driver.def"
}
#define NAME "driver by dlsym"

#elif WAY_PROC == 1

/* By its symbol, because cuda.h makes a macro of the name. */
extern CUresult get_proc(const char *name, void **out, int version,
                         cuuint64_t flags) __asm__("cuGetProcAddress");

static void resolve(void)
{
#define FUNCTION(base, symbol, since, parameters) get_proc(base, (void **)&cu.symbol, since, 0);
#include "way_driver.def"
}
#define NAME "driver by cuGetProcAddress"

#else

extern CUresult get_proc(const char *name, void **out, int version, cuuint64_t flags,
                         CUdriverProcAddressQueryResult *status) __asm__("cuGetProcAddress_v2");

static void resolve(void)
{
	CUdriverProcAddressQueryResult status;

#define FUNCTION(base, symbol, since, parameters) get_proc(base, (void **)&cu.symbol, since, 0, &status);
#include "way_driver.def"
}
#define NAME "driver by cuGetProcAddress_v2"

#endif

static CUmodule module;

static int start(void)
{
	CUcontext context;

	resolve();
#define FUNCTION(base, symbol, since, parameters) \
	if (!cu.symbol) { \
		printf("%s is not there\n", #symbol); \
		return CUDA_ERROR_NOT_FOUND; \
	}
#include "way_driver.def"
	CUresult result = cu.cuInit(0);
	if (!result)
		result = cu.cuDevicePrimaryCtxRetain(&context, 0);
	return result ? result : cu.cuCtxSetCurrent(context);
}

static int load(const char *path)
{
	return cu.cuModuleLoad(&module, path);
}

static int kernel(const char *name, void **out)
{
	return cu.cuModuleGetFunction((CUfunction *)out, module, name);
}

static int launch(void *function, void **parameters)
{
	return cu.cuLaunchKernel(function, BLOCKS, 1, 1, THREADS, 1, 1, 0, NULL, parameters, NULL);
}

static int synchronize(void)
{
	return cu.cuCtxSynchronize();
}

static int alloc(uint64_t *address, size_t bytes)
{
	CUdeviceptr found = *address;
	CUresult result = cu.cuMemAlloc_v2(&found, bytes);

	*address = found;
	return result;
}

static int release(uint64_t address)
{
	return cu.cuMemFree_v2(address);
}

static int alloc_host(void **pointer, size_t bytes)
{
	return cu.cuMemHostAlloc(pointer, bytes, CU_MEMHOSTALLOC_DEVICEMAP);
}

static int release_host(void *pointer)
{
	return cu.cuMemFreeHost(pointer);
}

static int info(size_t *free, size_t *total)
{
	return cu.cuMemGetInfo_v2(free, total);
}

static int about(uint64_t address, struct about *out)
{
	unsigned type = 0;
	CUdeviceptr base = 0;
	size_t size = 0;
	CUresult result = cu.cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, address);

	if (!result)
		result = cu.cuMemGetAddressRange_v2(&base, &size, address);
	if (!result)
		*out = (struct about){(int)type, address - base, size};
	return result;
}

static int copy_out(void *to, uint64_t from, size_t bytes)
{
	return cu.cuMemcpyDtoH_v2(to, from, bytes);
}

static const char *error_name(int error)
{
	const char *name = "?";

	if (cu.cuGetErrorName)
		cu.cuGetErrorName((CUresult)error, &name);
	return name;
}

const struct way way = {
    NAME,       start,        load, kernel, launch,   synchronize, alloc,      release,
    alloc_host, release_host, info, about,  copy_out, NULL,        error_name,
};
