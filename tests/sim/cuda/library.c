/* Libraries: modules without a context, which load where they are used. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cuda_entry.h"

#define LIBRARY 0x4c494252u
#define KERNEL 0x4b45524eu

struct CUkern_st { /* begins like a handle of the core, to distinguish functions from kernels */
	_Atomic uint32_t magic;
	struct CUlib_st *library;
	struct CUkern_st *next;
	char name[];
};

struct CUlib_st {
	_Atomic uint32_t magic;
	void *image;
	char *path; /* NULL: loaded from memory */
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

/* Its module in the current context. `settle`: with its room, for use. pre: the lock is held. */
static CUresult module_here(CUlibrary library, bool settle, struct sim_module **out)
{
	struct sim_context *context = driver_current();

	for (struct loaded *one = library->loaded; one; one = one->next) {
		if (one->context == sim_context_id(context) && sim_module_alive(one->module)) {
			*out = one->module;
			return settle ? driver_result(sim_module_settle(one->module)) : CUDA_SUCCESS;
		}
	}
	struct loaded *one = malloc(sizeof(*one));
	if (!one)
		return CUDA_ERROR_OUT_OF_MEMORY;
	enum sim_status status = sim_module_load_lazily(context, library->image, &one->module);
	if (status == SIM_NO_HOST_MEMORY && library->path) /* the process may not write files */
		status = sim_module_load_file(context, library->path, &one->module);
	if (status) {
		free(one);
		return driver_result(status);
	}
	one->context = sim_context_id(context);
	one->next = library->loaded;
	library->loaded = one;
	*out = one->module;
	return settle ? driver_result(sim_module_settle(one->module)) : CUDA_SUCCESS;
}

/* Handles stay in memory for good, so that a stale one is an error. Their contents are freed. */
static void drop_library(CUlibrary library)
{
	static CUlibrary dropped; /* a list of all, so that a leak checker finds them in use */

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

static CUresult make_library(CUlibrary *out, const void *image, uint64_t bytes, const char *path)
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
	CUresult result = module_here(library, false, &module);
	pthread_mutex_unlock(&lock);
	if (result)
		drop_library(library);
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
	if (!library || !driver_image(code))
		return CUDA_ERROR_INVALID_VALUE;
	return make_library(library, driver_image(code), sim_image_bytes(driver_image(code), UINT64_MAX),
	                    NULL);
}

/* The whole file. NULL: see *result. */
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
		result = make_library(library, image, bytes, fileName);
	free(image);
	return result;
}

CUresult cuLibraryUnload(CUlibrary library)
{
	ENTER(cuLibraryUnload, INIT);
	if (!library_alive(library))
		return CUDA_ERROR_INVALID_HANDLE;
	drop_library(library);
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
	CUresult result = module_here(library, false, &module);
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
	CUresult result = module_here(lib, false, &module);
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
	CUresult result = module_here(library, true, &module);
	pthread_mutex_unlock(&lock);
	if (!result)
		*pMod = (CUmodule)module;
	return result;
}

CUresult cuLibraryGetGlobal(CUdeviceptr *dptr, size_t *bytes, CUlibrary library, const char *name)
{
	struct sim_module *module;

	ENTER(cuLibraryGetGlobal, CONTEXT);
	if (!name || (!dptr && !bytes))
		return CUDA_ERROR_INVALID_VALUE;
	if (!library_alive(library))
		return CUDA_ERROR_INVALID_HANDLE;
	pthread_mutex_lock(&lock);
	CUresult result = module_here(library, true, &module);
	pthread_mutex_unlock(&lock);
	return result ? result : driver_global(module, name, dptr, bytes);
}

/* No module has managed variables, or functions that a program could call. */
CUresult cuLibraryGetManaged(CUdeviceptr *dptr, size_t *bytes, CUlibrary library, const char *name)
{
	ENTER(cuLibraryGetManaged, CONTEXT);
	if (!name || (!dptr && !bytes))
		return CUDA_ERROR_INVALID_VALUE;
	return library_alive(library) ? CUDA_ERROR_NOT_FOUND : CUDA_ERROR_INVALID_HANDLE;
}

CUresult cuLibraryGetUnifiedFunction(void **fptr, CUlibrary library, const char *symbol)
{
	ENTER(cuLibraryGetUnifiedFunction, CONTEXT);
	if (!fptr || !symbol)
		return CUDA_ERROR_INVALID_VALUE;
	return library_alive(library) ? CUDA_ERROR_NOT_FOUND : CUDA_ERROR_INVALID_HANDLE;
}

CUresult driver_function(const void *handle, struct sim_kernel **out)
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
	CUresult result = module_here(kernel->library, true, &module);
	pthread_mutex_unlock(&lock);
	return result ? result : driver_result(sim_module_kernel(module, kernel->name, out));
}

CUresult cuKernelGetFunction(CUfunction *pFunc, CUkernel kernel)
{
	struct sim_kernel *found;

	ENTER(cuKernelGetFunction, CONTEXT);
	CUresult result = pFunc ? driver_function(kernel, &found) : CUDA_ERROR_INVALID_VALUE;
	/* Loads it. Its launch reports that it is spoilt. */
	if (!result && sim_kernel_load(found) == SIM_NO_MEMORY)
		result = CUDA_ERROR_OUT_OF_MEMORY;
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
