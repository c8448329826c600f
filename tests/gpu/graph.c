/*
 * Two graphs with memory of their own, one built node by node, one captured, run over buffers that do not all fit: each
 * takes a scratch buffer, works in it, and gives it back. Run under libspill with a limit below all of it.
 *
 * usage: graph KERNELS COUNT MIB      COUNT buffers of MIB each; the graphs take that once each
 */
#include <cuda.h>
#include <stdio.h>
#include <stdlib.h>

#define BLOCKS 512
#define THREADS 256
#define BUILT 7ull     /* what the built graph adds to each word */
#define CAPTURED 11ull /* and the captured one */

static void check(const char *what, CUresult result)
{
	if (!result)
		return;
	fprintf(stderr, "graph: %s: %d\n", what, (int)result);
	exit(1);
}

static CUcontext context;
static CUstream stream;
static CUfunction fill, verify, add, copy;
static size_t bytes;
static unsigned long long words;

static CUDA_KERNEL_NODE_PARAMS kernel(CUfunction function, void **parameters)
{
	return (CUDA_KERNEL_NODE_PARAMS){.func = function,
	                                 .gridDimX = BLOCKS,
	                                 .gridDimY = 1,
	                                 .gridDimZ = 1,
	                                 .blockDimX = THREADS,
	                                 .blockDimY = 1,
	                                 .blockDimZ = 1,
	                                 .kernelParams = parameters};
}

static void launch(CUfunction function, void **parameters)
{
	check("launch", cuLaunchKernel(function, BLOCKS, 1, 1, THREADS, 1, 1, 0, stream, parameters, NULL));
}

/* A graph, and the two of its nodes that name the buffer it works on. */
struct graph {
	CUgraph graph;
	CUgraphExec ready;
	CUgraphNode in, out;
	CUdeviceptr scratch;
};

static void build(struct graph *graph, CUdeviceptr buffer)
{
	unsigned long long value = BUILT;
	CUDA_MEM_ALLOC_NODE_PARAMS want = {.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
	                                   .poolProps.location.type = CU_MEM_LOCATION_TYPE_DEVICE,
	                                   .bytesize = bytes};
	CUgraphNode alloc, work, end;
	check("graph", cuGraphCreate(&graph->graph, 0));
	check("allocation node", cuGraphAddMemAllocNode(&alloc, graph->graph, NULL, 0, &want));
	graph->scratch = want.dptr;
	CUDA_KERNEL_NODE_PARAMS in = kernel(copy, (void *[]){&graph->scratch, &buffer, &words});
	CUDA_KERNEL_NODE_PARAMS adds = kernel(add, (void *[]){&graph->scratch, &words, &value});
	CUDA_KERNEL_NODE_PARAMS out = kernel(copy, (void *[]){&buffer, &graph->scratch, &words});
	check("in", cuGraphAddKernelNode(&graph->in, graph->graph, &alloc, 1, &in));
	check("add", cuGraphAddKernelNode(&work, graph->graph, &graph->in, 1, &adds));
	check("out", cuGraphAddKernelNode(&graph->out, graph->graph, &work, 1, &out));
	check("free node", cuGraphAddMemFreeNode(&end, graph->graph, &graph->out, 1, graph->scratch));
	check("instantiate", cuGraphInstantiate(&graph->ready, graph->graph, 0));
}

/* The first and the last kernel of the captured chain: those that name the buffer. */
static void find_kernels(struct graph *graph)
{
	CUgraphNode nodes[8];
	size_t count = 8;
	CUgraphNodeType type;
	check("nodes", cuGraphGetNodes(graph->graph, nodes, &count));
	for (size_t i = 0; i < count; i++) {
		CUDA_KERNEL_NODE_PARAMS found;
		check("type", cuGraphNodeGetType(nodes[i], &type));
		if (type != CU_GRAPH_NODE_TYPE_KERNEL)
			continue;
		check("parameters", cuGraphKernelNodeGetParams(nodes[i], &found));
		if (found.func != copy)
			continue;
		if (*(CUdeviceptr *)found.kernelParams[0] == graph->scratch)
			graph->in = nodes[i];
		else
			graph->out = nodes[i];
	}
}

static void capture(struct graph *graph, CUdeviceptr buffer)
{
	unsigned long long value = CAPTURED;
	check("capture", cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
	check("captured allocation", cuMemAllocAsync(&graph->scratch, bytes, stream));
	launch(copy, (void *[]){&graph->scratch, &buffer, &words});
	launch(add, (void *[]){&graph->scratch, &words, &value});
	launch(copy, (void *[]){&buffer, &graph->scratch, &words});
	check("captured free", cuMemFreeAsync(graph->scratch, stream));
	check("end of capture", cuStreamEndCapture(stream, &graph->graph));
	find_kernels(graph);
	check("instantiate", cuGraphInstantiate(&graph->ready, graph->graph, 0));
}

static void run_on(struct graph *graph, CUdeviceptr buffer)
{
	CUDA_KERNEL_NODE_PARAMS in = kernel(copy, (void *[]){&graph->scratch, &buffer, &words});
	CUDA_KERNEL_NODE_PARAMS out = kernel(copy, (void *[]){&buffer, &graph->scratch, &words});
	check("retarget", cuGraphExecKernelNodeSetParams(graph->ready, graph->in, &in));
	check("retarget", cuGraphExecKernelNodeSetParams(graph->ready, graph->out, &out));
	check("graph launch", cuGraphLaunch(graph->ready, stream));
}

static void start(const char *kernels)
{
	CUmodule module;
	CUdevice device;
	check("init", cuInit(0));
	check("device", cuDeviceGet(&device, 0));
	check("context", cuDevicePrimaryCtxRetain(&context, device));
	check("context", cuCtxSetCurrent(context));
	check("stream", cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	check("module", cuModuleLoad(&module, kernels));
	check("fill", cuModuleGetFunction(&fill, module, "fill"));
	check("verify", cuModuleGetFunction(&verify, module, "verify"));
	check("add", cuModuleGetFunction(&add, module, "add"));
	check("copy", cuModuleGetFunction(&copy, module, "copy"));
}

int main(int count, char **arguments)
{
	struct graph graphs[2];
	CUdeviceptr wrong, *buffers;
	unsigned long long found = 0, back = -(BUILT + CAPTURED);
	if (count != 4)
		return 2;
	int buffer_count = atoi(arguments[2]);
	bytes = strtoull(arguments[3], NULL, 10) << 20;
	words = bytes / 8;
	start(arguments[1]);
	buffers = calloc((size_t)buffer_count, sizeof(*buffers));
	check("counter", cuMemAlloc(&wrong, 8));
	check("clear", cuMemsetD8(wrong, 0, 8));
	check("first", cuMemAlloc(&buffers[0], bytes));
	build(&graphs[0], buffers[0]);
	capture(&graphs[1], buffers[0]);
	/* The graphs' memory is taken at their first launch, and only on the device: before the rest. */
	for (int i = 0; i < 2; i++)
		run_on(&graphs[i], buffers[0]);
	for (int i = 1; i < buffer_count; i++)
		check("allocation", cuMemAlloc(&buffers[i], bytes));
	for (unsigned long long i = 0; i < (unsigned long long)buffer_count; i++)
		launch(fill, (void *[]){&buffers[i], &words, &i});
	for (int i = 0; i < 2 * buffer_count; i++)
		run_on(&graphs[i % 2], buffers[i / 2]);
	for (unsigned long long i = 0; i < (unsigned long long)buffer_count; i++) {
		launch(add, (void *[]){&buffers[i], &words, &back});
		launch(verify, (void *[]){&buffers[i], &words, &i, &wrong});
	}
	check("work", cuStreamSynchronize(stream));
	check("copy out", cuMemcpyDtoH(&found, wrong, 8));
	printf("%d buffers of %s MiB through two graphs with memory of their own: %llu words wrong\n",
	       buffer_count, arguments[3], found);
	for (int i = 0; i < buffer_count; i++)
		check("free", cuMemFree(buffers[i]));
	for (int i = 0; i < 2; i++) {
		check("destroy", cuGraphExecDestroy(graphs[i].ready));
		check("destroy", cuGraphDestroy(graphs[i].graph));
	}
	check("trim", cuDeviceGraphMemTrim(0));
	return found != 0;
}
