/* Batches of copies, and single copies with attributes. A batch runs in sequence, as it may. */
#include "cuda_entry.h"

/* Both refuse 0 and the legacy default stream as the stream (H200, driver 580.159). */
#define BY_HANDLE(symbol, per_thread, parameters, arguments) \
	static CUresult symbol##_body parameters; \
	CUresult symbol parameters \
	{ \
		ENTER(symbol, CONTEXT); \
		return symbol##_body arguments; \
	} \
	CUresult per_thread parameters \
	{ \
		ENTER(per_thread, CONTEXT); \
		return symbol##_body arguments; \
	} \
	static CUresult symbol##_body parameters

static CUresult stream_of(CUstream hStream, struct sim_stream **out)
{
	if (!hStream)
		return CUDA_ERROR_INVALID_VALUE;
	*out = driver_stream(hStream);
	if (!*out)
		return CUDA_ERROR_INVALID_HANDLE;
	return *out == sim_stream_default(driver_current()) ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

static bool order_good(CUmemcpySrcAccessOrder order)
{
	return order >= CU_MEMCPY_SRC_ACCESS_ORDER_STREAM && order <= CU_MEMCPY_SRC_ACCESS_ORDER_ANY;
}

static bool attributes_good(const CUmemcpyAttributes *attrs, const size_t *indices, size_t attributes,
                            size_t count)
{
	if (!attrs || !indices || !attributes || attributes > count || indices[0])
		return false;
	for (size_t i = 0; i < attributes; i++)
		if (!order_good(attrs[i].srcAccessOrder) || attrs[i].flags > 1 || indices[i] >= count ||
		    (i && indices[i] <= indices[i - 1]))
			return false;
	return true;
}

/* *failed: number of the bad copy, or SIZE_MAX. */
static CUresult submit_copies(CUstream hStream, const CUdeviceptr *to, const CUdeviceptr *from,
                              const size_t *sizes, size_t count, bool good, size_t *failed)
{
	struct sim_stream *stream;
	CUresult result = stream_of(hStream, &stream);

	*failed = SIZE_MAX;
	if (result)
		return result;
	if (!to || !from || !sizes || !count || !good)
		return CUDA_ERROR_INVALID_VALUE;
	for (size_t i = 0; i < count && !result; i++) {
		result = sizes[i]
		             ? driver_result(sim_copy(stream, to[i], from[i], sizes[i], SIM_COPY_ANY, false))
		             : CUDA_ERROR_INVALID_VALUE;
		if (result)
			*failed = i;
	}
	return result;
}

BY_HANDLE(cuMemcpyBatchAsync, cuMemcpyBatchAsync_ptsz,
          (CUdeviceptr * dsts, CUdeviceptr *srcs, size_t *sizes, size_t count, CUmemcpyAttributes *attrs,
           size_t *attrIdxs, size_t numAttrs, size_t *failIdx, CUstream hStream),
          (dsts, srcs, sizes, count, attrs, attrIdxs, numAttrs, failIdx, hStream))
{
	size_t failed;
	CUresult result = submit_copies(hStream, dsts, srcs, sizes, count,
	                                attributes_good(attrs, attrIdxs, numAttrs, count), &failed);

	if (failIdx && result)
		*failIdx = failed;
	return result;
}

BY_HANDLE(cuMemcpyBatchAsync_v2, cuMemcpyBatchAsync_v2_ptsz,
          (CUdeviceptr * dsts, CUdeviceptr *srcs, size_t *sizes, size_t count, CUmemcpyAttributes *attrs,
           size_t *attrIdxs, size_t numAttrs, CUstream hStream),
          (dsts, srcs, sizes, count, attrs, attrIdxs, numAttrs, hStream))
{
	size_t failed;

	return submit_copies(hStream, dsts, srcs, sizes, count,
	                     attributes_good(attrs, attrIdxs, numAttrs, count), &failed);
}

/* -- boxes ------------------------------------------------------------------------------------- */

/* Bytes of an array's element, or 1 without an array. 0: two arrays that do not match. */
static size_t element_of(const CUDA_MEMCPY3D_BATCH_OP *op)
{
	size_t from =
	    op->src.type == CU_MEMCPY_OPERAND_TYPE_ARRAY ? driver_array_element(op->src.op.array.array) : 0;
	size_t to =
	    op->dst.type == CU_MEMCPY_OPERAND_TYPE_ARRAY ? driver_array_element(op->dst.op.array.array) : 0;

	if (from && to)
		return from == to ? from : 0;
	return from ? from : to ? to : 1;
}

static CUresult box_of_operand(const CUmemcpy3DOperand *o, const CUextent3D *extent, size_t element,
                               struct sim_box *out)
{
	if (o->type == CU_MEMCPY_OPERAND_TYPE_ARRAY)
		return driver_array_box(o->op.array.array, o->op.array.offset.x * element,
		                        o->op.array.offset.y, o->op.array.offset.z, extent->width * element,
		                        extent->height, extent->depth, out);
	if (o->type != CU_MEMCPY_OPERAND_TYPE_POINTER ||
	    (o->op.ptr.rowLength && o->op.ptr.rowLength < extent->width) ||
	    (o->op.ptr.layerHeight && o->op.ptr.layerHeight < extent->height))
		return CUDA_ERROR_INVALID_VALUE;
	out->address = o->op.ptr.ptr;
	out->pitch = (o->op.ptr.rowLength ? o->op.ptr.rowLength : extent->width) * element;
	out->slice = (o->op.ptr.layerHeight ? o->op.ptr.layerHeight : extent->height) * out->pitch;
	return CUDA_SUCCESS;
}

static CUresult copy_op(struct sim_stream *stream, const CUDA_MEMCPY3D_BATCH_OP *op)
{
	const CUextent3D *extent = &op->extent;
	size_t element = element_of(op);
	struct sim_box to, from;

	if (!element || !extent->width || !extent->height || !extent->depth ||
	    !order_good(op->srcAccessOrder) || op->flags > 1)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult result = box_of_operand(&op->dst, extent, element, &to);
	if (!result)
		result = box_of_operand(&op->src, extent, element, &from);
	return result ? result
	              : driver_result(sim_copy_box(stream, &to, &from, extent->width * element,
	                                           extent->height, extent->depth, SIM_COPY_ANY, false));
}

static CUresult submit_boxes(CUstream hStream, const CUDA_MEMCPY3D_BATCH_OP *ops, size_t count,
                             unsigned long long flags, size_t *failed)
{
	struct sim_stream *stream;
	CUresult result = stream_of(hStream, &stream);

	*failed = SIZE_MAX;
	if (result)
		return result;
	if (!ops || !count || flags)
		return CUDA_ERROR_INVALID_VALUE;
	for (size_t i = 0; i < count && !result; i++)
		if ((result = copy_op(stream, &ops[i])))
			*failed = i;
	return result;
}

BY_HANDLE(cuMemcpy3DBatchAsync, cuMemcpy3DBatchAsync_ptsz,
          (size_t numOps, CUDA_MEMCPY3D_BATCH_OP *opList, size_t *failIdx, unsigned long long flags,
           CUstream hStream),
          (numOps, opList, failIdx, flags, hStream))
{
	size_t failed;
	CUresult result = submit_boxes(hStream, opList, numOps, flags, &failed);

	if (failIdx && result)
		*failIdx = failed;
	return result;
}

BY_HANDLE(cuMemcpy3DBatchAsync_v2, cuMemcpy3DBatchAsync_v2_ptsz,
          (size_t numOps, CUDA_MEMCPY3D_BATCH_OP *opList, unsigned long long flags, CUstream hStream),
          (numOps, opList, flags, hStream))
{
	size_t failed;

	return submit_boxes(hStream, opList, numOps, flags, &failed);
}

/* -- single copies with attributes, and decompression ------------------------------------------ */

WITH_STREAM(cuMemcpyWithAttributesAsync, cuMemcpyWithAttributesAsync_ptsz,
            (CUdeviceptr dst, CUdeviceptr src, size_t size, CUmemcpyAttributes *attr, CUstream hStream),
            (dst, src, size, attr, hStream))
{
	if (!driver_stream(hStream))
		return CUDA_ERROR_INVALID_HANDLE;
	if (!attr || !order_good(attr->srcAccessOrder) || attr->flags > 1)
		return CUDA_ERROR_INVALID_VALUE;
	return driver_result(sim_copy(driver_stream(hStream), dst, src, size, SIM_COPY_ANY, false));
}

WITH_STREAM(cuMemcpy3DWithAttributesAsync, cuMemcpy3DWithAttributesAsync_ptsz,
            (CUDA_MEMCPY3D_BATCH_OP * op, unsigned long long flags, CUstream hStream), (op, flags, hStream))
{
	if (!driver_stream(hStream))
		return CUDA_ERROR_INVALID_HANDLE;
	return op && !flags ? copy_op(driver_stream(hStream), op) : CUDA_ERROR_INVALID_VALUE;
}

/* No decompression here: CU_DEVICE_ATTRIBUTE_MEM_DECOMPRESS_ALGORITHM_MASK is 0. */
WITH_STREAM(cuMemBatchDecompressAsync, cuMemBatchDecompressAsync_ptsz,
            (CUmemDecompressParams * paramsArray, size_t count, unsigned int flags, size_t *errorIndex,
             CUstream hStream),
            (paramsArray, count, flags, errorIndex, hStream))
{
	if (!driver_stream(hStream))
		return CUDA_ERROR_INVALID_HANDLE;
	if (errorIndex)
		*errorIndex = SIZE_MAX;
	return paramsArray && count && !flags ? CUDA_ERROR_NOT_SUPPORTED : CUDA_ERROR_INVALID_VALUE;
}
