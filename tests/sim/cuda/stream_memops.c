/* Words that a stream writes or waits for. No device has the option for the first versions. */
#include "cuda_entry.h"

#define MOST 255

static CUresult read_memop(const CUstreamBatchMemOpParams *p, struct sim_word *out)
{
	const struct CUstreamMemOpValueParams_st *v = &p->waitValue;

	*out = (struct sim_word){.address = v->address, .value = v->value64};
	switch (p->operation) {
	case CU_STREAM_MEM_OP_WAIT_VALUE_64:
		out->wide = true; /* fall through */
	case CU_STREAM_MEM_OP_WAIT_VALUE_32:
		out->wait = true;
		out->condition = (enum sim_condition)v->flags;
		return v->flags & CU_STREAM_WAIT_VALUE_FLUSH ? CUDA_ERROR_NOT_SUPPORTED
		       : v->flags > CU_STREAM_WAIT_VALUE_NOR ? CUDA_ERROR_INVALID_VALUE
		                                             : CUDA_SUCCESS;
	case CU_STREAM_MEM_OP_WRITE_VALUE_64:
		out->wide = true; /* fall through */
	case CU_STREAM_MEM_OP_WRITE_VALUE_32:
		return v->flags ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
	case CU_STREAM_MEM_OP_FLUSH_REMOTE_WRITES:
		return CUDA_ERROR_NOT_SUPPORTED;
	default:
		return CUDA_ERROR_INVALID_VALUE;
	}
}

static CUresult submit_memops(CUstream hStream, const CUstreamBatchMemOpParams *params, unsigned count)
{
	struct sim_stream *stream = driver_stream(hStream);
	struct sim_word all[MOST];
	CUresult result = CUDA_SUCCESS;
	unsigned used = 0;

	if (!stream)
		return CUDA_ERROR_INVALID_HANDLE;
	if (count > MOST || (count && !params))
		return CUDA_ERROR_INVALID_VALUE;
	for (unsigned i = 0; i < count && !result; i++)
		/* Work here runs in order and is visible: a barrier has no effect. */
		if (params[i].operation == CU_STREAM_MEM_OP_BARRIER)
			result = params[i].memoryBarrier.flags > 1 ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
		else
			result = read_memop(&params[i], &all[used++]);
	return result ? result : driver_result(sim_words(stream, all, used));
}

static CUresult submit_memop(CUstream hStream, CUstreamBatchMemOpType operation, CUdeviceptr address,
                             uint64_t value, unsigned flags)
{
	CUstreamBatchMemOpParams params = {.operation = operation};

	params.waitValue.address = address;
	params.waitValue.value64 = value;
	params.waitValue.flags = flags;
	return submit_memops(hStream, &params, 1);
}

#define WORD(symbol, type, operation) \
	WITH_STREAM(symbol, symbol##_ptsz, \
	            (CUstream hStream, CUdeviceptr addr, type value, unsigned int flags), \
	            (hStream, addr, value, flags)) \
	{ \
		return CUDA_ERROR_NOT_SUPPORTED; \
	} \
	WITH_STREAM(symbol##_v2, symbol##_v2_ptsz, \
	            (CUstream hStream, CUdeviceptr addr, type value, unsigned int flags), \
	            (hStream, addr, value, flags)) \
	{ \
		return submit_memop(hStream, operation, addr, value, flags); \
	}

WORD(cuStreamWaitValue32, cuuint32_t, CU_STREAM_MEM_OP_WAIT_VALUE_32)
WORD(cuStreamWaitValue64, cuuint64_t, CU_STREAM_MEM_OP_WAIT_VALUE_64)
WORD(cuStreamWriteValue32, cuuint32_t, CU_STREAM_MEM_OP_WRITE_VALUE_32)
WORD(cuStreamWriteValue64, cuuint64_t, CU_STREAM_MEM_OP_WRITE_VALUE_64)

WITH_STREAM(cuStreamBatchMemOp, cuStreamBatchMemOp_ptsz,
            (CUstream hStream, unsigned int count, CUstreamBatchMemOpParams *paramArray, unsigned int flags),
            (hStream, count, paramArray, flags))
{
	return CUDA_ERROR_NOT_SUPPORTED;
}

WITH_STREAM(cuStreamBatchMemOp_v2, cuStreamBatchMemOp_v2_ptsz,
            (CUstream hStream, unsigned int count, CUstreamBatchMemOpParams *paramArray, unsigned int flags),
            (hStream, count, paramArray, flags))
{
	return flags ? CUDA_ERROR_INVALID_VALUE : submit_memops(hStream, paramArray, count);
}
