/* Capture and graphs of the runtime: contract tests as test_runtime.c. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "cudart_api.h"
#include "check.h"

static cudaLibrary_t library;
static uint64_t *memory, *host; /* one word each */
static cudaStream_t stream;

static void *add(void)
{
	cudaKernel_t found = NULL;

	CHECK(cudaLibraryGetKernel(&found, library, "add"), cudaSuccess);
	return found;
}

static void test_capture(void)
{
	uint64_t address = (uint64_t)(uintptr_t)memory, words = 1, value = 5;
	void *parameters[] = {&address, &words, &value}, *scratch = NULL, *plain = NULL;
	enum cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
	enum cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
	unsigned long long id = 0;
	cudaGraphExec_t exec = NULL;
	cudaGraph_t graph = NULL;
	size_t nodes = 0;

	CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal), cudaSuccess);
	CHECK(cudaStreamIsCapturing(stream, &status), cudaSuccess);
	CHECK(status, cudaStreamCaptureStatusActive);
	CHECK(cudaStreamGetCaptureInfo(stream, &status, &id, NULL, NULL, NULL, NULL), cudaSuccess);
	CHECK_TRUE(id);
	CHECK(cudaMallocAsync(&scratch, 4096, stream), cudaSuccess);
	CHECK(cudaMemsetAsync(memory, 0, sizeof(*memory), stream), cudaSuccess);
	CHECK(cudaLaunchKernel(add(), (dim3){1, 1, 1}, (dim3){32, 1, 1}, parameters, 0, stream), cudaSuccess);
	CHECK(cudaMemcpyAsync(host, memory, sizeof(*host), cudaMemcpyDeviceToHost, stream), cudaSuccess);
	CHECK(cudaFreeAsync(scratch, stream), cudaSuccess);
	CHECK(cudaStreamEndCapture(stream, &graph), cudaSuccess);
	CHECK(cudaGraphGetNodes(graph, NULL, &nodes), cudaSuccess);
	CHECK(nodes, 5);
	CHECK(cudaGraphInstantiate(&exec, graph, 0), cudaSuccess);
	CHECK(*host, 0);
	CHECK(cudaGraphLaunch(exec, stream), cudaSuccess);
	CHECK(cudaStreamSynchronize(stream), cudaSuccess);
	CHECK(*host, 5);
	CHECK(cudaGraphExecDestroy(exec), cudaSuccess);
	CHECK(cudaGraphDestroy(graph), cudaSuccess);
	CHECK(cudaDeviceGraphMemTrim(0), cudaSuccess);

	CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal), cudaSuccess);
	CHECK(cudaMalloc(&plain, 4096), cudaErrorStreamCaptureUnsupported);
	CHECK(cudaPeekAtLastError(), cudaErrorStreamCaptureUnsupported);
	CHECK(cudaStreamEndCapture(stream, &graph), cudaErrorStreamCaptureInvalidated);
	CHECK_TRUE(!graph);
	cudaGetLastError();
	CHECK(cudaThreadExchangeStreamCaptureMode(&mode), cudaSuccess);
	CHECK(mode, cudaStreamCaptureModeGlobal);
	CHECK(cudaThreadExchangeStreamCaptureMode(&mode), cudaSuccess);
}

static void test_graph(void)
{
	uint64_t address = (uint64_t)(uintptr_t)memory, words = 1, value = 7;
	void *parameters[] = {&address, &words, &value};
	struct cudaKernelNodeParams kernel = {
	    .func = add(), .gridDim = {1, 1, 1}, .blockDim = {32, 1, 1}, .kernelParams = parameters};
	struct cudaMemsetParams zero = {.dst = memory, .elementSize = 4, .value = 1, .width = 2, .height = 1};
	cudaGraphNode_t set, run, copy;
	cudaGraphExec_t exec = NULL;
	cudaGraph_t graph = NULL;

	CHECK(cudaGraphCreate(&graph, 0), cudaSuccess);
	CHECK(cudaGraphAddMemsetNode(&set, graph, NULL, 0, &zero), cudaSuccess);
	CHECK(cudaGraphAddKernelNode(&run, graph, &set, 1, &kernel), cudaSuccess);
	CHECK(cudaGraphAddMemcpyNode1D(&copy, graph, &run, 1, host, memory, sizeof(*host),
	                               cudaMemcpyDeviceToHost),
	      cudaSuccess);
	CHECK(cudaGraphAddMemFreeNode(&copy, graph, NULL, 0, memory), cudaErrorInvalidValue);
	cudaGetLastError();
	CHECK(cudaGraphInstantiateWithFlags(&exec, graph, 0), cudaSuccess);
	CHECK(cudaGraphUpload(exec, stream), cudaSuccess);
	CHECK(cudaGraphLaunch(exec, stream), cudaSuccess);
	CHECK(cudaStreamSynchronize(stream), cudaSuccess);
	CHECK(*host, 0x100000008);
	CHECK(cudaGraphExecDestroy(exec), cudaSuccess);
	CHECK(cudaGraphDestroy(graph), cudaSuccess);
}

static void count(void *counter)
{
	++*(unsigned *)counter;
}

/* Runs the graph on a memory word of 0, and returns what the word is then. */
static uint64_t run_graph(cudaGraphExec_t exec)
{
	CHECK(cudaMemsetAsync(memory, 0, sizeof(*memory), stream), cudaSuccess);
	CHECK(cudaGraphLaunch(exec, stream), cudaSuccess);
	CHECK(cudaMemcpyAsync(host, memory, sizeof(*host), cudaMemcpyDeviceToHost, stream), cudaSuccess);
	CHECK(cudaStreamSynchronize(stream), cudaSuccess);
	return *host;
}

static cudaGraphNode_t add_node(cudaGraph_t graph, const cudaGraphNode_t *after, uint64_t value)
{
	uint64_t address = (uint64_t)(uintptr_t)memory, words = 1;
	void *parameters[] = {&address, &words, &value};
	const struct cudaKernelNodeParams kernel = {
	    .func = add(), .gridDim = {1, 1, 1}, .blockDim = {32, 1, 1}, .kernelParams = parameters};
	cudaGraphNode_t node = NULL;

	CHECK(cudaGraphAddKernelNode(&node, graph, after, after ? 1 : 0, &kernel), cudaSuccess);
	return node;
}

/* A kernel, then a child graph of one, then a call of the program. */
static cudaGraph_t graph_of(uint64_t first, uint64_t second, unsigned *counter, cudaGraphNode_t *nodes)
{
	const struct cudaHostNodeParams call = {count, counter};
	cudaGraph_t graph = NULL, child = NULL;

	CHECK(cudaGraphCreate(&graph, 0), cudaSuccess);
	CHECK(cudaGraphCreate(&child, 0), cudaSuccess);
	add_node(child, NULL, second);
	nodes[0] = add_node(graph, NULL, first);
	CHECK(cudaGraphAddChildGraphNode(&nodes[1], graph, &nodes[0], 1, child), cudaSuccess);
	CHECK(cudaGraphAddHostNode(&nodes[2], graph, NULL, 0, &call), cudaSuccess);
	CHECK(cudaGraphAddDependencies(graph, &nodes[1], &nodes[2], NULL, 1), cudaSuccess);
	CHECK(cudaGraphAddEmptyNode(&nodes[3], graph, &nodes[2], 1), cudaSuccess);
	CHECK(cudaGraphDestroy(child), cudaSuccess);
	return graph;
}

static void test_updates(void)
{
	uint64_t address = (uint64_t)(uintptr_t)memory, words = 1, value = 3;
	void *parameters[] = {&address, &words, &value};
	const struct cudaKernelNodeParams kernel = {
	    .func = add(), .gridDim = {1, 1, 1}, .blockDim = {32, 1, 1}, .kernelParams = parameters};
	unsigned one = 0, two = 0;
	const struct cudaHostNodeParams call = {count, &two};
	cudaGraphExecUpdateResultInfo info;
	cudaGraphNode_t nodes[4], other[4];
	cudaGraphExec_t exec = NULL;

	cudaGraph_t graph = graph_of(10, 20, &one, nodes), second = graph_of(100, 200, &two, other);
	CHECK(cudaGraphInstantiate(&exec, graph, 0), cudaSuccess);
	CHECK(run_graph(exec), 30);
	CHECK_TRUE(one == 1 && two == 0);
	CHECK(cudaGraphExecUpdate(exec, second, &info), cudaSuccess);
	CHECK(info.result, cudaGraphExecUpdateSuccess);
	CHECK(run_graph(exec), 300);
	CHECK_TRUE(one == 1 && two == 1);
	CHECK(cudaGraphExecUpdate(exec, graph, &info), cudaSuccess);
	CHECK(cudaGraphExecKernelNodeSetParams(exec, nodes[0], &kernel), cudaSuccess);
	CHECK(run_graph(exec), 23);
	CHECK(cudaGraphExecHostNodeSetParams(exec, nodes[2], &call), cudaSuccess);
	CHECK(run_graph(exec), 23);
	CHECK_TRUE(one == 2 && two == 2);
	/* More nodes do not fit. */
	add_node(second, NULL, 1);
	CHECK(cudaGraphExecUpdate(exec, second, &info), cudaErrorGraphExecUpdateFailure);
	CHECK(info.result, cudaGraphExecUpdateErrorTopologyChanged);
	cudaGetLastError();
	CHECK(run_graph(exec), 23);
	CHECK(cudaGraphExecDestroy(exec), cudaSuccess);
	CHECK(cudaGraphDestroy(second), cudaSuccess);
	CHECK(cudaGraphDestroy(graph), cudaSuccess);
}

static void test_copies_and_sets(void)
{
	const struct cudaMemsetParams set = {
	    .dst = memory, .elementSize = 1, .value = 1, .width = 8, .height = 1};
	const struct cudaMemsetParams again = {
	    .dst = memory + 1, .elementSize = 1, .value = 2, .width = 8, .height = 1};
	cudaGraphNode_t nodes[2];
	cudaGraphExec_t exec = NULL;
	cudaGraph_t graph = NULL;

	CHECK(cudaGraphCreate(&graph, 0), cudaSuccess);
	CHECK(cudaGraphAddMemsetNode(&nodes[0], graph, NULL, 0, &set), cudaSuccess);
	CHECK(cudaGraphAddMemcpyNode1D(&nodes[1], graph, &nodes[0], 1, host + 1, memory, 8,
	                               cudaMemcpyDeviceToHost),
	      cudaSuccess);
	CHECK(cudaGraphInstantiate(&exec, graph, 0), cudaSuccess);
	run_graph(exec);
	CHECK(host[1], 0x0101010101010101);
	CHECK(cudaGraphExecMemsetNodeSetParams(exec, nodes[0], &again), cudaSuccess);
	CHECK(cudaGraphExecMemcpyNodeSetParams1D(exec, nodes[1], host + 1, memory + 1, 8,
	                                         cudaMemcpyDeviceToHost),
	      cudaSuccess);
	CHECK(run_graph(exec), 0);
	CHECK(host[1], 0x0202020202020202);
	CHECK(cudaGraphExecDestroy(exec), cudaSuccess);
	CHECK(cudaGraphDestroy(graph), cudaSuccess);
}

#ifdef REAL_HEADERS /* the parameters' types are in the vendor's headers only */
static void test_memory_node(void)
{
	struct cudaMemAllocNodeParams params = {.bytesize = 4096};
	cudaGraphNode_t alloc, free_node;
	cudaGraphExec_t exec = NULL;
	cudaGraph_t graph = NULL;

	params.poolProps.allocType = cudaMemAllocationTypePinned;
	params.poolProps.location.type = cudaMemLocationTypeDevice;
	CHECK(cudaGraphCreate(&graph, 0), cudaSuccess);
	CHECK(cudaGraphAddMemAllocNode(&alloc, graph, NULL, 0, &params), cudaSuccess);
	CHECK_TRUE(params.dptr);
	CHECK(cudaGraphAddMemFreeNode(&free_node, graph, &alloc, 1, params.dptr), cudaSuccess);
	CHECK(cudaGraphInstantiate(&exec, graph, 0), cudaSuccess);
	CHECK(cudaGraphLaunch(exec, stream), cudaSuccess);
	CHECK(cudaStreamSynchronize(stream), cudaSuccess);
	CHECK(cudaGraphExecDestroy(exec), cudaSuccess);
	CHECK(cudaGraphDestroy(graph), cudaSuccess);
}
#else
static void test_memory_node(void)
{
}
#endif

int main(int argc, char **argv)
{
	if (argc < 2) {
		fprintf(stderr, "usage: %s MODULE\n", argv[0]);
		return 2;
	}
	CHECK(cudaLibraryLoadFromFile(&library, argv[1], NULL, NULL, 0, NULL, NULL, 0), cudaSuccess);
	CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
	CHECK(cudaMalloc((void **)&memory, 4096), cudaSuccess);
	CHECK(cudaMallocHost((void **)&host, 4096), cudaSuccess);
	*host = 0;
	test_capture();
	test_graph();
	test_updates();
	test_copies_and_sets();
	test_memory_node();
	return check_result();
}
