/* Stream capture and graphs. Handles are the driver's. */
#include "cudart_entry.h"

#define CONTEXT(name) \
	CUcontext name = NULL; \
	do { \
		CUresult current_result = CU(cuCtxGetCurrent, &name); \
		if (current_result) \
			return cudart_return(current_result); \
	} while (0)

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, enum cudaStreamCaptureMode mode)
{
	CUDART_ENTER(enter);
	return cudart_return(CU(cuStreamBeginCapture, stream, (CUstreamCaptureMode)mode));
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *pGraph)
{
	CUDART_ENTER(enter);
	return cudart_return(CU(cuStreamEndCapture, stream, pGraph));
}

cudaError_t cudaStreamIsCapturing(cudaStream_t stream, enum cudaStreamCaptureStatus *pCaptureStatus)
{
	CUDART_ENTER(enter);
	return cudart_return(CU(cuStreamIsCapturing, stream, (CUstreamCaptureStatus *)pCaptureStatus));
}

cudaError_t cudaStreamGetCaptureInfo(cudaStream_t stream, enum cudaStreamCaptureStatus *captureStatus_out,
                                     unsigned long long *id_out, cudaGraph_t *graph_out,
                                     const cudaGraphNode_t **dependencies_out,
                                     const cudaGraphEdgeData **edgeData_out, size_t *numDependencies_out)
{
	cuuint64_t id = 0;

	CUDART_ENTER(enter);
	CUresult result = CU(cuStreamGetCaptureInfo, stream, (CUstreamCaptureStatus *)captureStatus_out, &id,
	                     graph_out, (const CUgraphNode **)dependencies_out,
	                     (const CUgraphEdgeData **)edgeData_out, numDependencies_out);
	if (!result && id_out && id)
		*id_out = id;
	return cudart_return(result);
}

cudaError_t cudaThreadExchangeStreamCaptureMode(enum cudaStreamCaptureMode *mode)
{
	CUDART_ENTER(init);
	return cudart_return(CU(cuThreadExchangeStreamCaptureMode, (CUstreamCaptureMode *)mode));
}

cudaError_t cudaGraphCreate(cudaGraph_t *pGraph, unsigned int flags)
{
	CUDART_ENTER(enter);
	return cudart_return(CU(cuGraphCreate, pGraph, flags));
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph)
{
	CUDART_ENTER(enter);
	return cudart_return(CU(cuGraphDestroy, graph));
}

cudaError_t cudaGraphAddKernelNode(cudaGraphNode_t *pGraphNode, cudaGraph_t graph,
                                   const cudaGraphNode_t *pDependencies, size_t numDependencies,
                                   const struct cudaKernelNodeParams *pNodeParams)
{
	CUDART_ENTER(enter);
	if (!pNodeParams)
		return cudart_leave(cudaErrorInvalidValue);
	CUDA_KERNEL_NODE_PARAMS_v2 kernel = {
	    .kern = pNodeParams->func,
	    .gridDimX = pNodeParams->gridDim.x,
	    .gridDimY = pNodeParams->gridDim.y,
	    .gridDimZ = pNodeParams->gridDim.z,
	    .blockDimX = pNodeParams->blockDim.x,
	    .blockDimY = pNodeParams->blockDim.y,
	    .blockDimZ = pNodeParams->blockDim.z,
	    .sharedMemBytes = pNodeParams->sharedMemBytes,
	    .kernelParams = pNodeParams->kernelParams,
	    .extra = pNodeParams->extra,
	};
	return cudart_return(
	    CU(cuGraphAddKernelNode, pGraphNode, graph, pDependencies, numDependencies, &kernel));
}

/* The driver finds both sides by address, whatever the direction. */
cudaError_t cudaGraphAddMemcpyNode1D(cudaGraphNode_t *pGraphNode, cudaGraph_t graph,
                                     const cudaGraphNode_t *pDependencies, size_t numDependencies, void *dst,
                                     const void *src, size_t count, enum cudaMemcpyKind kind)
{
	CUDA_MEMCPY3D_v2 copy = {
	    .srcMemoryType = CU_MEMORYTYPE_UNIFIED,
	    .srcDevice = cudart_address(src),
	    .dstMemoryType = CU_MEMORYTYPE_UNIFIED,
	    .dstDevice = cudart_address(dst),
	    .WidthInBytes = count,
	    .Height = 1,
	    .Depth = 1,
	};

	CUDART_ENTER(enter);
	if ((unsigned)kind > cudaMemcpyDefault)
		return cudart_leave(cudaErrorInvalidMemcpyDirection);
	CONTEXT(context);
	return cudart_return(
	    CU(cuGraphAddMemcpyNode, pGraphNode, graph, pDependencies, numDependencies, &copy, context));
}

cudaError_t cudaGraphAddMemsetNode(cudaGraphNode_t *pGraphNode, cudaGraph_t graph,
                                   const cudaGraphNode_t *pDependencies, size_t numDependencies,
                                   const struct cudaMemsetParams *pMemsetParams)
{
	CUDART_ENTER(enter);
	if (!pMemsetParams)
		return cudart_leave(cudaErrorInvalidValue);
	CUDA_MEMSET_NODE_PARAMS_v1 set = {
	    .dst = cudart_address(pMemsetParams->dst),
	    .pitch = pMemsetParams->pitch,
	    .value = pMemsetParams->value,
	    .elementSize = pMemsetParams->elementSize,
	    .width = pMemsetParams->width,
	    .height = pMemsetParams->height,
	};
	CONTEXT(context);
	return cudart_return(
	    CU(cuGraphAddMemsetNode, pGraphNode, graph, pDependencies, numDependencies, &set, context));
}

/* The runtime's parameters have the driver's layout. */
cudaError_t cudaGraphAddMemAllocNode(cudaGraphNode_t *pGraphNode, cudaGraph_t graph,
                                     const cudaGraphNode_t *pDependencies, size_t numDependencies,
                                     struct cudaMemAllocNodeParams *nodeParams)
{
	CUDART_ENTER(enter);
	return cudart_return(CU(cuGraphAddMemAllocNode, pGraphNode, graph, pDependencies, numDependencies,
	                        (CUDA_MEM_ALLOC_NODE_PARAMS *)nodeParams));
}

cudaError_t cudaGraphAddMemFreeNode(cudaGraphNode_t *pGraphNode, cudaGraph_t graph,
                                    const cudaGraphNode_t *pDependencies, size_t numDependencies, void *dptr)
{
	CUDART_ENTER(enter);
	return cudart_return(CU(cuGraphAddMemFreeNode, pGraphNode, graph, pDependencies, numDependencies,
	                        cudart_address(dptr)));
}

cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t *nodes, size_t *numNodes)
{
	CUDART_ENTER(enter);
	return cudart_return(CU(cuGraphGetNodes, graph, nodes, numNodes));
}

cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t *pGraphExec, cudaGraph_t graph,
                                          unsigned long long flags)
{
	CUDART_ENTER(enter);
	return cudart_return(CU(cuGraphInstantiateWithFlags, pGraphExec, graph, flags));
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t *pGraphExec, cudaGraph_t graph, unsigned long long flags)
{
	return cudaGraphInstantiateWithFlags(pGraphExec, graph, flags);
}

cudaError_t cudaGraphUpload(cudaGraphExec_t graphExec, cudaStream_t stream)
{
	CUDART_ENTER(enter);
	return cudart_return(CU(cuGraphUpload, graphExec, stream));
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t graphExec, cudaStream_t stream)
{
	CUDART_ENTER(enter);
	return cudart_return(CU(cuGraphLaunch, graphExec, stream));
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t graphExec)
{
	CUDART_ENTER(enter);
	return cudart_return(CU(cuGraphExecDestroy, graphExec));
}

cudaError_t cudaDeviceGraphMemTrim(int device)
{
	CUdevice handle;

	CUDART_ENTER(init);
	cudaError_t error = cudart_device(device, &handle);
	return error ? cudart_leave(error) : cudart_return(CU(cuDeviceGraphMemTrim, handle));
}
