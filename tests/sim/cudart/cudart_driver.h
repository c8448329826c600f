/*
 * The driver under the simulated runtime, found as NVIDIA's runtime finds it. The first call that
 * needs libcuda.so.1 opens it. One dlsym finds cuGetProcAddress_v2, which finds all other
 * functions. So a preloaded library that changes this look-up affects both runtimes alike.
 */
#ifndef SIM_CUDART_DRIVER_H
#define SIM_CUDART_DRIVER_H

#include "cuda_api.h"
#include "cudart_types.h"

/* A function that the driver lacks stays NULL. cudart_driver_lacks() reports its name. */
struct cudart_driver {
#define DRIVER(name, since, params) CUresult(*name) params;
#include "cudart_driver.def"
	CUresult (*cuGetProcAddress)(const char *symbol, void **pfn, int driverVersion, cuuint64_t flags,
	                             CUdriverProcAddressQueryResult *symbolStatus);
};

extern struct cudart_driver cudart_driver;

/*
 * Loads and initialises the driver once. cudaErrorInsufficientDriver: no libcuda.so.1, or no
 * cuGetProcAddress_v2 in it. Else the error of cuInit, which is called again while it fails.
 */
cudaError_t cudart_driver_init(void);

/* As above without cuInit, for cudaDriverGetVersion. */
cudaError_t cudart_driver_load(void);

/* Reports on stderr that the driver lacks `name`; returns CUDA_ERROR_NOT_SUPPORTED. */
CUresult cudart_driver_lacks(const char *name);

/* Calls a driver function by its base name. A missing function is an error, never a crash. */
#define CU(name, ...) (cudart_driver.name ? cudart_driver.name(__VA_ARGS__) : cudart_driver_lacks(#name))

#endif
