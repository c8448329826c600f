/* Nodes of graphs, and updates of executable ones. */
#include "hip_later_api.h"
#include "graph.h"
#include "hip_entry.h"

static hipError_t spot_of(hipGraph_t graph, const hipGraphNode_t *dependencies, size_t count,
                          struct sim_spot *spot)
{
	if (!hip_graph(graph) || (count && !dependencies))
		return hipErrorInvalidValue;
	*spot = (struct sim_spot){hip_graph(graph), (struct sim_node *const *)dependencies, count};
	return hipSuccess;
}

/* -- nodes with work: submitted as by a call, and caught on the way to the stream -------------- */

/* The parameters of a node of any type, by one name. */
struct params {
	const hipKernelNodeParams *kernel;
	const hipMemsetParams *set;
	const hipHostNodeParams *host;
	hipGraph_t child;
	void *to; /* of a copy */
	const void *from;
	size_t bytes;
};

/* The function is one of a module (GraphKernelNode::GetFunc in hip_graph_internal.hpp). */
static hipError_t submit_kernel(const hipKernelNodeParams *kernel)
{
	const struct sim_shape shape = {{kernel->gridDim.x, kernel->gridDim.y, kernel->gridDim.z},
	                                {kernel->blockDim.x, kernel->blockDim.y, kernel->blockDim.z},
	                                kernel->sharedMemBytes};

	return hip_launch(kernel->func, &shape, NULL, kernel->kernelParams, kernel->extra);
}

static hipError_t submit_set(const hipMemsetParams *set, struct sim_stream *on)
{
	if (set->elementSize != 1 && set->elementSize != 2 && set->elementSize != 4)
		return hipErrorInvalidValue;
	return hip_error(sim_set(on, hip_address(set->dst), set->pitch, set->value, set->elementSize,
	                         set->width, set->height, false));
}

static hipError_t submit(const struct params *params)
{
	struct sim_stream *on;
	hipError_t error = hip_stream(NULL, &on);

	if (error)
		return error;
	if (params->kernel)
		return submit_kernel(params->kernel);
	if (params->set)
		return submit_set(params->set, on);
	if (params->host)
		return params->host->fn
		           ? hip_error(sim_host_function(on, params->host->fn, params->host->userData))
		           : hipErrorInvalidValue;
	return hip_error(sim_copy(on, hip_address(params->to), hip_address(params->from), params->bytes,
	                          SIM_COPY_ANY, false));
}

static hipError_t add_node(const struct sim_spot *spot, const struct params *params, struct sim_node **out)
{
	if (params->child)
		return hip_error(sim_node_child(spot, hip_graph(params->child), out));
	sim_node_begin(spot);
	hipError_t error = submit(params);
	enum sim_status status = sim_node_end(out);
	return error ? error : hip_error(status);
}

static hipError_t add(hipGraphNode_t *out, hipGraph_t graph, const hipGraphNode_t *dependencies, size_t count,
                      const struct params *params)
{
	struct sim_node *made = NULL;
	struct sim_spot spot;

	if (!out)
		return hipErrorInvalidValue;
	hipError_t error = spot_of(graph, dependencies, count, &spot);
	if (!error)
		error = add_node(&spot, params, &made);
	if (!error)
		*out = (hipGraphNode_t)made;
	return error;
}

hipError_t hipGraphAddKernelNode(hipGraphNode_t *pGraphNode, hipGraph_t graph,
                                 const hipGraphNode_t *pDependencies, size_t numDependencies,
                                 const hipKernelNodeParams *pNodeParams)
{
	const struct params params = {.kernel = pNodeParams};

	HIP_ENTER();
	return hip_leave(pNodeParams && pNodeParams->func
	                     ? add(pGraphNode, graph, pDependencies, numDependencies, &params)
	                     : hipErrorInvalidValue);
}

hipError_t hipGraphAddMemcpyNode1D(hipGraphNode_t *pGraphNode, hipGraph_t graph,
                                   const hipGraphNode_t *pDependencies, size_t numDependencies, void *dst,
                                   const void *src, size_t count, hipMemcpyKind kind)
{
	const struct params params = {.to = dst, .from = src, .bytes = count};

	(void)kind; /* found by the addresses */
	HIP_ENTER();
	return hip_leave(dst && src && count ? add(pGraphNode, graph, pDependencies, numDependencies, &params)
	                                     : hipErrorInvalidValue);
}

hipError_t hipGraphAddMemsetNode(hipGraphNode_t *pGraphNode, hipGraph_t graph,
                                 const hipGraphNode_t *pDependencies, size_t numDependencies,
                                 const hipMemsetParams *pMemsetParams)
{
	const struct params params = {.set = pMemsetParams};

	HIP_ENTER();
	return hip_leave(pMemsetParams ? add(pGraphNode, graph, pDependencies, numDependencies, &params)
	                               : hipErrorInvalidValue);
}

hipError_t hipGraphAddHostNode(hipGraphNode_t *pGraphNode, hipGraph_t graph,
                               const hipGraphNode_t *pDependencies, size_t numDependencies,
                               const hipHostNodeParams *pNodeParams)
{
	const struct params params = {.host = pNodeParams};

	HIP_ENTER();
	return hip_leave(pNodeParams ? add(pGraphNode, graph, pDependencies, numDependencies, &params)
	                             : hipErrorInvalidValue);
}

hipError_t hipGraphAddChildGraphNode(hipGraphNode_t *pGraphNode, hipGraph_t graph,
                                     const hipGraphNode_t *pDependencies, size_t numDependencies,
                                     hipGraph_t childGraph)
{
	const struct params params = {.child = childGraph};

	HIP_ENTER();
	return hip_leave(childGraph ? add(pGraphNode, graph, pDependencies, numDependencies, &params)
	                            : hipErrorInvalidValue);
}

/* -- nodes and edges without work -------------------------------------------------------------- */

hipError_t hipGraphAddEmptyNode(hipGraphNode_t *pGraphNode, hipGraph_t graph,
                                const hipGraphNode_t *pDependencies, size_t numDependencies)
{
	struct sim_node *made;
	struct sim_spot spot;

	HIP_ENTER();
	HIP_TRY(pGraphNode ? spot_of(graph, pDependencies, numDependencies, &spot) : hipErrorInvalidValue);
	HIP_TRY(hip_error(sim_node_empty(&spot, &made)));
	*pGraphNode = (hipGraphNode_t)made;
	return hip_leave(hipSuccess);
}

hipError_t hipGraphAddDependencies(hipGraph_t graph, const hipGraphNode_t *from, const hipGraphNode_t *to,
                                   size_t numDependencies)
{
	enum sim_status status = SIM_OK;

	HIP_ENTER();
	HIP_TRY(hip_graph(graph) && (!numDependencies || (from && to)) ? hipSuccess : hipErrorInvalidValue);
	for (size_t i = 0; i < numDependencies && !status; i++)
		status =
		    sim_graph_edge(hip_graph(graph), (struct sim_node *)from[i], (struct sim_node *)to[i]);
	return hip_return(status);
}

/* -- memory nodes: ROCm 5.5 and later ---------------------------------------------------------- */

hipError_t hipGraphAddMemAllocNode(hipGraphNode_t *pGraphNode, hipGraph_t graph,
                                   const hipGraphNode_t *pDependencies, size_t numDependencies,
                                   struct hip_alloc_node_params *pNodeParams)
{
	struct sim_node *made;
	struct sim_spot spot;
	uint64_t address;

	HIP_ENTER();
	HIP_TRY(pGraphNode && pNodeParams ? spot_of(graph, pDependencies, numDependencies, &spot)
	                                  : hipErrorInvalidValue);
	const hipMemLocation *where = &pNodeParams->poolProps.location;
	HIP_TRY(pNodeParams->bytesize && pNodeParams->poolProps.allocType == hipMemAllocationTypePinned &&
	                where->type == hipMemLocationTypeDevice && hip_is_device(where->id)
	            ? hipSuccess
	            : hipErrorInvalidValue);
	HIP_TRY(hip_error(
	    sim_node_alloc(&spot, where->id, 1u << where->id, pNodeParams->bytesize, &address, &made)));
	pNodeParams->dptr = (void *)(uintptr_t)address;
	*pGraphNode = (hipGraphNode_t)made;
	return hip_leave(hipSuccess);
}

hipError_t hipGraphAddMemFreeNode(hipGraphNode_t *pGraphNode, hipGraph_t graph,
                                  const hipGraphNode_t *pDependencies, size_t numDependencies, void *dev_ptr)
{
	struct sim_node *made;
	struct sim_spot spot;

	HIP_ENTER();
	HIP_TRY(pGraphNode && dev_ptr ? spot_of(graph, pDependencies, numDependencies, &spot)
	                              : hipErrorInvalidValue);
	HIP_TRY(hip_error(sim_node_free(&spot, hip_address(dev_ptr), &made)));
	*pGraphNode = (hipGraphNode_t)made;
	return hip_leave(hipSuccess);
}

hipError_t hipGraphMemAllocNodeGetParams(hipGraphNode_t node, struct hip_alloc_node_params *pNodeParams)
{
	uint64_t address, bytes;
	int device;

	HIP_ENTER();
	HIP_TRY(node && pNodeParams ? hip_error(sim_node_memory((struct sim_node *)node, SIM_NODE_ALLOC,
	                                                        &address, &bytes, &device))
	                            : hipErrorInvalidValue);
	*pNodeParams = (struct hip_alloc_node_params){
	    .poolProps = {.allocType = hipMemAllocationTypePinned,
	                  .location = {hipMemLocationTypeDevice, device}},
	    .bytesize = bytes,
	    .dptr = (void *)(uintptr_t)address,
	};
	return hip_leave(hipSuccess);
}

hipError_t hipGraphMemFreeNodeGetParams(hipGraphNode_t node, void *dev_ptr)
{
	uint64_t address, bytes;
	int device;

	HIP_ENTER();
	HIP_TRY(node && dev_ptr ? hip_error(sim_node_memory((struct sim_node *)node, SIM_NODE_FREE, &address,
	                                                    &bytes, &device))
	                        : hipErrorInvalidValue);
	*(void **)dev_ptr = (void *)(uintptr_t)address;
	return hip_leave(hipSuccess);
}

/* -- updates ----------------------------------------------------------------------------------- */

hipError_t hipGraphExecUpdate(hipGraphExec_t hGraphExec, hipGraph_t hGraph, hipGraphNode_t *hErrorNode_out,
                              hipGraphExecUpdateResult *updateResult_out)
{
	bool fits;

	HIP_ENTER();
	HIP_TRY(hGraphExec && hip_graph(hGraph) && hErrorNode_out && updateResult_out ? hipSuccess
	                                                                              : hipErrorInvalidValue);
	hipError_t error =
	    hip_error(sim_exec_update((struct sim_exec *)hGraphExec, hip_graph(hGraph), &fits));
	*hErrorNode_out = NULL;
	*updateResult_out = error   ? hipGraphExecUpdateError
	                    : !fits ? hipGraphExecUpdateErrorTopologyChanged
	                            : hipGraphExecUpdateSuccess;
	return hip_leave(!error && !fits ? hipErrorGraphExecUpdateFailure : error);
}

/* A new node, made in a graph of its own, replaces the work of the node. */
static hipError_t replace(hipGraphExec_t exec, hipGraphNode_t node, const struct params *params)
{
	struct sim_spot spot = {0};
	struct sim_node *made;
	bool fits = false;

	if (!exec || !node)
		return hipErrorInvalidValue;
	hipError_t error = hip_error(sim_graph_create(&spot.graph));
	if (error)
		return error;
	error = add_node(&spot, params, &made);
	if (!error)
		error = hip_error(
		    sim_exec_replace((struct sim_exec *)exec, (struct sim_node *)node, spot.graph, &fits));
	sim_graph_destroy(spot.graph);
	return !error && !fits ? hipErrorInvalidValue : error;
}

hipError_t hipGraphExecKernelNodeSetParams(hipGraphExec_t hGraphExec, hipGraphNode_t node,
                                           const hipKernelNodeParams *pNodeParams)
{
	const struct params params = {.kernel = pNodeParams};

	HIP_ENTER();
	return hip_leave(pNodeParams && pNodeParams->func ? replace(hGraphExec, node, &params)
	                                                  : hipErrorInvalidValue);
}

hipError_t hipGraphExecMemcpyNodeSetParams1D(hipGraphExec_t hGraphExec, hipGraphNode_t node, void *dst,
                                             const void *src, size_t count, hipMemcpyKind kind)
{
	const struct params params = {.to = dst, .from = src, .bytes = count};

	(void)kind;
	HIP_ENTER();
	return hip_leave(dst && src && count ? replace(hGraphExec, node, &params) : hipErrorInvalidValue);
}

hipError_t hipGraphExecMemsetNodeSetParams(hipGraphExec_t hGraphExec, hipGraphNode_t node,
                                           const hipMemsetParams *pNodeParams)
{
	const struct params params = {.set = pNodeParams};

	HIP_ENTER();
	return hip_leave(pNodeParams ? replace(hGraphExec, node, &params) : hipErrorInvalidValue);
}

hipError_t hipGraphExecHostNodeSetParams(hipGraphExec_t hGraphExec, hipGraphNode_t node,
                                         const hipHostNodeParams *pNodeParams)
{
	const struct params params = {.host = pNodeParams};

	HIP_ENTER();
	return hip_leave(pNodeParams ? replace(hGraphExec, node, &params) : hipErrorInvalidValue);
}

hipError_t hipGraphExecChildGraphNodeSetParams(hipGraphExec_t hGraphExec, hipGraphNode_t node,
                                               hipGraph_t childGraph)
{
	const struct params params = {.child = childGraph};

	HIP_ENTER();
	return hip_leave(childGraph ? replace(hGraphExec, node, &params) : hipErrorInvalidValue);
}
