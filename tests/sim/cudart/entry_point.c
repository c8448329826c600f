/* cudaGetDriverEntryPoint*: the driver's own look-up, through the runtime. */
#include "cudart_entry.h"

static cudaError_t entry_point(const char *symbol, void **funcPtr, unsigned int cudaVersion,
                               unsigned long long flags, enum cudaDriverEntryPointQueryResult *driverStatus)
{
	CUdriverProcAddressQueryResult status = CU_GET_PROC_ADDRESS_SUCCESS;
	void *found = NULL;

	CUDART_ENTER(init);
	if (!symbol || !funcPtr)
		return cudart_leave(cudaErrorInvalidValue);
	CUresult result = CU(cuGetProcAddress, symbol, &found, (int)cudaVersion, flags, &status);
	/* An unknown name is a result, even for a caller without the status. */
	if (result == CUDA_ERROR_NOT_FOUND)
		result = CUDA_SUCCESS;
	if (driverStatus)
		*driverStatus = (enum cudaDriverEntryPointQueryResult)status;
	if (result == CUDA_SUCCESS)
		*funcPtr = found;
	return cudart_return(result);
}

#define PARAMETERS \
	const char *symbol, void **funcPtr, unsigned int cudaVersion, unsigned long long flags, \
	    enum cudaDriverEntryPointQueryResult *driverStatus

cudaError_t cudaGetDriverEntryPointByVersion(PARAMETERS)
{
	return entry_point(symbol, funcPtr, cudaVersion, flags, driverStatus);
}

/* The older form uses the version of the runtime itself. */
cudaError_t cudaGetDriverEntryPoint(const char *symbol, void **funcPtr, unsigned long long flags,
                                    enum cudaDriverEntryPointQueryResult *driverStatus)
{
	return entry_point(symbol, funcPtr, CUDART_VERSION_HERE, flags, driverStatus);
}

/* For programs built for per-thread default streams, which get those functions by default. */
static unsigned long long per_thread(unsigned long long flags)
{
	return flags == cudaEnableDefault ? cudaEnablePerThreadDefaultStream : flags;
}

#pragma GCC visibility push(default)
cudaError_t cudaGetDriverEntryPointByVersion_ptsz(PARAMETERS);
cudaError_t cudaGetDriverEntryPoint_ptsz(const char *symbol, void **funcPtr, unsigned long long flags,
                                         enum cudaDriverEntryPointQueryResult *driverStatus);
#pragma GCC visibility pop

cudaError_t cudaGetDriverEntryPointByVersion_ptsz(PARAMETERS)
{
	return entry_point(symbol, funcPtr, cudaVersion, per_thread(flags), driverStatus);
}

cudaError_t cudaGetDriverEntryPoint_ptsz(const char *symbol, void **funcPtr, unsigned long long flags,
                                         enum cudaDriverEntryPointQueryResult *driverStatus)
{
	return entry_point(symbol, funcPtr, CUDART_VERSION_HERE, per_thread(flags), driverStatus);
}
