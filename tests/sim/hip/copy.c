/* Copies and sets. */
#include "hip_entry.h"

static bool is_known(const void *pointer)
{
	struct sim_pointer about;

	return sim_pointer(hip_address(pointer), &about);
}

/* HIP ignores the direction, except that a copy between two unknown pointers must name the host. */
static hipError_t copy_bytes(void *to, const void *from, size_t bytes, hipMemcpyKind kind, hipStream_t stream,
                             bool wait)
{
	struct sim_stream *on;

	if (bytes == 0)
		return hipSuccess;
	if (!to || !from)
		return hipErrorInvalidValue;
	hipError_t error = hip_stream(stream, &on);
	if (error)
		return error;
	if (!is_known(to) && !is_known(from) && kind != hipMemcpyHostToHost && kind != hipMemcpyDefault)
		return hipErrorInvalidValue;
	return hip_error(sim_copy(on, hip_address(to), hip_address(from), bytes, SIM_COPY_ANY, wait));
}

static hipError_t set_elements(void *to, uint32_t value, unsigned element, size_t count, hipStream_t stream,
                               bool wait)
{
	struct sim_stream *on;

	if (count == 0)
		return hipSuccess;
	if (!to)
		return hipErrorInvalidValue;
	hipError_t error = hip_stream(stream, &on);
	if (error)
		return error;
	return hip_error(sim_set(on, hip_address(to), count * element, value, element, count, 1, wait));
}

hipError_t hipMemcpy(void *dst, const void *src, size_t sizeBytes, hipMemcpyKind kind)
{
	HIP_ENTER();
	return hip_leave(copy_bytes(dst, src, sizeBytes, kind, NULL, true));
}

hipError_t hipMemcpyAsync(void *dst, const void *src, size_t sizeBytes, hipMemcpyKind kind,
                          hipStream_t stream)
{
	HIP_ENTER();
	return hip_leave(copy_bytes(dst, src, sizeBytes, kind, stream, false));
}

hipError_t hipMemcpyHtoD(hipDeviceptr_t dst, void *src, size_t sizeBytes)
{
	HIP_ENTER();
	return hip_leave(copy_bytes(dst, src, sizeBytes, hipMemcpyHostToDevice, NULL, true));
}

hipError_t hipMemcpyDtoH(void *dst, hipDeviceptr_t src, size_t sizeBytes)
{
	HIP_ENTER();
	return hip_leave(copy_bytes(dst, src, sizeBytes, hipMemcpyDeviceToHost, NULL, true));
}

hipError_t hipMemcpyDtoD(hipDeviceptr_t dst, hipDeviceptr_t src, size_t sizeBytes)
{
	HIP_ENTER();
	return hip_leave(copy_bytes(dst, src, sizeBytes, hipMemcpyDeviceToDevice, NULL, true));
}

hipError_t hipMemcpyHtoDAsync(hipDeviceptr_t dst, void *src, size_t sizeBytes, hipStream_t stream)
{
	HIP_ENTER();
	return hip_leave(copy_bytes(dst, src, sizeBytes, hipMemcpyHostToDevice, stream, false));
}

hipError_t hipMemcpyDtoHAsync(void *dst, hipDeviceptr_t src, size_t sizeBytes, hipStream_t stream)
{
	HIP_ENTER();
	return hip_leave(copy_bytes(dst, src, sizeBytes, hipMemcpyDeviceToHost, stream, false));
}

hipError_t hipMemcpyDtoDAsync(hipDeviceptr_t dst, hipDeviceptr_t src, size_t sizeBytes, hipStream_t stream)
{
	HIP_ENTER();
	return hip_leave(copy_bytes(dst, src, sizeBytes, hipMemcpyDeviceToDevice, stream, false));
}

hipError_t hipMemset(void *dst, int value, size_t sizeBytes)
{
	HIP_ENTER();
	return hip_leave(set_elements(dst, (unsigned char)value, 1, sizeBytes, NULL, true));
}

hipError_t hipMemsetAsync(void *dst, int value, size_t sizeBytes, hipStream_t stream)
{
	HIP_ENTER();
	return hip_leave(set_elements(dst, (unsigned char)value, 1, sizeBytes, stream, false));
}

hipError_t hipMemsetD8(hipDeviceptr_t dest, unsigned char value, size_t count)
{
	HIP_ENTER();
	return hip_leave(set_elements(dest, value, 1, count, NULL, true));
}

hipError_t hipMemsetD8Async(hipDeviceptr_t dest, unsigned char value, size_t count, hipStream_t stream)
{
	HIP_ENTER();
	return hip_leave(set_elements(dest, value, 1, count, stream, false));
}

hipError_t hipMemsetD32(hipDeviceptr_t dest, int value, size_t count)
{
	HIP_ENTER();
	return hip_leave(set_elements(dest, (uint32_t)value, 4, count, NULL, true));
}

hipError_t hipMemsetD32Async(hipDeviceptr_t dst, int value, size_t count, hipStream_t stream)
{
	HIP_ENTER();
	return hip_leave(set_elements(dst, (uint32_t)value, 4, count, stream, false));
}
