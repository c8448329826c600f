/* Attributes of functions and kernels, and occupancy. */
#include "cuda_entry.h"

static CUresult name_of(const char **name, const void *handle)
{
	struct sim_kernel *kernel;

	if (!name)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult result = driver_function(handle, &kernel);
	if (!result)
		*name = sim_kernel_name(kernel);
	return result;
}

/* Unlike a launch, these accept one of the two kinds of handles only (H200, driver 580.159). */
static CUresult parameter_info(const void *handle, bool function, size_t index, size_t *offset, size_t *size)
{
	struct sim_kernel *kernel;
	size_t at, bytes;

	if (!offset)
		return CUDA_ERROR_INVALID_VALUE;
	if (sim_kernel_alive((struct sim_kernel *)handle) != function)
		return CUDA_ERROR_INVALID_HANDLE;
	CUresult result = driver_function(handle, &kernel);
	if (!result && !sim_kernel_parameter(kernel, index, &at, &bytes))
		result = CUDA_ERROR_INVALID_VALUE;
	if (!result) {
		*offset = at;
		if (size)
			*size = bytes;
	}
	return result;
}

static CUresult function_attribute(int *out, CUfunction_attribute which, const void *handle)
{
	struct sim_kernel *kernel;
	CUresult result = out ? driver_function(handle, &kernel) : CUDA_ERROR_INVALID_VALUE;

	if (result)
		return result;
	switch (which) {
	case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
		*out = 1024;
		return CUDA_SUCCESS;
	case CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES:
		*out = (int)sim_kernel_local(kernel);
		return CUDA_SUCCESS;
	case CU_FUNC_ATTRIBUTE_NUM_REGS:
		*out = 32;
		return CUDA_SUCCESS;
	case CU_FUNC_ATTRIBUTE_PTX_VERSION:
	case CU_FUNC_ATTRIBUTE_BINARY_VERSION:
		*out = 90;
		return CUDA_SUCCESS;
	default:
		*out = 0;
		return (int)which >= 0 && which <= CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE
		           ? CUDA_SUCCESS
		           : CUDA_ERROR_INVALID_VALUE;
	}
}

/* Shared memory and caches have no effect here. All values that a program may set are accepted. */
static CUresult set_attribute(CUfunction_attribute which, const void *handle)
{
	struct sim_kernel *kernel;
	CUresult result = driver_function(handle, &kernel);

	if (!result && ((int)which < CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES ||
	                which > CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE))
		result = CUDA_ERROR_INVALID_VALUE;
	return result;
}

CUresult cuKernelGetName(const char **name, CUkernel hfunc)
{
	ENTER(cuKernelGetName, CONTEXT);
	return name_of(name, hfunc);
}

CUresult cuFuncGetName(const char **name, CUfunction hfunc)
{
	ENTER(cuFuncGetName, CONTEXT);
	return name_of(name, hfunc);
}

CUresult cuKernelGetParamInfo(CUkernel kernel, size_t paramIndex, size_t *paramOffset, size_t *paramSize)
{
	ENTER(cuKernelGetParamInfo, CONTEXT);
	return parameter_info(kernel, false, paramIndex, paramOffset, paramSize);
}

CUresult cuFuncGetParamInfo(CUfunction func, size_t paramIndex, size_t *paramOffset, size_t *paramSize)
{
	ENTER(cuFuncGetParamInfo, CONTEXT);
	return parameter_info(func, true, paramIndex, paramOffset, paramSize);
}

CUresult cuKernelGetAttribute(int *pi, CUfunction_attribute attrib, CUkernel kernel, CUdevice dev)
{
	ENTER(cuKernelGetAttribute, CONTEXT);
	return driver_device(dev) ? function_attribute(pi, attrib, kernel) : CUDA_ERROR_INVALID_DEVICE;
}

CUresult cuKernelSetAttribute(CUfunction_attribute attrib, int val, CUkernel kernel, CUdevice dev)
{
	ENTER(cuKernelSetAttribute, CONTEXT);
	return driver_device(dev) ? set_attribute(attrib, kernel) : CUDA_ERROR_INVALID_DEVICE;
}

CUresult cuFuncGetAttribute(int *pi, CUfunction_attribute attrib, CUfunction hfunc)
{
	ENTER(cuFuncGetAttribute, CONTEXT);
	return function_attribute(pi, attrib, hfunc);
}

CUresult cuFuncSetAttribute(CUfunction hfunc, CUfunction_attribute attrib, int value)
{
	ENTER(cuFuncSetAttribute, CONTEXT);
	return set_attribute(attrib, hfunc);
}

CUresult cuFuncSetCacheConfig(CUfunction hfunc, CUfunc_cache config)
{
	struct sim_kernel *kernel;

	ENTER(cuFuncSetCacheConfig, CONTEXT);
	return driver_function(hfunc, &kernel);
}

CUresult cuFuncGetModule(CUmodule *hmod, CUfunction hfunc)
{
	struct sim_kernel *kernel;

	ENTER(cuFuncGetModule, CONTEXT);
	CUresult result = hmod ? driver_function(hfunc, &kernel) : CUDA_ERROR_INVALID_VALUE;
	if (!result)
		*hmod = (CUmodule)sim_kernel_module(kernel);
	return result;
}

CUresult cuFuncIsLoaded(CUfunctionLoadingState *state, CUfunction function)
{
	struct sim_kernel *kernel;

	ENTER(cuFuncIsLoaded, CONTEXT);
	CUresult result = state ? driver_function(function, &kernel) : CUDA_ERROR_INVALID_VALUE;
	if (!result)
		*state = sim_kernel_loaded(kernel);
	return result;
}

CUresult cuFuncLoad(CUfunction function)
{
	struct sim_kernel *kernel;

	ENTER(cuFuncLoad, CONTEXT);
	CUresult result = driver_function(function, &kernel);
	return result ? result : driver_result(sim_kernel_load(kernel));
}

/* -- occupancy: only threads limit it here ----------------------------------------------------- */

static CUresult blocks_per_multiprocessor(int *blocks, CUfunction function, int block)
{
	struct sim_kernel *kernel;
	CUresult result = blocks && block > 0 ? driver_function(function, &kernel) : CUDA_ERROR_INVALID_VALUE;

	if (!result)
		*blocks = block > 1024 ? 0 : 2048 / block < 32 ? 2048 / block : 32;
	return result;
}

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int *numBlocks, CUfunction func, int blockSize,
                                                     size_t dynamicSMemSize)
{
	ENTER(cuOccupancyMaxActiveBlocksPerMultiprocessor, CONTEXT);
	return blocks_per_multiprocessor(numBlocks, func, blockSize);
}

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *numBlocks, CUfunction func, int blockSize,
                                                              size_t dynamicSMemSize, unsigned int flags)
{
	ENTER(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags, CONTEXT);
	return blocks_per_multiprocessor(numBlocks, func, blockSize);
}

CUresult cuOccupancyMaxPotentialBlockSize(int *minGridSize, int *blockSize, CUfunction func,
                                          CUoccupancyB2DSize blockSizeToDynamicSMemSize,
                                          size_t dynamicSMemSize, int blockSizeLimit)
{
	struct sim_kernel *kernel;

	ENTER(cuOccupancyMaxPotentialBlockSize, CONTEXT);
	CUresult result =
	    minGridSize && blockSize ? driver_function(func, &kernel) : CUDA_ERROR_INVALID_VALUE;
	if (!result) {
		*blockSize = blockSizeLimit > 0 && blockSizeLimit < 1024 ? blockSizeLimit : 1024;
		*minGridSize = 132 * (2048 / *blockSize < 32 ? 2048 / *blockSize : 32);
	}
	return result;
}
