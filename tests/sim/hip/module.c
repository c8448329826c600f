/* Modules and launches. The simulated CUDA driver loads the same modules. */
#include <string.h>

#include "hip_entry.h"

/* HIP_LAUNCH_PARAM_*: markers of a packed buffer of parameters. */
#define PARAM_BUFFER ((void *)1)
#define PARAM_SIZE ((void *)2)
#define PARAM_END ((void *)3)

hipError_t hipModuleLoad(hipModule_t *module, const char *fname)
{
	struct sim_context *context;
	struct sim_module *made;

	HIP_ENTER();
	HIP_TRY(module && fname ? hip_context(hip_device(), &context) : hipErrorInvalidValue);
	enum sim_status status = sim_module_load_file(context, fname, &made);
	if (status == SIM_OK)
		*module = (hipModule_t)made;
	return status == SIM_NOT_FOUND ? hip_leave(hipErrorFileNotFound) : hip_return(status);
}

hipError_t hipModuleLoadData(hipModule_t *module, const void *image)
{
	struct sim_context *context;
	struct sim_module *made;

	HIP_ENTER();
	HIP_TRY(module && image ? hip_context(hip_device(), &context) : hipErrorInvalidValue);
	enum sim_status status = sim_module_load_data(context, image, &made);
	if (status == SIM_OK)
		*module = (hipModule_t)made;
	return hip_return(status);
}

hipError_t hipModuleUnload(hipModule_t module)
{
	HIP_ENTER();
	HIP_TRY(sim_module_alive((struct sim_module *)module) ? hipSuccess : hipErrorInvalidHandle);
	return hip_return(sim_module_unload((struct sim_module *)module));
}

hipError_t hipModuleGetFunction(hipFunction_t *function, hipModule_t module, const char *kname)
{
	struct sim_kernel *kernel;

	HIP_ENTER();
	HIP_TRY(function && kname ? hipSuccess : hipErrorInvalidValue);
	HIP_TRY(sim_module_alive((struct sim_module *)module) ? hipSuccess : hipErrorInvalidHandle);
	enum sim_status status = sim_module_kernel((struct sim_module *)module, kname, &kernel);
	if (status == SIM_OK)
		*function = (hipFunction_t)kernel;
	return hip_return(status);
}

/* Reads parameters from an array of pointers, or from a packed buffer in `extra`. */
static hipError_t collect_parameters(struct sim_kernel *kernel, void **separate, void **extra, char *values)
{
	const void *buffer = NULL;
	size_t size = 0, wanted = sim_kernel_parameter_bytes(kernel), offset, bytes;

	if (!extra) {
		for (unsigned i = 0; sim_kernel_parameter(kernel, i, &offset, &bytes); i++) {
			if (!separate || !separate[i])
				return hipErrorInvalidValue;
			memcpy(values + offset, separate[i], bytes);
		}
		return hipSuccess;
	}
	for (; *extra != PARAM_END; extra += 2) {
		if (*extra == PARAM_BUFFER)
			buffer = extra[1];
		else if (*extra == PARAM_SIZE)
			size = *(const size_t *)extra[1];
		else
			return hipErrorInvalidValue;
	}
	if (!buffer || size < wanted)
		return hipErrorInvalidValue;
	memcpy(values, buffer, wanted);
	return hipSuccess;
}

hipError_t hip_launch(hipFunction_t function, const struct sim_shape *shape, hipStream_t stream,
                      void **parameters, void **extra)
{
	struct sim_kernel *kernel = (struct sim_kernel *)function;
	const unsigned *grid = shape->grid, *block = shape->block;
	struct sim_stream *on;
	char values[SIM_PARAMETER_BYTES];

	if (!sim_kernel_alive(kernel))
		return hipErrorInvalidHandle;
	hipError_t error = hip_stream(stream, &on);
	if (!error && !(grid[0] && grid[1] && grid[2] && block[0] && block[1] && block[2]))
		error = hipErrorInvalidValue;
	if (!error)
		error = parameters && extra ? hipErrorInvalidValue
		                            : collect_parameters(kernel, parameters, extra, values);
	return error ? error : hip_error(sim_launch(on, kernel, shape, values));
}

hipError_t hipModuleLaunchKernel(hipFunction_t f, unsigned int gridDimX, unsigned int gridDimY,
                                 unsigned int gridDimZ, unsigned int blockDimX, unsigned int blockDimY,
                                 unsigned int blockDimZ, unsigned int sharedMemBytes, hipStream_t stream,
                                 void **kernelParams, void **extra)
{
	const struct sim_shape shape = {
	    {gridDimX, gridDimY, gridDimZ}, {blockDimX, blockDimY, blockDimZ}, sharedMemBytes};

	HIP_ENTER();
	return hip_leave(hip_launch(f, &shape, stream, kernelParams, extra));
}
