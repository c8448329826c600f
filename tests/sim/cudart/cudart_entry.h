/* Inside of the simulated runtime: the first and the last call of each function. */
#ifndef SIM_CUDART_RUNTIME_H
#define SIM_CUDART_RUNTIME_H

#include "cudart_api.h"
#include "cudart_driver.h"

/*
 * The first call of a function. Its error goes to cudart_leave. cudart_init: the driver is up.
 * cudart_enter: also, this thread has a context. That is the primary one of its device, or one that
 * the program made current with the driver API.
 */
#define cudart_init cudart_driver_init
cudaError_t cudart_enter(void);

/* The last call of a function. A failure becomes the thread's last error; a success keeps it. */
cudaError_t cudart_leave(cudaError_t error);

/* Runtime pointers and driver addresses are the same numbers. */
static inline CUdeviceptr cudart_address(const void *pointer)
{
	return (CUdeviceptr)(uintptr_t)pointer;
}

/* The driver's and the runtime's errors have the same numbers since CUDA 10.1. */
static inline cudaError_t cudart_error(CUresult result)
{
	return (cudaError_t)result;
}

/* Ends a function with the driver's result. */
static inline cudaError_t cudart_return(CUresult result)
{
	return cudart_leave(cudart_error(result));
}

/* Ordinal of the current context's device, else the thread's choice by cudaSetDevice. */
cudaError_t cudart_current_device(int *device);

/* The result of cudaRuntimeGetVersion. */
#define CUDART_VERSION_HERE 13000

/* The primary context of `ordinal`, retained for the life of the runtime. pre: cudart_init. */
cudaError_t cudart_primary(int ordinal, CUcontext *context);

/* The driver's handle. cudaErrorInvalidDevice: no such device. pre: cudart_init. */
cudaError_t cudart_device(int ordinal, CUdevice *device);

/* Prints `sim: NAME is not implemented` on stderr, and ends with cudaErrorNotSupported. */
cudaError_t cudart_missing(const char *name);

/* Returns from the calling function if the runtime cannot serve it. */
#define CUDART_ENTER(how) \
	do { \
		cudaError_t enter_error = cudart_##how(); \
		if (enter_error) \
			return cudart_leave(enter_error); \
	} while (0)

#endif
