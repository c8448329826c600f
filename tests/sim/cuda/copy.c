/* Copies of rows and boxes, also with arrays. work.c copies bytes. */
#include "cuda_entry.h"

/* -- rows and boxes: a 2D copy is a box of one slice ------------------------------------------- */

/* One side of a copy, in bytes but for y and z. */
struct corner {
	CUmemorytype type;
	const void *host;
	CUdeviceptr device;
	CUarray array;
	size_t x, y, z, pitch, height;
};

static CUresult box_of(const struct corner *c, size_t width, size_t rows, size_t slices, struct sim_box *out)
{
	if (c->type == CU_MEMORYTYPE_ARRAY)
		return driver_array_box(c->array, c->x, c->y, c->z, width, rows, slices, out);
	if (c->type != CU_MEMORYTYPE_HOST && c->type != CU_MEMORYTYPE_DEVICE &&
	    c->type != CU_MEMORYTYPE_UNIFIED)
		return CUDA_ERROR_INVALID_VALUE;
	out->pitch = c->pitch ? c->pitch : width;
	out->slice = out->pitch * (c->height ? c->height : rows);
	out->address = c->type == CU_MEMORYTYPE_HOST ? (uint64_t)c->host : c->device;
	out->address += c->z * out->slice + c->y * out->pitch + c->x;
	/* CUDA Driver API, cuMemcpy3D. Seen on an H200 for a node of one slice. */
	if (c->height && c->y + rows > c->height)
		return CUDA_ERROR_INVALID_VALUE;
	return c->x + width > out->pitch ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

CUresult driver_copy_3d(struct sim_stream *stream, const CUDA_MEMCPY3D_v2 *c, bool wait)
{
	struct corner to = {.type = c->dstMemoryType,
	                    .host = c->dstHost,
	                    .device = c->dstDevice,
	                    .array = c->dstArray,
	                    .x = c->dstXInBytes,
	                    .y = c->dstY,
	                    .z = c->dstZ,
	                    .pitch = c->dstPitch,
	                    .height = c->dstHeight};
	struct corner from = {.type = c->srcMemoryType,
	                      .host = c->srcHost,
	                      .device = c->srcDevice,
	                      .array = c->srcArray,
	                      .x = c->srcXInBytes,
	                      .y = c->srcY,
	                      .z = c->srcZ,
	                      .pitch = c->srcPitch,
	                      .height = c->srcHeight};
	struct sim_box there, here;

	if (!stream)
		return CUDA_ERROR_INVALID_HANDLE;
	if (c->srcLOD || c->dstLOD)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult result = box_of(&to, c->WidthInBytes, c->Height, c->Depth, &there);
	if (!result)
		result = box_of(&from, c->WidthInBytes, c->Height, c->Depth, &here);
	return result ? result
	              : driver_result(sim_copy_box(stream, &there, &here, c->WidthInBytes, c->Height,
	                                           c->Depth, SIM_COPY_ANY, wait));
}

static CUresult copy_3d(CUstream hStream, const CUDA_MEMCPY3D_v2 *copy, bool wait)
{
	if (!driver_stream(hStream))
		return CUDA_ERROR_INVALID_HANDLE;
	return copy ? driver_copy_3d(driver_stream(hStream), copy, wait) : CUDA_ERROR_INVALID_VALUE;
}

static CUresult copy_2d(CUstream hStream, const CUDA_MEMCPY2D *c, bool wait)
{
	if (!driver_stream(hStream))
		return CUDA_ERROR_INVALID_HANDLE;
	if (!c)
		return CUDA_ERROR_INVALID_VALUE;
	CUDA_MEMCPY3D_v2 box = {.srcXInBytes = c->srcXInBytes,
	                        .srcY = c->srcY,
	                        .srcMemoryType = c->srcMemoryType,
	                        .srcHost = c->srcHost,
	                        .srcDevice = c->srcDevice,
	                        .srcArray = c->srcArray,
	                        .srcPitch = c->srcPitch,
	                        .dstXInBytes = c->dstXInBytes,
	                        .dstY = c->dstY,
	                        .dstMemoryType = c->dstMemoryType,
	                        .dstHost = c->dstHost,
	                        .dstDevice = c->dstDevice,
	                        .dstArray = c->dstArray,
	                        .dstPitch = c->dstPitch,
	                        .WidthInBytes = c->WidthInBytes,
	                        .Height = c->Height,
	                        .Depth = 1};
	return driver_copy_3d(driver_stream(hStream), &box, wait);
}

WITHOUT_STREAM(cuMemcpy2D_v2, cuMemcpy2D_v2_ptds, (const CUDA_MEMCPY2D *pCopy),
               (CUstream hStream, const CUDA_MEMCPY2D *pCopy), (hStream, pCopy))
{
	return copy_2d(hStream, pCopy, true);
}

WITHOUT_STREAM(cuMemcpy2DUnaligned_v2, cuMemcpy2DUnaligned_v2_ptds, (const CUDA_MEMCPY2D *pCopy),
               (CUstream hStream, const CUDA_MEMCPY2D *pCopy), (hStream, pCopy))
{
	return copy_2d(hStream, pCopy, true);
}

WITH_STREAM(cuMemcpy2DAsync_v2, cuMemcpy2DAsync_v2_ptsz, (const CUDA_MEMCPY2D *pCopy, CUstream hStream),
            (pCopy, hStream))
{
	return copy_2d(hStream, pCopy, false);
}

WITHOUT_STREAM(cuMemcpy3D_v2, cuMemcpy3D_v2_ptds, (const CUDA_MEMCPY3D_v2 *pCopy),
               (CUstream hStream, const CUDA_MEMCPY3D_v2 *pCopy), (hStream, pCopy))
{
	return copy_3d(hStream, pCopy, true);
}

WITH_STREAM(cuMemcpy3DAsync_v2, cuMemcpy3DAsync_v2_ptsz, (const CUDA_MEMCPY3D_v2 *pCopy, CUstream hStream),
            (pCopy, hStream))
{
	return copy_3d(hStream, pCopy, false);
}

/* A copy between contexts. Each side's context is only checked. */
static CUresult copy_peer(CUstream hStream, const CUDA_MEMCPY3D_PEER *c, bool wait)
{
	if (!c)
		return CUDA_ERROR_INVALID_VALUE;
	if ((c->srcMemoryType == CU_MEMORYTYPE_DEVICE &&
	     !sim_context_alive((struct sim_context *)c->srcContext)) ||
	    (c->dstMemoryType == CU_MEMORYTYPE_DEVICE &&
	     !sim_context_alive((struct sim_context *)c->dstContext)))
		return CUDA_ERROR_INVALID_CONTEXT;
	CUDA_MEMCPY3D_v2 box = {.srcXInBytes = c->srcXInBytes,
	                        .srcY = c->srcY,
	                        .srcZ = c->srcZ,
	                        .srcLOD = c->srcLOD,
	                        .srcMemoryType = c->srcMemoryType,
	                        .srcHost = c->srcHost,
	                        .srcDevice = c->srcDevice,
	                        .srcArray = c->srcArray,
	                        .srcPitch = c->srcPitch,
	                        .srcHeight = c->srcHeight,
	                        .dstXInBytes = c->dstXInBytes,
	                        .dstY = c->dstY,
	                        .dstZ = c->dstZ,
	                        .dstLOD = c->dstLOD,
	                        .dstMemoryType = c->dstMemoryType,
	                        .dstHost = c->dstHost,
	                        .dstDevice = c->dstDevice,
	                        .dstArray = c->dstArray,
	                        .dstPitch = c->dstPitch,
	                        .dstHeight = c->dstHeight,
	                        .WidthInBytes = c->WidthInBytes,
	                        .Height = c->Height,
	                        .Depth = c->Depth};
	return copy_3d(hStream, &box, wait);
}

WITHOUT_STREAM(cuMemcpy3DPeer, cuMemcpy3DPeer_ptds, (const CUDA_MEMCPY3D_PEER *pCopy),
               (CUstream hStream, const CUDA_MEMCPY3D_PEER *pCopy), (hStream, pCopy))
{
	return copy_peer(hStream, pCopy, true);
}

WITH_STREAM(cuMemcpy3DPeerAsync, cuMemcpy3DPeerAsync_ptsz,
            (const CUDA_MEMCPY3D_PEER *pCopy, CUstream hStream), (pCopy, hStream))
{
	return copy_peer(hStream, pCopy, false);
}

/* -- bytes of an array ------------------------------------------------------------------------- */

static struct corner in_array(CUarray array, size_t offset)
{
	return (struct corner){.type = CU_MEMORYTYPE_ARRAY, .array = array, .x = offset};
}

static struct corner in_memory(const void *host, CUdeviceptr device)
{
	return (struct corner){
	    .type = host ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE, .host = host, .device = device};
}

static CUresult copy_bytes(CUstream hStream, struct corner to, struct corner from, size_t bytes, bool wait)
{
	struct sim_box there, here;

	if (!driver_stream(hStream))
		return CUDA_ERROR_INVALID_HANDLE;
	CUresult result = box_of(&to, bytes, 1, 1, &there);
	if (!result)
		result = box_of(&from, bytes, 1, 1, &here);
	return result ? result
	              : driver_result(sim_copy_box(driver_stream(hStream), &there, &here, bytes, 1, 1,
	                                           SIM_COPY_ANY, wait));
}

WITHOUT_STREAM(cuMemcpyDtoA_v2, cuMemcpyDtoA_v2_ptds,
               (CUarray dstArray, size_t dstOffset, CUdeviceptr srcDevice, size_t ByteCount),
               (CUstream hStream, CUarray dstArray, size_t dstOffset, CUdeviceptr srcDevice,
                size_t ByteCount),
               (hStream, dstArray, dstOffset, srcDevice, ByteCount))
{
	return copy_bytes(hStream, in_array(dstArray, dstOffset), in_memory(NULL, srcDevice), ByteCount,
	                  true);
}

WITHOUT_STREAM(cuMemcpyAtoD_v2, cuMemcpyAtoD_v2_ptds,
               (CUdeviceptr dstDevice, CUarray srcArray, size_t srcOffset, size_t ByteCount),
               (CUstream hStream, CUdeviceptr dstDevice, CUarray srcArray, size_t srcOffset,
                size_t ByteCount),
               (hStream, dstDevice, srcArray, srcOffset, ByteCount))
{
	return copy_bytes(hStream, in_memory(NULL, dstDevice), in_array(srcArray, srcOffset), ByteCount,
	                  true);
}

WITHOUT_STREAM(cuMemcpyHtoA_v2, cuMemcpyHtoA_v2_ptds,
               (CUarray dstArray, size_t dstOffset, const void *srcHost, size_t ByteCount),
               (CUstream hStream, CUarray dstArray, size_t dstOffset, const void *srcHost, size_t ByteCount),
               (hStream, dstArray, dstOffset, srcHost, ByteCount))
{
	return copy_bytes(hStream, in_array(dstArray, dstOffset), in_memory(srcHost, 0), ByteCount, true);
}

WITHOUT_STREAM(cuMemcpyAtoH_v2, cuMemcpyAtoH_v2_ptds,
               (void *dstHost, CUarray srcArray, size_t srcOffset, size_t ByteCount),
               (CUstream hStream, void *dstHost, CUarray srcArray, size_t srcOffset, size_t ByteCount),
               (hStream, dstHost, srcArray, srcOffset, ByteCount))
{
	return copy_bytes(hStream, in_memory(dstHost, 0), in_array(srcArray, srcOffset), ByteCount, true);
}

WITHOUT_STREAM(cuMemcpyAtoA_v2, cuMemcpyAtoA_v2_ptds,
               (CUarray dstArray, size_t dstOffset, CUarray srcArray, size_t srcOffset, size_t ByteCount),
               (CUstream hStream, CUarray dstArray, size_t dstOffset, CUarray srcArray, size_t srcOffset,
                size_t ByteCount),
               (hStream, dstArray, dstOffset, srcArray, srcOffset, ByteCount))
{
	return copy_bytes(hStream, in_array(dstArray, dstOffset), in_array(srcArray, srcOffset), ByteCount,
	                  true);
}

WITH_STREAM(cuMemcpyHtoAAsync_v2, cuMemcpyHtoAAsync_v2_ptsz,
            (CUarray dstArray, size_t dstOffset, const void *srcHost, size_t ByteCount, CUstream hStream),
            (dstArray, dstOffset, srcHost, ByteCount, hStream))
{
	return copy_bytes(hStream, in_array(dstArray, dstOffset), in_memory(srcHost, 0), ByteCount, false);
}

WITH_STREAM(cuMemcpyAtoHAsync_v2, cuMemcpyAtoHAsync_v2_ptsz,
            (void *dstHost, CUarray srcArray, size_t srcOffset, size_t ByteCount, CUstream hStream),
            (dstHost, srcArray, srcOffset, ByteCount, hStream))
{
	return copy_bytes(hStream, in_memory(dstHost, 0), in_array(srcArray, srcOffset), ByteCount, false);
}
