/* Modules. */
#include <string.h>

#include "cuda_entry.h"

/* nvcc wraps an embedded image. The third member of the wrapper points to the image. */
const void *driver_image(const void *image)
{
	struct {
		int magic, version;
		const void *data;
	} wrapper;

	if (!image)
		return NULL;
	memcpy(&wrapper.magic, image, sizeof(wrapper.magic));
	if (wrapper.magic != 0x466243b1)
		return image;
	memcpy(&wrapper, image, sizeof(wrapper));
	return wrapper.data;
}

static CUresult load_image(CUmodule *out, const void *image)
{
	struct sim_module *module;

	if (!out || !driver_image(image))
		return CUDA_ERROR_INVALID_VALUE;
	CUresult result = driver_result(sim_module_load_data(driver_current(), driver_image(image), &module));
	if (!result)
		*out = (CUmodule)module;
	return result;
}

CUresult cuModuleLoad(CUmodule *module, const char *fname)
{
	struct sim_module *made;

	ENTER(cuModuleLoad, CONTEXT);
	if (!module)
		return CUDA_ERROR_INVALID_VALUE;
	enum sim_status status = sim_module_load_file(driver_current(), fname, &made);
	if (!status)
		*module = (CUmodule)made;
	return status == SIM_NOT_FOUND ? CUDA_ERROR_FILE_NOT_FOUND : driver_result(status);
}

CUresult cuModuleLoadData(CUmodule *module, const void *image)
{
	ENTER(cuModuleLoadData, CONTEXT);
	return load_image(module, image);
}

CUresult cuModuleLoadDataEx(CUmodule *module, const void *image, unsigned int numOptions,
                            CUjit_option *options, void **optionValues)
{
	ENTER(cuModuleLoadDataEx, CONTEXT);
	return load_image(module, image);
}

CUresult cuModuleLoadFatBinary(CUmodule *module, const void *fatCubin)
{
	ENTER(cuModuleLoadFatBinary, CONTEXT);
	return load_image(module, fatCubin);
}

static struct sim_module *module_of(CUmodule module)
{
	return sim_module_alive((struct sim_module *)module) ? (struct sim_module *)module : NULL;
}

CUresult cuModuleUnload(CUmodule hmod)
{
	ENTER(cuModuleUnload, CONTEXT);
	if (!module_of(hmod))
		return CUDA_ERROR_INVALID_HANDLE;
	enum sim_status forbidden = sim_capture_unsafe();
	return driver_result(forbidden ? forbidden : sim_module_unload(module_of(hmod)));
}

CUresult cuModuleGetFunction(CUfunction *hfunc, CUmodule hmod, const char *name)
{
	struct sim_kernel *kernel;

	ENTER(cuModuleGetFunction, CONTEXT);
	if (!hfunc || !name)
		return CUDA_ERROR_INVALID_VALUE;
	if (!module_of(hmod))
		return CUDA_ERROR_INVALID_HANDLE;
	CUresult result = driver_result(sim_module_kernel(module_of(hmod), name, &kernel));
	/* Loads it. Its launch reports that it is spoilt. */
	if (!result && sim_kernel_load(kernel) == SIM_NO_MEMORY)
		result = CUDA_ERROR_OUT_OF_MEMORY;
	if (!result)
		*hfunc = (CUfunction)kernel;
	return result;
}

CUresult driver_global(struct sim_module *module, const char *name, CUdeviceptr *dptr, size_t *bytes)
{
	uint64_t address, size;
	CUresult result = driver_result(sim_module_global(module, name, &address, &size));

	if (!result && dptr)
		*dptr = address;
	if (!result && bytes)
		*bytes = size;
	return result;
}

CUresult cuModuleGetGlobal_v2(CUdeviceptr *dptr, size_t *bytes, CUmodule hmod, const char *name)
{
	ENTER(cuModuleGetGlobal_v2, CONTEXT);
	if (!name || (!dptr && !bytes))
		return CUDA_ERROR_INVALID_VALUE;
	return module_of(hmod) ? driver_global(module_of(hmod), name, dptr, bytes)
	                       : CUDA_ERROR_INVALID_HANDLE;
}

CUresult cuModuleGetFunctionCount(unsigned int *count, CUmodule mod)
{
	ENTER(cuModuleGetFunctionCount, CONTEXT);
	if (!count || !module_of(mod))
		return CUDA_ERROR_INVALID_VALUE;
	*count = sim_module_kernel_count(module_of(mod));
	return CUDA_SUCCESS;
}

CUresult cuModuleGetLoadingMode(CUmoduleLoadingMode *mode)
{
	ENTER(cuModuleGetLoadingMode, INIT);
	if (!mode)
		return CUDA_ERROR_INVALID_VALUE;
	*mode = 2; /* lazy */
	return CUDA_SUCCESS;
}
