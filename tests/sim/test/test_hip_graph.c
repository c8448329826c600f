/* Graphs that are built node by node, and their updates. Usage: test_hip_graph MODULE. Runs on each soname. */
#include "hip_test.h"

static hipModule_t module;
static hipStream_t stream;
static uint64_t *memory, *host; /* two words each */

static void *add(void)
{
	hipFunction_t found = NULL;

	CHECK(hipModuleGetFunction(&found, module, "add"), hipSuccess);
	return found;
}

static void count(void *counter)
{
	++*(unsigned *)counter;
}

/* Runs the graph on a memory word of 0, and returns what the word is then. */
static uint64_t run_graph(hipGraphExec_t exec)
{
	CHECK(hipMemsetAsync(memory, 0, sizeof(*memory), stream), hipSuccess);
	CHECK(hipGraphLaunch(exec, stream), hipSuccess);
	CHECK(hipMemcpyAsync(host, memory, sizeof(*host), hipMemcpyDeviceToHost, stream), hipSuccess);
	CHECK(hipStreamSynchronize(stream), hipSuccess);
	return *host;
}

static hipGraphNode_t add_node(hipGraph_t graph, const hipGraphNode_t *after, uint64_t value)
{
	uint64_t address = (uint64_t)(uintptr_t)memory, words = 1;
	void *parameters[] = {&address, &words, &value};
	const hipKernelNodeParams kernel = {
	    .func = add(), .gridDim = {1, 1, 1}, .blockDim = {32, 1, 1}, .kernelParams = parameters};
	hipGraphNode_t node = NULL;

	CHECK(hipGraphAddKernelNode(&node, graph, after, after ? 1 : 0, &kernel), hipSuccess);
	return node;
}

/* A kernel, then a child graph of one, then a call of the program. */
static hipGraph_t graph_of(uint64_t first, uint64_t second, unsigned *counter, hipGraphNode_t *nodes)
{
	const hipHostNodeParams call = {count, counter};
	hipGraph_t graph = NULL, child = NULL;

	CHECK(hipGraphCreate(&graph, 0), hipSuccess);
	CHECK(hipGraphCreate(&child, 0), hipSuccess);
	add_node(child, NULL, second);
	nodes[0] = add_node(graph, NULL, first);
	CHECK(hipGraphAddChildGraphNode(&nodes[1], graph, &nodes[0], 1, child), hipSuccess);
	CHECK(hipGraphAddHostNode(&nodes[2], graph, NULL, 0, &call), hipSuccess);
	CHECK(hipGraphAddDependencies(graph, &nodes[1], &nodes[2], 1), hipSuccess);
	CHECK(hipGraphAddEmptyNode(&nodes[3], graph, &nodes[2], 1), hipSuccess);
	CHECK(hipGraphDestroy(child), hipSuccess);
	return graph;
}

static void test_updates(void)
{
	uint64_t address = (uint64_t)(uintptr_t)memory, words = 1, value = 3;
	void *parameters[] = {&address, &words, &value};
	const hipKernelNodeParams kernel = {
	    .func = add(), .gridDim = {1, 1, 1}, .blockDim = {32, 1, 1}, .kernelParams = parameters};
	unsigned one = 0, two = 0;
	const hipHostNodeParams call = {count, &two};
	hipGraphExecUpdateResult info;
	hipGraphNode_t at;
	hipGraphNode_t nodes[4], other[4];
	hipGraphExec_t exec = NULL;

	hipGraph_t graph = graph_of(10, 20, &one, nodes), second = graph_of(100, 200, &two, other);
	CHECK(hipGraphInstantiate(&exec, graph, NULL, NULL, 0), hipSuccess);
	CHECK(run_graph(exec), 30);
	CHECK_TRUE(one == 1 && two == 0);
	CHECK(hipGraphExecUpdate(exec, second, &at, &info), hipSuccess);
	CHECK(info, hipGraphExecUpdateSuccess);
	CHECK(run_graph(exec), 300);
	CHECK_TRUE(one == 1 && two == 1);
	CHECK(hipGraphExecUpdate(exec, graph, &at, &info), hipSuccess);
	CHECK(hipGraphExecKernelNodeSetParams(exec, nodes[0], &kernel), hipSuccess);
	CHECK(run_graph(exec), 23);
	CHECK(hipGraphExecHostNodeSetParams(exec, nodes[2], &call), hipSuccess);
	CHECK(run_graph(exec), 23);
	CHECK_TRUE(one == 2 && two == 2);
	/* More nodes do not fit. */
	add_node(second, NULL, 1);
	CHECK(hipGraphExecUpdate(exec, second, &at, &info), hipErrorGraphExecUpdateFailure);
	CHECK(info, hipGraphExecUpdateErrorTopologyChanged);
	CHECK(run_graph(exec), 23);
	CHECK(hipGraphExecDestroy(exec), hipSuccess);
	CHECK(hipGraphDestroy(second), hipSuccess);
	CHECK(hipGraphDestroy(graph), hipSuccess);
}

static void test_copies_and_sets(void)
{
	const hipMemsetParams set = {.dst = memory, .elementSize = 1, .value = 1, .width = 8, .height = 1};
	const hipMemsetParams again = {
	    .dst = memory + 1, .elementSize = 1, .value = 2, .width = 8, .height = 1};
	hipGraphNode_t nodes[2];
	hipGraphExec_t exec = NULL;
	hipGraph_t graph = NULL;

	CHECK(hipGraphCreate(&graph, 0), hipSuccess);
	CHECK(hipGraphAddMemsetNode(&nodes[0], graph, NULL, 0, &set), hipSuccess);
	CHECK(hipGraphAddMemcpyNode1D(&nodes[1], graph, &nodes[0], 1, host + 1, memory, 8,
	                              hipMemcpyDeviceToHost),
	      hipSuccess);
	CHECK(hipGraphInstantiate(&exec, graph, NULL, NULL, 0), hipSuccess);
	run_graph(exec);
	CHECK(host[1], 0x0101010101010101);
	CHECK(hipGraphExecMemsetNodeSetParams(exec, nodes[0], &again), hipSuccess);
	CHECK(
	    hipGraphExecMemcpyNodeSetParams1D(exec, nodes[1], host + 1, memory + 1, 8, hipMemcpyDeviceToHost),
	    hipSuccess);
	CHECK(run_graph(exec), 0);
	CHECK(host[1], 0x0202020202020202);
	CHECK(hipGraphExecDestroy(exec), hipSuccess);
	CHECK(hipGraphDestroy(graph), hipSuccess);
}

static void test_refusals(void)
{
	const hipHostNodeParams nothing = {0};
	const hipKernelNodeParams no_kernel = {0};
	hipGraph_t graph = NULL;
	hipGraphNode_t node = NULL;

	CHECK(hipGraphCreate(&graph, 0), hipSuccess);
	CHECK(hipGraphAddKernelNode(&node, graph, NULL, 0, NULL), hipErrorInvalidValue);
	CHECK(hipGraphAddKernelNode(&node, graph, NULL, 0, &no_kernel), hipErrorInvalidValue);
	CHECK(hipGraphAddHostNode(&node, graph, NULL, 0, &nothing), hipErrorInvalidValue);
	CHECK(hipGraphAddMemcpyNode1D(&node, graph, NULL, 0, NULL, host, 8, hipMemcpyDefault),
	      hipErrorInvalidValue);
	CHECK(hipGraphAddChildGraphNode(&node, graph, NULL, 0, NULL), hipErrorInvalidValue);
	CHECK(hipGraphAddEmptyNode(&node, graph, NULL, 1), hipErrorInvalidValue);
	CHECK_TRUE(!node);
	CHECK(hipGraphDestroy(graph), hipSuccess);
}

int main(int argc, char **argv)
{
	if (argc < 2)
		return 64;
	CHECK(hipModuleLoad(&module, argv[1]), hipSuccess);
	CHECK(hipStreamCreateWithFlags(&stream, hipStreamNonBlocking), hipSuccess);
	CHECK(hipMalloc((void **)&memory, 4096), hipSuccess);
	CHECK(hipHostMalloc((void **)&host, 4096, 0), hipSuccess);
	test_refusals();
	test_updates();
	test_copies_and_sets();
	CHECK(hipHostFree(host), hipSuccess);
	CHECK(hipFree(memory), hipSuccess);
	CHECK(hipStreamDestroy(stream), hipSuccess);
	return check_result();
}
