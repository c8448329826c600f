/* Arrays, pitched memory in three dimensions, and copies of rows. */
#include <stdbool.h>

#include "cudart_entry.h"

/* -- arrays ------------------------------------------------------------------------------------ */

/* A channel description in the driver's terms. False: it has no equivalent. */
static bool format_of(const struct cudaChannelFormatDesc *desc, CUDA_ARRAY3D_DESCRIPTOR *shape)
{
	const int bits[] = {desc->x, desc->y, desc->z, desc->w};
	unsigned channels = 0;

	while (channels < 4 && bits[channels])
		channels++;
	for (unsigned i = 0; i < 4; i++)
		if (bits[i] != (i < channels ? desc->x : 0))
			return false;
	if (channels != 1 && channels != 2 && channels != 4)
		return false;
	int size = desc->x == 8 ? 0 : desc->x == 16 ? 1 : desc->x == 32 ? 2 : -1;
	if (size < 0 || desc->f > cudaChannelFormatKindFloat ||
	    (desc->f == cudaChannelFormatKindFloat && !size))
		return false;
	shape->NumChannels = channels;
	shape->Format = (CUarray_format)(desc->f == cudaChannelFormatKindFloat
	                                     ? (size == 1 ? CU_AD_FORMAT_HALF : CU_AD_FORMAT_FLOAT)
	                                 : desc->f == cudaChannelFormatKindSigned
	                                     ? (int)CU_AD_FORMAT_SIGNED_INT8 + size
	                                     : (int)CU_AD_FORMAT_UNSIGNED_INT8 + size);
	return true;
}

static bool shape_of(const struct cudaChannelFormatDesc *desc, struct cudaExtent extent, unsigned flags,
                     CUDA_ARRAY3D_DESCRIPTOR *shape)
{
	*shape = (CUDA_ARRAY3D_DESCRIPTOR){
	    .Width = extent.width, .Height = extent.height, .Depth = extent.depth, .Flags = flags};
	return desc && format_of(desc, shape);
}

cudaError_t cudaMalloc3DArray(cudaArray_t *array, const struct cudaChannelFormatDesc *desc,
                              struct cudaExtent extent, unsigned int flags)
{
	CUDA_ARRAY3D_DESCRIPTOR shape;

	CUDART_ENTER(enter);
	if (!array || !shape_of(desc, extent, flags, &shape))
		return cudart_leave(cudaErrorInvalidValue);
	return cudart_return(CU(cuArray3DCreate, (CUarray *)array, &shape));
}

cudaError_t cudaMallocArray(cudaArray_t *array, const struct cudaChannelFormatDesc *desc, size_t width,
                            size_t height, unsigned int flags)
{
	return cudaMalloc3DArray(array, desc, (struct cudaExtent){width, height, 0}, flags);
}

cudaError_t cudaFreeArray(cudaArray_t array)
{
	CUDART_ENTER(enter);
	return array ? cudart_return(CU(cuArrayDestroy, (CUarray)array)) : cudaSuccess;
}

cudaError_t cudaArrayGetInfo(struct cudaChannelFormatDesc *desc, struct cudaExtent *extent,
                             unsigned int *flags, cudaArray_t array)
{
	CUDA_ARRAY3D_DESCRIPTOR shape;

	CUDART_ENTER(enter);
	CUresult result = CU(cuArray3DGetDescriptor, &shape, (CUarray)array);
	if (result)
		return cudart_return(result);
	int format = (int)shape.Format, real = format >= CU_AD_FORMAT_HALF, is_signed = format >= 8 && !real;
	int bits = real ? format
	                : 8 << (format - (is_signed ? CU_AD_FORMAT_SIGNED_INT8 : CU_AD_FORMAT_UNSIGNED_INT8));
	if (desc)
		*desc = (struct cudaChannelFormatDesc){.x = bits,
		                                       .y = shape.NumChannels > 1 ? bits : 0,
		                                       .z = shape.NumChannels > 2 ? bits : 0,
		                                       .w = shape.NumChannels > 3 ? bits : 0,
		                                       .f = real        ? cudaChannelFormatKindFloat
		                                            : is_signed ? cudaChannelFormatKindSigned
		                                                        : cudaChannelFormatKindUnsigned};
	if (extent)
		*extent = (struct cudaExtent){shape.Width, shape.Height, shape.Depth};
	if (flags)
		*flags = shape.Flags;
	return cudaSuccess;
}

cudaError_t cudaMallocMipmappedArray(cudaMipmappedArray_t *mipmappedArray,
                                     const struct cudaChannelFormatDesc *desc, struct cudaExtent extent,
                                     unsigned int numLevels, unsigned int flags)
{
	CUDA_ARRAY3D_DESCRIPTOR shape;

	CUDART_ENTER(enter);
	if (!mipmappedArray || !shape_of(desc, extent, flags, &shape))
		return cudart_leave(cudaErrorInvalidValue);
	return cudart_return(
	    CU(cuMipmappedArrayCreate, (CUmipmappedArray *)mipmappedArray, &shape, numLevels));
}

cudaError_t cudaGetMipmappedArrayLevel(cudaArray_t *levelArray, cudaMipmappedArray_const_t mipmappedArray,
                                       unsigned int level)
{
	CUDART_ENTER(enter);
	return cudart_return(
	    CU(cuMipmappedArrayGetLevel, (CUarray *)levelArray, (CUmipmappedArray)mipmappedArray, level));
}

cudaError_t cudaFreeMipmappedArray(cudaMipmappedArray_t mipmappedArray)
{
	CUDART_ENTER(enter);
	return mipmappedArray ? cudart_return(CU(cuMipmappedArrayDestroy, (CUmipmappedArray)mipmappedArray))
	                      : cudaSuccess;
}

/* -- rows -------------------------------------------------------------------------------------- */

cudaError_t cudaMalloc3D(struct cudaPitchedPtr *pitchedDevPtr, struct cudaExtent extent)
{
	struct cudaPitchedPtr made = {.xsize = extent.width, .ysize = extent.height};
	size_t rows;

	if (!pitchedDevPtr || __builtin_mul_overflow(extent.height, extent.depth, &rows))
		return cudart_leave(cudaErrorInvalidValue);
	cudaError_t error = cudaMallocPitch(&made.ptr, &made.pitch, extent.width, rows);
	if (!error)
		*pitchedDevPtr = made;
	return error;
}

static bool rows_of(void *dst, size_t dpitch, const void *src, size_t spitch, size_t width, size_t height,
                    enum cudaMemcpyKind kind, CUDA_MEMCPY2D *copy)
{
	bool to_host = kind == cudaMemcpyHostToHost || kind == cudaMemcpyDeviceToHost;
	bool from_host = kind == cudaMemcpyHostToHost || kind == cudaMemcpyHostToDevice;
	bool any = kind == cudaMemcpyDefault;

	*copy =
	    (CUDA_MEMCPY2D){.srcPitch = spitch, .dstPitch = dpitch, .WidthInBytes = width, .Height = height};
	copy->dstMemoryType = any       ? CU_MEMORYTYPE_UNIFIED
	                      : to_host ? CU_MEMORYTYPE_HOST
	                                : CU_MEMORYTYPE_DEVICE;
	copy->srcMemoryType = any         ? CU_MEMORYTYPE_UNIFIED
	                      : from_host ? CU_MEMORYTYPE_HOST
	                                  : CU_MEMORYTYPE_DEVICE;
	copy->dstHost = dst;
	copy->srcHost = src;
	copy->dstDevice = cudart_address(dst);
	copy->srcDevice = cudart_address(src);
	return (unsigned)kind <= cudaMemcpyDefault;
}

cudaError_t cudaMemcpy2D(void *dst, size_t dpitch, const void *src, size_t spitch, size_t width,
                         size_t height, enum cudaMemcpyKind kind)
{
	CUDA_MEMCPY2D copy;

	CUDART_ENTER(enter);
	if (!rows_of(dst, dpitch, src, spitch, width, height, kind, &copy))
		return cudart_leave(cudaErrorInvalidMemcpyDirection);
	return cudart_return(CU(cuMemcpy2DUnaligned, &copy));
}

cudaError_t cudaMemcpy2DAsync(void *dst, size_t dpitch, const void *src, size_t spitch, size_t width,
                              size_t height, enum cudaMemcpyKind kind, cudaStream_t stream)
{
	CUDA_MEMCPY2D copy;

	CUDART_ENTER(enter);
	if (!rows_of(dst, dpitch, src, spitch, width, height, kind, &copy))
		return cudart_leave(cudaErrorInvalidMemcpyDirection);
	return cudart_return(CU(cuMemcpy2DAsync, &copy, stream));
}
