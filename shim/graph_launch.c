#include "graph_launch.h"

#include <errno.h>
#include <stdlib.h>

#include "capture.h"
#include "clock.h"
#include "descriptors.h"
#include "graph_access.h"
#include "graph_ask.h"
#include "graph_copies.h"
#include "graph_modes.h"
#include "layouts.h"
#include "nodes.h"
#include "registry.h"
#include "work.h"

/*
 * A stream takes 1,021 launches, and the next one waits for the first (measured: docs/measurements.md). If the stream waits
 * for something that the program does after its call, that would be for ever, and a launch of a graph would not. So nodes
 * are launched only on a stream that has nothing to do, which is waited for no longer than this.
 */
#define WAIT_NS 1000000000ull
#define LOOK_NS 20000ull
/* A kernel with more shared memory needs an attribute of its function, which the program may have changed since. */
#define USUAL_SHARED (48u << 10)

/* -- order between launches. pre of all: this thread's calls are our own ----------------------- */

/* Before the first node, so that nothing can fail behind the last. */
static bool has_event(struct spill_graph_nodes *nodes)
{
	return nodes->order.done || spill_ask_cuEventCreate(&nodes->order.done, SPILL_EVENT_DISABLE_TIMING);
}

static bool is_idle(CUstream stream)
{
	for (uint64_t until = spill_clock_ns() + WAIT_NS; spill_clock_ns() < until && !spill_capture_any();
	     spill_clock_sleep(LOOK_NS))
		if (spill_ask_cuStreamQuery(stream))
			return true;
	return false;
}

/* False: a function no longer takes so much shared memory. A graph has what its function took when it was made. */
static bool has_shared_memory(const struct spill_graph_nodes *nodes)
{
	for (const struct spill_node *node = NULL; (node = spill_graph_nodes_next(nodes, node));) {
		int most;
		if (node->type == CU_GRAPH_NODE_TYPE_KERNEL && node->kernel.shared_bytes > USUAL_SHARED &&
		    !(spill_ask_cuFuncGetAttribute(&most, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
		                                   node->kernel.function) &&
		      (unsigned)most >= node->kernel.shared_bytes))
			return false;
	}
	return true;
}

static bool is_in_context(const struct spill_graph_nodes *nodes)
{
	CUcontext current;
	return spill_ask_cuCtxGetCurrent(&current) && current &&
	       (!nodes->context || nodes->context == current);
}

/* -- launches of nodes, as by the program ------------------------------------------------------ */

/* NULL: the driver has no such function. */
static void *real_of(enum spill_hook hook)
{
	return spill_real(&spill_rows[hook], NULL);
}

/* What a stub of the row does (work.h). */
#define SUBMIT(symbol, params, args, ...) \
	do { \
		typedef CUresult function params; \
		function *real = (function *)real_of(SPILL_HOOK_##symbol); \
		struct spill_gate_thread *self = spill_gate_self; \
		unsigned attempt = 0; \
		bool outer; \
		if (!real) \
			return CUDA_ERROR_NOT_FOUND; \
		void *stopwatch = spill_hint(&(const struct spill_hint){__VA_ARGS__}); \
		SPILL_WORK_CALL(symbol, args, NULL); \
		if (stopwatch) \
			spill_after_launch(stopwatch); \
	} while (0)

static CUresult launch_kernel(const struct spill_node *node, CUstream stream)
{
	const struct spill_node_kernel *kernel = &node->kernel;
	const unsigned *size = kernel->size;
	CUlaunchConfig config = {.gridDimX = size[0],
	                         .gridDimY = size[1],
	                         .gridDimZ = size[2],
	                         .blockDimX = size[3],
	                         .blockDimY = size[4],
	                         .blockDimZ = size[5],
	                         .sharedMemBytes = kernel->shared_bytes,
	                         .hStream = stream,
	                         .attrs = (CUlaunchAttribute *)spill_node_attributes(node),
	                         .numAttrs = kernel->attributes};
	void *params[SPILL_LAYOUT_PARAMETERS];
	const uint32_t *places = spill_node_places(node);
	for (uint32_t i = 0; i < kernel->parameters; i++)
		params[i] = (char *)spill_node_values(node) + places[i];
	size_t bytes = kernel->buffer_bytes;
	void *buffer[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, (void *)spill_node_values(node),
	                  CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes, CU_LAUNCH_PARAM_END};
	void **values = bytes ? NULL : params, **extra = bytes ? buffer : NULL;
	CUresult result;
	SUBMIT(cuLaunchKernelEx, (const CUlaunchConfig *, CUfunction, void **, void **),
	       (&config, kernel->function, values, extra), .function = kernel->function, .config = &config,
	       .configured = true, .params = values, .extra = extra);
	return result;
}

/* One row is copied by the plain call, which takes any length. */
static CUresult launch_copy(const struct spill_node *node, CUstream stream)
{
	const CUDA_MEMCPY3D *copy = &node->copy;
	CUresult result;
	if (copy->Height == 1 && copy->Depth == 1) {
		struct spill_boxes boxes = spill_boxes_3d(copy);
		uint64_t to = boxes.to.va, from = boxes.from.va, bytes = copy->WidthInBytes;
		SUBMIT(cuMemcpyDtoDAsync_v2, (CUdeviceptr, CUdeviceptr, size_t, CUstream),
		       (to, from, bytes, stream), .ranges = {{to, bytes}, {from, bytes}}, .stream = stream);
	} else {
		SUBMIT(cuMemcpy3DAsync_v2, (const CUDA_MEMCPY3D *, CUstream), (copy, stream), .copy_3d = copy,
		       .stream = stream);
	}
	return result;
}

/* Of several rows, or of one by the plain call. */
#define SET(bits, type) \
	do { \
		if (set->height == 1) \
			SUBMIT(cuMemsetD##bits##Async, (CUdeviceptr, type, size_t, CUstream), \
			       (set->dst, (type)set->value, set->width, stream), \
			       .ranges = {{set->dst, set->width * set->elementSize}}, .stream = stream); \
		else \
			SUBMIT(cuMemsetD2D##bits##Async, \
			       (CUdeviceptr, size_t, type, size_t, size_t, CUstream), \
			       (set->dst, set->pitch, (type)set->value, set->width, set->height, stream), \
			       .set = {set->dst, set->pitch, set->width * set->elementSize, set->height}, \
			       .stream = stream); \
	} while (0)

static CUresult launch_set(const struct spill_node *node, CUstream stream)
{
	const CUDA_MEMSET_NODE_PARAMS_v1 *set = &node->set;
	CUresult result;
	if (set->elementSize == 1)
		SET(8, unsigned char);
	else if (set->elementSize == 2)
		SET(16, unsigned short);
	else
		SET(32, unsigned int);
	return result;
}

static CUresult launch_node(const struct spill_node *node, CUstream stream)
{
	return node->type == CU_GRAPH_NODE_TYPE_KERNEL   ? launch_kernel(node, stream)
	       : node->type == CU_GRAPH_NODE_TYPE_MEMCPY ? launch_copy(node, stream)
	                                                 : launch_set(node, stream);
}

/* *submitted: the number of nodes that the driver took. */
static CUresult launch_all(const struct spill_graph_nodes *nodes, CUstream stream, unsigned *submitted)
{
	CUresult result = CUDA_SUCCESS;
	*submitted = 0;
	for (const struct spill_node *node = NULL; (node = spill_graph_nodes_next(nodes, node));
	     ++*submitted) {
		result = launch_node(node, stream);
		if (result)
			break;
	}
	return result;
}

/* -- launches of graphs ------------------------------------------------------------------------ */

/* A launch in a stream that captures becomes a part of that graph. pre: this thread's calls are our own */
static bool is_captured(const struct spill_hint *hint)
{
	const struct spill_backend *backend =
	    spill_capture_any() ? spill_backend_for(SPILL_CUDA_DRIVER) : NULL;
	return backend && spill_capture_forbids(
	                      backend, &(const struct spill_capture_call){.on_stream = true,
	                                                                  .stream = hint->stream,
	                                                                  .per_thread = hint->per_thread,
	                                                                  .safe = true});
}

/* Each thread has its own stream of that name. */
static uint64_t owner_of(CUstream stream)
{
	return stream == spill_capture_stream(NULL, true) ? spill_capture_thread() : 0;
}

static bool is_last(const struct spill_graph_nodes *nodes, CUstream stream)
{
	return nodes->order.seen && nodes->order.last == stream && nodes->order.thread == owner_of(stream);
}

/* True: launch the nodes. The last launch was in the same stream, so they are behind it. */
static bool can_launch(struct spill_graph_nodes *nodes, uint64_t site, CUstream stream)
{
	if (nodes->outdated || spill_graph_copies_forbidden() || !is_last(nodes, stream) ||
	    spill_capture_any() || !spill_graph_modes_by_nodes(site))
		return false;
	if (is_in_context(nodes) && has_event(nodes) && has_shared_memory(nodes) && is_idle(stream))
		return true;
	spill_graph_modes_refused(site);
	return false;
}

/* False: the graph is to be launched as a whole, and the stream waits for its last launch. */
static bool prepare(struct spill_graph_nodes *nodes, uint64_t site, const struct spill_hint *hint,
                    CUstream stream, bool may)
{
	int cancel = spill_ours_begin();
	bool captured = is_captured(hint);
	bool by_nodes = may && !captured && can_launch(nodes, site, stream);
	if (nodes->order.pending && !is_last(nodes, stream) && !captured)
		spill_ask_cuStreamWaitEvent(stream, nodes->order.done, 0);
	if (!captured)
		nodes->order = (struct spill_graph_order){
		    .done = nodes->order.done, .last = stream, .thread = owner_of(stream), .seen = true};
	spill_ours_end(cancel);
	return by_nodes;
}

/* False: the first node was refused, so nothing was submitted. */
static bool launch_nodes(struct spill_graph_nodes *nodes, uint64_t site, CUstream stream, CUresult *result)
{
	unsigned submitted;
	void *stopwatch = spill_before_nodes(site, stream);
	*result = launch_all(nodes, stream, &submitted);
	spill_after_launch(stopwatch);
	if (!submitted && *result) {
		spill_graph_modes_refused(site);
		return false;
	}
	int cancel = spill_ours_begin();
	nodes->order.pending = spill_ask_cuEventRecord(nodes->order.done, stream);
	if (!nodes->order.pending)
		spill_ask_cuStreamSynchronize(stream);
	spill_ours_end(cancel);
	return true;
}

bool spill_graph_launch(const struct spill_hint *hint, bool may, CUresult *result)
{
	CUstream stream = spill_capture_stream(hint->stream, hint->per_thread);
	uint64_t site;
	int error = errno;
	struct spill_graph_nodes *nodes = spill_graph_access_take_nodes(hint->graph, &site);
	bool launched =
	    nodes && prepare(nodes, site, hint, stream, may) && launch_nodes(nodes, site, stream, result);
	if (nodes && !spill_graph_access_give_nodes(hint->graph, nodes))
		free(nodes); /* the graph ended meanwhile */
	errno = error;
	return launched;
}
