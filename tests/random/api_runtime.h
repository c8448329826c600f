/* Shared by the files of the CUDA runtime and HIP: the same functions under other names. */
#ifndef RANDOM_API_RUNTIME_H
#define RANDOM_API_RUNTIME_H

#include "api.h"

#ifdef HIP
#include "hip_api.h"
#include "hip_later_api.h"
#define RUNTIME(name) hip##name
typedef hipModule_t library_handle;
typedef hipFunction_t kernel_handle;
#else
#include "cudart_api.h"
#define RUNTIME(name) cuda##name
typedef cudaLibrary_t library_handle;
typedef cudaKernel_t kernel_handle;
#endif

extern kernel_handle functions[DEVICES][KERNELS];

static inline void *pointer(uint64_t address)
{
	return (void *)(uintptr_t)address;
}

#endif
