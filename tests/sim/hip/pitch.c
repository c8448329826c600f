/* Pitched allocations, copies and sets of rows. Rows are aligned to 256 bytes, as ROCm's images. */
#include "hip_entry.h"

#define PITCH ((size_t)256)

/* Size 0 succeeds with NULL. An overflow is out of memory. pre: ptr, pitch. */
static hipError_t allocate_pitched(void **ptr, size_t *pitch, size_t width, size_t height, size_t depth)
{
	size_t row, bytes;

	if (!width || !height || !depth) {
		*ptr = NULL;
		return hipSuccess;
	}
	if (__builtin_add_overflow(width, PITCH - 1, &row))
		return hipErrorOutOfMemory;
	row -= row % PITCH;
	*pitch = row;
	if (__builtin_mul_overflow(row, height, &bytes) || __builtin_mul_overflow(bytes, depth, &bytes))
		return hipErrorOutOfMemory;
	return hip_allocate_device(ptr, bytes);
}

hipError_t hipMallocPitch(void **ptr, size_t *pitch, size_t width, size_t height)
{
	HIP_ENTER();
	HIP_TRY(hip_capture_forbids());
	return hip_leave(ptr && pitch ? allocate_pitched(ptr, pitch, width, height, 1)
	                              : hipErrorInvalidValue);
}

hipError_t hipMemAllocPitch(hipDeviceptr_t *dptr, size_t *pitch, size_t widthInBytes, size_t height,
                            unsigned int elementSizeBytes)
{
	(void)elementSizeBytes; /* the vendor's pitch does not depend on it */
	HIP_ENTER();
	HIP_TRY(hip_capture_forbids());
	return hip_leave(dptr && pitch ? allocate_pitched(dptr, pitch, widthInBytes, height, 1)
	                               : hipErrorInvalidValue);
}

hipError_t hipMalloc3D(hipPitchedPtr *pitchedDevPtr, hipExtent extent)
{
	size_t pitch = 0;

	HIP_ENTER();
	HIP_TRY(hip_capture_forbids());
	HIP_TRY(pitchedDevPtr
	            ? allocate_pitched(&pitchedDevPtr->ptr, &pitch, extent.width, extent.height, extent.depth)
	            : hipErrorInvalidValue);
	pitchedDevPtr->pitch = pitch;
	pitchedDevPtr->xsize = extent.width;
	pitchedDevPtr->ysize = extent.height;
	return hip_leave(hipSuccess);
}

static hipError_t copy_rows(void *dst, size_t dpitch, const void *src, size_t spitch, size_t width,
                            size_t height, hipStream_t stream, bool wait)
{
	struct sim_stream *on;

	if (!width || !height)
		return hipSuccess;
	if (!dst || !src || width > dpitch || width > spitch)
		return hipErrorInvalidValue;
	hipError_t error = hip_stream(stream, &on);
	if (error)
		return error;
	return hip_error(sim_copy_rows(on, hip_address(dst), dpitch, hip_address(src), spitch, width, height,
	                               SIM_COPY_ANY, wait));
}

static hipError_t set_rows(void *dst, size_t pitch, int value, size_t width, size_t height,
                           hipStream_t stream, bool wait)
{
	struct sim_stream *on;

	if (!width || !height)
		return hipSuccess;
	if (!dst || width > pitch)
		return hipErrorInvalidValue;
	hipError_t error = hip_stream(stream, &on);
	if (error)
		return error;
	return hip_error(sim_set(on, hip_address(dst), pitch, (unsigned char)value, 1, width, height, wait));
}

hipError_t hipMemcpy2D(void *dst, size_t dpitch, const void *src, size_t spitch, size_t width, size_t height,
                       hipMemcpyKind kind)
{
	(void)kind; /* HIP checks the pointers only */
	HIP_ENTER();
	return hip_leave(copy_rows(dst, dpitch, src, spitch, width, height, NULL, true));
}

hipError_t hipMemcpy2DAsync(void *dst, size_t dpitch, const void *src, size_t spitch, size_t width,
                            size_t height, hipMemcpyKind kind, hipStream_t stream)
{
	(void)kind;
	HIP_ENTER();
	return hip_leave(copy_rows(dst, dpitch, src, spitch, width, height, stream, false));
}

hipError_t hipMemset2D(void *dst, size_t pitch, int value, size_t width, size_t height)
{
	HIP_ENTER();
	return hip_leave(set_rows(dst, pitch, value, width, height, NULL, true));
}

hipError_t hipMemset2DAsync(void *dst, size_t pitch, int value, size_t width, size_t height,
                            hipStream_t stream)
{
	HIP_ENTER();
	return hip_leave(set_rows(dst, pitch, value, width, height, stream, false));
}
