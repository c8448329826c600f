/* cudaGetDriverEntryPoint*: the driver's own look-up, through the runtime. */
#include "runtime.h"

cudaError_t cudaGetDriverEntryPointByVersion(const char *symbol, void **funcPtr, unsigned int cudaVersion,
                                             unsigned long long flags,
                                             enum cudaDriverEntryPointQueryResult *driverStatus)
{
	CUdriverProcAddressQueryResult status = CU_GET_PROC_ADDRESS_SUCCESS;
	void *found = NULL;

	CUDART_ENTER(init);
	if (!symbol || !funcPtr)
		return cudart_leave(cudaErrorInvalidValue);
	CUresult result = CU(cuGetProcAddress, symbol, &found, (int)cudaVersion, flags, &status);
	/* A name that is not there is an answer, also for a caller that did not ask for the status. */
	if (result == CUDA_ERROR_NOT_FOUND)
		result = CUDA_SUCCESS;
	if (driverStatus)
		*driverStatus = (enum cudaDriverEntryPointQueryResult)status;
	if (result == CUDA_SUCCESS)
		*funcPtr = found;
	return cudart_return(result);
}
