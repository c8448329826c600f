/* Modules, libraries, functions, launches. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "driver.h"

/* -- images ---------------------------------------------------------------------------------------------- */

/* nvcc wraps what it embeds; the wrapper's third member is what is inside. */
static const void *inside(const void *image)
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

static CUresult load(CUmodule *out, const void *image)
{
	struct sim_module *module;

	if (!out || !inside(image))
		return CUDA_ERROR_INVALID_VALUE;
	CUresult result = driver_result(sim_module_load_data(driver_current(), inside(image), &module));
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
	return load(module, image);
}

CUresult cuModuleLoadDataEx(CUmodule *module, const void *image, unsigned int numOptions,
                            CUjit_option *options, void **optionValues)
{
	ENTER(cuModuleLoadDataEx, CONTEXT);
	return load(module, image);
}

CUresult cuModuleLoadFatBinary(CUmodule *module, const void *fatCubin)
{
	ENTER(cuModuleLoadFatBinary, CONTEXT);
	return load(module, fatCubin);
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
	if (!result)
		*hfunc = (CUfunction)kernel;
	return result;
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

/* -- libraries: modules without a context, loaded where they are used ------------------------------------ */

#define LIBRARY 0x4c494252u
#define KERNEL 0x4b45524eu

struct CUkern_st { /* starts like a handle of the core, so that a function can be told from a kernel */
	_Atomic uint32_t magic;
	struct CUlib_st *library;
	struct CUkern_st *next;
	char name[];
};

struct CUlib_st {
	_Atomic uint32_t magic;
	void *image;
	char *path; /* NULL: it came from memory */
	struct CUkern_st *kernels;
	struct CUlib_st *dropped_before;
	struct loaded {
		struct loaded *next;
		uint64_t context;
		struct sim_module *module;
	} * loaded;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static bool library_alive(CUlibrary library)
{
	return library && library->magic == LIBRARY;
}

static bool kernel_alive(CUkernel kernel)
{
	return kernel && kernel->magic == KERNEL;
}

/* pre: the lock is held. The library's module in the current context. */
static CUresult module_here(CUlibrary library, struct sim_module **out)
{
	struct sim_context *context = driver_current();

	for (struct loaded *one = library->loaded; one; one = one->next) {
		if (one->context == sim_context_id(context) && sim_module_alive(one->module)) {
			*out = one->module;
			return CUDA_SUCCESS;
		}
	}
	struct loaded *one = malloc(sizeof(*one));
	if (!one)
		return CUDA_ERROR_OUT_OF_MEMORY;
	enum sim_status status = sim_module_load_data(context, library->image, &one->module);
	if (status == SIM_NO_HOST_MEMORY && library->path) /* a process that may not write files */
		status = sim_module_load_file(context, library->path, &one->module);
	if (status) {
		free(one);
		return driver_result(status);
	}
	one->context = sim_context_id(context);
	one->next = library->loaded;
	library->loaded = one;
	*out = one->module;
	return CUDA_SUCCESS;
}

/* Handles stay in memory for good, so that a stale one is an error; what they hold goes. */
static void drop(CUlibrary library)
{
	static CUlibrary dropped; /* all of them, so that a leak checker finds them in use */

	pthread_mutex_lock(&lock);
	library->magic = 0;
	library->dropped_before = dropped;
	dropped = library;
	struct loaded *loaded = library->loaded;
	library->loaded = NULL;
	for (struct CUkern_st *kernel = library->kernels; kernel; kernel = kernel->next)
		kernel->magic = 0;
	free(library->image);
	free(library->path);
	library->image = library->path = NULL;
	pthread_mutex_unlock(&lock);
	for (struct loaded *next; loaded; loaded = next) {
		next = loaded->next;
		if (sim_module_alive(loaded->module))
			sim_module_unload(loaded->module);
		free(loaded);
	}
}

static CUresult make(CUlibrary *out, const void *image, uint64_t bytes, const char *path)
{
	struct sim_module *module;

	if (!bytes)
		return CUDA_ERROR_INVALID_IMAGE;
	struct CUlib_st *library = calloc(1, sizeof(*library));
	void *copy = malloc(bytes);
	if (!library || !copy) {
		free(library);
		free(copy);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	memcpy(copy, image, bytes);
	library->image = copy;
	library->path = path ? strdup(path) : NULL;
	library->magic = LIBRARY;
	pthread_mutex_lock(&lock);
	CUresult result = module_here(library, &module);
	pthread_mutex_unlock(&lock);
	if (result)
		drop(library);
	else
		*out = library;
	return result;
}

CUresult cuLibraryLoadData(CUlibrary *library, const void *code, CUjit_option *jitOptions,
                           void **jitOptionsValues, unsigned int numJitOptions,
                           CUlibraryOption *libraryOptions, void **libraryOptionValues,
                           unsigned int numLibraryOptions)
{
	ENTER(cuLibraryLoadData, CONTEXT);
	if (!library || !inside(code))
		return CUDA_ERROR_INVALID_VALUE;
	return make(library, inside(code), sim_image_bytes(inside(code), UINT64_MAX), NULL);
}

/* The whole file, NULL: *result says why. */
static void *read_file(const char *path, uint64_t *image_bytes, CUresult *result)
{
	FILE *file = fopen(path, "re");
	char *data = NULL;
	long bytes = -1;

	*result = CUDA_ERROR_FILE_NOT_FOUND;
	if (!file)
		return NULL;
	if (fseek(file, 0, SEEK_END) == 0 && (bytes = ftell(file)) > 0 && fseek(file, 0, SEEK_SET) == 0)
		data = malloc((size_t)bytes);
	*result = CUDA_ERROR_INVALID_IMAGE;
	if (data && fread(data, 1, (size_t)bytes, file) == (size_t)bytes) {
		*image_bytes = sim_image_bytes(data, (uint64_t)bytes);
		*result = CUDA_SUCCESS;
	} else {
		free(data);
		data = NULL;
	}
	fclose(file);
	return data;
}

CUresult cuLibraryLoadFromFile(CUlibrary *library, const char *fileName, CUjit_option *jitOptions,
                               void **jitOptionsValues, unsigned int numJitOptions,
                               CUlibraryOption *libraryOptions, void **libraryOptionValues,
                               unsigned int numLibraryOptions)
{
	CUresult result;

	ENTER(cuLibraryLoadFromFile, CONTEXT);
	if (!library || !fileName)
		return CUDA_ERROR_INVALID_VALUE;
	uint64_t bytes;
	void *image = read_file(fileName, &bytes, &result);
	if (image)
		result = make(library, image, bytes, fileName);
	free(image);
	return result;
}

CUresult cuLibraryUnload(CUlibrary library)
{
	ENTER(cuLibraryUnload, INIT);
	if (!library_alive(library))
		return CUDA_ERROR_INVALID_HANDLE;
	drop(library);
	return CUDA_SUCCESS;
}

static CUkernel kernel_named(CUlibrary library, const char *name)
{
	CUkernel kernel = library->kernels;

	while (kernel && strcmp(kernel->name, name))
		kernel = kernel->next;
	if (!kernel && (kernel = calloc(1, sizeof(*kernel) + strlen(name) + 1))) {
		strcpy(kernel->name, name);
		kernel->magic = KERNEL;
		kernel->library = library;
		kernel->next = library->kernels;
		library->kernels = kernel;
	}
	return kernel;
}

CUresult cuLibraryGetKernel(CUkernel *pKernel, CUlibrary library, const char *name)
{
	struct sim_module *module;
	struct sim_kernel *found;

	ENTER(cuLibraryGetKernel, CONTEXT);
	if (!pKernel || !name)
		return CUDA_ERROR_INVALID_VALUE;
	if (!library_alive(library))
		return CUDA_ERROR_INVALID_HANDLE;
	pthread_mutex_lock(&lock);
	CUresult result = module_here(library, &module);
	if (!result)
		result = driver_result(sim_module_kernel(module, name, &found));
	CUkernel kernel = result ? NULL : kernel_named(library, name);
	pthread_mutex_unlock(&lock);
	if (kernel)
		*pKernel = kernel;
	return result ? result : kernel ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult cuLibraryGetKernelCount(unsigned int *count, CUlibrary lib)
{
	struct sim_module *module;

	ENTER(cuLibraryGetKernelCount, CONTEXT);
	if (!count || !library_alive(lib))
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&lock);
	CUresult result = module_here(lib, &module);
	pthread_mutex_unlock(&lock);
	if (!result)
		*count = sim_module_kernel_count(module);
	return result;
}

CUresult cuLibraryGetModule(CUmodule *pMod, CUlibrary library)
{
	struct sim_module *module;

	ENTER(cuLibraryGetModule, CONTEXT);
	if (!pMod || !library_alive(library))
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&lock);
	CUresult result = module_here(library, &module);
	pthread_mutex_unlock(&lock);
	if (!result)
		*pMod = (CUmodule)module;
	return result;
}

/* A function, or a kernel of a library in the current context. */
static CUresult function_of(const void *handle, struct sim_kernel **out)
{
	CUkernel kernel = (CUkernel)handle;
	struct sim_module *module;

	if (!handle)
		return CUDA_ERROR_INVALID_HANDLE;
	if (sim_kernel_alive((struct sim_kernel *)handle)) {
		*out = (struct sim_kernel *)handle;
		return CUDA_SUCCESS;
	}
	if (!kernel_alive(kernel))
		return CUDA_ERROR_INVALID_HANDLE;
	pthread_mutex_lock(&lock);
	CUresult result = module_here(kernel->library, &module);
	pthread_mutex_unlock(&lock);
	return result ? result : driver_result(sim_module_kernel(module, kernel->name, out));
}

CUresult cuKernelGetFunction(CUfunction *pFunc, CUkernel kernel)
{
	struct sim_kernel *found;

	ENTER(cuKernelGetFunction, CONTEXT);
	CUresult result = pFunc ? function_of(kernel, &found) : CUDA_ERROR_INVALID_VALUE;
	if (!result)
		*pFunc = (CUfunction)found;
	return result;
}

CUresult cuKernelGetLibrary(CUlibrary *pLib, CUkernel kernel)
{
	ENTER(cuKernelGetLibrary, INIT);
	if (!pLib)
		return CUDA_ERROR_INVALID_VALUE;
	if (!kernel_alive(kernel))
		return CUDA_ERROR_INVALID_HANDLE;
	*pLib = kernel->library;
	return CUDA_SUCCESS;
}

/* -- functions ------------------------------------------------------------------------------------------- */

static CUresult name_of(const char **name, const void *handle)
{
	struct sim_kernel *kernel;

	if (!name)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult result = function_of(handle, &kernel);
	if (!result)
		*name = sim_kernel_name(kernel);
	return result;
}

static CUresult parameter(const void *handle, size_t index, size_t *offset, size_t *size)
{
	struct sim_kernel *kernel;
	CUresult result = offset ? function_of(handle, &kernel) : CUDA_ERROR_INVALID_VALUE;

	if (!result && index >= sim_kernel_parameters(kernel))
		result = CUDA_ERROR_INVALID_VALUE;
	if (!result) {
		*offset = index * sizeof(uint64_t);
		if (size)
			*size = sizeof(uint64_t);
	}
	return result;
}

static CUresult attribute(int *out, CUfunction_attribute which, const void *handle)
{
	struct sim_kernel *kernel;
	CUresult result = out ? function_of(handle, &kernel) : CUDA_ERROR_INVALID_VALUE;

	if (result)
		return result;
	switch (which) {
	case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
		*out = 1024;
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

/* Shared memory and caches mean nothing here; what a program may set is accepted. */
static CUresult set_attribute(CUfunction_attribute which, const void *handle)
{
	struct sim_kernel *kernel;
	CUresult result = function_of(handle, &kernel);

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
	return parameter(kernel, paramIndex, paramOffset, paramSize);
}

CUresult cuFuncGetParamInfo(CUfunction func, size_t paramIndex, size_t *paramOffset, size_t *paramSize)
{
	ENTER(cuFuncGetParamInfo, CONTEXT);
	return parameter(func, paramIndex, paramOffset, paramSize);
}

CUresult cuKernelGetAttribute(int *pi, CUfunction_attribute attrib, CUkernel kernel, CUdevice dev)
{
	ENTER(cuKernelGetAttribute, CONTEXT);
	return driver_device(dev) ? attribute(pi, attrib, kernel) : CUDA_ERROR_INVALID_DEVICE;
}

CUresult cuKernelSetAttribute(CUfunction_attribute attrib, int val, CUkernel kernel, CUdevice dev)
{
	ENTER(cuKernelSetAttribute, CONTEXT);
	return driver_device(dev) ? set_attribute(attrib, kernel) : CUDA_ERROR_INVALID_DEVICE;
}

CUresult cuFuncGetAttribute(int *pi, CUfunction_attribute attrib, CUfunction hfunc)
{
	ENTER(cuFuncGetAttribute, CONTEXT);
	return attribute(pi, attrib, hfunc);
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
	return function_of(hfunc, &kernel);
}

CUresult cuFuncGetModule(CUmodule *hmod, CUfunction hfunc)
{
	struct sim_kernel *kernel;

	ENTER(cuFuncGetModule, CONTEXT);
	CUresult result = hmod ? function_of(hfunc, &kernel) : CUDA_ERROR_INVALID_VALUE;
	if (!result)
		*hmod = (CUmodule)sim_kernel_module(kernel);
	return result;
}

CUresult cuFuncIsLoaded(CUfunctionLoadingState *state, CUfunction function)
{
	struct sim_kernel *kernel;

	ENTER(cuFuncIsLoaded, CONTEXT);
	CUresult result = state ? function_of(function, &kernel) : CUDA_ERROR_INVALID_VALUE;
	if (!result)
		*state = 1;
	return result;
}

CUresult cuFuncLoad(CUfunction function)
{
	struct sim_kernel *kernel;

	ENTER(cuFuncLoad, CONTEXT);
	return function_of(function, &kernel);
}

/* -- occupancy: threads alone limit it here -------------------------------------------------------------- */

static CUresult occupancy(int *blocks, CUfunction function, int block)
{
	struct sim_kernel *kernel;
	CUresult result = blocks && block > 0 ? function_of(function, &kernel) : CUDA_ERROR_INVALID_VALUE;

	if (!result)
		*blocks = block > 1024 ? 0 : 2048 / block < 32 ? 2048 / block : 32;
	return result;
}

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int *numBlocks, CUfunction func, int blockSize,
                                                     size_t dynamicSMemSize)
{
	ENTER(cuOccupancyMaxActiveBlocksPerMultiprocessor, CONTEXT);
	return occupancy(numBlocks, func, blockSize);
}

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *numBlocks, CUfunction func, int blockSize,
                                                              size_t dynamicSMemSize, unsigned int flags)
{
	ENTER(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags, CONTEXT);
	return occupancy(numBlocks, func, blockSize);
}

CUresult cuOccupancyMaxPotentialBlockSize(int *minGridSize, int *blockSize, CUfunction func,
                                          CUoccupancyB2DSize blockSizeToDynamicSMemSize,
                                          size_t dynamicSMemSize, int blockSizeLimit)
{
	struct sim_kernel *kernel;

	ENTER(cuOccupancyMaxPotentialBlockSize, CONTEXT);
	CUresult result = minGridSize && blockSize ? function_of(func, &kernel) : CUDA_ERROR_INVALID_VALUE;
	if (!result) {
		*blockSize = blockSizeLimit > 0 && blockSizeLimit < 1024 ? blockSizeLimit : 1024;
		*minGridSize = 132 * (2048 / *blockSize < 32 ? 2048 / *blockSize : 32);
	}
	return result;
}

/* -- launches -------------------------------------------------------------------------------------------- */

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
	CUresult result = function_of(function, &kernel);

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
