/* Launches, in all their forms. */
#include <string.h>

#include "cuda_entry.h"

/* The values as one block of memory, in the form of `extra`. */
static CUresult from_extra(void **extra, size_t wanted, void *values)
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
	if (!wanted)
		return CUDA_SUCCESS;
	if (!buffer || bytes < wanted)
		return CUDA_ERROR_INVALID_VALUE;
	memcpy(values, buffer, wanted);
	return CUDA_SUCCESS;
}

CUresult driver_launch(const void *function, const struct sim_shape *shape, CUstream hStream,
                       void **parameters, void **extra)
{
	const unsigned *grid = shape->grid, *block = shape->block;
	struct sim_stream *stream = driver_stream(hStream);
	struct sim_kernel *kernel;
	char values[SIM_PARAMETER_BYTES];
	size_t offset, bytes;
	CUresult result = driver_function(function, &kernel);

	if (result)
		return result;
	if (!stream || sim_module_context(sim_kernel_module(kernel)) != sim_stream_context(stream))
		return CUDA_ERROR_INVALID_HANDLE;
	size_t wanted = sim_kernel_parameter_bytes(kernel);
	if (!grid[0] || !grid[1] || !grid[2] || !block[0] || !block[1] || !block[2] ||
	    (uint64_t)block[0] * block[1] * block[2] > 1024 || (parameters && extra) ||
	    (wanted && !parameters && !extra))
		return CUDA_ERROR_INVALID_VALUE;
	if (parameters) {
		for (unsigned i = 0; sim_kernel_parameter(kernel, i, &offset, &bytes); i++)
			memcpy(values + offset, parameters[i], bytes);
	} else {
		result = from_extra(extra, wanted, values);
	}
	return result ? result : driver_result(sim_launch(stream, kernel, shape, values));
}

#define SHAPE \
	{ \
		{gridDimX, gridDimY, gridDimZ}, {blockDimX, blockDimY, blockDimZ}, sharedMemBytes \
	}

WITH_STREAM(cuLaunchKernel, cuLaunchKernel_ptsz,
            (CUfunction f, unsigned int gridDimX, unsigned int gridDimY, unsigned int gridDimZ,
             unsigned int blockDimX, unsigned int blockDimY, unsigned int blockDimZ,
             unsigned int sharedMemBytes, CUstream hStream, void **kernelParams, void **extra),
            (f, gridDimX, gridDimY, gridDimZ, blockDimX, blockDimY, blockDimZ, sharedMemBytes, hStream,
             kernelParams, extra))
{
	const struct sim_shape shape = SHAPE;

	return driver_launch(f, &shape, hStream, kernelParams, extra);
}

WITH_STREAM(cuLaunchCooperativeKernel, cuLaunchCooperativeKernel_ptsz,
            (CUfunction f, unsigned int gridDimX, unsigned int gridDimY, unsigned int gridDimZ,
             unsigned int blockDimX, unsigned int blockDimY, unsigned int blockDimZ,
             unsigned int sharedMemBytes, CUstream hStream, void **kernelParams),
            (f, gridDimX, gridDimY, gridDimZ, blockDimX, blockDimY, blockDimZ, sharedMemBytes, hStream,
             kernelParams))
{
	const struct sim_shape shape = SHAPE;

	return driver_launch(f, &shape, hStream, kernelParams, NULL);
}

static CUresult launch_ex(const CUlaunchConfig *c, CUfunction f, void **parameters, void **extra,
                          CUstream zero)
{
	if (!c)
		return CUDA_ERROR_INVALID_VALUE;
	const struct sim_shape shape = {{c->gridDimX, c->gridDimY, c->gridDimZ},
	                                {c->blockDimX, c->blockDimY, c->blockDimZ},
	                                c->sharedMemBytes};

	return driver_launch(f, &shape, c->hStream ? c->hStream : zero, parameters, extra);
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
