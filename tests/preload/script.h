/* script.c has the words, script_work.c their work. Declarations are by symbol: the simulator's. */
#ifndef SCRIPT_H
#define SCRIPT_H

#include <stdbool.h>
#include <stdint.h>

#include "abi/cuda.h"

typedef struct CUmod_st *CUmodule;
typedef struct CUfunc_st *CUfunction;

extern CUresult cuCtxCreate_v2(CUcontext *context, unsigned flags, CUdevice device);
extern CUresult cuInit(unsigned flags);
extern CUresult cuGetErrorName(CUresult error, const char **name);
extern CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device);
extern CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device);
extern CUresult cuDevicePrimaryCtxReset_v2(CUdevice device);
extern CUresult cuCtxDestroy_v2(CUcontext context);
extern CUresult cuCtxSetCurrent(CUcontext context);
extern CUresult cuCtxGetCurrent(CUcontext *context);
extern CUresult cuCtxSynchronize(void);
extern CUresult cuCtxEnablePeerAccess(CUcontext peer, unsigned flags);
extern CUresult cuCtxDisablePeerAccess(CUcontext peer);
extern CUresult cuModuleLoad(CUmodule *module, const char *path);
extern CUresult cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name);
extern CUresult cuLaunchKernel(CUfunction function, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
                               unsigned by, unsigned bz, unsigned shared, CUstream stream, void **parameters,
                               void **extra);
extern CUresult cuMemAlloc_v2(CUdeviceptr *address, size_t bytes);
extern CUresult cuMemAllocPitch_v2(CUdeviceptr *address, size_t *pitch, size_t width, size_t height,
                                   unsigned element);
extern CUresult cuMemsetD8_v2(CUdeviceptr address, unsigned char value, size_t bytes);
extern CUresult cuMemFree_v2(CUdeviceptr address);
extern CUresult cuMemFreeAsync(CUdeviceptr address, CUstream stream);
extern CUresult cuMemHostAlloc(void **pointer, size_t bytes, unsigned flags);
extern CUresult cuMemFreeHost(void *pointer);
extern CUresult cuMemGetInfo_v2(size_t *free, size_t *total);
extern CUresult cuMemcpyDtoH_v2(void *to, CUdeviceptr from, size_t bytes);

/* The allocations of one letter, all of one size. */
struct group {
	CUdeviceptr *address;
	uint64_t bytes, count, seed;
	CUcontext context;
};

extern const char *script_kernels; /* path of the module */
extern bool script_wrong;          /* data was */
extern bool script_async;          /* frees are in the order of the default stream */

/* Each does one word and returns the driver's first error. */
CUresult script_alloc(struct group *group, uint64_t bytes, uint64_t count);
CUresult script_fill(struct group *group);
CUresult script_verify(struct group *group);
CUresult script_free(struct group *group);
CUresult script_free_in_thread(struct group *group);
CUresult script_free_held(struct group *group);

/* Gives back the words' own memory. */
void script_end(void);

/* The context has ended, and with it the code that was loaded into it. */
void script_unload(CUcontext gone);

#endif
