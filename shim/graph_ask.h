/*
 * Questions to the driver about graphs and their nodes, and the calls that have one launch wait for another. The
 * questions change nothing (CUDA Driver API, "Graph Management"). CUDA does not synchronise graphs: the program is
 * inside its own call on this graph, so no other thread may use it.
 */
#ifndef SPILL_GRAPH_ASK_H
#define SPILL_GRAPH_ASK_H

#include <stdbool.h>

#include "abi/cuda_work.h"

/* Child graphs nested deeper than this are not read. */
#define SPILL_GRAPH_DEEPEST 16

#define SPILL_GRAPH_QUESTIONS(X) \
	X(cuGraphGetNodes, (CUgraph graph, CUgraphNode * nodes, size_t * count), (graph, nodes, count)) \
	X(cuGraphGetEdges, (CUgraph graph, CUgraphNode * from, CUgraphNode * to, size_t * count), \
	  (graph, from, to, count)) \
	X(cuGraphGetEdges_v2, \
	  (CUgraph graph, CUgraphNode * from, CUgraphNode * to, CUgraphEdgeData * data, size_t * count), \
	  (graph, from, to, data, count)) \
	X(cuGraphNodeGetType, (CUgraphNode node, int *type), (node, type)) \
	X(cuGraphKernelNodeGetParams_v2, (CUgraphNode node, CUDA_KERNEL_NODE_PARAMS_v2 * params), \
	  (node, params)) \
	X(cuGraphKernelNodeGetAttribute, (CUgraphNode node, int attribute, CUlaunchAttributeValue *value), \
	  (node, attribute, value)) \
	X(cuGraphMemcpyNodeGetParams, (CUgraphNode node, CUDA_MEMCPY3D * params), (node, params)) \
	X(cuGraphMemsetNodeGetParams, (CUgraphNode node, CUDA_MEMSET_NODE_PARAMS_v1 * params), \
	  (node, params)) \
	X(cuGraphMemAllocNodeGetParams, (CUgraphNode node, CUDA_MEM_ALLOC_NODE_PARAMS * params), \
	  (node, params)) \
	X(cuGraphChildGraphNodeGetGraph, (CUgraphNode node, CUgraph * graph), (node, graph)) \
	X(cuGraphExecGetFlags, (CUgraphExec exec, cuuint64_t * flags), (exec, flags)) \
	X(cuFuncGetAttribute, (int *value, int attribute, CUfunction of), (value, attribute, of)) \
	X(cuCtxGetCurrent, (CUcontext * context), (context)) \
	X(cuEventCreate, (CUevent * event, unsigned flags), (event, flags)) \
	X(cuEventRecord, (CUevent event, CUstream stream), (event, stream)) \
	X(cuEventDestroy_v2, (CUevent event), (event)) \
	X(cuStreamQuery, (CUstream stream), (stream)) \
	X(cuStreamSynchronize, (CUstream stream), (stream)) \
	X(cuStreamWaitEvent, (CUstream stream, CUevent event, unsigned flags), (stream, event, flags))

#define SPILL_EVENT_DISABLE_TIMING 2 /* CU_EVENT_DISABLE_TIMING */

/* False: the driver returns an error, or has no such function. */
#define X(symbol, params, args) bool spill_ask_##symbol params;
SPILL_GRAPH_QUESTIONS(X)
#undef X

/* The kernel of a node, by either kind of handle. */
static inline const void *spill_graph_kernel(const CUDA_KERNEL_NODE_PARAMS_v2 *kernel)
{
	return kernel->func ? (const void *)kernel->func : (const void *)kernel->kern;
}

/* A node, and what the driver tells of it. */
struct spill_graph_node {
	int type;
	bool told; /* the member of its type is set; others have none */
	union {
		CUDA_KERNEL_NODE_PARAMS_v2 kernel;
		CUDA_MEMCPY3D copy;
		CUDA_MEMSET_NODE_PARAMS_v1 set;
		CUgraph child;
	};
};

/* False: not even the type is told. */
static inline bool spill_graph_ask_node(CUgraphNode handle, struct spill_graph_node *node)
{
	if (!spill_ask_cuGraphNodeGetType(handle, &node->type))
		return false;
	node->told = (node->type == CU_GRAPH_NODE_TYPE_KERNEL &&
	              spill_ask_cuGraphKernelNodeGetParams_v2(handle, &node->kernel)) ||
	             (node->type == CU_GRAPH_NODE_TYPE_MEMCPY &&
	              spill_ask_cuGraphMemcpyNodeGetParams(handle, &node->copy)) ||
	             (node->type == CU_GRAPH_NODE_TYPE_MEMSET &&
	              spill_ask_cuGraphMemsetNodeGetParams(handle, &node->set)) ||
	             (node->type == CU_GRAPH_NODE_TYPE_GRAPH &&
	              spill_ask_cuGraphChildGraphNodeGetGraph(handle, &node->child));
	return true;
}

/* The caller frees the nodes. False: they cannot be read. */
bool spill_graph_list(CUgraph graph, CUgraphNode **nodes, size_t *count);

#endif
