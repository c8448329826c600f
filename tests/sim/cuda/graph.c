/* Building and launching graphs; graph_update.c changes them. Edges have no data here. */
#include <string.h>

#include "cuda_entry.h"

#define SPOT \
	struct sim_spot spot = {(struct sim_graph *)hGraph, (struct sim_node *const *)dependencies, \
	                        numDependencies}

static CUresult return_node(CUgraphNode *out, enum sim_status status, struct sim_node *node)
{
	if (!status)
		*out = (CUgraphNode)node;
	return driver_result(status);
}

CUresult cuGraphCreate(CUgraph *phGraph, unsigned int flags)
{
	struct sim_graph *graph;

	ENTER(cuGraphCreate, INIT);
	if (!phGraph || flags)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult result = driver_result(sim_graph_create(&graph));
	if (!result)
		*phGraph = (CUgraph)graph;
	return result;
}

CUresult cuGraphDestroy(CUgraph hGraph)
{
	ENTER(cuGraphDestroy, INIT);
	return driver_result(sim_graph_destroy((struct sim_graph *)hGraph));
}

/* -- nodes with work: submitted as by a call, and caught on the way to the stream -------------- */

static CUresult return_caught_node(CUgraphNode *out, CUresult result)
{
	struct sim_node *node = NULL;
	enum sim_status status = sim_node_end(&node);

	return result ? result : return_node(out, status, node);
}

static CUresult add_kernel(CUgraphNode *out, const struct sim_spot *spot, const CUDA_KERNEL_NODE_PARAMS_v2 *k)
{
	const struct sim_shape shape = {{k->gridDimX, k->gridDimY, k->gridDimZ},
	                                {k->blockDimX, k->blockDimY, k->blockDimZ},
	                                k->sharedMemBytes};
	const void *function = k->func ? (const void *)k->func : k->kern;

	sim_node_begin(spot);
	return return_caught_node(
	    out, driver_launch(function, &shape, CU_STREAM_LEGACY, k->kernelParams, k->extra));
}

CUresult cuGraphAddKernelNode_v2(CUgraphNode *phGraphNode, CUgraph hGraph, const CUgraphNode *dependencies,
                                 size_t numDependencies, const CUDA_KERNEL_NODE_PARAMS_v2 *nodeParams)
{
	SPOT;

	ENTER(cuGraphAddKernelNode_v2, CONTEXT);
	return phGraphNode && nodeParams ? add_kernel(phGraphNode, &spot, nodeParams)
	                                 : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuGraphAddKernelNode(CUgraphNode *phGraphNode, CUgraph hGraph, const CUgraphNode *dependencies,
                              size_t numDependencies, const CUDA_KERNEL_NODE_PARAMS_v1 *nodeParams)
{
	CUDA_KERNEL_NODE_PARAMS_v2 kernel = {0};
	SPOT;

	ENTER(cuGraphAddKernelNode, CONTEXT);
	if (!phGraphNode || !nodeParams)
		return CUDA_ERROR_INVALID_VALUE;
	memcpy(&kernel, nodeParams, sizeof(*nodeParams));
	return add_kernel(phGraphNode, &spot, &kernel);
}

static struct sim_stream *stream_in(CUcontext context)
{
	return sim_stream_default(context ? (struct sim_context *)context : driver_current());
}

/* Rows of one plane only, without arrays and depth. */
static CUresult add_copy(CUgraphNode *out, const struct sim_spot *spot, const CUDA_MEMCPY3D_v2 *c,
                         CUcontext context)
{
	struct sim_stream *stream = stream_in(context);

	if (!stream)
		return CUDA_ERROR_INVALID_CONTEXT;
	sim_node_begin(spot);
	return return_caught_node(out, driver_copy_3d(stream, c, false));
}

CUresult cuGraphAddMemcpyNode(CUgraphNode *phGraphNode, CUgraph hGraph, const CUgraphNode *dependencies,
                              size_t numDependencies, const CUDA_MEMCPY3D_v2 *copyParams, CUcontext ctx)
{
	SPOT;

	ENTER(cuGraphAddMemcpyNode, CONTEXT);
	return phGraphNode && copyParams ? add_copy(phGraphNode, &spot, copyParams, ctx)
	                                 : CUDA_ERROR_INVALID_VALUE;
}

static CUresult add_set(CUgraphNode *out, const struct sim_spot *spot, const CUDA_MEMSET_NODE_PARAMS_v1 *s,
                        CUcontext context)
{
	struct sim_stream *stream = stream_in(context);

	if (!stream)
		return CUDA_ERROR_INVALID_CONTEXT;
	if (s->elementSize != 1 && s->elementSize != 2 && s->elementSize != 4)
		return CUDA_ERROR_INVALID_VALUE;
	sim_node_begin(spot);
	return return_caught_node(out, driver_result(sim_set(stream, s->dst, s->pitch, s->value,
	                                                     s->elementSize, s->width, s->height, false)));
}

CUresult cuGraphAddMemsetNode(CUgraphNode *phGraphNode, CUgraph hGraph, const CUgraphNode *dependencies,
                              size_t numDependencies, const CUDA_MEMSET_NODE_PARAMS_v1 *memsetParams,
                              CUcontext ctx)
{
	SPOT;

	ENTER(cuGraphAddMemsetNode, CONTEXT);
	return phGraphNode && memsetParams ? add_set(phGraphNode, &spot, memsetParams, ctx)
	                                   : CUDA_ERROR_INVALID_VALUE;
}

static CUresult add_host(CUgraphNode *out, const struct sim_spot *spot, const CUDA_HOST_NODE_PARAMS_v1 *host)
{
	if (!host->fn)
		return CUDA_ERROR_INVALID_VALUE;
	sim_node_begin(spot);
	return return_caught_node(
	    out, driver_result(sim_host_function(stream_in(NULL), host->fn, host->userData)));
}

CUresult cuGraphAddHostNode(CUgraphNode *phGraphNode, CUgraph hGraph, const CUgraphNode *dependencies,
                            size_t numDependencies, const CUDA_HOST_NODE_PARAMS_v1 *nodeParams)
{
	SPOT;

	ENTER(cuGraphAddHostNode, CONTEXT);
	return phGraphNode && nodeParams ? add_host(phGraphNode, &spot, nodeParams)
	                                 : CUDA_ERROR_INVALID_VALUE;
}

/* -- other nodes ------------------------------------------------------------------------------- */

static CUresult add_empty(CUgraphNode *out, const struct sim_spot *spot)
{
	struct sim_node *node = NULL;
	enum sim_status status = sim_node_empty(spot, &node);

	return return_node(out, status, node);
}

CUresult cuGraphAddEmptyNode(CUgraphNode *phGraphNode, CUgraph hGraph, const CUgraphNode *dependencies,
                             size_t numDependencies)
{
	SPOT;

	ENTER(cuGraphAddEmptyNode, INIT);
	return phGraphNode ? add_empty(phGraphNode, &spot) : CUDA_ERROR_INVALID_VALUE;
}

static CUresult add_child(CUgraphNode *out, const struct sim_spot *spot, CUgraph child)
{
	struct sim_node *node = NULL;
	enum sim_status status = sim_node_child(spot, (struct sim_graph *)child, &node);

	return return_node(out, status, node);
}

CUresult cuGraphAddChildGraphNode(CUgraphNode *phGraphNode, CUgraph hGraph, const CUgraphNode *dependencies,
                                  size_t numDependencies, CUgraph childGraph)
{
	SPOT;

	ENTER(cuGraphAddChildGraphNode, INIT);
	return phGraphNode ? add_child(phGraphNode, &spot, childGraph) : CUDA_ERROR_INVALID_VALUE;
}

static CUresult add_event(CUgraphNode *out, const struct sim_spot *spot, enum sim_node_type type,
                          CUevent event)
{
	struct sim_node *node = NULL;
	enum sim_status status = sim_node_event(spot, type, (struct sim_event *)event, &node);

	return return_node(out, status, node);
}

CUresult cuGraphAddEventRecordNode(CUgraphNode *phGraphNode, CUgraph hGraph, const CUgraphNode *dependencies,
                                   size_t numDependencies, CUevent event)
{
	SPOT;

	ENTER(cuGraphAddEventRecordNode, CONTEXT);
	return phGraphNode ? add_event(phGraphNode, &spot, SIM_NODE_RECORD, event) : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuGraphAddEventWaitNode(CUgraphNode *phGraphNode, CUgraph hGraph, const CUgraphNode *dependencies,
                                 size_t numDependencies, CUevent event)
{
	SPOT;

	ENTER(cuGraphAddEventWaitNode, CONTEXT);
	return phGraphNode ? add_event(phGraphNode, &spot, SIM_NODE_WAIT, event) : CUDA_ERROR_INVALID_VALUE;
}

/* An H200 accepts pinned or managed memory of a device. It refuses exports and host memory. */
static CUresult props_good(const CUmemPoolProps *props)
{
	if (props->location.type == CU_MEM_LOCATION_TYPE_HOST ||
	    props->location.type == CU_MEM_LOCATION_TYPE_HOST_NUMA ||
	    props->handleTypes != CU_MEM_HANDLE_TYPE_NONE)
		return (unsigned)props->allocType - 1 < 2 ? CUDA_ERROR_NOT_SUPPORTED
		                                          : CUDA_ERROR_INVALID_VALUE;
	if (props->location.type != CU_MEM_LOCATION_TYPE_DEVICE)
		return (int)props->allocType == 2 ? CUDA_ERROR_NOT_SUPPORTED : CUDA_ERROR_INVALID_VALUE;
	return (unsigned)props->allocType - 1 < 2 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static CUresult add_alloc(CUgraphNode *out, const struct sim_spot *spot, CUDA_MEM_ALLOC_NODE_PARAMS *params)
{
	CUresult result = props_good(&params->poolProps);
	unsigned devices = 0;
	struct sim_node *node = NULL;
	uint64_t address;

	for (size_t i = 0; i < params->accessDescCount && !result; i++) {
		CUmemLocation place = params->accessDescs[i].location;

		if (place.type != CU_MEM_LOCATION_TYPE_DEVICE || !driver_device(place.id))
			result = CUDA_ERROR_INVALID_VALUE;
		else
			devices |= 1u << place.id;
	}
	if (result)
		return result;
	enum sim_status status =
	    sim_node_alloc(spot, params->poolProps.location.id, devices, params->bytesize, &address, &node);
	result = return_node(out, status, node);
	if (!result)
		params->dptr = address;
	return result;
}

CUresult cuGraphAddMemAllocNode(CUgraphNode *phGraphNode, CUgraph hGraph, const CUgraphNode *dependencies,
                                size_t numDependencies, CUDA_MEM_ALLOC_NODE_PARAMS *nodeParams)
{
	SPOT;

	ENTER(cuGraphAddMemAllocNode, CONTEXT);
	return phGraphNode && nodeParams ? add_alloc(phGraphNode, &spot, nodeParams)
	                                 : CUDA_ERROR_INVALID_VALUE;
}

static CUresult add_free(CUgraphNode *out, const struct sim_spot *spot, CUdeviceptr dptr)
{
	struct sim_node *node = NULL;
	enum sim_status status = sim_node_free(spot, dptr, &node);

	return return_node(out, status, node);
}

CUresult cuGraphAddMemFreeNode(CUgraphNode *phGraphNode, CUgraph hGraph, const CUgraphNode *dependencies,
                               size_t numDependencies, CUdeviceptr dptr)
{
	SPOT;

	ENTER(cuGraphAddMemFreeNode, CONTEXT);
	return phGraphNode ? add_free(phGraphNode, &spot, dptr) : CUDA_ERROR_INVALID_VALUE;
}

/* The parameters of each type begin at the start of the union. */
CUresult driver_graph_node(CUgraphNode *out, const struct sim_spot *spot, CUgraphNodeParams *params)
{
	void *in = params->reserved1;
	const CUDA_MEMCPY_NODE_PARAMS *copy = in;
	const CUDA_MEMSET_NODE_PARAMS_v2 *set = in;

	switch ((int)params->type) {
	case SIM_NODE_KERNEL:
		return add_kernel(out, spot, in);
	case SIM_NODE_COPY:
		return add_copy(out, spot, &copy->copyParams, copy->copyCtx);
	case SIM_NODE_SET:
		return add_set(out, spot, in, set->ctx);
	case SIM_NODE_HOST:
		return add_host(out, spot, in);
	case SIM_NODE_CHILD:
		return add_child(out, spot, *(CUgraph *)in);
	case SIM_NODE_EMPTY:
		return add_empty(out, spot);
	case SIM_NODE_WAIT:
	case SIM_NODE_RECORD:
		return add_event(out, spot, (enum sim_node_type)params->type, *(CUevent *)in);
	case SIM_NODE_ALLOC:
		return add_alloc(out, spot, &params->alloc);
	case SIM_NODE_FREE:
		return add_free(out, spot, params->free.dptr);
	default:
		return CUDA_ERROR_NOT_SUPPORTED;
	}
}

CUresult cuGraphAddNode(CUgraphNode *phGraphNode, CUgraph hGraph, const CUgraphNode *dependencies,
                        size_t numDependencies, CUgraphNodeParams *nodeParams)
{
	SPOT;

	ENTER(cuGraphAddNode, CONTEXT);
	return phGraphNode && nodeParams ? driver_graph_node(phGraphNode, &spot, nodeParams)
	                                 : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuGraphAddNode_v2(CUgraphNode *phGraphNode, CUgraph hGraph, const CUgraphNode *dependencies,
                           const CUgraphEdgeData *dependencyData, size_t numDependencies,
                           CUgraphNodeParams *nodeParams)
{
	SPOT;

	ENTER(cuGraphAddNode_v2, CONTEXT);
	return phGraphNode && nodeParams ? driver_graph_node(phGraphNode, &spot, nodeParams)
	                                 : CUDA_ERROR_INVALID_VALUE;
}

/* -- edges and queries ------------------------------------------------------------------------- */

static CUresult add_edges(CUgraph graph, const CUgraphNode *from, const CUgraphNode *to, size_t count)
{
	enum sim_status status =
	    sim_graph_alive((struct sim_graph *)graph) && (!count || (from && to)) ? SIM_OK : SIM_INVALID;

	for (size_t i = 0; i < count && !status; i++)
		status = sim_graph_edge((struct sim_graph *)graph, (struct sim_node *)from[i],
		                        (struct sim_node *)to[i]);
	return driver_result(status);
}

CUresult cuGraphAddDependencies(CUgraph hGraph, const CUgraphNode *from, const CUgraphNode *to,
                                size_t numDependencies)
{
	ENTER(cuGraphAddDependencies, INIT);
	return add_edges(hGraph, from, to, numDependencies);
}

CUresult cuGraphAddDependencies_v2(CUgraph hGraph, const CUgraphNode *from, const CUgraphNode *to,
                                   const CUgraphEdgeData *edgeData, size_t numDependencies)
{
	ENTER(cuGraphAddDependencies_v2, INIT);
	return add_edges(hGraph, from, to, numDependencies);
}

/* Without lists, gives the total count. Else gives the count in the lists and clears the rest. */
static CUresult fill_lists(enum sim_status status, size_t count, size_t *room, void **first, void **second)
{
	if (status || (first && !*room))
		return CUDA_ERROR_INVALID_VALUE;
	for (size_t i = count; first && i < *room; i++) {
		first[i] = NULL;
		if (second)
			second[i] = NULL;
	}
	if (!first || count < *room)
		*room = count;
	return CUDA_SUCCESS;
}

CUresult cuGraphGetNodes(CUgraph hGraph, CUgraphNode *nodes, size_t *numNodes)
{
	size_t count = 0;

	ENTER(cuGraphGetNodes, INIT);
	if (!numNodes)
		return CUDA_ERROR_INVALID_VALUE;
	enum sim_status status = sim_graph_nodes((struct sim_graph *)hGraph, (struct sim_node **)nodes,
	                                         nodes ? *numNodes : 0, &count);
	return fill_lists(status, count, numNodes, (void **)nodes, NULL);
}

static CUresult get_edges(CUgraph graph, CUgraphNode *from, CUgraphNode *to, CUgraphEdgeData *data,
                          size_t *room)
{
	size_t count = 0;

	if (!room || !from != !to || (data && !from))
		return CUDA_ERROR_INVALID_VALUE;
	enum sim_status status = sim_graph_edges((struct sim_graph *)graph, (struct sim_node **)from,
	                                         (struct sim_node **)to, from ? *room : 0, &count);
	if (data)
		memset(data, 0, *room * sizeof(*data));
	return fill_lists(status, count, room, (void **)from, (void **)to);
}

CUresult cuGraphGetEdges(CUgraph hGraph, CUgraphNode *from, CUgraphNode *to, size_t *numEdges)
{
	ENTER(cuGraphGetEdges, INIT);
	return get_edges(hGraph, from, to, NULL, numEdges);
}

CUresult cuGraphGetEdges_v2(CUgraph hGraph, CUgraphNode *from, CUgraphNode *to, CUgraphEdgeData *edgeData,
                            size_t *numEdges)
{
	ENTER(cuGraphGetEdges_v2, INIT);
	return get_edges(hGraph, from, to, edgeData, numEdges);
}

CUresult cuGraphNodeGetType(CUgraphNode hNode, CUgraphNodeType *type)
{
	enum sim_node_type found;

	ENTER(cuGraphNodeGetType, INIT);
	CUresult result =
	    type ? driver_result(sim_node_about((struct sim_node *)hNode, &found)) : CUDA_ERROR_INVALID_VALUE;
	if (!result)
		*type = (CUgraphNodeType)found;
	return result;
}

static CUresult kernel_of(CUgraphNode node, CUDA_KERNEL_NODE_PARAMS_v1 *out)
{
	struct sim_kernel_node found;

	if (!out || sim_node_kernel((struct sim_node *)node, &found))
		return CUDA_ERROR_INVALID_VALUE;
	const unsigned *grid = found.shape.grid, *block = found.shape.block;
	*out = (CUDA_KERNEL_NODE_PARAMS_v1){.func = (CUfunction)found.kernel,
	                                    .gridDimX = grid[0],
	                                    .gridDimY = grid[1],
	                                    .gridDimZ = grid[2],
	                                    .blockDimX = block[0],
	                                    .blockDimY = block[1],
	                                    .blockDimZ = block[2],
	                                    .sharedMemBytes = found.shape.shared,
	                                    .kernelParams = found.parameters};
	return CUDA_SUCCESS;
}

CUresult cuGraphKernelNodeGetParams(CUgraphNode hNode, CUDA_KERNEL_NODE_PARAMS_v1 *nodeParams)
{
	ENTER(cuGraphKernelNodeGetParams, INIT);
	return kernel_of(hNode, nodeParams);
}

CUresult cuGraphKernelNodeGetParams_v2(CUgraphNode hNode, CUDA_KERNEL_NODE_PARAMS_v2 *nodeParams)
{
	CUDA_KERNEL_NODE_PARAMS_v1 first;
	struct sim_kernel_node found;

	ENTER(cuGraphKernelNodeGetParams_v2, INIT);
	CUresult result = nodeParams ? kernel_of(hNode, &first) : CUDA_ERROR_INVALID_VALUE;
	if (result)
		return result;
	*nodeParams = (CUDA_KERNEL_NODE_PARAMS_v2){0};
	memcpy(nodeParams, &first, sizeof(first));
	sim_node_kernel((struct sim_node *)hNode, &found);
	nodeParams->ctx = (CUcontext)found.context;
	return CUDA_SUCCESS;
}

/* No attribute has an effect here, so each is at its default. */
CUresult cuGraphKernelNodeGetAttribute(CUgraphNode hNode, CUkernelNodeAttrID attr,
                                       CUkernelNodeAttrValue *value_out)
{
	struct sim_kernel_node found;

	ENTER(cuGraphKernelNodeGetAttribute, INIT);
	if (attr <= 0 || !value_out || sim_node_kernel((struct sim_node *)hNode, &found))
		return CUDA_ERROR_INVALID_VALUE;
	memset(value_out, 0, sizeof(*value_out));
	return CUDA_SUCCESS;
}

CUresult cuGraphMemAllocNodeGetParams(CUgraphNode hNode, CUDA_MEM_ALLOC_NODE_PARAMS *params_out)
{
	uint64_t address, bytes;
	int device;

	ENTER(cuGraphMemAllocNodeGetParams, INIT);
	if (!params_out ||
	    sim_node_memory((struct sim_node *)hNode, SIM_NODE_ALLOC, &address, &bytes, &device))
		return CUDA_ERROR_INVALID_VALUE;
	*params_out = (CUDA_MEM_ALLOC_NODE_PARAMS){
	    .poolProps = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
	                  .location = {CU_MEM_LOCATION_TYPE_DEVICE, device}},
	    .bytesize = bytes,
	    .dptr = address,
	};
	return CUDA_SUCCESS;
}

CUresult cuGraphMemFreeNodeGetParams(CUgraphNode hNode, CUdeviceptr *dptr_out)
{
	uint64_t address, bytes;
	int device;

	ENTER(cuGraphMemFreeNodeGetParams, INIT);
	if (!dptr_out || sim_node_memory((struct sim_node *)hNode, SIM_NODE_FREE, &address, &bytes, &device))
		return CUDA_ERROR_INVALID_VALUE;
	*dptr_out = address;
	return CUDA_SUCCESS;
}
