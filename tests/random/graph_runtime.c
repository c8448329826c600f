/* Captures and graphs of the CUDA runtime, or with -DHIP of HIP. */
#include "api_runtime.h"

static int runtime_capture(void *stream, enum capture_mode mode)
{
	return CALL(RUNTIME(StreamBeginCapture)(stream, (enum RUNTIME(StreamCaptureMode))mode));
}

static int runtime_capture_end(void *stream, void **graph)
{
	return CALL(RUNTIME(StreamEndCapture)(stream, (RUNTIME(Graph_t) *)graph));
}

static int runtime_create(void **graph)
{
	return CALL(RUNTIME(GraphCreate)((RUNTIME(Graph_t) *)graph, 0));
}

/* -- nodes ------------------------------------------------------------------------------------- */

static struct RUNTIME(KernelNodeParams) kernel_params(const struct node *node)
{
	return (struct RUNTIME(KernelNodeParams)){.func = functions[node->device][node->kernel],
	                                          .gridDim = {4, 1, 1},
	                                          .blockDim = {64, 1, 1},
	                                          .kernelParams = node->parameters};
}

static struct RUNTIME(MemsetParams) set_params(const struct node *node)
{
	return (struct RUNTIME(MemsetParams)){.dst = pointer(node->to),
	                                      .value = node->byte,
	                                      .elementSize = 1,
	                                      .width = node->bytes,
	                                      .height = 1};
}

static int runtime_add(void *graph, void *const *after, size_t count, const struct node *node, unsigned way,
                       void **out)
{
	RUNTIME(GraphNode_t) *made = (RUNTIME(GraphNode_t) *)out;
	const RUNTIME(GraphNode_t) *before = (const RUNTIME(GraphNode_t) *)after;
	const struct RUNTIME(KernelNodeParams) kernel = kernel_params(node);
	const struct RUNTIME(MemsetParams) set = set_params(node);
	const struct RUNTIME(HostNodeParams) call = {node->call, node->data};

	(void)way;
	switch (node->type) {
	case NODE_KERNEL:
		return CALL(RUNTIME(GraphAddKernelNode)(made, graph, before, count, &kernel));
	case NODE_SET:
		return CALL(RUNTIME(GraphAddMemsetNode)(made, graph, before, count, &set));
	case NODE_COPY:
		return CALL(RUNTIME(GraphAddMemcpyNode1D)(made, graph, before, count, pointer(node->to),
		                                          pointer(node->from), node->bytes,
		                                          RUNTIME(MemcpyDefault)));
	default:
		return CALL(RUNTIME(GraphAddHostNode)(made, graph, before, count, &call));
	}
}

static int runtime_change(void *exec, void *changed, const struct node *node, unsigned way)
{
	const struct RUNTIME(KernelNodeParams) kernel = kernel_params(node);
	const struct RUNTIME(MemsetParams) set = set_params(node);
	const struct RUNTIME(HostNodeParams) call = {node->call, node->data};

	(void)way;
	switch (node->type) {
	case NODE_KERNEL:
		return CALL(RUNTIME(GraphExecKernelNodeSetParams)(exec, changed, &kernel));
	case NODE_SET:
		return CALL(RUNTIME(GraphExecMemsetNodeSetParams)(exec, changed, &set));
	case NODE_COPY:
		return CALL(RUNTIME(GraphExecMemcpyNodeSetParams1D)(exec, changed, pointer(node->to),
		                                                    pointer(node->from), node->bytes,
		                                                    RUNTIME(MemcpyDefault)));
	default:
		return CALL(RUNTIME(GraphExecHostNodeSetParams)(exec, changed, &call));
	}
}

static int runtime_add_child(void *graph, void *child, void **out)
{
	return CALL(RUNTIME(GraphAddChildGraphNode)((RUNTIME(GraphNode_t) *)out, graph, NULL, 0, child));
}

#ifdef HIP
static int runtime_add_edge(void *graph, void *from, void *to)
{
	hipGraphNode_t first = from, second = to;

	return CALL(hipGraphAddDependencies(graph, &first, &second, 1));
}

static int runtime_update(void *exec, void *graph)
{
	hipGraphExecUpdateResult result;
	hipGraphNode_t where;

	return CALL(hipGraphExecUpdate(exec, graph, &where, &result));
}
#else
static int runtime_add_edge(void *graph, void *from, void *to)
{
	cudaGraphNode_t first = from, second = to;

	return CALL(cudaGraphAddDependencies(graph, &first, &second, NULL, 1));
}

static int runtime_update(void *exec, void *graph)
{
	cudaGraphExecUpdateResultInfo info;

	return CALL(cudaGraphExecUpdate(exec, graph, &info));
}
#endif

#if !defined(HIP) || HIP_RELEASE >= 7 /* with ROCm 5.2 no graph has memory */
static int runtime_trim(int device)
{
	return CALL(RUNTIME(DeviceGraphMemTrim)(device));
}
#endif

#if defined(HIP) && HIP_RELEASE >= 7
static int runtime_add_memory(void *graph, int device, uint64_t bytes, uint64_t *address, void **out)
{
	struct hip_alloc_node_params params = {.poolProps = {.allocType = hipMemAllocationTypePinned,
	                                                     .location = {hipMemLocationTypeDevice, device}},
	                                       .bytesize = bytes};

	TRY(hipGraphAddMemAllocNode((hipGraphNode_t *)out, graph, NULL, 0, &params));
	*address = (uintptr_t)params.dptr;
	return 0;
}

static int runtime_add_free(void *graph, void *const *after, size_t count, uint64_t address, void **out)
{
	return CALL(hipGraphAddMemFreeNode((hipGraphNode_t *)out, graph, (const hipGraphNode_t *)after, count,
	                                   pointer(address)));
}
#endif

/* -- graphs and their executable forms --------------------------------------------------------- */

static int runtime_drop(void *graph)
{
	return CALL(RUNTIME(GraphDestroy)(graph));
}

static int runtime_make(void **exec, void *graph)
{
	return CALL(RUNTIME(GraphInstantiateWithFlags)((RUNTIME(GraphExec_t) *)exec, graph, 0));
}

static int runtime_launch(void *exec, void *stream)
{
	return CALL(RUNTIME(GraphLaunch)(exec, stream));
}

static int runtime_end(void *exec)
{
	return CALL(RUNTIME(GraphExecDestroy)(exec));
}

const struct graph_api graphs = {
    .capture = runtime_capture,
    .capture_end = runtime_capture_end,
    .create = runtime_create,
    .add = runtime_add,
    .add_child = runtime_add_child,
    .add_edge = runtime_add_edge,
    .drop = runtime_drop,
    .make = runtime_make,
    .launch = runtime_launch,
    .update = runtime_update,
    .change = runtime_change,
    .end = runtime_end,
#if !defined(HIP) || HIP_RELEASE >= 7
    .trim = runtime_trim,
#endif
#if defined(HIP) && HIP_RELEASE >= 7
    .add_memory = runtime_add_memory,
    .add_free = runtime_add_free,
#endif
};
