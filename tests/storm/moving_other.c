/* Other calls than plain work: captures, new streams, loaded code, a kernel that waits, questions. */
#include "moving.h"

#include <stdio.h>
#include <string.h>

#define READ_STRIDE (128 << 10) /* words: some reads in each chunk, so that a pass over the block is short */

/* -- graphs ---------------------------------------------------------------------------------------------- */

/* Pieces of a graph: `from` is filled from from_piece on, two, which are copied; then one is set. */
#define FILLED 2
#define COPIED (FILLED + 1)

static void submit(struct moving_worker *worker, const struct moving_graph *graph, unsigned stream)
{
	CUdeviceptr address = moving_at(graph->from, graph->from_piece);
	uint64_t words = FILLED * MOVING_WORDS, seed = graph->seed;
	void *parameters[] = {&address, &words, &seed};

	if (graph->node)
		moving_must(worker, "cuMemAllocAsync in a capture",
		            cuMemAllocAsync(&address, FILLED * MOVING_PIECE, worker->streams[stream]));
	moving_launch(worker, moving_code(worker, stream)->fill, stream, parameters);
	moving_must(worker, "cuMemcpyDtoDAsync in a capture",
	            cuMemcpyDtoDAsync_v2(moving_at(graph->to, graph->to_piece), address,
	                                 FILLED * MOVING_PIECE, worker->streams[stream]));
	moving_must(worker, "cuMemsetD32Async in a capture",
	            cuMemsetD32Async(moving_at(graph->to, graph->to_piece + FILLED), graph->word,
	                             MOVING_PIECE / 4, worker->streams[stream]));
	if (graph->node)
		moving_must(worker, "cuMemFreeAsync in a capture",
		            cuMemFreeAsync(address, worker->streams[stream]));
}

/* The other threads go on while this one captures: nothing may move then. */
static bool capture(struct moving_worker *worker, struct moving_graph *graph, unsigned stream)
{
	CUgraph made = NULL;
	CUstreamCaptureMode mode =
	    moving_random(worker, 2) ? CU_STREAM_CAPTURE_MODE_THREAD_LOCAL : CU_STREAM_CAPTURE_MODE_RELAXED;

	moving_sync(worker);
	if (!moving_must(worker, "cuStreamBeginCapture",
	                 cuStreamBeginCapture_v2(worker->streams[stream], mode)))
		return false;
	submit(worker, graph, stream);
	if (!moving_must(worker, "cuStreamEndCapture", cuStreamEndCapture(worker->streams[stream], &made)))
		return false;
	bool instantiated = moving_may(worker, "cuGraphInstantiateWithFlags",
	                               cuGraphInstantiateWithFlags(&graph->exec, made, 0));
	moving_must(worker, "cuGraphDestroy", cuGraphDestroy(made));
	if (instantiated && moving_random(worker, 2))
		moving_may(worker, "cuGraphUpload", cuGraphUpload(graph->exec, worker->streams[stream]));
	return instantiated;
}

static void make_graph(struct moving_worker *worker, struct moving_graph *graph)
{
	struct moving_block *from = moving_some(worker), *to = moving_some(worker);
	uint64_t whole_from = from->bytes / MOVING_PIECE, whole_to = to->bytes / MOVING_PIECE;

	if (from == to || whole_from < FILLED || whole_to < COPIED || !moving_reaches(from, worker->device) ||
	    !moving_reaches(to, worker->device))
		return;
	*graph = (struct moving_graph){
	    .node = moving_random(worker, 3) == 0,
	    .from = from,
	    .to = to,
	    .from_piece = moving_random(worker, whole_from - FILLED + 1),
	    .to_piece = moving_random(worker, whole_to - COPIED + 1),
	    .seed = moving_random(worker, (uint64_t)1 << 32),
	    .word = (uint32_t)moving_random(worker, (uint64_t)1 << 32),
	};
	if (!capture(worker, graph, (unsigned)moving_random(worker, MOVING_STREAMS))) {
		*graph = (struct moving_graph){0};
		return;
	}
	from->graphs++;
	to->graphs++;
}

static void launch_graph(struct moving_worker *worker, struct moving_graph *graph)
{
	unsigned stream = (unsigned)moving_random(worker, MOVING_STREAMS);
	struct moving_content word = {(uint64_t)graph->word << 32 | graph->word, true};

	moving_use(worker, graph->from, stream);
	moving_use(worker, graph->to, stream);
	if (!moving_may(worker, "cuGraphLaunch", cuGraphLaunch(graph->exec, worker->streams[stream])))
		return;
	if (!graph->node)
		moving_expect(graph->from, graph->from_piece, FILLED, graph->seed);
	moving_expect(graph->to, graph->to_piece, FILLED, graph->seed);
	graph->to->content[graph->to_piece + FILLED] = word;
}

void moving_end_graphs(struct moving_worker *worker, const struct moving_block *block)
{
	for (unsigned i = 0; i < MOVING_GRAPHS; i++) {
		struct moving_graph *graph = &worker->graphs[i];
		if (!graph->exec || (block && graph->from != block && graph->to != block))
			continue;
		moving_must(worker, "cuGraphExecDestroy", cuGraphExecDestroy(graph->exec));
		graph->from->graphs--;
		graph->to->graphs--;
		*graph = (struct moving_graph){0};
	}
}

/* -- what comes and goes --------------------------------------------------------------------------------- */

static void renew_stream(struct moving_worker *worker)
{
	unsigned which = (unsigned)moving_random(worker, moving_streams());
	CUstream fresh;
	moving_enter(worker, moving_device_of(worker, which));
	CUresult result =
	    moving_random(worker, 2) ? cuStreamCreate(&fresh, 1) : cuStreamCreateWithPriority(&fresh, 1, -1);
	moving_enter(worker, worker->device);

	if (!moving_may(worker, "cuStreamCreate", result))
		return;
	moving_sync(worker); /* what is on the old one is in no order with the new one */
	moving_must(worker, "cuStreamDestroy", cuStreamDestroy_v2(worker->streams[which]));
	worker->streams[which] = fresh;
}

static void renew_event(struct moving_worker *worker)
{
	CUevent fresh, *event = &worker->event[worker->device];

	if (!moving_may(worker, "cuEventCreate", cuEventCreate(&fresh, 2)))
		return;
	moving_must(worker, "cuEventDestroy", cuEventDestroy_v2(*event));
	*event = fresh;
}

/* Code of its own fills some of the block. */
static void load_module(struct moving_worker *worker, struct moving_block *block)
{
	CUfunction *fill = &worker->code[worker->device].fill, usual = *fill;
	CUmodule module;

	moving_let_go(worker); /* unloading waits for the context's work */
	if (!moving_may(worker, "cuModuleLoad", cuModuleLoad(&module, moving_kernels)))
		return;
	if (moving_may(worker, "cuModuleGetFunction", cuModuleGetFunction(fill, module, "fill")) &&
	    moving_reaches(block, worker->device)) {
		moving_use_on(worker, block, worker->device);
		moving_fill(worker, block, 0, 1);
	}
	*fill = usual;
	moving_sync(worker);
	moving_must(worker, "cuModuleUnload", cuModuleUnload(module));
}

static void load_library(struct moving_worker *worker, struct moving_block *block)
{
	CUfunction *fill = &worker->code[worker->device].fill, usual = *fill;
	CUlibrary library;
	CUkernel kernel;

	moving_let_go(worker);
	if (!moving_may(worker, "cuLibraryLoadFromFile",
	                cuLibraryLoadFromFile(&library, moving_kernels, NULL, NULL, 0, NULL, NULL, 0)))
		return;
	if (moving_may(worker, "cuLibraryGetKernel", cuLibraryGetKernel(&kernel, library, "fill")) &&
	    moving_reaches(block, worker->device)) {
		*fill = (CUfunction)kernel; /* a kernel may stand where a function is wanted */
		moving_use_on(worker, block, worker->device);
		moving_fill(worker, block, 0, 1);
	}
	*fill = usual;
	moving_sync(worker);
	moving_must(worker, "cuLibraryUnload", cuLibraryUnload(library));
}

/* The rest of the block's stream comes after a kernel that ends some steps later, or when somebody must wait. */
static void hold(struct moving_worker *worker, struct moving_block *block)
{
	uint64_t flag = (uintptr_t)worker->hold, address = block->address,
	         words = moving_span(block, 0, 1) / 8, seed = moving_random(worker, (uint64_t)1 << 32);
	void *parameters[] = {&flag, &address, &words, &seed};

	if (moving_no_holds || worker->held || moving_random(worker, 3))
		return; /* everybody's moves wait for it, in vain: not too often */
	moving_sync(worker);
	atomic_store(worker->hold, 0);
	worker->held = worker->step + 1 + moving_random(worker, 10);
	moving_expect(block, 0, 1, seed);
	moving_launch(worker, moving_code(worker, block->stream)->hold_fill, block->stream, parameters);
}

/* Of the blocks that both devices reach; NULL: there is none. */
static struct moving_block *largest(struct moving_worker *worker)
{
	struct moving_block *found = NULL;

	for (unsigned i = 0; i < MOVING_BLOCKS; i++) {
		struct moving_block *block = &worker->blocks[i];
		if (block->kind && moving_reaches(block, 1 - block->device) &&
		    (!found || block->bytes > found->bytes))
			found = block;
	}
	return found;
}

void moving_across(struct moving_worker *worker)
{
	struct moving_block *block = largest(worker);
	uint64_t flag = (uintptr_t)worker->hold, address = 0, words = 0, stride = READ_STRIDE,
	         sum = (uintptr_t)worker->sum;
	void *parameters[] = {&flag, &address, &words, &stride, &sum};

	if (moving_no_holds || worker->held || !block)
		return;
	address = block->address;
	words = block->bytes / 8;
	moving_sync(worker);
	moving_use_on(worker, block, 1 - block->device);
	atomic_store(worker->hold, 0);
	worker->held = worker->step + 1 + moving_random(worker, 4);
	moving_launch(worker, moving_code(worker, block->stream)->read_until, block->stream, parameters);
}

/* Wherever its chunks are, it is one plain allocation on the device. */
static void ask(struct moving_worker *worker, const struct moving_block *block)
{
	CUdeviceptr base = 0, inside = block->address + moving_random(worker, block->bytes);
	size_t bytes = 0, total = 0;
	int type = 0, managed = 1;

	moving_must(worker, "cuMemGetInfo", cuMemGetInfo_v2(&bytes, &total));
	moving_must(worker, "cuMemGetAddressRange", cuMemGetAddressRange_v2(&base, &bytes, inside));
	moving_must(worker, "memory type",
	            cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, inside));
	moving_must(worker, "managed",
	            cuPointerGetAttribute(&managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, inside));
	bool range = block->kind == MOVING_POOL || (base == block->address && bytes == block->bytes);
	bool as_made = managed == (block->kind == MOVING_MANAGED);
	if (!worker->failed && (!range || type != CU_MEMORYTYPE_DEVICE || !as_made)) {
		fprintf(stderr, "thread %u, step %llu: kind %d type %d managed %d, %zu of %llu bytes\n",
		        worker->index, (unsigned long long)worker->step, (int)block->kind, type, managed,
		        bytes, (unsigned long long)block->bytes);
		moving_must(worker, "what the driver says of a block", CUDA_ERROR_UNKNOWN);
	}
}

void moving_other(struct moving_worker *worker)
{
	struct moving_block *block = moving_some(worker);
	struct moving_graph *graph = &worker->graphs[moving_random(worker, MOVING_GRAPHS)];
	uint64_t dice = moving_random(worker, 64);

	if (dice < 32 && graph->exec)
		launch_graph(worker, graph);
	else if (dice < 40 && !graph->exec)
		make_graph(worker, graph);
	else if (dice < 42)
		moving_end_graphs(worker, graph->from);
	else if (dice < 45)
		renew_stream(worker);
	else if (dice < 48)
		renew_event(worker);
	else if (dice < 49)
		load_module(worker, block);
	else if (dice < 50)
		load_library(worker, block);
	else if (dice < 53)
		hold(worker, block);
	else if (dice < 56)
		moving_array(worker);
	else
		ask(worker, block);
}
