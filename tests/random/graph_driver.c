/* Captures and graphs of CUDA's driver. */
#include "api_driver.h"

#include <string.h>

static int driver_capture(void *stream, enum capture_mode mode)
{
	return CALL(cuStreamBeginCapture_v2(stream, (CUstreamCaptureMode)mode));
}

static int driver_capture_end(void *stream, void **graph)
{
	return CALL(cuStreamEndCapture(stream, (CUgraph *)graph));
}

static int driver_create(void **graph)
{
	return CALL(cuGraphCreate((CUgraph *)graph, 0));
}

/* -- nodes ------------------------------------------------------------------------------------- */

static CUDA_KERNEL_NODE_PARAMS_v2 kernel_params(const struct node *node)
{
	return (CUDA_KERNEL_NODE_PARAMS_v2){.func = functions[node->device][node->kernel],
	                                    .gridDimX = 4,
	                                    .gridDimY = 1,
	                                    .gridDimZ = 1,
	                                    .blockDimX = 64,
	                                    .blockDimY = 1,
	                                    .blockDimZ = 1,
	                                    .kernelParams = node->parameters};
}

static CUDA_MEMCPY3D_v2 copy_params(const struct node *node)
{
	return (CUDA_MEMCPY3D_v2){.srcMemoryType = CU_MEMORYTYPE_UNIFIED,
	                          .srcDevice = node->from,
	                          .dstMemoryType = CU_MEMORYTYPE_UNIFIED,
	                          .dstDevice = node->to,
	                          .WidthInBytes = node->bytes,
	                          .Height = 1,
	                          .Depth = 1};
}

static CUDA_MEMSET_NODE_PARAMS_v1 set_params(const struct node *node)
{
	return (CUDA_MEMSET_NODE_PARAMS_v1){
	    .dst = node->to, .value = node->byte, .elementSize = 1, .width = node->bytes, .height = 1};
}

/* The same for functions that take a node of any type. */
static CUgraphNodeParams any_params(const struct node *node)
{
	static const CUgraphNodeType types[] = {CU_GRAPH_NODE_TYPE_KERNEL, CU_GRAPH_NODE_TYPE_MEMSET,
	                                        CU_GRAPH_NODE_TYPE_MEMCPY, CU_GRAPH_NODE_TYPE_HOST};
	const CUDA_KERNEL_NODE_PARAMS_v2 kernel = kernel_params(node);
	const CUDA_MEMCPY_NODE_PARAMS copy = {.copyCtx = contexts[node->device],
	                                      .copyParams = copy_params(node)};
	const CUDA_MEMSET_NODE_PARAMS_v1 first = set_params(node);
	const CUDA_HOST_NODE_PARAMS_v1 call = {node->call, node->data};
	CUDA_MEMSET_NODE_PARAMS_v2 set = {.ctx = contexts[node->device]};
	CUgraphNodeParams params = {.type = types[node->type]};

	memcpy(&set, &first, sizeof(first));
	set.ctx = contexts[node->device];
	const void *const from[] = {&kernel, &set, &copy, &call};
	const size_t bytes[] = {sizeof(kernel), sizeof(set), sizeof(copy), sizeof(call)};
	memcpy(params.reserved1, from[node->type], bytes[node->type]);
	return params;
}

static int driver_add(void *graph, void *const *after, size_t count, const struct node *node, unsigned way,
                      void **out)
{
	CUgraphNode *made = (CUgraphNode *)out;
	const CUgraphNode *before = (const CUgraphNode *)after;
	CUgraphNodeParams any = any_params(node);

	if (way % 3 == 1)
		return CALL(cuGraphAddNode(made, graph, before, count, &any));
	if (way % 3 == 2)
		return CALL(cuGraphAddNode_v2(made, graph, before, NULL, count, &any));
	switch (node->type) {
	case NODE_KERNEL:;
		const CUDA_KERNEL_NODE_PARAMS_v2 kernel = kernel_params(node);
		return CALL(cuGraphAddKernelNode_v2(made, graph, before, count, &kernel));
	case NODE_SET:;
		const CUDA_MEMSET_NODE_PARAMS_v1 set = set_params(node);
		return CALL(cuGraphAddMemsetNode(made, graph, before, count, &set, contexts[node->device]));
	case NODE_COPY:;
		const CUDA_MEMCPY3D_v2 copy = copy_params(node);
		return CALL(cuGraphAddMemcpyNode(made, graph, before, count, &copy, contexts[node->device]));
	default:;
		const CUDA_HOST_NODE_PARAMS_v1 call = {node->call, node->data};
		return CALL(cuGraphAddHostNode(made, graph, before, count, &call));
	}
}

static int driver_change(void *exec, void *changed, const struct node *node, unsigned way)
{
	CUgraphNodeParams any = any_params(node);

	if (way % 2)
		return CALL(cuGraphExecNodeSetParams(exec, changed, &any));
	switch (node->type) {
	case NODE_KERNEL:;
		const CUDA_KERNEL_NODE_PARAMS_v2 kernel = kernel_params(node);
		return CALL(cuGraphExecKernelNodeSetParams_v2(exec, changed, &kernel));
	case NODE_SET:;
		const CUDA_MEMSET_NODE_PARAMS_v1 set = set_params(node);
		return CALL(cuGraphExecMemsetNodeSetParams(exec, changed, &set, contexts[node->device]));
	case NODE_COPY:;
		const CUDA_MEMCPY3D_v2 copy = copy_params(node);
		return CALL(cuGraphExecMemcpyNodeSetParams(exec, changed, &copy, contexts[node->device]));
	default:;
		const CUDA_HOST_NODE_PARAMS_v1 call = {node->call, node->data};
		return CALL(cuGraphExecHostNodeSetParams(exec, changed, &call));
	}
}

static int driver_add_child(void *graph, void *child, void **out)
{
	return CALL(cuGraphAddChildGraphNode((CUgraphNode *)out, graph, NULL, 0, child));
}

static int driver_add_edge(void *graph, void *from, void *to)
{
	CUgraphNode first = from, second = to;

	return CALL(cuGraphAddDependencies(graph, &first, &second, 1));
}

static int driver_add_memory(void *graph, int device, uint64_t bytes, uint64_t *address, void **out)
{
	CUDA_MEM_ALLOC_NODE_PARAMS params = {.poolProps = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
	                                                   .location = {CU_MEM_LOCATION_TYPE_DEVICE, device}},
	                                     .bytesize = bytes};

	TRY(cuGraphAddMemAllocNode((CUgraphNode *)out, graph, NULL, 0, &params));
	*address = params.dptr;
	return 0;
}

static int driver_add_free(void *graph, void *const *after, size_t count, uint64_t address, void **out)
{
	return CALL(
	    cuGraphAddMemFreeNode((CUgraphNode *)out, graph, (const CUgraphNode *)after, count, address));
}

/* -- graphs and their executable forms --------------------------------------------------------- */

static int driver_drop(void *graph)
{
	return CALL(cuGraphDestroy(graph));
}

static int driver_make(void **exec, void *graph)
{
	return CALL(cuGraphInstantiateWithFlags((CUgraphExec *)exec, graph, 0));
}

static int driver_launch(void *exec, void *stream)
{
	return CALL(cuGraphLaunch(exec, stream));
}

static int driver_update(void *exec, void *graph)
{
	CUgraphExecUpdateResultInfo info;

	return CALL(cuGraphExecUpdate_v2(exec, graph, &info));
}

static int driver_end(void *exec)
{
	return CALL(cuGraphExecDestroy(exec));
}

static int driver_trim(int device)
{
	return CALL(cuDeviceGraphMemTrim(device));
}

const struct graph_api graphs = {
    .capture = driver_capture,
    .capture_end = driver_capture_end,
    .create = driver_create,
    .add = driver_add,
    .add_child = driver_add_child,
    .add_edge = driver_add_edge,
    .add_memory = driver_add_memory,
    .add_free = driver_add_free,
    .drop = driver_drop,
    .make = driver_make,
    .launch = driver_launch,
    .update = driver_update,
    .change = driver_change,
    .end = driver_end,
    .trim = driver_trim,
};
