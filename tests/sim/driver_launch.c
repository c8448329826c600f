/* Launches, in all their forms. */
#include <string.h>

#include "driver.h"

#define PARAMETERS 8 /* kernel.h */

/* The values as one block of memory, as `extra` has them. */
static CUresult from_extra(void **extra, unsigned count, uint64_t *value)
{
	const void *buffer = NULL;
	size_t bytes = 0;

	for (; extra && *extra != CU_LAUNCH_PARAM_END; extra += 2) {
		if (*extra == CU_LAUNCH_PARAM_BUFFER_POINTER)
			buffer = extra[1];
		else if (*extra == CU_LAUNCH_PARAM_BUFFER_SIZE)
			bytes = *(size_t *)extra[1];
		else
			return CUDA_ERROR_INVALID_VALUE;
	}
	if (bytes < count * sizeof(*value) || (count && !buffer))
		return CUDA_ERROR_INVALID_VALUE;
	if (count)
		memcpy(value, buffer, count * sizeof(*value));
	return CUDA_SUCCESS;
}

CUresult driver_launch(const void *function, const unsigned grid[3], const unsigned block[3],
                       CUstream hStream, void **parameters, void **extra)
{
	struct sim_stream *stream = driver_stream(hStream);
	struct sim_kernel *kernel;
	uint64_t value[PARAMETERS];
	CUresult result = driver_function(function, &kernel);

	if (result)
		return result;
	if (!stream || sim_module_context(sim_kernel_module(kernel)) != sim_stream_context(stream))
		return CUDA_ERROR_INVALID_HANDLE;
	unsigned count = sim_kernel_parameters(kernel);
	if (!grid[0] || !grid[1] || !grid[2] || !block[0] || !block[1] || !block[2] ||
	    (uint64_t)block[0] * block[1] * block[2] > 1024 || (parameters && extra) ||
	    (count && !parameters && !extra))
		return CUDA_ERROR_INVALID_VALUE;
	if (parameters) {
		for (unsigned i = 0; i < count; i++)
			memcpy(&value[i], parameters[i], sizeof(value[i]));
	} else {
		result = from_extra(extra, count, value);
	}
	return result ? result : driver_result(sim_launch(stream, kernel, value));
}

WITH_STREAM(cuLaunchKernel, cuLaunchKernel_ptsz,
            (CUfunction f, unsigned int gridDimX, unsigned int gridDimY, unsigned int gridDimZ,
             unsigned int blockDimX, unsigned int blockDimY, unsigned int blockDimZ,
             unsigned int sharedMemBytes, CUstream hStream, void **kernelParams, void **extra),
            (f, gridDimX, gridDimY, gridDimZ, blockDimX, blockDimY, blockDimZ, sharedMemBytes, hStream,
             kernelParams, extra))
{
	const unsigned grid[3] = {gridDimX, gridDimY, gridDimZ}, block[3] = {blockDimX, blockDimY, blockDimZ};

	return driver_launch(f, grid, block, hStream, kernelParams, extra);
}

WITH_STREAM(cuLaunchCooperativeKernel, cuLaunchCooperativeKernel_ptsz,
            (CUfunction f, unsigned int gridDimX, unsigned int gridDimY, unsigned int gridDimZ,
             unsigned int blockDimX, unsigned int blockDimY, unsigned int blockDimZ,
             unsigned int sharedMemBytes, CUstream hStream, void **kernelParams),
            (f, gridDimX, gridDimY, gridDimZ, blockDimX, blockDimY, blockDimZ, sharedMemBytes, hStream,
             kernelParams))
{
	const unsigned grid[3] = {gridDimX, gridDimY, gridDimZ}, block[3] = {blockDimX, blockDimY, blockDimZ};

	return driver_launch(f, grid, block, hStream, kernelParams, NULL);
}

static CUresult launch_ex(const CUlaunchConfig *c, CUfunction f, void **parameters, void **extra,
                          CUstream zero)
{
	if (!c)
		return CUDA_ERROR_INVALID_VALUE;
	const unsigned grid[3] = {c->gridDimX, c->gridDimY, c->gridDimZ};
	const unsigned block[3] = {c->blockDimX, c->blockDimY, c->blockDimZ};

	return driver_launch(f, grid, block, c->hStream ? c->hStream : zero, parameters, extra);
}

CUresult cuLaunchKernelEx(const CUlaunchConfig *config, CUfunction f, void **kernelParams, void **extra)
{
	ENTER(cuLaunchKernelEx, CONTEXT);
	return launch_ex(config, f, kernelParams, extra, CU_STREAM_LEGACY);
}

CUresult cuLaunchKernelEx_ptsz(const CUlaunchConfig *config, CUfunction f, void **kernelParams, void **extra)
{
	ENTER(cuLaunchKernelEx_ptsz, CONTEXT);
	return launch_ex(config, f, kernelParams, extra, CU_STREAM_PER_THREAD);
}
