/*
 * cudart: the simulated libcudart.so.13, NVIDIA's runtime over whatever driver the process has.
 * This header has its prototypes, for the room itself and for programs. With REAL_HEADERS, programs
 * get NVIDIA's header.
 *
 * The room never calls core/. It finds the driver as NVIDIA's runtime does, so libspill sees the
 * same calls from both.
 *
 * Begin with cudart_api.def, the table of functions, then cudart_entry.h and cudart_driver.h.
 */
#ifndef SIM_CUDART_API_H
#define SIM_CUDART_API_H

#ifdef REAL_HEADERS
#include <cuda_runtime_api.h>
#else
#include "cudart_types.h"

typedef struct CUgraphExec_st *cudaGraphExec_t;

enum cudaStreamCaptureMode {
	cudaStreamCaptureModeGlobal = 0,
	cudaStreamCaptureModeThreadLocal = 1,
	cudaStreamCaptureModeRelaxed = 2,
};

enum cudaStreamCaptureStatus {
	cudaStreamCaptureStatusNone = 0,
	cudaStreamCaptureStatusActive = 1,
	cudaStreamCaptureStatusInvalidated = 2,
};

struct cudaKernelNodeParams {
	void *func;
	dim3 gridDim, blockDim;
	unsigned int sharedMemBytes;
	void **kernelParams, **extra;
};

struct cudaMemsetParams {
	void *dst;
	size_t pitch;
	unsigned int value, elementSize;
	size_t width, height;
};

struct cudaHostNodeParams {
	cudaHostFn_t fn;
	void *userData;
};

enum cudaGraphExecUpdateResult {
	cudaGraphExecUpdateSuccess = 0,
	cudaGraphExecUpdateError = 1,
	cudaGraphExecUpdateErrorTopologyChanged = 2,
};

typedef struct cudaGraphExecUpdateResultInfo_st {
	enum cudaGraphExecUpdateResult result;
	cudaGraphNode_t errorNode, errorFromNode;
} cudaGraphExecUpdateResultInfo;

#pragma GCC visibility push(default)
#define API(ret, name, params) ret name params;
#include "cudart_api.def"
#pragma GCC visibility pop
#endif

#endif
