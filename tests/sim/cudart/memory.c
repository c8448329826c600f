/* Allocations, managed memory, and attributes of pointers. */
#include "cudart_entry.h"

/* NVIDIA's runtime writes NULL to the pointer if memory runs out. So does this one. */
static cudaError_t hand_out(void **pointer, CUdeviceptr found, CUresult result)
{
	*pointer = result == CUDA_SUCCESS ? (void *)(uintptr_t)found : NULL;
	return cudart_return(result);
}

/* For 0 bytes: success and NULL, as the vendor. */
static cudaError_t return_no_pointer(void **pointer)
{
	*pointer = NULL;
	return cudaSuccess;
}

cudaError_t cudaMalloc(void **devPtr, size_t size)
{
	CUdeviceptr found = 0;

	CUDART_ENTER(enter);
	if (!devPtr)
		return cudart_leave(cudaErrorInvalidValue);
	if (size == 0)
		return return_no_pointer(devPtr);
	CUresult result = CU(cuMemAlloc, &found, size);
	return hand_out(devPtr, found, result);
}

/* Programs start the runtime with cudaFree(NULL). The driver reports a broken context. */
cudaError_t cudaFree(void *devPtr)
{
	CUDART_ENTER(enter);
	return cudart_return(CU(cuMemFree, cudart_address(devPtr)));
}

cudaError_t cudaMallocPitch(void **devPtr, size_t *pitch, size_t width, size_t height)
{
	CUdeviceptr found = 0;

	CUDART_ENTER(enter);
	if (!devPtr || !pitch)
		return cudart_leave(cudaErrorInvalidValue);
	if (width == 0 || height == 0) {
		*pitch = 0;
		return return_no_pointer(devPtr);
	}
	/* The driver's largest element: its pitch is right for each type. */
	CUresult result = CU(cuMemAllocPitch, &found, pitch, width, height, 16);
	return hand_out(devPtr, found, result);
}

cudaError_t cudaMemGetInfo(size_t *free, size_t *total)
{
	CUDART_ENTER(enter);
	return cudart_return(CU(cuMemGetInfo, free, total));
}

cudaError_t cudaMallocManaged(void **devPtr, size_t size, unsigned int flags)
{
	CUdeviceptr found = 0;

	CUDART_ENTER(enter);
	if (!devPtr)
		return cudart_leave(cudaErrorInvalidValue);
	if (size == 0)
		return return_no_pointer(devPtr);
	CUresult result = CU(cuMemAllocManaged, &found, size, flags);
	return hand_out(devPtr, found, result);
}

cudaError_t cudaHostAlloc(void **pHost, size_t size, unsigned int flags)
{
	void *found = NULL;

	CUDART_ENTER(enter);
	if (!pHost)
		return cudart_leave(cudaErrorInvalidValue);
	if (size == 0)
		return return_no_pointer(pHost);
	/* With unified addressing all pinned memory is mapped, as cudaHostGetFlags reports. */
	CUresult result = CU(cuMemHostAlloc, &found, size, flags | CU_MEMHOSTALLOC_DEVICEMAP);
	return hand_out(pHost, cudart_address(found), result);
}

cudaError_t cudaMallocHost(void **ptr, size_t size)
{
	return cudaHostAlloc(ptr, size, cudaHostAllocDefault);
}

cudaError_t cudaFreeHost(void *ptr)
{
	CUDART_ENTER(enter);
	if (!ptr)
		return cudaSuccess;
	return cudart_return(CU(cuMemFreeHost, ptr));
}

cudaError_t cudaHostGetDevicePointer(void **pDevice, void *pHost, unsigned int flags)
{
	CUdeviceptr found = 0;

	CUDART_ENTER(enter);
	if (!pDevice)
		return cudart_leave(cudaErrorInvalidValue);
	CUresult result = CU(cuMemHostGetDevicePointer, &found, pHost, flags);
	return hand_out(pDevice, found, result);
}

cudaError_t cudaHostGetFlags(unsigned int *pFlags, void *pHost)
{
	CUDART_ENTER(enter);
	return cudart_return(CU(cuMemHostGetFlags, pFlags, pHost));
}

cudaError_t cudaHostRegister(void *ptr, size_t size, unsigned int flags)
{
	CUDART_ENTER(enter);
	return cudart_return(CU(cuMemHostRegister, ptr, size, flags));
}

cudaError_t cudaHostUnregister(void *ptr)
{
	CUDART_ENTER(enter);
	return cudart_return(CU(cuMemHostUnregister, ptr));
}

cudaError_t cudaMallocAsync(void **devPtr, size_t size, cudaStream_t hStream)
{
	CUdeviceptr found = 0;

	CUDART_ENTER(enter);
	if (!devPtr)
		return cudart_leave(cudaErrorInvalidValue);
	if (size == 0)
		return return_no_pointer(devPtr);
	CUresult result = CU(cuMemAllocAsync, &found, size, hStream);
	return hand_out(devPtr, found, result);
}

cudaError_t cudaFreeAsync(void *devPtr, cudaStream_t hStream)
{
	CUDART_ENTER(enter);
	if (!devPtr)
		return cudaSuccess;
	return cudart_return(CU(cuMemFreeAsync, cudart_address(devPtr), hStream));
}

static CUmemLocation driver_location(struct cudaMemLocation location)
{
	return (CUmemLocation){(CUmemLocationType)location.type, location.id};
}

cudaError_t cudaMemAdvise(const void *devPtr, size_t count, enum cudaMemoryAdvise advice,
                          struct cudaMemLocation location)
{
	CUDART_ENTER(enter);
	return cudart_return(
	    CU(cuMemAdvise, cudart_address(devPtr), count, (CUmem_advise)advice, driver_location(location)));
}

cudaError_t cudaMemPrefetchAsync(const void *devPtr, size_t count, struct cudaMemLocation location,
                                 unsigned int flags, cudaStream_t stream)
{
	CUDART_ENTER(enter);
	return cudart_return(
	    CU(cuMemPrefetchAsync, cudart_address(devPtr), count, driver_location(location), flags, stream));
}

static enum cudaMemoryType runtime_type(unsigned int type, unsigned int managed)
{
	if (managed)
		return cudaMemoryTypeManaged;
	if (type == CU_MEMORYTYPE_HOST)
		return cudaMemoryTypeHost;
	return type == CU_MEMORYTYPE_DEVICE ? cudaMemoryTypeDevice : cudaMemoryTypeUnregistered;
}

cudaError_t cudaPointerGetAttributes(struct cudaPointerAttributes *attributes, const void *ptr)
{
	unsigned int type = 0, managed = 0;
	int ordinal = cudaInvalidDeviceId;
	CUdeviceptr device = 0;
	void *host = NULL;
	CUpointer_attribute asked[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_DEVICE_POINTER,
	                               CU_POINTER_ATTRIBUTE_HOST_POINTER, CU_POINTER_ATTRIBUTE_IS_MANAGED,
	                               CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL};
	void *values[] = {&type, &device, &host, &managed, &ordinal};

	CUDART_ENTER(enter);
	if (!attributes)
		return cudart_leave(cudaErrorInvalidValue);
	CUresult result = CU(cuPointerGetAttributes, 5, asked, values, cudart_address(ptr));
	if (result != CUDA_SUCCESS)
		return cudart_return(result);
	*attributes = (struct cudaPointerAttributes){.type = runtime_type(type, managed), .device = ordinal};
	attributes->devicePointer = (void *)(uintptr_t)device;
	/* Memory that the driver does not know is the program's own. */
	attributes->hostPointer = attributes->type == cudaMemoryTypeUnregistered ? (void *)ptr : host;
	return cudaSuccess;
}
