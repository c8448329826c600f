/* Graphs and their memory: contract tests as test_driver.c. Results are of an H200 (580.159). */
#include "driver_graph_test.h"

#define BLOCK (32 * MIB) /* bytes that a driver takes at once for graphs */

static CUresult add_alloc(CUgraph graph, const CUgraphNode *after, size_t bytes, CUdeviceptr *p,
                          CUgraphNode *node)
{
	CUDA_MEM_ALLOC_NODE_PARAMS params = {.poolProps = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
	                                                   .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}},
	                                     .bytesize = bytes};
	CUresult result = d.cuGraphAddMemAllocNode(node, graph, after, after ? 1 : 0, &params);

	if (!result)
		*p = params.dptr;
	return result;
}

static size_t held(CUgraphMem_attribute attribute)
{
	cuuint64_t value = 0;

	OK(d.cuDeviceGetGraphMemAttribute(0, attribute, &value));
	return value;
}

static uint64_t word(CUdeviceptr at)
{
	uint64_t value;

	OK(d.cuMemcpyDtoH_v2(&value, at, sizeof(value)));
	return value;
}

/* -- nodes ------------------------------------------------------------------------------------- */

static void note(void *data)
{
	++*(int *)data;
}

static CUgraphNode add_kernel(CUgraph graph, const CUgraphNode *after, uint64_t at, uint64_t words,
                              uint64_t value)
{
	void *parameters[] = {&at, &words, &value};
	CUDA_KERNEL_NODE_PARAMS_v2 kernel = {.gridDimX = 1,
	                                     .gridDimY = 1,
	                                     .gridDimZ = 1,
	                                     .blockDimX = 64,
	                                     .blockDimY = 1,
	                                     .blockDimZ = 1,
	                                     .kernelParams = parameters};
	CUgraphNode node;

	OK(d.cuModuleGetFunction(&kernel.func, module, "add"));
	OK(d.cuGraphAddKernelNode_v2(&node, graph, after, after ? 1 : 0, &kernel));
	return node;
}

DRIVER_TEST(every_node)
{
	CUgraphNode set, kernel, copy, host, node[8], from[8], to[8];
	CUgraphNodeType type;
	int calls = 0;
	size_t count = 8;

	begin_graph_tests();
	uint64_t *out = pinned();
	CUgraph graph = graph_new();
	CUDA_MEMSET_NODE_PARAMS_v1 zero = {
	    .dst = memory, .elementSize = 4, .value = 3, .width = 4, .height = 1};
	CUDA_MEMCPY3D_v2 rows = {.srcMemoryType = CU_MEMORYTYPE_DEVICE,
	                         .srcDevice = memory,
	                         .dstMemoryType = CU_MEMORYTYPE_HOST,
	                         .dstHost = out,
	                         .WidthInBytes = 16,
	                         .Height = 1,
	                         .Depth = 1};
	CUDA_HOST_NODE_PARAMS_v1 call = {note, &calls};
	OK(d.cuGraphAddMemsetNode(&set, graph, NULL, 0, &zero, context));
	kernel = add_kernel(graph, &set, memory, 2, 1);
	OK(d.cuGraphAddMemcpyNode(&copy, graph, &kernel, 1, &rows, context));
	OK(d.cuGraphAddHostNode(&host, graph, NULL, 0, &call));
	OK(d.cuGraphAddDependencies_v2(graph, &copy, &host, NULL, 1));
	GIVES(CUDA_ERROR_INVALID_VALUE, d.cuGraphAddDependencies_v2(graph, &copy, &host, NULL, 1));
	OK(d.cuGraphGetNodes(graph, node, &count));
	CHECK(count == 4 && node[0] == set && node[3] == host && !node[4]);
	OK(d.cuGraphNodeGetType(kernel, &type));
	CHECK(type == CU_GRAPH_NODE_TYPE_KERNEL);
	OK(d.cuGraphNodeGetType(copy, &type));
	CHECK(type == CU_GRAPH_NODE_TYPE_MEMCPY);
	count = 8;
	OK(d.cuGraphGetEdges_v2(graph, from, to, NULL, &count));
	CHECK(count == 3);
	CUgraphExec exec = exec_new(graph, 0);
	OK(d.cuGraphDestroy(graph));
	GIVES(CUDA_ERROR_INVALID_VALUE, d.cuGraphDestroy(graph));
	CHECK(calls == 0 && !out[0]);
	run(exec);
	run(exec);
	CHECK(calls == 2 && out[0] == 0x300000004 && out[1] == 0x300000004);
	OK(d.cuGraphExecDestroy(exec));
}

/* Parameters of a kernel node: its shape, and its own copy of each value. */
static void is_told(CUgraphNode node, CUfunction function, uint64_t at)
{
	CUDA_KERNEL_NODE_PARAMS_v2 found = {0};
	CUDA_KERNEL_NODE_PARAMS_v1 first = {0};

	OK(d.cuGraphKernelNodeGetParams_v2(node, &found));
	CHECK(found.func == function);
	CHECK(found.gridDimX == 1 && found.gridDimY == 1 && found.gridDimZ == 1 && found.blockDimX == 64 &&
	      found.blockDimY == 1 && found.blockDimZ == 1 && found.sharedMemBytes == 0);
	CHECK(found.kernelParams && !found.extra);
	CHECK(*(uint64_t *)found.kernelParams[0] == at && *(uint64_t *)found.kernelParams[1] == 2 &&
	      *(uint64_t *)found.kernelParams[2] == 5);
	OK(d.cuGraphKernelNodeGetParams(node, &first));
	CHECK(first.func == found.func && first.gridDimX == 1 && first.blockDimX == 64 &&
	      *(uint64_t *)first.kernelParams[0] == at);
}

DRIVER_TEST(kernels_are_told)
{
	CUDA_KERNEL_NODE_PARAMS_v2 found = {0};
	CUfunction add;
	CUgraph captured;
	CUgraphNode node, empty;
	uint64_t at, words = 2, value = 5;
	void *parameters[] = {&at, &words, &value};
	size_t count = 1;

	begin_graph_tests();
	at = memory;
	OK(d.cuModuleGetFunction(&add, module, "add"));
	CUgraph graph = graph_new();
	is_told(add_kernel(graph, NULL, memory, 2, 5), add, memory);
	OK(d.cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
	OK(d.cuLaunchKernel(add, 1, 1, 1, 64, 1, 1, 0, stream, parameters, NULL));
	at = 0; /* has been copied */
	OK(d.cuStreamEndCapture(stream, &captured));
	OK(d.cuGraphGetNodes(captured, &node, &count));
	CHECK(count == 1);
	is_told(node, add, memory);
	OK(d.cuGraphAddEmptyNode(&empty, graph, NULL, 0));
	GIVES(CUDA_ERROR_INVALID_VALUE, d.cuGraphKernelNodeGetParams_v2(empty, &found));
	GIVES(CUDA_ERROR_INVALID_VALUE, d.cuGraphKernelNodeGetParams_v2(NULL, &found));
	GIVES(CUDA_ERROR_INVALID_VALUE, d.cuGraphKernelNodeGetParams_v2(node, NULL));
	run(exec_new(captured, 0));
	CHECK(word(memory) == 5);
	OK(d.cuGraphDestroy(captured));
	OK(d.cuGraphDestroy(graph));
}

DRIVER_TEST(bad_graphs)
{
	CUgraphNode a, b, c, twice[2];
	CUgraphExec exec;

	begin_graph_tests();
	CUgraph graph = graph_new(), second = graph_new();
	GIVES(CUDA_ERROR_INVALID_VALUE, d.cuGraphCreate(&graph, 1));
	OK(d.cuGraphAddEmptyNode(&a, graph, NULL, 0));
	OK(d.cuGraphAddEmptyNode(&b, graph, &a, 1));
	twice[0] = twice[1] = a;
	GIVES(CUDA_ERROR_INVALID_VALUE, d.cuGraphAddEmptyNode(&c, graph, twice, 2));
	GIVES(CUDA_ERROR_INVALID_VALUE, d.cuGraphAddEmptyNode(&c, second, &a, 1));
	OK(d.cuGraphAddDependencies_v2(graph, &b, &a, NULL, 1)); /* a circle */
	GIVES(CUDA_ERROR_INVALID_VALUE, d.cuGraphInstantiateWithFlags(&exec, graph, 0));
	GIVES(CUDA_ERROR_INVALID_VALUE, d.cuGraphInstantiateWithFlags(&exec, second, 64));
	run(exec_new(second, 0)); /* an empty graph is valid */
	GIVES(CUDA_ERROR_INVALID_VALUE, d.cuGraphLaunch(NULL, stream));
}

/* -- captured ---------------------------------------------------------------------------------- */

DRIVER_TEST(captured_copy_reads_late)
{
	uint64_t source = 1;
	CUgraph graph;

	begin_graph_tests();
	OK(d.cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
	OK(d.cuMemcpyHtoDAsync_v2(memory, &source, sizeof(source), stream));
	OK(d.cuStreamEndCapture(stream, &graph));
	CUgraphExec exec = exec_new(graph, 0);
	source = 2;
	run(exec);
	CHECK(word(memory) == 2);
	GIVES(CUDA_SUCCESS, d.cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
	GIVES(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, d.cuGraphLaunch(exec, stream));
	GIVES(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, d.cuStreamEndCapture(stream, &graph));
}

DRIVER_TEST(captured_memory)
{
	CUdeviceptr p, plain;
	CUgraphNodeType type;
	CUgraphNode node[4];
	size_t count = 4;
	CUgraph graph;

	begin_graph_tests();
	uint64_t *wrong = pinned();
	OK(d.cuMemAlloc_v2(&plain, MIB));
	OK(d.cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
	OK(d.cuMemAllocAsync(&p, MIB, stream));
	OK(RUN(stream, "fill", p, MIB / 8, 5));
	OK(RUN(stream, "verify", p, MIB / 8, 5, (uint64_t)wrong));
	GIVES(CUDA_ERROR_INVALID_VALUE, d.cuMemFreeAsync(plain, stream)); /* not a graph's; no harm */
	OK(d.cuMemFreeAsync(p, stream));
	GIVES(CUDA_ERROR_INVALID_VALUE, d.cuMemFreeAsync(p, stream));
	OK(d.cuStreamEndCapture(stream, &graph));
	OK(d.cuGraphGetNodes(graph, node, &count));
	CHECK(count == 4);
	OK(d.cuGraphNodeGetType(node[0], &type));
	CHECK(type == CU_GRAPH_NODE_TYPE_MEM_ALLOC);
	OK(d.cuGraphNodeGetType(node[3], &type));
	CHECK(type == CU_GRAPH_NODE_TYPE_MEM_FREE);
	CUgraphExec exec = exec_new(graph, 0);
	run(exec);
	run(exec);
	CHECK(*word_at(wrong) == 0);
	CHECK(held(CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT) == BLOCK);
}

/* -- memory ------------------------------------------------------------------------------------ */

DRIVER_TEST(memory_is_counted)
{
	CUgraphNode alloc, free_node, again;
	CUDA_MEM_ALLOC_NODE_PARAMS params;
	CUdeviceptr p, q;
	CUgraphExec second;

	begin_graph_tests();
	size_t before = free_memory();
	CUgraph graph = graph_new();
	OK(add_alloc(graph, NULL, BLOCK + 1, &p, &alloc));
	OK(d.cuGraphMemAllocNodeGetParams(alloc, &params));
	CHECK(params.dptr == p && params.bytesize == BLOCK + 1);
	GIVES(CUDA_ERROR_INVALID_VALUE, d.cuGraphMemFreeNodeGetParams(alloc, &q));
	GIVES(CUDA_ERROR_INVALID_VALUE, d.cuGraphAddMemFreeNode(&free_node, graph, &alloc, 1, memory));
	OK(d.cuGraphAddMemFreeNode(&free_node, graph, &alloc, 1, p));
	GIVES(CUDA_ERROR_INVALID_VALUE, d.cuGraphAddMemFreeNode(&again, graph, &alloc, 1, p));
	OK(add_alloc(graph, &free_node, BLOCK + 1, &q, &again)); /* reuses memory that is freed */
	CHECK(q == p);
	OK(d.cuGraphAddMemFreeNode(&free_node, graph, &again, 1, q));
	CUgraphExec exec = exec_new(graph, 0);
	GIVES(CUDA_ERROR_NOT_SUPPORTED, d.cuGraphInstantiateWithFlags(&second, graph, 0));
	CHECK(free_memory() == before);
	run(exec);
	CHECK(held(CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT) == 2 * BLOCK);
	CHECK(before - free_memory() == 2 * BLOCK);
	GIVES(CUDA_ERROR_INVALID_VALUE, d.cuMemFree_v2(p)); /* the graph freed it */
	GIVES(CUDA_ERROR_INVALID_VALUE, d.cuMemsetD8_v2(p, 0, 16));
	OK(d.cuGraphExecDestroy(exec));
	OK(d.cuGraphDestroy(graph));
	CHECK(before - free_memory() == 2 * BLOCK);
	OK(d.cuDeviceGraphMemTrim(0));
	CHECK(free_memory() == before);
	CHECK(held(CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT) == 0);
	CHECK(held(CU_GRAPH_MEM_ATTR_USED_MEM_HIGH) == 2 * BLOCK);
	cuuint64_t zero = 0;
	OK(d.cuDeviceSetGraphMemAttribute(0, CU_GRAPH_MEM_ATTR_USED_MEM_HIGH, &zero));
	CHECK(held(CU_GRAPH_MEM_ATTR_USED_MEM_HIGH) == 0);
}

DRIVER_TEST(memory_outlives_graph)
{
	CUdeviceptr p, base;
	CUgraphNode node;
	unsigned type;
	size_t size;

	begin_graph_tests();
	CUgraph graph = graph_new();
	OK(add_alloc(graph, NULL, MIB, &p, &node));
	GIVES(CUDA_ERROR_INVALID_VALUE, d.cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, p));
	GIVES(CUDA_ERROR_INVALID_VALUE, d.cuMemFree_v2(p));
	CUgraphExec exec = exec_new(graph, 0);
	OK(d.cuGraphLaunch(exec, stream));
	GIVES(CUDA_ERROR_INVALID_VALUE, d.cuGraphLaunch(exec, stream)); /* its memory is allocated */
	CHECK(type_of(p) == CU_MEMORYTYPE_DEVICE);
	OK(d.cuMemGetAddressRange_v2(&base, &size, p + 5));
	CHECK(base == p && size == MIB);
	fill(p, MIB, 3);
	OK(d.cuDeviceGraphMemTrim(0)); /* not memory in use */
	CHECK(mismatches(p, MIB, 3) == 0);
	OK(d.cuMemFreeAsync(p, stream));
	GIVES(CUDA_ERROR_INVALID_VALUE, d.cuMemFreeAsync(p, stream));
	run(exec);
	OK(d.cuMemFree_v2(p));
	run(exec);
	OK(d.cuGraphExecDestroy(exec));
	OK(d.cuGraphDestroy(graph));
	fill(p, MIB, 4);
	CHECK(mismatches(p, MIB, 4) == 0);
	OK(d.cuMemFree_v2(p));
	GIVES(CUDA_ERROR_INVALID_VALUE, d.cuMemFree_v2(p));
}

DRIVER_TEST(freed_by_another_graph)
{
	CUdeviceptr p;
	CUgraphNode node, again;

	begin_graph_tests();
	CUgraph maker = graph_new(), freer = graph_new();
	OK(add_alloc(maker, NULL, MIB, &p, &node));
	OK(d.cuGraphAddMemFreeNode(&again, freer, NULL, 0, p));
	GIVES(CUDA_ERROR_INVALID_VALUE, d.cuGraphAddMemFreeNode(&again, maker, &node, 1, p));
	CUgraphExec make = exec_new(maker, 0), release = exec_new(freer, 0);
	GIVES(CUDA_ERROR_INVALID_VALUE, d.cuGraphLaunch(release, stream));
	for (int i = 0; i < 2; i++) {
		OK(d.cuGraphLaunch(make, stream));
		OK(d.cuGraphLaunch(release, stream));
	}
	OK(d.cuStreamSynchronize(stream));
	GIVES(CUDA_ERROR_INVALID_VALUE, d.cuMemFree_v2(p));
}

DRIVER_TEST(auto_free)
{
	CUdeviceptr p;
	CUgraphNode node;

	begin_graph_tests();
	CUgraph graph = graph_new();
	OK(add_alloc(graph, NULL, MIB, &p, &node));
	CUgraphExec exec = exec_new(graph, CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH);
	run(exec);
	run(exec);
	CHECK(held(CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT) == BLOCK);
	OK(d.cuMemFree_v2(p));
}

/* Memory that graphs keep unused is free for others. Memory of a failed launch is lost for good. */
DRIVER_TEST(out_of_memory)
{
	CUgraphNode node, free_node;
	CUdeviceptr p, q;

	begin_graph_tests();
	size_t room = free_memory(), large = room / 10 * 6 / BLOCK * BLOCK;
	CUgraph graph = graph_new();
	OK(add_alloc(graph, NULL, large, &p, &node));
	OK(d.cuGraphAddMemFreeNode(&free_node, graph, &node, 1, p));
	CUgraphExec exec = exec_new(graph, 0);
	run(exec);
	CHECK(free_memory() < room / 2);
	OK(d.cuMemAlloc_v2(&q, large)); /* the graph gives it back */
	CHECK(held(CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT) == 0);
	GIVES(CUDA_ERROR_OUT_OF_MEMORY, d.cuGraphLaunch(exec, stream));
	CHECK(held(CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT) > 0 && free_memory() < 2 * BLOCK);
	OK(d.cuStreamSynchronize(stream));
	OK(d.cuMemFree_v2(q));
	run(exec);
	OK(d.cuGraphExecDestroy(exec));
	OK(d.cuDeviceGraphMemTrim(0));
	CHECK(held(CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT) == 0);
	CHECK(held(CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT) > 0);
}

DRIVER_TEST(where_it_can_be)
{
	static const struct {
		CUmemLocationType place;
		int type, handles;
		CUresult result;
	} rows[] = {
	    {CU_MEM_LOCATION_TYPE_DEVICE, 1, 0, CUDA_SUCCESS},
	    {CU_MEM_LOCATION_TYPE_DEVICE, 3, 0, CUDA_ERROR_INVALID_VALUE},
	    {CU_MEM_LOCATION_TYPE_DEVICE, 1, 1, CUDA_ERROR_NOT_SUPPORTED},
	    {CU_MEM_LOCATION_TYPE_HOST, 1, 0, CUDA_ERROR_NOT_SUPPORTED},
	    {CU_MEM_LOCATION_TYPE_HOST_NUMA, 1, 0, CUDA_ERROR_NOT_SUPPORTED},
	    {CU_MEM_LOCATION_TYPE_INVALID, 1, 0, CUDA_ERROR_INVALID_VALUE},
	};
	CUgraphNode node;

	begin_graph_tests();
	CUgraph graph = graph_new();
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		CUDA_MEM_ALLOC_NODE_PARAMS params = {
		    .poolProps = {.allocType = (CUmemAllocationType)rows[i].type,
		                  .handleTypes = (CUmemAllocationHandleType)rows[i].handles,
		                  .location = {rows[i].place, 0}},
		    .bytesize = MIB};
		CUgraphNodeParams any = {.type = CU_GRAPH_NODE_TYPE_MEM_ALLOC, .alloc = params};

		GIVES(rows[i].result, d.cuGraphAddMemAllocNode(&node, graph, NULL, 0, &params));
		GIVES(rows[i].result, d.cuGraphAddNode_v2(&node, graph, NULL, NULL, 0, &any));
		CHECK(rows[i].result || any.alloc.dptr);
	}
	CUdeviceptr p;
	GIVES(CUDA_ERROR_INVALID_VALUE, add_alloc(graph, NULL, 0, &p, &node));
	GIVES(CUDA_ERROR_INVALID_DEVICE, d.cuDeviceGraphMemTrim(1000));
}

/* The context is broken afterwards. */
DRIVER_TEST(trimmed_is_gone)
{
	CUgraphNode node, free_node;
	CUdeviceptr p;

	begin_graph_tests();
	CUgraph graph = graph_new();
	OK(add_alloc(graph, NULL, MIB, &p, &node));
	OK(d.cuGraphAddMemFreeNode(&free_node, graph, &node, 1, p));
	run(exec_new(graph, 0));
	OK(d.cuDeviceGraphMemTrim(0));
	OK(RUN(stream, "add", p, 1, 1));
	GIVES(CUDA_ERROR_ILLEGAL_ADDRESS, d.cuStreamSynchronize(stream));
}
