/* Streams and events. The driver knows the runtime's special streams: NULL, legacy, per thread. */
#include "cudart_entry.h"

cudaError_t cudaStreamCreateWithPriority(cudaStream_t *pStream, unsigned int flags, int priority)
{
	CUDART_ENTER(enter);
	if (!pStream)
		return cudart_leave(cudaErrorInvalidValue);
	return cudart_return(CU(cuStreamCreateWithPriority, pStream, flags, priority));
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *pStream, unsigned int flags)
{
	return cudaStreamCreateWithPriority(pStream, flags, 0);
}

cudaError_t cudaStreamCreate(cudaStream_t *pStream)
{
	return cudaStreamCreateWithPriority(pStream, cudaStreamDefault, 0);
}

cudaError_t cudaStreamDestroy(cudaStream_t stream)
{
	CUDART_ENTER(enter);
	return cudart_return(CU(cuStreamDestroy, stream));
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream)
{
	CUDART_ENTER(enter);
	return cudart_return(CU(cuStreamSynchronize, stream));
}

cudaError_t cudaStreamQuery(cudaStream_t stream)
{
	CUDART_ENTER(enter);
	return cudart_return(CU(cuStreamQuery, stream));
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned int flags)
{
	CUDART_ENTER(enter);
	return cudart_return(CU(cuStreamWaitEvent, stream, event, flags));
}

cudaError_t cudaStreamGetFlags(cudaStream_t hStream, unsigned int *flags)
{
	CUDART_ENTER(enter);
	return cudart_return(CU(cuStreamGetFlags, hStream, flags));
}

cudaError_t cudaStreamGetPriority(cudaStream_t hStream, int *priority)
{
	CUDART_ENTER(enter);
	return cudart_return(CU(cuStreamGetPriority, hStream, priority));
}

cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t fn, void *userData)
{
	CUDART_ENTER(enter);
	return cudart_return(CU(cuLaunchHostFunc, stream, fn, userData));
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned int flags)
{
	CUDART_ENTER(enter);
	if (!event)
		return cudart_leave(cudaErrorInvalidValue);
	return cudart_return(CU(cuEventCreate, event, flags));
}

cudaError_t cudaEventCreate(cudaEvent_t *event)
{
	return cudaEventCreateWithFlags(event, cudaEventDefault);
}

cudaError_t cudaEventDestroy(cudaEvent_t event)
{
	CUDART_ENTER(enter);
	return cudart_return(CU(cuEventDestroy, event));
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream)
{
	CUDART_ENTER(enter);
	return cudart_return(CU(cuEventRecord, event, stream));
}

cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned int flags)
{
	CUDART_ENTER(enter);
	return cudart_return(CU(cuEventRecordWithFlags, event, stream, flags));
}

cudaError_t cudaEventQuery(cudaEvent_t event)
{
	CUDART_ENTER(enter);
	return cudart_return(CU(cuEventQuery, event));
}

cudaError_t cudaEventSynchronize(cudaEvent_t event)
{
	CUDART_ENTER(enter);
	return cudart_return(CU(cuEventSynchronize, event));
}

cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t start, cudaEvent_t end)
{
	CUDART_ENTER(enter);
	return cudart_return(CU(cuEventElapsedTime, ms, start, end));
}
