/*
 * A driver of a test's own that has graphs, and what a launch of an executable graph tells (graph_hints.h, hints.h). The including
 * test's cases run in children of their own (childtest.h).
 */
#ifndef SPILL_TEST_GRAPH_DRIVER_H
#define SPILL_TEST_GRAPH_DRIVER_H

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "captures.h"
#include "childtest.h"
#include "chunk_map.h"
#include "chunked.h"
#include "graph_access.h"
#include "graph_hints.h"
#include "hints.h"
#include "process.h"
#include "real.h"

#define BASE (3ull << 40)
#define CHUNK (4 * SPILL_CHUNK_MAP_UNIT)
#define AT(chunk) (BASE + (chunk)*CHUNK)
#define KEY(chunk) ((uint32_t)(AT(chunk) / SPILL_CHUNK_MAP_UNIT))
#define EXEC(number) ((CUgraphExec)(uintptr_t)(0x1000 * (number)))

/* -- the driver ------------------------------------------------------------------------------------------- */

struct node {
	int type;
	CUDA_KERNEL_NODE_PARAMS_v2 kernel;
	CUDA_MEMCPY3D copy;
	CUDA_MEMSET_NODE_PARAMS_v1 set;
	CUDA_MEM_ALLOC_NODE_PARAMS memory;
	struct graph *child;
};

struct graph {
	size_t count;
	struct node *nodes;
};

static unsigned asked, refused_question; /* the only one that is refused; 0: none */
static const char *lacking = "";
static bool refuses;

static CUresult answers(void)
{
	CHECK(spill_thread.depth);
	asked++;
	errno = EDOM;
	return refuses || asked == refused_question ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

static CUresult get_nodes(struct graph *graph, struct node **nodes, size_t *count)
{
	if (answers())
		return CUDA_ERROR_INVALID_VALUE;
	for (size_t i = 0; nodes && i < graph->count; i++)
		nodes[i] = &graph->nodes[i];
	*count = graph->count;
	return CUDA_SUCCESS;
}

static CUresult get_type(struct node *node, int *type)
{
	*type = node->type;
	return answers();
}

static CUresult get_kernel(struct node *node, CUDA_KERNEL_NODE_PARAMS_v2 *out)
{
	CHECK(node->type == CU_GRAPH_NODE_TYPE_KERNEL);
	*out = node->kernel;
	return answers();
}

static CUresult get_copy(struct node *node, CUDA_MEMCPY3D *out)
{
	CHECK(node->type == CU_GRAPH_NODE_TYPE_MEMCPY);
	*out = node->copy;
	return answers();
}

static CUresult get_set(struct node *node, CUDA_MEMSET_NODE_PARAMS_v1 *out)
{
	CHECK(node->type == CU_GRAPH_NODE_TYPE_MEMSET);
	*out = node->set;
	return answers();
}

static CUresult get_memory(struct node *node, CUDA_MEM_ALLOC_NODE_PARAMS *out)
{
	CHECK(node->type == CU_GRAPH_NODE_TYPE_MEM_ALLOC);
	*out = node->memory;
	return answers();
}

static CUresult get_child(struct node *node, struct graph **out)
{
	CHECK(node->type == CU_GRAPH_NODE_TYPE_GRAPH);
	*out = node->child;
	return answers();
}

/* Three parameters: a pointer, 4 bytes, a structure with a pointer behind 8 bytes; handles of kernels are even. */
static CUresult info(bool of_kernel, const void *function, size_t index, size_t *offset, size_t *size)
{
	static const size_t sizes[] = {8, 4, 16};
	CHECK(spill_thread.depth);
	if (of_kernel != ((uintptr_t)function % 2 == 0))
		return CUDA_ERROR_INVALID_HANDLE;
	if (index >= 3)
		return CUDA_ERROR_INVALID_VALUE;
	*offset = 0;
	*size = sizes[index];
	return CUDA_SUCCESS;
}

static CUresult kernel_info(const void *function, size_t index, size_t *offset, size_t *size)
{
	return info(true, function, index, offset, size);
}

static CUresult function_info(const void *function, size_t index, size_t *offset, size_t *size)
{
	return info(false, function, index, offset, size);
}

void *spill_real_resolve(enum spill_domain domain, const char *symbol)
{
	static const struct {
		const char *symbol;
		void *function;
	} all[] = {{"cuGraphGetNodes", (void *)get_nodes},
	           {"cuGraphNodeGetType", (void *)get_type},
	           {"cuGraphKernelNodeGetParams_v2", (void *)get_kernel},
	           {"cuGraphMemcpyNodeGetParams", (void *)get_copy},
	           {"cuGraphMemsetNodeGetParams", (void *)get_set},
	           {"cuGraphMemAllocNodeGetParams", (void *)get_memory},
	           {"cuGraphChildGraphNodeGetGraph", (void *)get_child},
	           {"cuKernelGetParamInfo", (void *)kernel_info},
	           {"cuFuncGetParamInfo", (void *)function_info}};
	CHECK(domain == SPILL_CUDA_DRIVER);
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		if (!strcmp(all[i].symbol, symbol))
			return strcmp(symbol, lacking) ? all[i].function : NULL;
	CHECK(!"a function that is not asked for");
	return NULL;
}

/* -- around it -------------------------------------------------------------------------------------------- */

static struct spill_policy policy = {.movable_follow = SPILL_FOLLOW_AUTO};
static struct spill_launch_access told;
static unsigned times;

static struct spill_chunked one; /* without a chunk */

static void *before(const struct spill_launch_access *use)
{
	CHECK(use->count && use->site > 1);
	memcpy(&told, use, sizeof(told));
	times++;
	return &told;
}

__attribute__((constructor)) static void begin(void)
{
	static const struct spill_launch_calls calls_of_test = {.before = before};
	spill_launch_access_use(&calls_of_test);
	spill_process_use_policy(&policy);
	spill_chunked_enlist(&one);
}

/* Allocations of a chunk each; those of `hosts` are on host. */
static void chunks(unsigned count, unsigned hosts)
{
	for (unsigned i = 0; i < count; i++)
		CHECK(spill_chunk_map_set(AT(i), CHUNK, i < 32 && hosts >> i & 1, false));
}

/* What a launch tells: a bit a chunk. */
static unsigned launch(unsigned exec)
{
	unsigned keys = 0;
	asked = times = 0;
	spill_hint(&(struct spill_hint){.graph = EXEC(exec), .stream = &told, .per_thread = true});
	CHECK(!asked && times < 2);
	if (!times)
		return 0;
	CHECK(told.stream == &told && told.per_thread);
	/* Its nodes name the same memory many times, so the ranges are its chunks. Neighbours are one. */
	unsigned range = 0, unit = told.ranges[0].first;
	for (unsigned i = 0; i < told.count; i++) {
		if (unit == told.ranges[range].first + told.ranges[range].units) {
			CHECK(told.ranges[range + 1].first != unit);
			unit = told.ranges[++range].first;
		}
		CHECK(unit == told.keys[i]);
		unit += 4;
		keys |= 1u << ((told.keys[i] - KEY(0)) / 4);
	}
	CHECK(range + 1 == told.range_count && unit == told.ranges[range].first + told.ranges[range].units);
	return keys;
}

static void change(const struct spill_graph_change *change)
{
	errno = ERANGE;
	spill_graph_changed(change);
	CHECK(errno == ERANGE && spill_thread.depth == 0);
}

static void make(unsigned number, struct graph *graph)
{
	CUgraphExec exec = EXEC(number);
	change(&(struct spill_graph_change){.made = &exec, .graph = (CUgraph)graph});
}

#define GRAPH(...) \
	(&(struct graph){sizeof((struct node[]){__VA_ARGS__}) / sizeof(struct node), \
	                 (struct node[]){__VA_ARGS__}})

/* The values live as long as the block that the macro is in. */
#define KERNEL_PARAMS(pointer, second) \
	.gridDimX = 1, .gridDimY = 2, .gridDimZ = 3, .blockDimX = 4, .blockDimY = 5, .blockDimZ = 6, \
	.kernelParams = (void *[]) \
	{ \
		&(uint64_t){pointer}, &(int){7}, (uint64_t[2]) \
		{ \
			9, second \
		} \
	}
#define KERNEL(pointer, second) \
	{ \
		.type = CU_GRAPH_NODE_TYPE_KERNEL, .kernel = { \
			.func = (CUfunction)3, \
			KERNEL_PARAMS(pointer, second) \
		} \
	}
#define SET(to) \
	{ \
		.type = CU_GRAPH_NODE_TYPE_MEMSET, \
		.set = {.dst = to, \
			.elementSize = 4, \
			.width = 2, \
			.height = 1 } \
	}
#define COPY(to, from, length) \
	{ \
		.type = CU_GRAPH_NODE_TYPE_MEMCPY, .copy = { \
			.srcMemoryType = CU_MEMORYTYPE_DEVICE, \
			.srcDevice = from, \
			.dstMemoryType = CU_MEMORYTYPE_UNIFIED, \
			.dstDevice = to, \
			.WidthInBytes = length, \
			.Height = 1, \
			.Depth = 1 \
		} \
	}

#endif
