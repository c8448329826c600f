/* Graphs: made by capture, or with memory nodes and empty ones; instantiated and launched. */
#include <string.h>

#include "hip_later_api.h"
#include "graph.h"
#include "hip_entry.h"

static struct sim_graph *graph_of(hipGraph_t graph)
{
	struct sim_graph *found = (struct sim_graph *)graph;

	return found && sim_graph_alive(found) ? found : NULL;
}

static hipError_t spot_of(hipGraph_t graph, const hipGraphNode_t *dependencies, size_t count,
                          struct sim_spot *spot)
{
	if (!graph_of(graph) || (count && !dependencies))
		return hipErrorInvalidValue;
	*spot = (struct sim_spot){graph_of(graph), (struct sim_node *const *)dependencies, count};
	return hipSuccess;
}

hipError_t hipGraphCreate(hipGraph_t *pGraph, unsigned int flags)
{
	struct sim_graph *made;

	HIP_ENTER();
	HIP_TRY(pGraph && !flags ? hip_error(sim_graph_create(&made)) : hipErrorInvalidValue);
	*pGraph = (hipGraph_t)made;
	return hip_leave(hipSuccess);
}

hipError_t hipGraphDestroy(hipGraph_t graph)
{
	HIP_ENTER();
	HIP_TRY(graph ? hipSuccess : hipErrorInvalidValue);
	return graph_of(graph) ? hip_return(sim_graph_destroy(graph_of(graph)))
	                       : hip_leave(hipErrorIllegalState);
}

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

static hipError_t instantiate_graph(hipGraphExec_t *out, hipGraph_t graph, unsigned long long flags)
{
	struct sim_exec *made;

	if (!out || !graph_of(graph) || flags & ~(unsigned long long)hipGraphInstantiateFlagAutoFreeOnLaunch)
		return hipErrorInvalidValue;
	hipError_t error = hip_error(sim_graph_instantiate(graph_of(graph), flags, &made));
	if (!error)
		*out = (hipGraphExec_t)made;
	return error;
}

hipError_t hipGraphInstantiate(hipGraphExec_t *pGraphExec, hipGraph_t graph, hipGraphNode_t *pErrorNode,
                               char *pLogBuffer, size_t bufferSize)
{
	(void)pErrorNode, (void)pLogBuffer, (void)bufferSize; /* the vendor also leaves them unchanged */
	HIP_ENTER();
	return hip_leave(instantiate_graph(pGraphExec, graph, 0));
}

hipError_t hipGraphInstantiateWithFlags(hipGraphExec_t *pGraphExec, hipGraph_t graph,
                                        unsigned long long flags)
{
	HIP_ENTER();
	return hip_leave(instantiate_graph(pGraphExec, graph, flags));
}

hipError_t hipGraphExecDestroy(hipGraphExec_t graphExec)
{
	HIP_ENTER();
	HIP_TRY(graphExec ? hipSuccess : hipErrorInvalidValue);
	return hip_return(sim_exec_destroy((struct sim_exec *)graphExec));
}

static hipError_t launch_exec(hipGraphExec_t exec, hipStream_t stream, bool upload)
{
	struct sim_stream *on;

	if (!exec)
		return hipErrorInvalidValue;
	hipError_t error = hip_stream(stream, &on);
	if (error)
		return error == hipErrorInvalidHandle ? hipErrorInvalidValue : error;
	return hip_error(upload ? sim_exec_upload((struct sim_exec *)exec, on)
	                        : sim_exec_launch((struct sim_exec *)exec, on));
}

hipError_t hipGraphLaunch(hipGraphExec_t graphExec, hipStream_t stream)
{
	HIP_ENTER();
	return hip_leave(launch_exec(graphExec, stream, false));
}

hipError_t hipGraphLaunch_spt(hipGraphExec_t graphExec, hipStream_t stream)
{
	HIP_ENTER();
	return hip_leave(launch_exec(graphExec, stream ? stream : hipStreamPerThread, false));
}

hipError_t hipGraphUpload(hipGraphExec_t graphExec, hipStream_t stream)
{
	HIP_ENTER();
	return hip_leave(launch_exec(graphExec, stream, true));
}

hipError_t hipGraphGetNodes(hipGraph_t graph, hipGraphNode_t *nodes, size_t *numNodes)
{
	size_t room, count;

	HIP_ENTER();
	HIP_TRY(graph_of(graph) && numNodes ? hipSuccess : hipErrorInvalidValue);
	room = nodes ? *numNodes : 0;
	HIP_TRY(hip_error(sim_graph_nodes(graph_of(graph), (struct sim_node **)nodes, room, &count)));
	for (size_t i = count; i < room; i++)
		nodes[i] = NULL;
	*numNodes = nodes && room < count ? room : count;
	return hip_leave(hipSuccess);
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

hipError_t hipDeviceGraphMemTrim(int device)
{
	HIP_ENTER();
	HIP_TRY(hip_is_device(device) ? hipSuccess : hipErrorInvalidDevice);
	sim_graph_trim(device);
	return hip_leave(hipSuccess);
}
