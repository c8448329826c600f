/* Devices: count, properties, attributes, versions. */
#include <string.h>

#include "cudart_entry.h"

static int device_attribute(CUdevice device, int number)
{
	int value = 0;

	/* The device lacks an attribute that the simulated driver does not know. */
	if (CU(cuDeviceGetAttribute, &value, (CUdevice_attribute)number, device) != CUDA_SUCCESS)
		return 0;
	return value;
}

cudaError_t cudaGetDeviceCount(int *count)
{
	CUDART_ENTER(init);
	if (!count)
		return cudart_leave(cudaErrorInvalidValue);
	cudaError_t error = cudart_error(CU(cuDeviceGetCount, count));
	return cudart_leave(!error && *count == 0 ? cudaErrorNoDevice : error);
}

cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *prop, int device)
{
	CUdevice handle;
	CUuuid uuid = {{0}};

	CUDART_ENTER(init);
	if (!prop)
		return cudart_leave(cudaErrorInvalidValue);
	cudaError_t error = cudart_device(device, &handle);
	if (error)
		return cudart_leave(error);

	memset(prop, 0, sizeof(*prop));
	error = cudart_error(CU(cuDeviceGetName, prop->name, sizeof(prop->name), handle));
	if (!error)
		error = cudart_error(CU(cuDeviceTotalMem, &prop->totalGlobalMem, handle));
	if (!error)
		error = cudart_error(CU(cuDeviceGetUuid, &uuid, handle));
	memcpy(&prop->uuid, &uuid, sizeof(uuid));
#define PROPERTY(field, name, number) prop->field = device_attribute(handle, number);
#include "cudart_properties.def"
	return cudart_leave(error);
}

cudaError_t cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr attr, int device)
{
	CUdevice handle;

	CUDART_ENTER(init);
	if (!value)
		return cudart_leave(cudaErrorInvalidValue);
	cudaError_t error = cudart_device(device, &handle);
	if (!error)
		error = cudart_error(CU(cuDeviceGetAttribute, value, (CUdevice_attribute)attr, handle));
	return cudart_leave(error);
}

cudaError_t cudaDeviceGetPCIBusId(char *pciBusId, int len, int device)
{
	CUdevice handle;

	CUDART_ENTER(init);
	cudaError_t error = cudart_device(device, &handle);
	if (!error)
		error = cudart_error(CU(cuDeviceGetPCIBusId, pciBusId, len, handle));
	return cudart_leave(error);
}

cudaError_t cudaDeviceCanAccessPeer(int *canAccessPeer, int device, int peerDevice)
{
	CUdevice handle, peer;

	CUDART_ENTER(init);
	cudaError_t error = cudart_device(device, &handle);
	if (!error)
		error = cudart_device(peerDevice, &peer);
	if (!error)
		error = cudart_error(CU(cuDeviceCanAccessPeer, canAccessPeer, handle, peer));
	return cudart_leave(error);
}

/* Works without a driver, with version 0. */
cudaError_t cudaDriverGetVersion(int *driverVersion)
{
	if (!driverVersion)
		return cudart_leave(cudaErrorInvalidValue);
	*driverVersion = 0;
	if (cudart_driver_load() != cudaSuccess)
		return cudaSuccess;
	return cudart_return(CU(cuDriverGetVersion, driverVersion));
}

cudaError_t cudaRuntimeGetVersion(int *runtimeVersion)
{
	if (!runtimeVersion)
		return cudart_leave(cudaErrorInvalidValue);
	*runtimeVersion = CUDART_VERSION_HERE;
	return cudaSuccess;
}

cudaError_t cudaDeviceSynchronize(void)
{
	CUDART_ENTER(enter);
	return cudart_return(CU(cuCtxSynchronize));
}

/* Flags of scheduling and mapping have no visible effect here. */
static _Thread_local unsigned int device_flags;

cudaError_t cudaSetDeviceFlags(unsigned int flags)
{
	CUDART_ENTER(init);
	device_flags = flags;
	return cudaSuccess;
}

cudaError_t cudaGetDeviceFlags(unsigned int *flags)
{
	CUDART_ENTER(init);
	if (!flags)
		return cudart_leave(cudaErrorInvalidValue);
	*flags = device_flags;
	return cudaSuccess;
}

cudaError_t cudaDeviceGetStreamPriorityRange(int *leastPriority, int *greatestPriority)
{
	CUDART_ENTER(enter);
	return cudart_return(CU(cuCtxGetStreamPriorityRange, leastPriority, greatestPriority));
}
