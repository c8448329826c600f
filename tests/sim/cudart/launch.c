/* Libraries, kernels and launches, by the functions that load a module at run time (CUDA 12.8). */
#include <pthread.h>
#include <stdlib.h>

#include "cudart_entry.h"

/* A kernel that we gave out. A real driver would read any other pointer, and may crash. */
struct kernel {
	struct kernel *next;
	CUkernel handle;
	CUlibrary library;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct kernel *kernels;

static int is_kernel(const void *function)
{
	int found = 0;

	pthread_mutex_lock(&lock);
	for (struct kernel *kernel = kernels; kernel && !found; kernel = kernel->next)
		found = kernel->handle == function;
	pthread_mutex_unlock(&lock);
	return found;
}

static cudaError_t check_kernel(const void *function)
{
	if (!function)
		return cudaErrorInvalidDeviceFunction;
	return is_kernel(function) ? cudaSuccess : cudaErrorInvalidResourceHandle;
}

static cudaError_t remember_kernel(CUkernel handle, CUlibrary library)
{
	if (is_kernel(handle))
		return cudaSuccess;
	struct kernel *kernel = malloc(sizeof(*kernel));
	if (!kernel)
		return cudaErrorMemoryAllocation;
	*kernel = (struct kernel){.handle = handle, .library = library};
	pthread_mutex_lock(&lock);
	kernel->next = kernels;
	kernels = kernel;
	pthread_mutex_unlock(&lock);
	return cudaSuccess;
}

static void forget_library(CUlibrary library)
{
	pthread_mutex_lock(&lock);
	for (struct kernel **at = &kernels; *at;) {
		struct kernel *kernel = *at;

		if (kernel->library != library) {
			at = &kernel->next;
			continue;
		}
		*at = kernel->next;
		free(kernel);
	}
	pthread_mutex_unlock(&lock);
}

cudaError_t cudaLibraryLoadData(cudaLibrary_t *library, const void *code, enum cudaJitOption *jitOptions,
                                void **jitOptionsValues, unsigned int numJitOptions,
                                enum cudaLibraryOption *libraryOptions, void **libraryOptionValues,
                                unsigned int numLibraryOptions)
{
	CUDART_ENTER(enter);
	if (!library || !code)
		return cudart_leave(cudaErrorInvalidValue);
	return cudart_return(CU(cuLibraryLoadData, library, code, (CUjit_option *)jitOptions,
	                        jitOptionsValues, numJitOptions, (CUlibraryOption *)libraryOptions,
	                        libraryOptionValues, numLibraryOptions));
}

cudaError_t cudaLibraryLoadFromFile(cudaLibrary_t *library, const char *fileName,
                                    enum cudaJitOption *jitOptions, void **jitOptionsValues,
                                    unsigned int numJitOptions, enum cudaLibraryOption *libraryOptions,
                                    void **libraryOptionValues, unsigned int numLibraryOptions)
{
	CUDART_ENTER(enter);
	if (!library || !fileName)
		return cudart_leave(cudaErrorInvalidValue);
	return cudart_return(CU(cuLibraryLoadFromFile, library, fileName, (CUjit_option *)jitOptions,
	                        jitOptionsValues, numJitOptions, (CUlibraryOption *)libraryOptions,
	                        libraryOptionValues, numLibraryOptions));
}

cudaError_t cudaLibraryUnload(cudaLibrary_t library)
{
	CUDART_ENTER(enter);
	forget_library(library);
	return cudart_return(CU(cuLibraryUnload, library));
}

cudaError_t cudaLibraryGetKernel(cudaKernel_t *pKernel, cudaLibrary_t library, const char *name)
{
	CUkernel found;

	CUDART_ENTER(enter);
	if (!pKernel || !name)
		return cudart_leave(cudaErrorInvalidValue);
	cudaError_t error = cudart_error(CU(cuLibraryGetKernel, &found, library, name));
	if (!error)
		error = remember_kernel(found, library);
	if (!error)
		*pKernel = found;
	return cudart_leave(error);
}

cudaError_t cudaLibraryGetKernelCount(unsigned int *count, cudaLibrary_t lib)
{
	CUDART_ENTER(enter);
	return cudart_return(CU(cuLibraryGetKernelCount, count, lib));
}

cudaError_t cudaLaunchKernel(const void *func, dim3 gridDim, dim3 blockDim, void **args, size_t sharedMem,
                             cudaStream_t stream)
{
	CUDART_ENTER(enter);
	cudaError_t error = check_kernel(func);
	if (error)
		return cudart_leave(error);
	return cudart_return(CU(cuLaunchKernel, (CUfunction)func, gridDim.x, gridDim.y, gridDim.z, blockDim.x,
	                        blockDim.y, blockDim.z, (unsigned int)sharedMem, stream, args, NULL));
}

/* Launch attributes affect scheduling only. The simulator ignores them. */
cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t *config, const void *func, void **args)
{
	if (!config) {
		CUDART_ENTER(init);
		return cudart_leave(cudaErrorInvalidValue);
	}
	return cudaLaunchKernel(func, config->gridDim, config->blockDim, args, config->dynamicSmemBytes,
	                        config->stream);
}

#define ATTRIBUTES (CU_FUNC_ATTRIBUTE_BINARY_VERSION + 1)

cudaError_t cudaFuncGetAttributes(struct cudaFuncAttributes *attr, const void *func)
{
	int ordinal, value[ATTRIBUTES] = {0};
	CUdevice device;

	CUDART_ENTER(enter);
	if (!attr)
		return cudart_leave(cudaErrorInvalidValue);
	cudaError_t error = check_kernel(func);
	if (!error)
		error = cudart_current_device(&ordinal);
	if (!error)
		error = cudart_device(ordinal, &device);
	for (int i = 0; i < ATTRIBUTES && !error; i++)
		error = cudart_error(
		    CU(cuKernelGetAttribute, &value[i], (CUfunction_attribute)i, (CUkernel)func, device));
	if (error)
		return cudart_leave(error);
	*attr = (struct cudaFuncAttributes){
	    .sharedSizeBytes = (size_t)value[CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES],
	    .constSizeBytes = (size_t)value[CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES],
	    .localSizeBytes = (size_t)value[CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES],
	    .maxThreadsPerBlock = value[CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK],
	    .numRegs = value[CU_FUNC_ATTRIBUTE_NUM_REGS],
	    .ptxVersion = value[CU_FUNC_ATTRIBUTE_PTX_VERSION],
	    .binaryVersion = value[CU_FUNC_ATTRIBUTE_BINARY_VERSION],
	};
	return cudaSuccess;
}
