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
	test_memory_node();
	return check_result();
}
