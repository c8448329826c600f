/* Memory between devices and between processes. */
#include <string.h>

#include "cudart_entry.h"

/* -- processes --------------------------------------------------------------------------------- */

cudaError_t cudaIpcGetMemHandle(cudaIpcMemHandle_t *handle, void *devPtr)
{
	CUDART_ENTER(enter);
	return cudart_return(CU(cuIpcGetMemHandle, (CUipcMemHandle *)handle, cudart_address(devPtr)));
}

cudaError_t cudaIpcOpenMemHandle(void **devPtr, cudaIpcMemHandle_t handle, unsigned int flags)
{
	CUipcMemHandle same;
	CUdeviceptr found;

	CUDART_ENTER(enter);
	if (!devPtr)
		return cudart_leave(cudaErrorInvalidValue);
	memcpy(&same, &handle, sizeof(same));
	CUresult result = CU(cuIpcOpenMemHandle, &found, same, flags);
	if (!result)
		*devPtr = (void *)(uintptr_t)found;
	return cudart_return(result);
}

cudaError_t cudaIpcCloseMemHandle(void *devPtr)
{
	CUDART_ENTER(enter);
	return cudart_return(CU(cuIpcCloseMemHandle, cudart_address(devPtr)));
}

/* -- devices ----------------------------------------------------------------------------------- */

/* The other device's primary context, which the runtime starts. */
static cudaError_t peer_context(int device, CUcontext *context)
{
	int own;
	cudaError_t error = cudart_current_device(&own);

	if (!error && own == device)
		error = cudaErrorInvalidDevice;
	return error ? error : cudart_primary(device, context);
}

cudaError_t cudaDeviceEnablePeerAccess(int peerDevice, unsigned int flags)
{
	CUcontext context;

	CUDART_ENTER(enter);
	cudaError_t error = flags ? cudaErrorInvalidValue : peer_context(peerDevice, &context);
	return error ? cudart_leave(error) : cudart_return(CU(cuCtxEnablePeerAccess, context, 0));
}

cudaError_t cudaDeviceDisablePeerAccess(int peerDevice)
{
	CUcontext context;

	CUDART_ENTER(enter);
	cudaError_t error = peer_context(peerDevice, &context);
	return error ? cudart_leave(error) : cudart_return(CU(cuCtxDisablePeerAccess, context));
}

cudaError_t cudaDeviceGetP2PAttribute(int *value, enum cudaDeviceP2PAttr attr, int srcDevice, int dstDevice)
{
	CUdevice from, to;

	CUDART_ENTER(init);
	cudaError_t error = cudart_device(srcDevice, &from);
	if (!error)
		error = cudart_device(dstDevice, &to);
	return error
	           ? cudart_leave(error)
	           : cudart_return(CU(cuDeviceGetP2PAttribute, value, (CUdevice_P2PAttribute)attr, from, to));
}
