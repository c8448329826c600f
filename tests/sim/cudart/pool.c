/* Pools: the driver's, with the runtime's names for the same layouts. */
#include "cudart_entry.h"

cudaError_t cudaMallocFromPoolAsync(void **ptr, size_t size, cudaMemPool_t memPool, cudaStream_t stream)
{
	CUdeviceptr found = 0;

	CUDART_ENTER(enter);
	if (!ptr)
		return cudart_leave(cudaErrorInvalidValue);
	CUresult result = size ? CU(cuMemAllocFromPoolAsync, &found, size, memPool, stream) : CUDA_SUCCESS;
	*ptr = result ? NULL : (void *)(uintptr_t)found;
	return cudart_return(result);
}

cudaError_t cudaMemPoolCreate(cudaMemPool_t *memPool, const struct cudaMemPoolProps *poolProps)
{
	_Static_assert(sizeof(struct cudaMemPoolProps) == sizeof(CUmemPoolProps), "the same in both");
	CUDART_ENTER(enter);
	return cudart_return(CU(cuMemPoolCreate, memPool, (const CUmemPoolProps *)poolProps));
}

cudaError_t cudaMemPoolDestroy(cudaMemPool_t memPool)
{
	CUDART_ENTER(enter);
	return cudart_return(CU(cuMemPoolDestroy, memPool));
}

cudaError_t cudaMemPoolTrimTo(cudaMemPool_t memPool, size_t minBytesToKeep)
{
	CUDART_ENTER(enter);
	return cudart_return(CU(cuMemPoolTrimTo, memPool, minBytesToKeep));
}

cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t memPool, enum cudaMemPoolAttr attr, void *value)
{
	CUDART_ENTER(enter);
	return cudart_return(CU(cuMemPoolSetAttribute, memPool, (CUmemPool_attribute)attr, value));
}

cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t memPool, enum cudaMemPoolAttr attr, void *value)
{
	CUDART_ENTER(enter);
	return cudart_return(CU(cuMemPoolGetAttribute, memPool, (CUmemPool_attribute)attr, value));
}

cudaError_t cudaMemPoolSetAccess(cudaMemPool_t memPool, const struct cudaMemAccessDesc *descList,
                                 size_t count)
{
	CUDART_ENTER(enter);
	return cudart_return(CU(cuMemPoolSetAccess, memPool, (const CUmemAccessDesc *)descList, count));
}

cudaError_t cudaMemPoolGetAccess(enum cudaMemAccessFlags *flags, cudaMemPool_t memPool,
                                 struct cudaMemLocation *location)
{
	CUDART_ENTER(enter);
	return cudart_return(
	    CU(cuMemPoolGetAccess, (CUmemAccess_flags *)flags, memPool, (CUmemLocation *)location));
}

cudaError_t cudaMemPoolExportToShareableHandle(void *shareableHandle, cudaMemPool_t memPool,
                                               enum cudaMemAllocationHandleType handleType,
                                               unsigned int flags)
{
	CUDART_ENTER(enter);
	return cudart_return(CU(cuMemPoolExportToShareableHandle, shareableHandle, memPool,
	                        (CUmemAllocationHandleType)handleType, flags));
}

cudaError_t cudaMemPoolImportFromShareableHandle(cudaMemPool_t *memPool, void *shareableHandle,
                                                 enum cudaMemAllocationHandleType handleType,
                                                 unsigned int flags)
{
	CUDART_ENTER(enter);
	return cudart_return(CU(cuMemPoolImportFromShareableHandle, memPool, shareableHandle,
	                        (CUmemAllocationHandleType)handleType, flags));
}

cudaError_t cudaMemPoolExportPointer(struct cudaMemPoolPtrExportData *exportData, void *ptr)
{
	CUDART_ENTER(enter);
	return cudart_return(
	    CU(cuMemPoolExportPointer, (CUmemPoolPtrExportData *)exportData, cudart_address(ptr)));
}

cudaError_t cudaMemPoolImportPointer(void **ptr, cudaMemPool_t memPool,
                                     struct cudaMemPoolPtrExportData *exportData)
{
	CUDART_ENTER(enter);
	return cudart_return(
	    CU(cuMemPoolImportPointer, (CUdeviceptr *)ptr, memPool, (CUmemPoolPtrExportData *)exportData));
}

/* -- a device's pools -------------------------------------------------------------------------- */

cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t *memPool, int device)
{
	CUdevice handle;

	CUDART_ENTER(enter);
	cudaError_t error = cudart_device(device, &handle);
	return error ? cudart_leave(error) : cudart_return(CU(cuDeviceGetDefaultMemPool, memPool, handle));
}

cudaError_t cudaDeviceGetMemPool(cudaMemPool_t *memPool, int device)
{
	CUdevice handle;

	CUDART_ENTER(enter);
	cudaError_t error = cudart_device(device, &handle);
	return error ? cudart_leave(error) : cudart_return(CU(cuDeviceGetMemPool, memPool, handle));
}

cudaError_t cudaDeviceSetMemPool(int device, cudaMemPool_t memPool)
{
	CUdevice handle;

	CUDART_ENTER(enter);
	cudaError_t error = cudart_device(device, &handle);
	return error ? cudart_leave(error) : cudart_return(CU(cuDeviceSetMemPool, handle, memPool));
}
