/* Copies of bytes, and sets. */
#include "cuda_entry.h"

static CUresult copy_bytes(CUstream hStream, CUdeviceptr to, CUdeviceptr from, size_t bytes,
                           enum sim_copy_kind kind, bool wait)
{
	struct sim_stream *stream = driver_stream(hStream);

	if (!stream)
		return CUDA_ERROR_INVALID_HANDLE;
	return driver_result(sim_copy(stream, to, from, bytes, kind, wait));
}

WITHOUT_STREAM(cuMemcpy, cuMemcpy_ptds, (CUdeviceptr dst, CUdeviceptr src, size_t ByteCount),
               (CUstream hStream, CUdeviceptr dst, CUdeviceptr src, size_t ByteCount),
               (hStream, dst, src, ByteCount))
{
	return copy_bytes(hStream, dst, src, ByteCount, SIM_COPY_ANY, true);
}

WITH_STREAM(cuMemcpyAsync, cuMemcpyAsync_ptsz,
            (CUdeviceptr dst, CUdeviceptr src, size_t ByteCount, CUstream hStream),
            (dst, src, ByteCount, hStream))
{
	return copy_bytes(hStream, dst, src, ByteCount, SIM_COPY_ANY, false);
}

static CUresult copy_peer(CUstream hStream, CUdeviceptr to, CUcontext to_context, CUdeviceptr from,
                          CUcontext from_context, size_t bytes, bool wait)
{
	if (!sim_context_alive((struct sim_context *)to_context) ||
	    !sim_context_alive((struct sim_context *)from_context))
		return CUDA_ERROR_INVALID_CONTEXT;
	return copy_bytes(hStream, to, from, bytes, SIM_COPY_ON_DEVICE, wait);
}

WITHOUT_STREAM(cuMemcpyPeer, cuMemcpyPeer_ptds,
               (CUdeviceptr dstDevice, CUcontext dstContext, CUdeviceptr srcDevice, CUcontext srcContext,
                size_t ByteCount),
               (CUstream hStream, CUdeviceptr dstDevice, CUcontext dstContext, CUdeviceptr srcDevice,
                CUcontext srcContext, size_t ByteCount),
               (hStream, dstDevice, dstContext, srcDevice, srcContext, ByteCount))
{
	return copy_peer(hStream, dstDevice, dstContext, srcDevice, srcContext, ByteCount, true);
}

WITH_STREAM(cuMemcpyPeerAsync, cuMemcpyPeerAsync_ptsz,
            (CUdeviceptr dstDevice, CUcontext dstContext, CUdeviceptr srcDevice, CUcontext srcContext,
             size_t ByteCount, CUstream hStream),
            (dstDevice, dstContext, srcDevice, srcContext, ByteCount, hStream))
{
	return copy_peer(hStream, dstDevice, dstContext, srcDevice, srcContext, ByteCount, false);
}

WITHOUT_STREAM(cuMemcpyHtoD_v2, cuMemcpyHtoD_v2_ptds,
               (CUdeviceptr dstDevice, const void *srcHost, size_t ByteCount),
               (CUstream hStream, CUdeviceptr dstDevice, const void *srcHost, size_t ByteCount),
               (hStream, dstDevice, srcHost, ByteCount))
{
	return copy_bytes(hStream, dstDevice, (CUdeviceptr)srcHost, ByteCount, SIM_COPY_TO_DEVICE, true);
}

WITHOUT_STREAM(cuMemcpyDtoH_v2, cuMemcpyDtoH_v2_ptds,
               (void *dstHost, CUdeviceptr srcDevice, size_t ByteCount),
               (CUstream hStream, void *dstHost, CUdeviceptr srcDevice, size_t ByteCount),
               (hStream, dstHost, srcDevice, ByteCount))
{
	return copy_bytes(hStream, (CUdeviceptr)dstHost, srcDevice, ByteCount, SIM_COPY_TO_HOST, true);
}

WITHOUT_STREAM(cuMemcpyDtoD_v2, cuMemcpyDtoD_v2_ptds,
               (CUdeviceptr dstDevice, CUdeviceptr srcDevice, size_t ByteCount),
               (CUstream hStream, CUdeviceptr dstDevice, CUdeviceptr srcDevice, size_t ByteCount),
               (hStream, dstDevice, srcDevice, ByteCount))
{
	return copy_bytes(hStream, dstDevice, srcDevice, ByteCount, SIM_COPY_ON_DEVICE, true);
}

WITH_STREAM(cuMemcpyHtoDAsync_v2, cuMemcpyHtoDAsync_v2_ptsz,
            (CUdeviceptr dstDevice, const void *srcHost, size_t ByteCount, CUstream hStream),
            (dstDevice, srcHost, ByteCount, hStream))
{
	return copy_bytes(hStream, dstDevice, (CUdeviceptr)srcHost, ByteCount, SIM_COPY_TO_DEVICE, false);
}

WITH_STREAM(cuMemcpyDtoHAsync_v2, cuMemcpyDtoHAsync_v2_ptsz,
            (void *dstHost, CUdeviceptr srcDevice, size_t ByteCount, CUstream hStream),
            (dstHost, srcDevice, ByteCount, hStream))
{
	return copy_bytes(hStream, (CUdeviceptr)dstHost, srcDevice, ByteCount, SIM_COPY_TO_HOST, false);
}

WITH_STREAM(cuMemcpyDtoDAsync_v2, cuMemcpyDtoDAsync_v2_ptsz,
            (CUdeviceptr dstDevice, CUdeviceptr srcDevice, size_t ByteCount, CUstream hStream),
            (dstDevice, srcDevice, ByteCount, hStream))
{
	return copy_bytes(hStream, dstDevice, srcDevice, ByteCount, SIM_COPY_ON_DEVICE, false);
}

/* -- sets -------------------------------------------------------------------------------------- */

static CUresult set_elements(CUstream hStream, CUdeviceptr to, size_t pitch, unsigned value, unsigned element,
                             size_t width, size_t rows, bool wait)
{
	struct sim_stream *stream = driver_stream(hStream);

	if (!stream)
		return CUDA_ERROR_INVALID_HANDLE;
	return driver_result(sim_set(stream, to, pitch, value, element, width, rows, wait));
}

#define SET(symbol, symbol_async, type, element) \
	WITHOUT_STREAM(symbol##_v2, symbol##_v2_ptds, (CUdeviceptr to, type value, size_t n), \
	               (CUstream hStream, CUdeviceptr to, type value, size_t n), (hStream, to, value, n)) \
	{ \
		return set_elements(hStream, to, 0, value, element, n, 1, true); \
	} \
	WITH_STREAM(symbol_async, symbol_async##_ptsz, \
	            (CUdeviceptr to, type value, size_t n, CUstream hStream), (to, value, n, hStream)) \
	{ \
		return set_elements(hStream, to, 0, value, element, n, 1, false); \
	}
#define SET_2D(symbol, symbol_async, type, element) \
	WITHOUT_STREAM( \
	    symbol##_v2, symbol##_v2_ptds, \
	    (CUdeviceptr to, size_t pitch, type value, size_t width, size_t height), \
	    (CUstream hStream, CUdeviceptr to, size_t pitch, type value, size_t width, size_t height), \
	    (hStream, to, pitch, value, width, height)) \
	{ \
		return set_elements(hStream, to, pitch, value, element, width, height, true); \
	} \
	WITH_STREAM( \
	    symbol_async, symbol_async##_ptsz, \
	    (CUdeviceptr to, size_t pitch, type value, size_t width, size_t height, CUstream hStream), \
	    (to, pitch, value, width, height, hStream)) \
	{ \
		return set_elements(hStream, to, pitch, value, element, width, height, false); \
	}

SET(cuMemsetD8, cuMemsetD8Async, unsigned char, 1)
SET(cuMemsetD16, cuMemsetD16Async, unsigned short, 2)
SET(cuMemsetD32, cuMemsetD32Async, unsigned int, 4)
SET_2D(cuMemsetD2D8, cuMemsetD2D8Async, unsigned char, 1)
SET_2D(cuMemsetD2D16, cuMemsetD2D16Async, unsigned short, 2)
SET_2D(cuMemsetD2D32, cuMemsetD2D32Async, unsigned int, 4)
