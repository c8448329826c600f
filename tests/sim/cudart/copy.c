/* Copies and sets. */
#include "cudart_entry.h"

cudaError_t cudaMemcpy(void *dst, const void *src, size_t count, enum cudaMemcpyKind kind)
{
	CUDART_ENTER(enter);
	if (count == 0)
		return cudaSuccess;
	switch (kind) {
	case cudaMemcpyHostToDevice:
		return cudart_return(CU(cuMemcpyHtoD, cudart_address(dst), src, count));
	case cudaMemcpyDeviceToHost:
		return cudart_return(CU(cuMemcpyDtoH, dst, cudart_address(src), count));
	case cudaMemcpyDeviceToDevice:
		return cudart_return(CU(cuMemcpyDtoD, cudart_address(dst), cudart_address(src), count));
	case cudaMemcpyHostToHost:
	case cudaMemcpyDefault:
		return cudart_return(CU(cuMemcpy, cudart_address(dst), cudart_address(src), count));
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
		return cudart_return(CU(cuMemcpyHtoDAsync, cudart_address(dst), src, count, stream));
	case cudaMemcpyDeviceToHost:
		return cudart_return(CU(cuMemcpyDtoHAsync, dst, cudart_address(src), count, stream));
	case cudaMemcpyDeviceToDevice:
		return cudart_return(
		    CU(cuMemcpyDtoDAsync, cudart_address(dst), cudart_address(src), count, stream));
	case cudaMemcpyHostToHost:
	case cudaMemcpyDefault:
		return cudart_return(
		    CU(cuMemcpyAsync, cudart_address(dst), cudart_address(src), count, stream));
	}
	return cudart_leave(cudaErrorInvalidMemcpyDirection);
}

cudaError_t cudaMemset(void *devPtr, int value, size_t count)
{
	CUDART_ENTER(enter);
	if (count == 0)
		return cudaSuccess;
	return cudart_return(CU(cuMemsetD8, cudart_address(devPtr), (unsigned char)value, count));
}

cudaError_t cudaMemsetAsync(void *devPtr, int value, size_t count, cudaStream_t stream)
{
	CUDART_ENTER(enter);
	if (count == 0)
		return cudaSuccess;
	return cudart_return(
	    CU(cuMemsetD8Async, cudart_address(devPtr), (unsigned char)value, count, stream));
}

cudaError_t cudaMemset2D(void *devPtr, size_t pitch, int value, size_t width, size_t height)
{
	CUDART_ENTER(enter);
	if (width == 0 || height == 0)
		return cudaSuccess;
	return cudart_return(
	    CU(cuMemsetD2D8, cudart_address(devPtr), pitch, (unsigned char)value, width, height));
}
