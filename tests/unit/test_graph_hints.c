/*
 * The memory that executable graphs use (graph_hints.h, descriptors.h, graph_access.h), and the hints of
 * their launches (hints.h), with a driver of our own. Each case runs in a child of its own.
 */
#include "graph_hints.h"

#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "captures.h"
#include "childtest.h"
#include "descriptors.h"
#include "chunk_map.h"
#include "chunked.h"
#include "graph_access.h"
#include "hints.h"
#include "vendor_pool.h"
#include "real.h"
#include "process.h"

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

static unsigned asked;
static const char *lacking = "";
static bool refuses;

static CUresult answers(void)
{
	CHECK(spill_thread.depth);
	asked++;
	errno = EDOM;
	return refuses ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
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

/* -- nodes ------------------------------------------------------------------------------------------------ */

CHILD_TEST(kernels_by_their_parameters)
{
	chunks(4, 4);
	make(1, GRAPH(KERNEL(AT(0) + 8, AT(2))));
	CHECK(launch(1) == 5 && !told.once && told.on_host == 1 && told.host_bytes == CHUNK);
	/* The other kind of handle. */
	make(2, GRAPH({.kernel = {.kern = (CUkernel)2, KERNEL_PARAMS(0, AT(3))}}));
	CHECK(launch(2) == 8);
	uint64_t block[] = {AT(1), 5, AT(3)};
	size_t bytes = sizeof(block);
	void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, block, CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes,
	                 CU_LAUNCH_PARAM_END};
	make(3, GRAPH({.kernel = {.func = (CUfunction)3, .extra = extra}}));
	block[0] = 0; /* has been copied */
	CHECK(launch(3) == 10);
}

/* Before anything is launched: what is behind it ends there. */
CHILD_TEST(begins_are_known_at_once)
{
	for (unsigned i = 0; i < 32; i++)
		CHECK(spill_chunk_map_set(AT(i), CHUNK, false, i < 31));
	make(1, GRAPH(KERNEL(AT(0), 0)));
	make(2, GRAPH(KERNEL(AT(3), 0), SET(AT(1))));
	CHECK(launch(1) == 7);
}

CHILD_TEST(copies_and_sets_by_their_ranges)
{
	chunks(8, 0);
	make(1, GRAPH(COPY(AT(1), AT(3), 64), SET(AT(5) + 64)));
	CHECK(launch(1) == 052 && told.once);
	make(1, GRAPH(COPY(1000, AT(3) - 8, 16), KERNEL(AT(0), 0)));
	CHECK(launch(1) == 1 + 4 && !told.once); /* allocations end at chunks here */
	make(1, GRAPH(COPY(1000, AT(3) - 8, 0)));
	CHECK(launch(1) == 0);
	for (unsigned i = 3; i < 5; i++)
		CHECK(spill_chunk_map_set(AT(i), CHUNK, false, i < 4));
	make(1, GRAPH(COPY(1000, AT(3), CHUNK)));
	CHECK(launch(1) == 8); /* to the last byte of its chunk */
}

CHILD_TEST(graphs_in_graphs)
{
	chunks(4, 0);
	struct graph *inner = GRAPH(KERNEL(AT(2), 0));
	struct graph *middle = GRAPH({.type = CU_GRAPH_NODE_TYPE_GRAPH, .child = inner}, SET(AT(1)));
	struct graph *outer = GRAPH(KERNEL(AT(0), 0), {.type = CU_GRAPH_NODE_TYPE_GRAPH, .child = middle});
	make(1, outer);
	CHECK(launch(1) == 7);
	inner->nodes[0] =
	    (struct node){.type = CU_GRAPH_NODE_TYPE_GRAPH, .child = outer}; /* never, but it ends */
	make(2, outer);
	CHECK(launch(2) == 3);
}

CHILD_TEST(other_nodes_say_nothing)
{
	chunks(1, 0);
	for (int type = 3; type < 20; type++)
		if (type != CU_GRAPH_NODE_TYPE_GRAPH)
			make(1, GRAPH({.type = type}, KERNEL(AT(0), 0)));
	CHECK(launch(1) == 1);
	make(1, &(struct graph){0});
	CHECK(launch(1) == 0);
}

CHILD_TEST(sides_of_boxes)
{
	CUDA_MEMCPY3D deep = {.srcMemoryType = CU_MEMORYTYPE_DEVICE,
	                      .srcDevice = 1000000,
	                      .srcXInBytes = 3,
	                      .srcY = 5,
	                      .srcZ = 7,
	                      .srcPitch = 100,
	                      .srcHeight = 10,
	                      .dstMemoryType = CU_MEMORYTYPE_HOST,
	                      .dstHost = (void *)2000000,
	                      .dstDevice = 5,
	                      .WidthInBytes = 20,
	                      .Height = 4,
	                      .Depth = 2};
	struct spill_boxes boxes = spill_boxes_3d(&deep);
	CHECK(boxes.from.va == 1000000 + 7 * 1000 + 5 * 100 + 3 && boxes.from.bytes == 1000 + 300 + 20);
	CHECK(boxes.to.va == 2000000 && boxes.to.bytes == 20 * 4 * 2);
	deep.dstMemoryType = CU_MEMORYTYPE_ARRAY;
	CHECK(spill_boxes_3d(&deep).to.bytes == 0 && spill_boxes_3d(&deep).from.bytes);
	deep.Depth = 0;
	CHECK(spill_boxes_3d(&deep).from.bytes == 0);
	CUDA_MEMCPY2D flat = {.dstMemoryType = CU_MEMORYTYPE_UNIFIED,
	                      .dstDevice = 1000,
	                      .dstXInBytes = 1,
	                      .dstY = 2,
	                      .dstPitch = 64,
	                      .srcMemoryType = CU_MEMORYTYPE_ARRAY,
	                      .WidthInBytes = 8,
	                      .Height = 3};
	boxes = spill_boxes_2d(&flat);
	CHECK(boxes.to.va == 1000 + 128 + 1 && boxes.to.bytes == 128 + 8 && !boxes.from.bytes);
	CUDA_MEMCPY3D_PEER peer = {.srcMemoryType = CU_MEMORYTYPE_DEVICE,
	                           .srcDevice = 64,
	                           .srcZ = 1,
	                           .dstMemoryType = CU_MEMORYTYPE_DEVICE,
	                           .dstDevice = 4096,
	                           .dstY = 1,
	                           .WidthInBytes = 16,
	                           .Height = 2,
	                           .Depth = 1};
	boxes = spill_boxes_peer(&peer);
	CHECK(boxes.from.va == 64 + 32 && boxes.from.bytes == 32 && boxes.to.va == 4096 + 16);
	struct spill_box set = spill_box_set(4096, 256, 12, 3);
	CHECK(set.va == 4096 && set.bytes == 512 + 12);
	CHECK(spill_box_set(4096, 0, 12, 1).bytes == 12 && !spill_box_set(4096, 256, 12, 0).bytes);
}

/* -- when ------------------------------------------------------------------------------------------------- */

/* Launches look where memory is by then, and whether it is. */
CHILD_TEST(memory_is_looked_up_at_the_launch)
{
	chunks(4, 0);
	make(1, GRAPH(KERNEL(AT(0), AT(1)), SET(AT(2))));
	CHECK(launch(1) == 7 && told.on_host == 0);
	chunks(3, 6);
	CHECK(launch(1) == 7 && told.on_host == 2 && told.host_bytes == 2 * CHUNK);
	spill_chunk_map_clear(AT(1), CHUNK);
	CHECK(launch(1) == 5);
	spill_chunk_map_clear(AT(0), CHUNK);
	spill_chunk_map_clear(AT(2), CHUNK);
	CHECK(launch(1) == 0);
}

CHILD_TEST(nothing_is_asked_where_nothing_is_wanted)
{
	struct graph *graph = GRAPH(KERNEL(AT(0), 0));
	chunks(1, 1);
	spill_chunked_delist(&one);
	make(1, graph);
	spill_chunked_enlist(&one);
	policy.movable_follow = SPILL_FOLLOW_OFF;
	make(1, graph);
	CHECK(asked == 0 && launch(1) == 0);
	policy.movable_follow = SPILL_FOLLOW_AUTO;
	make(1, graph);
	CHECK(asked && launch(1) == 1);
}

/* Nor is what was known before: the graph at that handle is another now. */
CHILD_TEST(nothing_is_asked_in_a_capture)
{
	struct graph *graph = GRAPH(KERNEL(AT(0), 0));
	chunks(1, 1);
	make(1, graph);
	CHECK(launch(1) == 1);
	set_capturing(true);
	asked = 0;
	make(1, graph);
	CHECK(asked == 0 && launch(1) == 0);
	set_capturing(false);
	CHECK(launch(1) == 0);
	make(1, graph);
	set_capturing(true);
	CHECK(launch(1) == 0); /* known, and not told */
	set_capturing(false);
	CHECK(launch(1) == 1);
}

CHILD_TEST(a_driver_that_refuses)
{
	refuses = true;
	chunks(1, 1);
	make(1, GRAPH(KERNEL(AT(0), 0)));
	CHECK(asked == 1 && launch(1) == 0);
}

CHILD_TEST(a_driver_that_lacks_something)
{
	lacking = "cuGraphKernelNodeGetParams_v2";
	chunks(2, 1);
	make(1, GRAPH(KERNEL(AT(0), 0), SET(AT(1))));
	CHECK(launch(1) == 2);
}

CHILD_TEST(a_driver_without_graphs)
{
	lacking = "cuGraphGetNodes";
	chunks(2, 1);
	make(1, GRAPH(KERNEL(AT(0), 0)));
	CHECK(asked == 0 && launch(1) == 0);
}

CHILD_TEST(a_graph_without_nodes_is_asked_for_them_once)
{
	make(1, &(struct graph){0});
	CHECK(asked == 1 && launch(1) == 0);
}

/* -- memory of a graph's own ------------------------------------------------------------------------------ */

#define MIB (1ull << 20)
#define MEMORY(address, mib) \
	{ \
		.type = CU_GRAPH_NODE_TYPE_MEM_ALLOC, .memory = { \
			.bytesize = (mib)*MIB, \
			.dptr = (address)*MIB \
		} \
	}

static int reserves_nothing(int device, uint64_t *bytes)
{
	*bytes = 0;
	return device;
}

/* The program has made a node with memory. */
static void memory_is_seen(void)
{
	static const struct spill_backend backend = {.graph_reserved = reserves_nothing};
	spill_vendor_pool_graphs(&backend, 0);
}

static uint64_t memory(struct graph *graph)
{
	make(1, graph);
	return spill_graph_access_memory(EXEC(1)) / MIB;
}

CHILD_TEST(memory_in_steps)
{
	CHECK(memory(GRAPH(MEMORY(64, 40))) == 0 && asked == 3); /* of hints alone: nobody has such memory */
	memory_is_seen();
	spill_chunked_delist(&one);
	CHECK(memory(GRAPH(SET(AT(0)))) == 0);
	CHECK(memory(GRAPH(MEMORY(64, 1))) == 32);
	CHECK(memory(GRAPH(MEMORY(64, 40))) == 64 && launch(1) == 0);
	/* Each in a step of its own, as any three of these may be: no two fit into one. */
	CHECK(memory(GRAPH(MEMORY(64, 17), MEMORY(96, 17), MEMORY(128, 17))) == 96);
	CHECK(memory(GRAPH(MEMORY(64, 12), MEMORY(80, 12), MEMORY(96, 12))) == 96);
	CHECK(memory(GRAPH(MEMORY(100, 60), SET(AT(0)), MEMORY(64, 1))) == 96);
	CHECK(spill_graph_access_memory(EXEC(2)) == 0);
	spill_graph_access_forget(EXEC(1));
	CHECK(spill_graph_access_memory(EXEC(1)) == 0);
}

CHILD_TEST(memory_used_in_turn_counts_once)
{
	memory_is_seen();
	CHECK(memory(GRAPH(MEMORY(64, 60), MEMORY(64, 64), MEMORY(64, 10), MEMORY(100, 28))) == 64);
	struct graph *inner = GRAPH(MEMORY(1000, 64));
	CHECK(memory(GRAPH(MEMORY(64, 64), {.type = CU_GRAPH_NODE_TYPE_GRAPH, .child = inner})) == 128);
}

CHILD_TEST(memory_stays_through_changes)
{
	const CUDA_MEMSET_NODE_PARAMS_v1 set = {.dst = AT(0), .elementSize = 4, .width = 1, .height = 1};
	chunks(1, 1);
	memory_is_seen();
	CHECK(memory(GRAPH(MEMORY(64, 64))) == 64 && launch(1) == 0);
	change(&(struct spill_graph_change){.exec = EXEC(1), .set = &set});
	CHECK(spill_graph_access_memory(EXEC(1)) == 64 * MIB && launch(1) == 1);
}

/* Not all of it is none of it: a launch is not asked again by a figure that is too low. */
/* Graphs within graphs are read 16 deep. What is deeper may have memory that nobody knows. */
CHILD_TEST(memory_deep_inside)
{
	struct node nodes[18], innermost = MEMORY(64, 40);
	struct graph graphs[18];
	memory_is_seen();
	for (unsigned i = 0; i < 18; i++) {
		nodes[i] = (struct node){.type = CU_GRAPH_NODE_TYPE_GRAPH, .child = &graphs[i + 1]};
		graphs[i] = (struct graph){1, &nodes[i]};
	}
	nodes[17] = innermost;
	CHECK(memory(&graphs[1]) == 64);
	CHECK(memory(&graphs[0]) == 0);
}

/* What is read of a graph is given back, however often it changes. */
CHILD_TEST(changes_cost_no_memory)
{
	size_t before = 0;
	memory_is_seen();
	for (unsigned i = 0; i < 1000; i++) {
		if (i == 1)
			before = mallinfo2().uordblks;
		CHECK(memory(GRAPH(MEMORY(64, 40), SET(AT(0)))) == 64);
	}
	CHECK(mallinfo2().uordblks <= before + 10000);
}

CHILD_TEST(memory_that_cannot_be_read)
{
	memory_is_seen();
	lacking = "cuGraphMemAllocNodeGetParams";
	CHECK(memory(GRAPH(MEMORY(64, 64))) == 0);
	set_capturing(true);
	lacking = "";
	CHECK(memory(GRAPH(MEMORY(64, 64))) == 0);
	set_capturing(false);
	refuses = true;
	CHECK(memory(GRAPH(MEMORY(64, 64))) == 0);
}

/* -- changes ---------------------------------------------------------------------------------------------- */

CHILD_TEST(updates_tell_anew)
{
	chunks(4, 0);
	make(1, GRAPH(KERNEL(AT(0), 0)));
	make(2, GRAPH(KERNEL(AT(3), 0)));
	CHECK(launch(1) == 1);
	uint64_t site = told.site;
	change(&(struct spill_graph_change){.exec = EXEC(1),
	                                    .graph = (CUgraph)GRAPH(KERNEL(AT(1), 0), SET(AT(2)))});
	CHECK(launch(1) == 6 && told.site == site && launch(2) == 8);
	change(&(struct spill_graph_change){.exec = EXEC(3), .graph = (CUgraph)GRAPH(KERNEL(AT(1), 0))});
	CHECK(launch(3) == 2); /* which was made before anything was movable */
}

CHILD_TEST(changed_nodes_add)
{
	struct graph *child = GRAPH(SET(AT(5)));
	CUDA_KERNEL_NODE_PARAMS_v1 first = {.func = (CUfunction)3, KERNEL_PARAMS(AT(1), 0)};
	CUDA_KERNEL_NODE_PARAMS_v2 second = {.kern = (CUkernel)2, KERNEL_PARAMS(AT(2), 0)};
	struct node copy = COPY(AT(3), 8, 8), set = SET(AT(4));
	chunks(8, 0);
	make(1, GRAPH(SET(AT(0))));
	CHECK(launch(1) == 1 && told.once);
	uint64_t site = told.site;
	change(&(struct spill_graph_change){.exec = EXEC(1), .copy = &copy.copy});
	CHECK(launch(1) == 011 && told.once);
	change(&(struct spill_graph_change){.exec = EXEC(1), .kernel = &first});
	CHECK(launch(1) == 013 && !told.once);
	change(&(struct spill_graph_change){.exec = EXEC(1), .set = &set.set});
	change(&(struct spill_graph_change){.exec = EXEC(1), .kernel_v2 = &second});
	change(&(struct spill_graph_change){.exec = EXEC(1), .graph = (CUgraph)child, .child = true});
	CHECK(launch(1) == 077 && !told.once && told.site == site);
}

CHILD_TEST(changed_nodes_of_any_type)
{
	struct graph *child = GRAPH(SET(AT(3)));
	CUDA_KERNEL_NODE_PARAMS_v2 kernel = {.func = (CUfunction)3, KERNEL_PARAMS(AT(0), 0)};
	struct node copy = COPY(AT(1), 8, 8), set = SET(AT(2));
	CUDA_MEMCPY_NODE_PARAMS copies = {.copyParams = copy.copy};
	const struct {
		int type;
		const void *params;
		size_t bytes;
	} all[] = {{CU_GRAPH_NODE_TYPE_KERNEL, &kernel, sizeof(kernel)},
	           {CU_GRAPH_NODE_TYPE_MEMCPY, &copies, sizeof(copies)},
	           {CU_GRAPH_NODE_TYPE_MEMSET, &set.set, sizeof(set.set)},
	           {CU_GRAPH_NODE_TYPE_GRAPH, &child, sizeof(child)},
	           {CU_GRAPH_NODE_TYPE_MEM_FREE, &kernel, sizeof(kernel)}};
	chunks(4, 0);
	for (unsigned i = 0; i < 5; i++) {
		CUgraphNodeParams node = {.type = (CUgraphNodeType)all[i].type};
		memcpy(node.reserved1, all[i].params, all[i].bytes);
		change(&(struct spill_graph_change){.exec = EXEC(i + 1), .node = &node});
		CHECK(launch(i + 1) == (1u << i) % 16);
	}
}

CHILD_TEST(the_same_graph_is_the_same_site)
{
	chunks(4, 0);
	make(1, GRAPH(KERNEL(AT(0), 0), SET(AT(1))));
	launch(1);
	uint64_t site = told.site;
	make(2, GRAPH(KERNEL(AT(2), 0), SET(AT(1))));
	CHECK(launch(2) && told.site == site);
	make(3, GRAPH(SET(AT(1)), KERNEL(AT(2), 0)));
	CHECK(launch(3) && told.site != site);
}

/* -- the table -------------------------------------------------------------------------------------------- */

CHILD_TEST(what_ends_is_forgotten)
{
	chunks(2, 0);
	for (unsigned i = 1; i <= 5000; i++)
		make(i, GRAPH(KERNEL(AT(i % 2), 0)));
	spill_graph_access_forget(EXEC(7));
	spill_graph_access_forget(EXEC(9999));
	for (unsigned i = 1; i <= 5000; i++)
		CHECK(launch(i) == (i == 7 ? 0 : 1u << i % 2));
	spill_graph_access_forget_all();
	for (unsigned i = 1; i <= 5000; i++)
		CHECK(launch(i) == 0);
	make(7, GRAPH(KERNEL(AT(0), 0)));
	CHECK(launch(7) == 1);
}

CHILD_TEST(a_forked_child_knows_nothing)
{
	int status;
	chunks(1, 0);
	make(1, GRAPH(KERNEL(AT(0), 0)));
	pid_t child = fork();
	if (child == 0)
		spill_graph_access_reset();
	if (child == 0)
		_exit(launch(1) != 0);
	CHECK(waitpid(child, &status, 0) == child && status == 0);
	CHECK(launch(1) == 1);
}

static void right_or_nothing(void *closure, const struct spill_graph_access *uses)
{
	CHECK(uses->count == 2 && uses->ranges[1].va == uses->site && uses->ranges[0].bytes == 8);
}

static void *works(void *seed)
{
	for (uintptr_t i = 0; i < 20000; i++) {
		uint64_t site = (i * 31 + (uintptr_t)seed) * 2 + 3;
		const struct spill_graph_range ranges[] = {{1, 8}, {site, 8}};
		CUgraphExec exec = EXEC(1 + i % 7);
		if (i % 3 == (uintptr_t)seed)
			spill_graph_access_keep(
			    exec, &(struct spill_graph_access){.site = site, .count = 2, .ranges = ranges});
		else if (i % 1000 == 1)
			spill_graph_access_forget_all();
		else if (i % 11 == 1)
			spill_graph_access_forget(exec);
		else
			spill_graph_access_look(exec, right_or_nothing, NULL);
	}
	return NULL;
}

CHILD_TEST(threads_change_and_launch)
{
	pthread_t threads[3];
	for (uintptr_t i = 0; i < 3; i++)
		CHECK(pthread_create(&threads[i], NULL, works, (void *)i) == 0);
	for (unsigned i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
}

/* However many there are: memory is bounded, and what was kept is right. */
CHILD_TEST(no_more_than_there_is_room_for)
{
	chunks(1, 0);
	for (unsigned i = 1; i <= 20000; i++)
		make(i, GRAPH(KERNEL(AT(0), 0)));
	CHECK(launch(1) == 1 && launch(16384) == 1 && launch(16385) == 0 && launch(20000) == 0);
	spill_graph_access_forget(EXEC(1));
	make(20000, GRAPH(KERNEL(AT(0), 0)));
	make(19999, GRAPH(KERNEL(AT(0), 0)));
	CHECK(launch(20000) == 1 && launch(19999) == 0);
}

static void keep_ranges(CUgraphExec exec, const struct spill_graph_range *ranges, uint32_t number)
{
	spill_graph_access_keep(
	    exec, &(struct spill_graph_access){.site = 3, .memory = 1, .count = number, .ranges = ranges});
}

/* Room for 2^20 ranges of all graphs, and what a graph had is free when it is forgotten. */
CHILD_TEST(no_more_ranges_than_there_is_room_for)
{
	enum { MOST = 1 << 20 };
	struct spill_graph_range *ranges = calloc(MOST + 1, sizeof(*ranges));
	CHECK(ranges);
	keep_ranges(EXEC(1), ranges, MOST + 1);
	CHECK(spill_graph_access_memory(EXEC(1)) == 0);
	for (unsigned i = 0; i < 2; i++) {
		keep_ranges(EXEC(1), ranges, MOST - 1);
		keep_ranges(EXEC(2), ranges, 2);
		CHECK(spill_graph_access_memory(EXEC(1)) && !spill_graph_access_memory(EXEC(2)));
		keep_ranges(EXEC(2), ranges, 1);
		keep_ranges(EXEC(3), ranges, 1);
		CHECK(spill_graph_access_memory(EXEC(2)) && !spill_graph_access_memory(EXEC(3)));
		spill_graph_access_forget(EXEC(1));
		spill_graph_access_forget(EXEC(2));
	}
	/* The own memory of a graph stays known, and its ranges are free. */
	keep_ranges(EXEC(1), ranges, MOST);
	spill_graph_access_forget_all();
	CHECK(spill_graph_access_memory(EXEC(1)));
	keep_ranges(EXEC(2), ranges, MOST);
	CHECK(spill_graph_access_memory(EXEC(2)));
	keep_ranges(EXEC(3), ranges, 1);
	CHECK(!spill_graph_access_memory(EXEC(3)));
	free(ranges);
}

static void count(void *closure, const struct spill_graph_access *uses)
{
	*(unsigned *)closure = uses->count;
}

/* One word a granule; of more granules than there is room for the first. */
CHILD_TEST(each_granule_once)
{
	const unsigned many = SPILL_GRAPH_RANGES + 100;
	uint64_t *words = malloc(2 * many * sizeof(*words));
	size_t bytes = 2 * many * sizeof(*words) < 32768 ? 2 * many * sizeof(*words) : 32768;
	void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, words, CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes, NULL};
	CHECK(spill_chunk_map_set(BASE, many * SPILL_CHUNK_MAP_UNIT, false, false));
	unsigned of_one = (unsigned)(bytes / sizeof(*words));
	struct node nodes[16];
	for (unsigned i = 0; i < of_one; i++)
		words[i] = BASE + i % 16 * SPILL_CHUNK_MAP_UNIT + i;
	for (unsigned i = 0; i < 16; i++)
		nodes[i] = (struct node){.kernel = {.func = (CUfunction)3, .extra = extra}};
	make(1, &(struct graph){16, nodes});
	unsigned ranges = 0;
	CHECK(spill_graph_access_look(EXEC(1), count, &ranges) && ranges == 16);
	/* Each node its own granules, as sets. */
	struct node *sets = calloc(many, sizeof(*sets));
	for (unsigned i = 0; i < many; i++)
		sets[i] = (struct node)SET(BASE + i * SPILL_CHUNK_MAP_UNIT);
	make(1, &(struct graph){many, sets});
	CHECK(spill_graph_access_look(EXEC(1), count, &ranges) && ranges == SPILL_GRAPH_RANGES);
	/* A word and a set are two, although they begin alike. */
	for (unsigned i = 0; i < 2000; i++)
		words[i] = BASE + i * SPILL_CHUNK_MAP_UNIT;
	bytes = 2000 * sizeof(*words);
	sets[2000] = nodes[0];
	make(1, &(struct graph){2001, sets});
	CHECK(spill_graph_access_look(EXEC(1), count, &ranges) && ranges == 4000);
	free(sets);
	free(words);
}

/* -- all -------------------------------------------------------------------------------------------------- */
