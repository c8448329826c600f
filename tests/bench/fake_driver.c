/*
 * A libcuda.so.1 that does nothing: what a call through it takes beyond a bare call is not the driver's. Its functions are
 * those that tests/bench/gate.c calls.
 */
#include "abi/cuda.h"
#include "abi/cuda_work.h"

#define EXPORTED __attribute__((visibility("default"), noinline))

EXPORTED CUresult cuLaunchKernel(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
                                 unsigned by, unsigned bz, unsigned shared, CUstream stream,
                                 void **parameters, void **extra);
EXPORTED CUresult cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream);

CUresult cuLaunchKernel(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                        unsigned bz, unsigned shared, CUstream stream, void **parameters, void **extra)
{
	return CUDA_SUCCESS;
}

CUresult cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream)
{
	return CUDA_SUCCESS;
}
