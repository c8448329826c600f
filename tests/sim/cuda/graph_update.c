/* Parameters of nodes, and updates of executable graphs. Parameters of arrays are not reported. */
#include <string.h>

#include "cuda_entry.h"

/* -- queries ----------------------------------------------------------------------------------- */

CUresult cuGraphMemcpyNodeGetParams(CUgraphNode hNode, CUDA_MEMCPY3D_v2 *nodeParams)
{
	struct sim_box_node found;

	ENTER(cuGraphMemcpyNodeGetParams, INIT);
	if (!nodeParams || sim_node_box((struct sim_node *)hNode, SIM_NODE_COPY, &found))
		return CUDA_ERROR_INVALID_VALUE;
	*nodeParams = (CUDA_MEMCPY3D_v2){
	    .srcMemoryType = found.from_host ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE,
	    .srcHost = found.from_host ? (const void *)found.from.address : NULL,
	    .srcDevice = found.from_host ? 0 : found.from.address,
	    .srcPitch = found.from.pitch,
	    .srcHeight = found.from.slice / found.from.pitch,
	    .dstMemoryType = found.to_host ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE,
	    .dstHost = found.to_host ? (void *)found.to.address : NULL,
	    .dstDevice = found.to_host ? 0 : found.to.address,
	    .dstPitch = found.to.pitch,
	    .dstHeight = found.to.slice / found.to.pitch,
	    .WidthInBytes = found.width,
	    .Height = found.rows,
	    .Depth = found.slices,
	};
	return CUDA_SUCCESS;
}

CUresult cuGraphMemsetNodeGetParams(CUgraphNode hNode, CUDA_MEMSET_NODE_PARAMS_v1 *nodeParams)
{
	struct sim_box_node found;

	ENTER(cuGraphMemsetNodeGetParams, INIT);
	if (!nodeParams || sim_node_box((struct sim_node *)hNode, SIM_NODE_SET, &found))
		return CUDA_ERROR_INVALID_VALUE;
	*nodeParams = (CUDA_MEMSET_NODE_PARAMS_v1){.dst = found.to.address,
	                                           .pitch = found.to.pitch,
	                                           .value = found.value,
	                                           .elementSize = found.element,
	                                           .width = found.width,
	                                           .height = found.rows};
	return CUDA_SUCCESS;
}

CUresult cuGraphChildGraphNodeGetGraph(CUgraphNode hNode, CUgraph *phGraph)
{
	struct sim_graph *found;

	ENTER(cuGraphChildGraphNodeGetGraph, INIT);
	if (!phGraph || sim_node_graph((struct sim_node *)hNode, &found))
		return CUDA_ERROR_INVALID_VALUE;
	*phGraph = (CUgraph)found;
	return CUDA_SUCCESS;
}

/* -- updates of a whole graph ------------------------------------------------------------------ */

static CUresult update_whole(CUgraphExec exec, CUgraph graph, CUgraphExecUpdateResult *why)
{
	bool fits;
	CUresult result =
	    driver_result(sim_exec_update((struct sim_exec *)exec, (struct sim_graph *)graph, &fits));

	*why = result  ? CU_GRAPH_EXEC_UPDATE_ERROR
	       : !fits ? CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED
	               : CU_GRAPH_EXEC_UPDATE_SUCCESS;
	return !result && !fits ? CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE : result;
}

CUresult cuGraphExecUpdate(CUgraphExec hGraphExec, CUgraph hGraph, CUgraphNode *hErrorNode_out,
                           CUgraphExecUpdateResult *updateResult_out)
{
	CUgraphExecUpdateResult why;

	ENTER(cuGraphExecUpdate, INIT);
	CUresult result = update_whole(hGraphExec, hGraph, &why);
	if (hErrorNode_out)
		*hErrorNode_out = NULL;
	if (updateResult_out)
		*updateResult_out = why;
	return result;
}

CUresult cuGraphExecUpdate_v2(CUgraphExec hGraphExec, CUgraph hGraph, CUgraphExecUpdateResultInfo *resultInfo)
{
	CUgraphExecUpdateResult why;

	ENTER(cuGraphExecUpdate_v2, INIT);
	CUresult result = update_whole(hGraphExec, hGraph, &why);
	if (resultInfo)
		*resultInfo = (CUgraphExecUpdateResultInfo){.result = why};
	return result;
}

/* -- updates of one node: a new node, made in a graph of its own, replaces its work ------------ */

static CUresult replace_node(CUgraphExec exec, CUgraphNode node, CUgraphNodeParams *params)
{
	struct sim_spot spot = {0};
	CUgraphNode made;
	bool fits = false;
	CUresult result = driver_result(sim_graph_create(&spot.graph));

	if (result)
		return result;
	result = driver_graph_node(&made, &spot, params);
	if (!result)
		result = driver_result(
		    sim_exec_replace((struct sim_exec *)exec, (struct sim_node *)node, spot.graph, &fits));
	sim_graph_destroy(spot.graph);
	return !result && !fits ? CUDA_ERROR_INVALID_VALUE : result;
}

static CUresult replace_by(CUgraphExec exec, CUgraphNode node, enum sim_node_type type, const void *in,
                           size_t bytes)
{
	CUgraphNodeParams params = {.type = (CUgraphNodeType)type};

	memcpy(params.reserved1, in, bytes);
	return replace_node(exec, node, &params);
}

CUresult cuGraphExecKernelNodeSetParams_v2(CUgraphExec hGraphExec, CUgraphNode hNode,
                                           const CUDA_KERNEL_NODE_PARAMS_v2 *nodeParams)
{
	ENTER(cuGraphExecKernelNodeSetParams_v2, CONTEXT);
	return nodeParams ? replace_by(hGraphExec, hNode, SIM_NODE_KERNEL, nodeParams, sizeof(*nodeParams))
	                  : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuGraphExecKernelNodeSetParams(CUgraphExec hGraphExec, CUgraphNode hNode,
                                        const CUDA_KERNEL_NODE_PARAMS_v1 *nodeParams)
{
	ENTER(cuGraphExecKernelNodeSetParams, CONTEXT);
	return nodeParams ? replace_by(hGraphExec, hNode, SIM_NODE_KERNEL, nodeParams, sizeof(*nodeParams))
	                  : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuGraphExecMemcpyNodeSetParams(CUgraphExec hGraphExec, CUgraphNode hNode,
                                        const CUDA_MEMCPY3D_v2 *copyParams, CUcontext ctx)
{
	CUDA_MEMCPY_NODE_PARAMS copy = {.copyCtx = ctx};

	ENTER(cuGraphExecMemcpyNodeSetParams, CONTEXT);
	if (!copyParams)
		return CUDA_ERROR_INVALID_VALUE;
	copy.copyParams = *copyParams;
	return replace_by(hGraphExec, hNode, SIM_NODE_COPY, &copy, sizeof(copy));
}

CUresult cuGraphExecMemsetNodeSetParams(CUgraphExec hGraphExec, CUgraphNode hNode,
                                        const CUDA_MEMSET_NODE_PARAMS_v1 *memsetParams, CUcontext ctx)
{
	CUDA_MEMSET_NODE_PARAMS_v2 set = {.ctx = ctx};

	ENTER(cuGraphExecMemsetNodeSetParams, CONTEXT);
	if (!memsetParams)
		return CUDA_ERROR_INVALID_VALUE;
	memcpy(&set, memsetParams, sizeof(*memsetParams));
	set.ctx = ctx;
	return replace_by(hGraphExec, hNode, SIM_NODE_SET, &set, sizeof(set));
}

/* Flags are not kept, because none has an effect here. */
CUresult cuGraphExecGetFlags(CUgraphExec hGraphExec, cuuint64_t *flags)
{
	ENTER(cuGraphExecGetFlags, INIT);
	if (!hGraphExec || !flags)
		return CUDA_ERROR_INVALID_VALUE;
	*flags = 0;
	return CUDA_SUCCESS;
}

/* Nothing makes such objects here. */
CUresult cuGraphRetainUserObject(CUgraph graph, CUuserObject object, unsigned int count, unsigned int flags)
{
	ENTER(cuGraphRetainUserObject, INIT);
	return CUDA_ERROR_INVALID_VALUE;
}

CUresult cuGraphNodeSetEnabled(CUgraphExec hGraphExec, CUgraphNode hNode, unsigned int isEnabled)
{
	ENTER(cuGraphNodeSetEnabled, INIT);
	return driver_result(
	    sim_exec_enable((struct sim_exec *)hGraphExec, (const struct sim_node *)hNode, isEnabled));
}

CUresult cuGraphExecHostNodeSetParams(CUgraphExec hGraphExec, CUgraphNode hNode,
                                      const CUDA_HOST_NODE_PARAMS_v1 *nodeParams)
{
	ENTER(cuGraphExecHostNodeSetParams, CONTEXT);
	return nodeParams ? replace_by(hGraphExec, hNode, SIM_NODE_HOST, nodeParams, sizeof(*nodeParams))
	                  : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuGraphExecChildGraphNodeSetParams(CUgraphExec hGraphExec, CUgraphNode hNode, CUgraph childGraph)
{
	ENTER(cuGraphExecChildGraphNodeSetParams, INIT);
	return replace_by(hGraphExec, hNode, SIM_NODE_CHILD, &childGraph, sizeof(childGraph));
}

CUresult cuGraphExecNodeSetParams(CUgraphExec hGraphExec, CUgraphNode hNode, CUgraphNodeParams *nodeParams)
{
	ENTER(cuGraphExecNodeSetParams, CONTEXT);
	return nodeParams ? replace_node(hGraphExec, hNode, nodeParams) : CUDA_ERROR_INVALID_VALUE;
}
