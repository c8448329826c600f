/* Parameters of nodes, child graphs, updates: contract tests as test_driver.c. */
#include "driver_graph_test.h"

static uint64_t *host;
static CUfunction add;

static void begin_tests(void)
{
	begin_graph_tests();
	OK(d.cuModuleGetFunction(&add, module, "add"));
	host = pinned();
}

static uint64_t word(CUdeviceptr at)
{
	uint64_t value;

	OK(d.cuMemcpyDtoH_v2(&value, at, sizeof(value)));
	return value;
}

/* Parameters of the kernel `add`: one word. */
static CUDA_KERNEL_NODE_PARAMS_v2 adds(void **parameters)
{
	return (CUDA_KERNEL_NODE_PARAMS_v2){.func = add,
	                                    .gridDimX = 1,
	                                    .gridDimY = 1,
	                                    .gridDimZ = 1,
	                                    .blockDimX = 64,
	                                    .blockDimY = 1,
	                                    .blockDimZ = 1,
	                                    .kernelParams = parameters};
}

static CUgraphNode add_kernel(CUgraph graph, const CUgraphNode *after, uint64_t at, uint64_t value)
{
	uint64_t words = 1;
	void *parameters[] = {&at, &words, &value};
	const CUDA_KERNEL_NODE_PARAMS_v2 kernel = adds(parameters);
	CUgraphNode node;

	OK(d.cuGraphAddKernelNode_v2(&node, graph, after, after ? 1 : 0, &kernel));
	return node;
}

static CUDA_MEMCPY3D_v2 to_host(CUdeviceptr from, size_t bytes)
{
	return (CUDA_MEMCPY3D_v2){.srcMemoryType = CU_MEMORYTYPE_DEVICE,
	                          .srcDevice = from,
	                          .dstMemoryType = CU_MEMORYTYPE_HOST,
	                          .dstHost = host,
	                          .WidthInBytes = bytes,
	                          .Height = 1,
	                          .Depth = 1};
}

/* -- queries ----------------------------------------------------------------------------------- */

/* Address of the first byte. A driver may add offsets to the address. */
static uint64_t first_source(const CUDA_MEMCPY3D_v2 *copy)
{
	uint64_t base = copy->srcMemoryType == CU_MEMORYTYPE_HOST ? (uint64_t)copy->srcHost : copy->srcDevice;

	return base + (copy->srcZ * copy->srcHeight + copy->srcY) * copy->srcPitch + copy->srcXInBytes;
}

DRIVER_TEST(copies_are_told)
{
	CUDA_MEMCPY3D_v2 box = to_host(memory, 16), found;
	CUgraphNode node, empty;

	begin_tests();
	CUgraph graph = graph_new();
	box = to_host(memory, 16);
	box.srcXInBytes = 32;
	box.srcY = 2;
	box.srcPitch = 256;
	box.srcHeight = 4; /* less than srcY + Height */
	box.dstPitch = 16;
	box.dstHeight = 3;
	box.Height = 3;
	GIVES(CUDA_ERROR_INVALID_VALUE, d.cuGraphAddMemcpyNode(&node, graph, NULL, 0, &box, context));
	box.srcHeight = 5;
	OK(d.cuGraphAddMemcpyNode(&node, graph, NULL, 0, &box, context));
	OK(d.cuGraphMemcpyNodeGetParams(node, &found));
	CHECK(first_source(&found) == memory + 2 * 256 + 32);
	CHECK(found.srcMemoryType == CU_MEMORYTYPE_DEVICE && found.dstMemoryType == CU_MEMORYTYPE_HOST);
	CHECK(found.srcPitch == 256 && found.WidthInBytes == 16 && found.Height == 3 && found.Depth == 1);
	CHECK(found.dstHost == host);
	OK(d.cuGraphAddEmptyNode(&empty, graph, NULL, 0));
	GIVES(CUDA_ERROR_INVALID_VALUE, d.cuGraphMemcpyNodeGetParams(empty, &found));
	GIVES(CUDA_ERROR_INVALID_VALUE, d.cuGraphMemcpyNodeGetParams(node, NULL));
}

DRIVER_TEST(sets_are_told)
{
	CUDA_MEMSET_NODE_PARAMS_v1 found, set = {.elementSize = 4, .value = 3, .width = 4, .height = 2};
	CUgraphNode node, empty;

	begin_tests();
	CUgraph graph = graph_new();
	set.dst = memory + 64;
	set.pitch = 256;
	OK(d.cuGraphAddMemsetNode(&node, graph, NULL, 0, &set, context));
	OK(d.cuGraphMemsetNodeGetParams(node, &found));
	CHECK(found.dst == memory + 64 && found.pitch == 256 && found.elementSize == 4 && found.value == 3);
	CHECK(found.width == 4 && found.height == 2);
	OK(d.cuGraphAddEmptyNode(&empty, graph, NULL, 0));
	GIVES(CUDA_ERROR_INVALID_VALUE, d.cuGraphMemsetNodeGetParams(empty, &found));
	GIVES(CUDA_ERROR_INVALID_VALUE, d.cuGraphMemsetNodeGetParams(node, NULL));
}

DRIVER_TEST(captured_nodes_are_told)
{
	CUDA_MEMCPY3D_v2 copy;
	CUDA_MEMSET_NODE_PARAMS_v1 set;
	CUgraphNodeType type;
	CUgraphNode node[2];
	size_t count = 2;
	CUgraph graph;

	begin_tests();
	OK(d.cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
	OK(d.cuMemcpyDtoDAsync_v2(memory, memory + 4096, 512, stream));
	OK(d.cuMemsetD32Async(memory + 128, 5, 16, stream));
	OK(d.cuStreamEndCapture(stream, &graph));
	OK(d.cuGraphGetNodes(graph, node, &count));
	CHECK(count == 2);
	OK(d.cuGraphNodeGetType(node[0], &type));
	CHECK(type == CU_GRAPH_NODE_TYPE_MEMCPY);
	OK(d.cuGraphMemcpyNodeGetParams(node[0], &copy));
	CHECK(first_source(&copy) == memory + 4096 && copy.dstDevice == memory);
	CHECK(copy.WidthInBytes == 512 && copy.Height == 1 && copy.Depth == 1);
	OK(d.cuGraphMemsetNodeGetParams(node[1], &set));
	CHECK(set.dst == memory + 128 && set.width * set.elementSize == 64 && set.height == 1);
}

/* -- graphs in graphs -------------------------------------------------------------------------- */

DRIVER_TEST(child_graphs)
{
	CUgraphNode child, inner, node[4];
	CUgraphNodeType type;
	CUgraph found;
	size_t count = 4;

	begin_tests();
	CUgraph deepest = graph_new(), middle = graph_new(), graph = graph_new();
	CUgraphNode first = add_kernel(deepest, NULL, memory, 1);
	add_kernel(deepest, &first, memory + 8, 10);
	OK(d.cuGraphAddChildGraphNode(&inner, middle, NULL, 0, deepest));
	first = add_kernel(graph, NULL, memory, 100);
	OK(d.cuGraphAddChildGraphNode(&child, graph, &first, 1, middle));
	add_kernel(middle, NULL, memory, 1000); /* it was copied earlier */
	OK(d.cuGraphDestroy(deepest));
	OK(d.cuGraphDestroy(middle));
	OK(d.cuGraphNodeGetType(child, &type));
	CHECK(type == CU_GRAPH_NODE_TYPE_GRAPH);
	OK(d.cuGraphChildGraphNodeGetGraph(child, &found));
	OK(d.cuGraphGetNodes(found, node, &count));
	CHECK(count == 1);
	OK(d.cuGraphChildGraphNodeGetGraph(node[0], &found));
	count = 4;
	OK(d.cuGraphGetNodes(found, node, &count));
	CHECK(count == 2);
	GIVES(CUDA_ERROR_INVALID_VALUE, d.cuGraphChildGraphNodeGetGraph(first, &found));
	CUgraphExec exec = exec_new(graph, 0);
	run(exec);
	run(exec);
	CHECK(word(memory) == 202 && word(memory + 8) == 20);
}

/* -- changes ----------------------------------------------------------------------------------- */

DRIVER_TEST(all_is_updated)
{
	CUgraphExecUpdateResultInfo info;

	begin_tests();
	CUgraph graph = graph_new(), second = graph_new(), other = graph_new();
	CUgraphNode first = add_kernel(graph, NULL, memory, 1);
	add_kernel(graph, &first, memory + 8, 2);
	first = add_kernel(second, NULL, memory + 16, 3);
	add_kernel(second, &first, memory + 24, 4);
	add_kernel(other, NULL, memory, 5);
	CUgraphExec exec = exec_new(graph, 0);
	run(exec);
	OK(d.cuGraphExecUpdate_v2(exec, second, &info));
	CHECK(info.result == CU_GRAPH_EXEC_UPDATE_SUCCESS);
	run(exec);
	CHECK(word(memory) == 1 && word(memory + 8) == 2 && word(memory + 16) == 3 && word(memory + 24) == 4);
	GIVES(CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE, d.cuGraphExecUpdate_v2(exec, other, &info));
	CHECK(info.result == CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED);
	run(exec); /* as before */
	CHECK(word(memory) == 1 && word(memory + 16) == 6);
}

DRIVER_TEST(kernels_are_changed)
{
	uint64_t at, words = 1, value = 7;
	void *parameters[] = {&at, &words, &value};

	begin_tests();
	CUgraph graph = graph_new(), another = graph_new();
	CUgraphNode node = add_kernel(graph, NULL, memory, 1),
	            stranger = add_kernel(another, NULL, memory, 1);
	CUgraphExec exec = exec_new(graph, 0);
	CUDA_KERNEL_NODE_PARAMS_v2 kernel = adds(parameters);
	at = memory + 8;
	OK(d.cuGraphExecKernelNodeSetParams_v2(exec, node, &kernel));
	at = 0; /* has been copied */
	run(exec);
	CHECK(word(memory) == 0 && word(memory + 8) == 7);
	at = memory + 16;
	CUgraphNodeParams any = {.type = CU_GRAPH_NODE_TYPE_KERNEL};
	memcpy(any.reserved1, &kernel, sizeof(kernel));
	OK(d.cuGraphExecNodeSetParams(exec, node, &any));
	run(exec);
	CHECK(word(memory + 8) == 7 && word(memory + 16) == 7);
	GIVES(CUDA_ERROR_INVALID_VALUE, d.cuGraphExecKernelNodeSetParams_v2(exec, stranger, &kernel));
	GIVES(CUDA_ERROR_INVALID_VALUE, d.cuGraphExecKernelNodeSetParams_v2(exec, node, NULL));
}

DRIVER_TEST(copies_and_sets_are_changed)
{
	CUDA_MEMSET_NODE_PARAMS_v1 set = {.elementSize = 4, .value = 3, .width = 2, .height = 1};
	CUgraphNode copied, was_set;

	begin_tests();
	CUgraph graph = graph_new();
	CUDA_MEMCPY3D_v2 copy = to_host(memory, 8);
	set.dst = memory;
	OK(d.cuGraphAddMemsetNode(&was_set, graph, NULL, 0, &set, context));
	OK(d.cuGraphAddMemcpyNode(&copied, graph, &was_set, 1, &copy, context));
	CUgraphExec exec = exec_new(graph, 0);
	run(exec);
	CHECK(host[0] == 0x300000003);
	set.dst = memory + 64;
	set.value = 4;
	copy.srcDevice = memory + 64;
	OK(d.cuGraphExecMemsetNodeSetParams(exec, was_set, &set, context));
	OK(d.cuGraphExecMemcpyNodeSetParams(exec, copied, &copy, context));
	run(exec);
	CHECK(host[0] == 0x400000004 && word(memory) == 0x300000003);
}

DRIVER_TEST(child_graphs_are_changed)
{
	CUgraphNode child;

	begin_tests();
	CUgraph inner = graph_new(), other = graph_new(), graph = graph_new();
	CUgraphNode first = add_kernel(inner, NULL, memory, 1);
	add_kernel(inner, &first, memory, 1);
	first = add_kernel(other, NULL, memory + 8, 2);
	add_kernel(other, &first, memory + 8, 2);
	OK(d.cuGraphAddChildGraphNode(&child, graph, NULL, 0, inner));
	CUgraphExec exec = exec_new(graph, 0);
	OK(d.cuGraphExecChildGraphNodeSetParams(exec, child, other));
	run(exec);
	CHECK(word(memory) == 0 && word(memory + 8) == 4);
}
