/* Copies and sets. */
#include "cudart_entry.h"

static CUdeviceptr address(const void *pointer)
{
	return (CUdeviceptr)(uintptr_t)pointer;
}

cudaError_t cudaMemcpy(void *dst, const void *src, size_t count, enum cudaMemcpyKind kind)
{
	CUDART_ENTER(enter);
	if (count == 0)
		return cudaSuccess;
	switch (kind) {
	case cudaMemcpyHostToDevice:
		return cudart_return(CU(cuMemcpyHtoD, address(dst), src, count));
	case cudaMemcpyDeviceToHost:
		return cudart_return(CU(cuMemcpyDtoH, dst, address(src), count));
	case cudaMemcpyDeviceToDevice:
		return cudart_return(CU(cuMemcpyDtoD, address(dst), address(src), count));
	case cudaMemcpyHostToHost:
	case cudaMemcpyDefault:
		return cudart_return(CU(cuMemcpy, address(dst), address(src), count));
	}
	return cudart_leave(cudaErrorInvalidMemcpyDirection);
}

cudaError_t cudaMemcpyAsync(void *dst, const void *src, size_t count, enum cudaMemcpyKind kind,
                            cudaStream_t stream)
{
	CUDART_ENTER(enter);
	if (count == 0)
		return cudaSuccess;
	switch (kind) {
	case cudaMemcpyHostToDevice:
		return cudart_return(CU(cuMemcpyHtoDAsync, address(dst), src, count, stream));
	case cudaMemcpyDeviceToHost:
		return cudart_return(CU(cuMemcpyDtoHAsync, dst, address(src), count, stream));
	case cudaMemcpyDeviceToDevice:
		return cudart_return(CU(cuMemcpyDtoDAsync, address(dst), address(src), count, stream));
	case cudaMemcpyHostToHost:
	case cudaMemcpyDefault:
		return cudart_return(CU(cuMemcpyAsync, address(dst), address(src), count, stream));
	}
	return cudart_leave(cudaErrorInvalidMemcpyDirection);
}

cudaError_t cudaMemset(void *devPtr, int value, size_t count)
{
	CUDART_ENTER(enter);
	if (count == 0)
		return cudaSuccess;
	return cudart_return(CU(cuMemsetD8, address(devPtr), (unsigned char)value, count));
}

cudaError_t cudaMemsetAsync(void *devPtr, int value, size_t count, cudaStream_t stream)
{
	CUDART_ENTER(enter);
	if (count == 0)
		return cudaSuccess;
	return cudart_return(CU(cuMemsetD8Async, address(devPtr), (unsigned char)value, count, stream));
}

cudaError_t cudaMemset2D(void *devPtr, size_t pitch, int value, size_t width, size_t height)
{
	CUDART_ENTER(enter);
	if (width == 0 || height == 0)
		return cudaSuccess;
	return cudart_return(CU(cuMemsetD2D8, address(devPtr), pitch, (unsigned char)value, width, height));
}
