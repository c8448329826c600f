/*
 * hip: the simulated libamdhip64.so.5, .6 and .7 over core/. This header has the prototypes of all
 * three, for the room itself and for programs. With REAL_HEADERS, programs get AMD's header.
 *
 * HIP has one level, so the room never needs a driver. hip_later_api.h has the additions of .6 and
 * .7.
 *
 * Begin with hip_api.def, the table of functions, then hip_entry.h.
 */
#ifndef SIM_HIP_API_H
#define SIM_HIP_API_H

#ifdef REAL_HEADERS
#include <hip/hip_runtime_api.h>
#else
#include "abi/hip.h"

/* Parameters of nodes, which libspill never reads. */
typedef struct dim3 {
	uint32_t x, y, z;
} dim3;

typedef struct hipKernelNodeParams {
	dim3 blockDim;
	void **extra, *func;
	dim3 gridDim;
	void **kernelParams;
	unsigned int sharedMemBytes;
} hipKernelNodeParams;

typedef struct hipMemsetParams {
	void *dst;
	unsigned int elementSize;
	size_t height, pitch;
	unsigned int value;
	size_t width;
} hipMemsetParams;

typedef void (*hipHostFn_t)(void *userData);

typedef struct hipHostNodeParams {
	hipHostFn_t fn;
	void *userData;
} hipHostNodeParams;

typedef enum hipGraphExecUpdateResult {
	hipGraphExecUpdateSuccess = 0,
	hipGraphExecUpdateError = 1,
	hipGraphExecUpdateErrorTopologyChanged = 2,
} hipGraphExecUpdateResult;

#pragma GCC visibility push(default)
#define API(node, ret, name, params) ret name params;
#include "hip_api.def"
#pragma GCC visibility pop
#endif

#endif
