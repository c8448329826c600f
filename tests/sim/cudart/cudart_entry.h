/* Inside of the simulated runtime: what every entry point does first and last. */
#ifndef SIM_CUDART_RUNTIME_H
#define SIM_CUDART_RUNTIME_H

#include "cudart_api.h"
#include "cudart_driver.h"

/*
 * First thing in an entry point. Both set nothing; pass their error to cudart_leave.
 * init: the driver is up. enter: and this thread has a context, the primary one of its device unless the
 * program made another current with the driver API.
 */
#define cudart_init cudart_driver_init
cudaError_t cudart_enter(void);

/* Last thing in an entry point: a failure becomes this thread's last error, a success leaves it alone. */
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

/* The driver's answer as the entry point's. */
static inline cudaError_t cudart_return(CUresult result)
{
	return cudart_leave(cudart_error(result));
}

/* Ordinal of the current context's device, else what this thread chose with cudaSetDevice. */
cudaError_t cudart_current_device(int *device);

/* What cudaRuntimeGetVersion says. */
#define CUDART_VERSION_HERE 13000

/* The primary context of `ordinal`, retained for the runtime's whole life. pre: cudart_init. */
cudaError_t cudart_primary(int ordinal, CUcontext *context);

/* The driver's handle; cudaErrorInvalidDevice for an ordinal that is none. pre: cudart_init. */
cudaError_t cudart_device(int ordinal, CUdevice *device);

/* Says `sim: NAME is not implemented` on stderr; returns cudaErrorNotSupported as an entry point does. */
cudaError_t cudart_missing(const char *name);

/* An entry point's opening: returns from the caller when the runtime cannot serve it. */
#define CUDART_ENTER(how) \
	do { \
		cudaError_t enter_error = cudart_##how(); \
		if (enter_error) \
			return cudart_leave(enter_error); \
	} while (0)

#endif
