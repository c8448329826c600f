/* Nodes of graphs, and updates of executable ones. Handles are the driver's. */
#include "cudart_entry.h"

#define CONTEXT(name) \
	CUcontext name = NULL; \
	do { \
		CUresult current_result = CU(cuCtxGetCurrent, &name); \
		if (current_result) \
			return cudart_return(current_result); \
	} while (0)

static CUDA_KERNEL_NODE_PARAMS_v2 kernel_params(const struct cudaKernelNodeParams *kernel)
{
	return (CUDA_KERNEL_NODE_PARAMS_v2){
	    .kern = kernel->func,
	    .gridDimX = kernel->gridDim.x,
	    .gridDimY = kernel->gridDim.y,
	    .gridDimZ = kernel->gridDim.z,
	    .blockDimX = kernel->blockDim.x,
	    .blockDimY = kernel->blockDim.y,
	    .blockDimZ = kernel->blockDim.z,
	    .sharedMemBytes = kernel->sharedMemBytes,
	    .kernelParams = kernel->kernelParams,
	    .extra = kernel->extra,
	};
}

/* The driver finds both sides by address, whatever the direction. */
static CUDA_MEMCPY3D_v2 copy_params(void *dst, const void *src, size_t count)
{
	return (CUDA_MEMCPY3D_v2){
	    .srcMemoryType = CU_MEMORYTYPE_UNIFIED,
	    .srcDevice = cudart_address(src),
	    .dstMemoryType = CU_MEMORYTYPE_UNIFIED,
	    .dstDevice = cudart_address(dst),
	    .WidthInBytes = count,
	    .Height = 1,
	    .Depth = 1,
	};
}

static CUDA_MEMSET_NODE_PARAMS_v1 set_params(const struct cudaMemsetParams *set)
{
	return (CUDA_MEMSET_NODE_PARAMS_v1){
	    .dst = cudart_address(set->dst),
	    .pitch = set->pitch,
	    .value = set->value,
	    .elementSize = set->elementSize,
	    .width = set->width,
	    .height = set->height,
	};
}

static CUDA_HOST_NODE_PARAMS_v1 host_params(const struct cudaHostNodeParams *host)
{
	return (CUDA_HOST_NODE_PARAMS_v1){host->fn, host->userData};
}

/* -- making ------------------------------------------------------------------------------------ */

cudaError_t cudaGraphAddKernelNode(cudaGraphNode_t *pGraphNode, cudaGraph_t graph,
                                   const cudaGraphNode_t *pDependencies, size_t numDependencies,
                                   const struct cudaKernelNodeParams *pNodeParams)
{
	CUDART_ENTER(enter);
	if (!pNodeParams)
		return cudart_leave(cudaErrorInvalidValue);
	const CUDA_KERNEL_NODE_PARAMS_v2 kernel = kernel_params(pNodeParams);
	return cudart_return(
	    CU(cuGraphAddKernelNode, pGraphNode, graph, pDependencies, numDependencies, &kernel));
}

cudaError_t cudaGraphAddMemcpyNode1D(cudaGraphNode_t *pGraphNode, cudaGraph_t graph,
                                     const cudaGraphNode_t *pDependencies, size_t numDependencies, void *dst,
                                     const void *src, size_t count, enum cudaMemcpyKind kind)
{
	const CUDA_MEMCPY3D_v2 copy = copy_params(dst, src, count);

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
	const CUDA_MEMSET_NODE_PARAMS_v1 set = set_params(pMemsetParams);
	CONTEXT(context);
	return cudart_return(
	    CU(cuGraphAddMemsetNode, pGraphNode, graph, pDependencies, numDependencies, &set, context));
}

cudaError_t cudaGraphAddHostNode(cudaGraphNode_t *pGraphNode, cudaGraph_t graph,
                                 const cudaGraphNode_t *pDependencies, size_t numDependencies,
                                 const struct cudaHostNodeParams *pNodeParams)
{
	CUDART_ENTER(enter);
	if (!pNodeParams)
		return cudart_leave(cudaErrorInvalidValue);
	const CUDA_HOST_NODE_PARAMS_v1 host = host_params(pNodeParams);
	return cudart_return(
	    CU(cuGraphAddHostNode, pGraphNode, graph, pDependencies, numDependencies, &host));
}

cudaError_t cudaGraphAddChildGraphNode(cudaGraphNode_t *pGraphNode, cudaGraph_t graph,
                                       const cudaGraphNode_t *pDependencies, size_t numDependencies,
                                       cudaGraph_t childGraph)
{
	CUDART_ENTER(enter);
	return cudart_return(
	    CU(cuGraphAddChildGraphNode, pGraphNode, graph, pDependencies, numDependencies, childGraph));
}

cudaError_t cudaGraphAddEmptyNode(cudaGraphNode_t *pGraphNode, cudaGraph_t graph,
                                  const cudaGraphNode_t *pDependencies, size_t numDependencies)
{
	CUDART_ENTER(enter);
	return cudart_return(CU(cuGraphAddEmptyNode, pGraphNode, graph, pDependencies, numDependencies));
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

cudaError_t cudaGraphAddDependencies(cudaGraph_t graph, const cudaGraphNode_t *from,
                                     const cudaGraphNode_t *to, const cudaGraphEdgeData *edgeData,
                                     size_t numDependencies)
{
	CUDART_ENTER(enter);
	return cudart_return(
	    CU(cuGraphAddDependencies, graph, from, to, (const CUgraphEdgeData *)edgeData, numDependencies));
}

/* -- updates ----------------------------------------------------------------------------------- */

/* The results have the driver's layout. */
cudaError_t cudaGraphExecUpdate(cudaGraphExec_t hGraphExec, cudaGraph_t hGraph,
                                cudaGraphExecUpdateResultInfo *resultInfo)
{
	CUDART_ENTER(enter);
	return cudart_return(
	    CU(cuGraphExecUpdate, hGraphExec, hGraph, (CUgraphExecUpdateResultInfo *)resultInfo));
}

cudaError_t cudaGraphExecKernelNodeSetParams(cudaGraphExec_t hGraphExec, cudaGraphNode_t node,
                                             const struct cudaKernelNodeParams *pNodeParams)
{
	CUDART_ENTER(enter);
	if (!pNodeParams)
		return cudart_leave(cudaErrorInvalidValue);
	const CUDA_KERNEL_NODE_PARAMS_v2 kernel = kernel_params(pNodeParams);
	return cudart_return(CU(cuGraphExecKernelNodeSetParams, hGraphExec, node, &kernel));
}

cudaError_t cudaGraphExecMemcpyNodeSetParams1D(cudaGraphExec_t hGraphExec, cudaGraphNode_t node, void *dst,
                                               const void *src, size_t count, enum cudaMemcpyKind kind)
{
	const CUDA_MEMCPY3D_v2 copy = copy_params(dst, src, count);

	CUDART_ENTER(enter);
	if ((unsigned)kind > cudaMemcpyDefault)
		return cudart_leave(cudaErrorInvalidMemcpyDirection);
	CONTEXT(context);
	return cudart_return(CU(cuGraphExecMemcpyNodeSetParams, hGraphExec, node, &copy, context));
}

cudaError_t cudaGraphExecMemsetNodeSetParams(cudaGraphExec_t hGraphExec, cudaGraphNode_t node,
                                             const struct cudaMemsetParams *pNodeParams)
{
	CUDART_ENTER(enter);
	if (!pNodeParams)
		return cudart_leave(cudaErrorInvalidValue);
	const CUDA_MEMSET_NODE_PARAMS_v1 set = set_params(pNodeParams);
	CONTEXT(context);
	return cudart_return(CU(cuGraphExecMemsetNodeSetParams, hGraphExec, node, &set, context));
}

cudaError_t cudaGraphExecHostNodeSetParams(cudaGraphExec_t hGraphExec, cudaGraphNode_t node,
                                           const struct cudaHostNodeParams *pNodeParams)
{
	CUDART_ENTER(enter);
	if (!pNodeParams)
		return cudart_leave(cudaErrorInvalidValue);
	const CUDA_HOST_NODE_PARAMS_v1 host = host_params(pNodeParams);
	return cudart_return(CU(cuGraphExecHostNodeSetParams, hGraphExec, node, &host));
}

cudaError_t cudaGraphExecChildGraphNodeSetParams(cudaGraphExec_t hGraphExec, cudaGraphNode_t node,
                                                 cudaGraph_t childGraph)
{
	CUDART_ENTER(enter);
	return cudart_return(CU(cuGraphExecChildGraphNodeSetParams, hGraphExec, node, childGraph));
}
