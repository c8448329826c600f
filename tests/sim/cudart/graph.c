/* Stream capture and graphs; graph_nodes.c has their nodes. Handles are the driver's. */
#include "cudart_entry.h"

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
