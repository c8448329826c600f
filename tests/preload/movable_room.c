/*
 * Words about calls that take device memory and allocate no buffer; what each makes is kept:
 *
 *	module library function first:A   code; a function of it loaded by cuFuncLoad; one by its first launch, which fills A
 *	stream event context
 *	graph:A run                       an executable graph that fills A; launches it
 *	stack:BYTES                       cuCtxSetLimit
 */
#include "movable.h"

#include <stdlib.h>
#include <string.h>

static CUmodule module; /* the last that was loaded */
static CUgraphExec exec;

static CUresult fill(CUfunction function, struct block *block)
{
	uint64_t words = block->bytes / 8;
	void *parameters[] = {&block->address, &words, &block->seed};

	block->seed = movable_seed();
	return movable_launch(function, movable_stream, parameters);
}

/* The first launch of a function is when the driver loads it. */
static CUresult first_launch(struct block *block)
{
	CUfunction function;
	CUresult result = module ? CUDA_SUCCESS : cuModuleLoad(&module, movable_kernels);

	if (!result)
		result = cuModuleGetFunction(&function, module, "fill");
	if (!result)
		result = fill(function, block);
	return result ? result : cuStreamSynchronize(movable_stream);
}

static CUresult load_function(void)
{
	CUfunction function;
	CUresult result = module ? CUDA_SUCCESS : cuModuleLoad(&module, movable_kernels);

	if (!result)
		result = cuModuleGetFunction(&function, module, "add");
	return result ? result : cuFuncLoad(function);
}

/* Its code is loaded where it is wanted. */
static CUresult load_library(void)
{
	CUmodule loaded;
	CUlibrary library;
	CUresult result = cuLibraryLoadFromFile(&library, movable_kernels, NULL, NULL, 0, NULL, NULL, 0);

	return result ? result : cuLibraryGetModule(&loaded, library);
}

static CUresult make_graph(struct block *block)
{
	CUgraph graph;
	CUresult result = cuStreamBeginCapture_v2(movable_stream, CU_STREAM_CAPTURE_MODE_RELAXED);

	if (!result)
		result = fill(movable_fill, block);
	CUresult ended = cuStreamEndCapture(movable_stream, &graph);
	result = result ? result : ended;
	return result ? result : cuGraphInstantiateWithFlags(&exec, graph, 0);
}

static CUresult run(void)
{
	CUresult result = cuGraphLaunch(exec, movable_stream);

	return result ? result : cuStreamSynchronize(movable_stream);
}

static CUresult context(void)
{
	CUcontext made;
	CUresult result = cuCtxCreate_v2(&made, 0, 0);

	cuCtxSetCurrent(movable_context);
	return result;
}

bool movable_room_word(const char *word, const char *first, CUresult *result)
{
	struct block *block = &movable_blocks[first && first[0] >= 'a' ? (first[0] - 'a') % 26u : 0];
	CUstream stream;
	CUevent event;

	if (!strcmp(word, "module"))
		*result = cuModuleLoad(&module, movable_kernels);
	else if (!strcmp(word, "library"))
		*result = load_library();
	else if (!strcmp(word, "function"))
		*result = load_function();
	else if (!strcmp(word, "first"))
		*result = first_launch(block);
	else if (!strcmp(word, "stream"))
		*result = cuStreamCreate(&stream, 1);
	else if (!strcmp(word, "event"))
		*result = cuEventCreate(&event, 2);
	else if (!strcmp(word, "context"))
		*result = context();
	else if (!strcmp(word, "graph"))
		*result = make_graph(block);
	else if (!strcmp(word, "run"))
		*result = run();
	else if (!strcmp(word, "stack") && first)
		*result = cuCtxSetLimit(0, (size_t)strtoull(first, NULL, 10));
	else
		return false;
	return true;
}
