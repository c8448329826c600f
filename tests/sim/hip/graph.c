/* Graphs: made, instantiated and launched. graph_nodes.c has their nodes. */
#include <string.h>

#include "hip_later_api.h"
#include "graph.h"
#include "hip_entry.h"

struct sim_graph *hip_graph(hipGraph_t graph)
{
	struct sim_graph *found = (struct sim_graph *)graph;

	return found && sim_graph_alive(found) ? found : NULL;
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
	return hip_graph(graph) ? hip_return(sim_graph_destroy(hip_graph(graph)))
	                        : hip_leave(hipErrorIllegalState);
}

static hipError_t instantiate_graph(hipGraphExec_t *out, hipGraph_t graph, unsigned long long flags)
{
	struct sim_exec *made;

	if (!out || !hip_graph(graph) || flags & ~(unsigned long long)hipGraphInstantiateFlagAutoFreeOnLaunch)
		return hipErrorInvalidValue;
	hipError_t error = hip_error(sim_graph_instantiate(hip_graph(graph), flags, &made));
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
	HIP_TRY(hip_graph(graph) && numNodes ? hipSuccess : hipErrorInvalidValue);
	room = nodes ? *numNodes : 0;
	HIP_TRY(hip_error(sim_graph_nodes(hip_graph(graph), (struct sim_node **)nodes, room, &count)));
	for (size_t i = count; i < room; i++)
		nodes[i] = NULL;
	*numNodes = nodes && room < count ? room : count;
	return hip_leave(hipSuccess);
}

hipError_t hipDeviceGraphMemTrim(int device)
{
	HIP_ENTER();
	HIP_TRY(hip_is_device(device) ? hipSuccess : hipErrorInvalidDevice);
	sim_graph_trim(device);
	return hip_leave(hipSuccess);
}
