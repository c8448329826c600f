/* For programs built with --default-stream per-thread: NULL is the calling thread's own stream. */
#include "cudart_entry.h"

static cudaStream_t own_stream(cudaStream_t stream)
{
	return stream ? stream : cudaStreamPerThread;
}

#define PER_THREAD(name, variant, params, call) \
	__attribute__((visibility("default"))) cudaError_t name##_##variant params; \
	cudaError_t name##_##variant params \
	{ \
		return call; \
	}

PER_THREAD(cudaMemcpyAsync, ptsz,
           (void *dst, const void *src, size_t count, enum cudaMemcpyKind kind, cudaStream_t stream),
           cudaMemcpyAsync(dst, src, count, kind, own_stream(stream)))
PER_THREAD(cudaMemsetAsync, ptsz, (void *devPtr, int value, size_t count, cudaStream_t stream),
           cudaMemsetAsync(devPtr, value, count, own_stream(stream)))
PER_THREAD(cudaMallocAsync, ptsz, (void **devPtr, size_t size, cudaStream_t stream),
           cudaMallocAsync(devPtr, size, own_stream(stream)))
PER_THREAD(cudaMallocFromPoolAsync, ptsz,
           (void **ptr, size_t size, cudaMemPool_t memPool, cudaStream_t stream),
           cudaMallocFromPoolAsync(ptr, size, memPool, own_stream(stream)))
PER_THREAD(cudaMemcpy2DAsync, ptsz,
           (void *dst, size_t dpitch, const void *src, size_t spitch, size_t width, size_t height,
            enum cudaMemcpyKind kind, cudaStream_t stream),
           cudaMemcpy2DAsync(dst, dpitch, src, spitch, width, height, kind, own_stream(stream)))
PER_THREAD(cudaFreeAsync, ptsz, (void *devPtr, cudaStream_t stream),
           cudaFreeAsync(devPtr, own_stream(stream)))
PER_THREAD(cudaStreamSynchronize, ptsz, (cudaStream_t stream), cudaStreamSynchronize(own_stream(stream)))
PER_THREAD(cudaStreamQuery, ptsz, (cudaStream_t stream), cudaStreamQuery(own_stream(stream)))
PER_THREAD(cudaStreamWaitEvent, ptsz, (cudaStream_t stream, cudaEvent_t event, unsigned int flags),
           cudaStreamWaitEvent(own_stream(stream), event, flags))
PER_THREAD(cudaEventRecord, ptsz, (cudaEvent_t event, cudaStream_t stream),
           cudaEventRecord(event, own_stream(stream)))
PER_THREAD(cudaLaunchHostFunc, ptsz, (cudaStream_t stream, cudaHostFn_t fn, void *userData),
           cudaLaunchHostFunc(own_stream(stream), fn, userData))
PER_THREAD(cudaLaunchKernel, ptsz,
           (const void *func, dim3 gridDim, dim3 blockDim, void **args, size_t sharedMem,
            cudaStream_t stream),
           cudaLaunchKernel(func, gridDim, blockDim, args, sharedMem, own_stream(stream)))
PER_THREAD(cudaMemPrefetchAsync, ptsz,
           (const void *devPtr, size_t count, struct cudaMemLocation location, unsigned int flags,
            cudaStream_t stream),
           cudaMemPrefetchAsync(devPtr, count, location, flags, own_stream(stream)))

PER_THREAD(cudaStreamBeginCapture, ptsz, (cudaStream_t stream, enum cudaStreamCaptureMode mode),
           cudaStreamBeginCapture(own_stream(stream), mode))
PER_THREAD(cudaStreamEndCapture, ptsz, (cudaStream_t stream, cudaGraph_t *pGraph),
           cudaStreamEndCapture(own_stream(stream), pGraph))
PER_THREAD(cudaStreamIsCapturing, ptsz, (cudaStream_t stream, enum cudaStreamCaptureStatus *status),
           cudaStreamIsCapturing(own_stream(stream), status))
PER_THREAD(cudaStreamGetCaptureInfo, ptsz,
           (cudaStream_t stream, enum cudaStreamCaptureStatus *status, unsigned long long *id,
            cudaGraph_t *graph, const cudaGraphNode_t **nodes, const cudaGraphEdgeData **data, size_t *count),
           cudaStreamGetCaptureInfo(own_stream(stream), status, id, graph, nodes, data, count))
PER_THREAD(cudaGraphUpload, ptsz, (cudaGraphExec_t exec, cudaStream_t stream),
           cudaGraphUpload(exec, own_stream(stream)))
PER_THREAD(cudaGraphLaunch, ptsz, (cudaGraphExec_t exec, cudaStream_t stream),
           cudaGraphLaunch(exec, own_stream(stream)))

/*
 * Synchronous calls have a per-thread variant, too. It is in order on that stream and done at
 * return. A set of device memory is not waited for, as by the vendor.
 */
static cudaError_t wait_done(cudaError_t error)
{
	return error ? error : cudaStreamSynchronize(cudaStreamPerThread);
}

PER_THREAD(cudaMemcpy, ptds, (void *dst, const void *src, size_t count, enum cudaMemcpyKind kind),
           wait_done(cudaMemcpyAsync(dst, src, count, kind, cudaStreamPerThread)))
PER_THREAD(cudaMemset, ptds, (void *devPtr, int value, size_t count),
           cudaMemsetAsync(devPtr, value, count, cudaStreamPerThread))
