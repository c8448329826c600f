/*
 * The driver under the simulated runtime, reached as NVIDIA's runtime reaches it: libcuda.so.1 is opened at
 * the first call that needs it, one dlsym finds cuGetProcAddress_v2, and that finds everything else. So
 * whatever a preloaded library does to the one look-up, it does to this runtime as to the real one.
 */
#ifndef SIM_CUDART_DRIVER_H
#define SIM_CUDART_DRIVER_H

#include "cuda_api.h"
#include "abi/cudart.h"

/* A function that the driver does not have stays NULL; cudart_driver_lacks() names it. */
struct cudart_driver {
#define DRIVER(name, since, params) CUresult(*name) params;
#include "cudart_driver.def"
	CUresult (*cuGetProcAddress)(const char *symbol, void **pfn, int driverVersion, cuuint64_t flags,
	                             CUdriverProcAddressQueryResult *symbolStatus);
};

extern struct cudart_driver cudart_driver;

/*
 * Loads and initialises the driver once. cudaErrorInsufficientDriver: no libcuda.so.1, or one without
 * cuGetProcAddress_v2; else what cuInit said, asked again at every call as long as it fails.
 */
cudaError_t cudart_driver_init(void);

/* As above without cuInit: what cudaDriverGetVersion needs. */
cudaError_t cudart_driver_load(void);

/* Says on stderr that the driver lacks `name`, and returns CUDA_ERROR_NOT_SUPPORTED. */
CUresult cudart_driver_lacks(const char *name);

/* Calls a driver function by its base name; one that the driver lacks is an error, never a crash. */
#define CU(name, ...) (cudart_driver.name ? cudart_driver.name(__VA_ARGS__) : cudart_driver_lacks(#name))

#endif
