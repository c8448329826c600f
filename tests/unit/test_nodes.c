/* Copies of the nodes of graphs: what they hold, what is left whole, and what follows a change. The driver is the test's. */
#define SETUP begin
#include "unit.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "chunk_map.h"
#include "fake_libc.h"
#include "graph_ask.h"
#include "nodes.h"
#include "layouts.h"

#define BASE (3ull << 40)
#define FUNCTION ((CUfunction)0x3000)
#define CONTEXT ((CUcontext)0x4000)

/* -- the driver ------------------------------------------------------------------------------------------- */

struct node {
	int type;
	CUDA_KERNEL_NODE_PARAMS_v2 kernel;
	CUDA_MEMCPY3D copy;
	CUDA_MEMSET_NODE_PARAMS_v1 set;
	struct graph *child;
	uint64_t attributes[16]; /* the first word of each value */
};

#define MOST 8
struct graph {
	unsigned count, edges;
	struct node *nodes[MOST];
	unsigned from[MOST], to[MOST];
};

static struct {
	bool refuses_edges, has_no_v2, refuses_types, refuses_kernels, refuses_sizes;
	uint32_t parameters;
	uint16_t sizes[SPILL_LAYOUT_PARAMETERS];
} driver;

static int begin(void **state)
{
	memset(&driver, 0, sizeof(driver));
	driver.parameters = 3;
	driver.sizes[0] = 8;
	driver.sizes[1] = 3;
	driver.sizes[2] = 16;
	return 0;
}

bool spill_graph_list(CUgraph handle, CUgraphNode **nodes, size_t *count)
{
	const struct graph *graph = (const void *)handle;
	*count = graph->count;
	*nodes = calloc(MOST, sizeof(CUgraphNode));
	for (unsigned i = 0; i < graph->count; i++)
		(*nodes)[i] = (CUgraphNode)graph->nodes[i];
	return *nodes;
}

bool spill_ask_cuGraphGetEdges(CUgraph handle, CUgraphNode *from, CUgraphNode *to, size_t *count)
{
	const struct graph *graph = (const void *)handle;
	for (unsigned i = 0; from && i < graph->edges; i++) {
		from[i] = (CUgraphNode)graph->nodes[graph->from[i]];
		to[i] = (CUgraphNode)graph->nodes[graph->to[i]];
	}
	*count = graph->edges;
	return !driver.refuses_edges;
}

bool spill_ask_cuGraphGetEdges_v2(CUgraph graph, CUgraphNode *from, CUgraphNode *to, CUgraphEdgeData *data,
                                  size_t *count)
{
	assert_true(!from == !data);
	return !driver.has_no_v2 && spill_ask_cuGraphGetEdges(graph, from, to, count);
}

bool spill_ask_cuGraphNodeGetType(CUgraphNode node, int *type)
{
	*type = ((const struct node *)node)->type;
	return !driver.refuses_types;
}

bool spill_ask_cuGraphKernelNodeGetParams_v2(CUgraphNode node, CUDA_KERNEL_NODE_PARAMS_v2 *params)
{
	*params = ((const struct node *)node)->kernel;
	return !driver.refuses_kernels;
}

/* A driver of CUDA 12.0 knows those up to 11. */
bool spill_ask_cuGraphKernelNodeGetAttribute(CUgraphNode node, int attribute, CUlaunchAttributeValue *value)
{
	value->words[0] = ((const struct node *)node)->attributes[attribute];
	return attribute <= 11 || value->words[0];
}

bool spill_ask_cuGraphMemcpyNodeGetParams(CUgraphNode node, CUDA_MEMCPY3D *params)
{
	*params = ((const struct node *)node)->copy;
	return true;
}

bool spill_ask_cuGraphMemsetNodeGetParams(CUgraphNode node, CUDA_MEMSET_NODE_PARAMS_v1 *params)
{
	*params = ((const struct node *)node)->set;
	return true;
}

bool spill_ask_cuGraphChildGraphNodeGetGraph(CUgraphNode node, CUgraph *graph)
{
	*graph = (CUgraph)((const struct node *)node)->child;
	return true;
}

bool spill_layout_sizes(const void *function, uint16_t sizes[SPILL_LAYOUT_PARAMETERS], uint32_t *count)
{
	assert_ptr_equal(function, FUNCTION);
	memcpy(sizes, driver.sizes, sizeof(driver.sizes));
	*count = driver.parameters;
	return !driver.refuses_sizes;
}

/* -- graphs ----------------------------------------------------------------------------------------------- */

static uint64_t pointer = BASE, pair[2] = {5, 6};
static const char three[] = "abcdef";
static void *values[] = {&pointer, (void *)three, pair};

static struct node a_kernel(void)
{
	return (struct node){.type = CU_GRAPH_NODE_TYPE_KERNEL,
	                     .kernel = {.func = FUNCTION,
	                                .gridDimX = 1,
	                                .gridDimY = 2,
	                                .gridDimZ = 3,
	                                .blockDimX = 4,
	                                .blockDimY = 5,
	                                .blockDimZ = 6,
	                                .sharedMemBytes = 7,
	                                .kernelParams = values,
	                                .ctx = CONTEXT}};
}

static struct node a_copy(CUmemorytype to, CUmemorytype from)
{
	return (struct node){.type = CU_GRAPH_NODE_TYPE_MEMCPY,
	                     .copy = {.dstMemoryType = to,
	                              .dstDevice = BASE,
	                              .srcMemoryType = from,
	                              .srcDevice = BASE + 4096,
	                              .WidthInBytes = 64,
	                              .Height = 1,
	                              .Depth = 1}};
}

static struct node a_set(unsigned element)
{
	return (struct node){.type = CU_GRAPH_NODE_TYPE_MEMSET,
	                     .set = {.dst = BASE, .elementSize = element, .width = 4, .height = 1}};
}

static struct spill_graph_nodes *read_graph(struct graph *graph)
{
	return spill_graph_nodes_read((CUgraph)graph);
}

/* Of a graph of one node. */
static struct spill_graph_nodes *read_node(struct node *node)
{
	return read_graph(&(struct graph){.count = 1, .nodes = {node}});
}

static bool is_copied(struct node node)
{
	struct spill_graph_nodes *nodes = read_node(&node);
	bool is = nodes;
	free(nodes);
	return is;
}

static void assert_is_kernel(const struct spill_node *node)
{
	static const unsigned size[6] = {1, 2, 3, 4, 5, 6};
	const uint32_t *places = spill_node_places(node);
	const char *at = spill_node_values(node);
	assert_int_equal(node->type, CU_GRAPH_NODE_TYPE_KERNEL);
	assert_ptr_equal(node->kernel.function, FUNCTION);
	assert_memory_equal(node->kernel.size, size, sizeof(size));
	assert_int_equal(node->kernel.shared_bytes, 7);
	assert_int_equal(node->kernel.parameters, 3);
	assert_int_equal((uintptr_t)at % 8, 0);
	assert_memory_equal(at + places[0], &pointer, 8);
	assert_memory_equal(at + places[1], "abc", 4); /* and no byte of what is behind it */
	assert_memory_equal(at + places[2], pair, 16);
	assert_true(at + places[2] + 16 <= (const char *)node + node->bytes);
}

/* -- what is copied --------------------------------------------------------------------------------------- */

TEST(nodes_are_copied_in_order_with_their_values)
{
	struct node first = a_kernel(), copy = a_copy(CU_MEMORYTYPE_DEVICE, CU_MEMORYTYPE_DEVICE),
	            set = a_set(4), empty = {.type = CU_GRAPH_NODE_TYPE_EMPTY}, second = a_kernel();
	first.attributes[CU_LAUNCH_ATTRIBUTE_COOPERATIVE] = 1;
	first.attributes[CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT] = 50;
	struct graph inner = {.count = 2, .nodes = {&copy, &set}, .edges = 1, .from = {0}, .to = {1}};
	struct node child = {.type = CU_GRAPH_NODE_TYPE_GRAPH, .child = &inner};
	struct graph graph = {.count = 4,
	                      .nodes = {&first, &child, &empty, &second},
	                      .edges = 3,
	                      .from = {0, 1, 0},
	                      .to = {1, 2, 3}};
	struct spill_graph_nodes *nodes = read_graph(&graph);
	assert_non_null(nodes);
	assert_ptr_equal(nodes->context, CONTEXT);
	assert_true(!nodes->outdated && !nodes->order.pending && !nodes->order.done);
	pointer = 0; /* the copies are the values of then */
	const struct spill_node *node = spill_graph_nodes_next(nodes, NULL);
	pointer = BASE;
	assert_is_kernel(node);
	assert_ptr_equal(node->handle, &first);
	assert_int_equal(node->kernel.attributes, 2);
	assert_int_equal(spill_node_attributes(node)[0].id, CU_LAUNCH_ATTRIBUTE_COOPERATIVE);
	assert_int_equal(spill_node_attributes(node)[0].value.words[0], 1);
	assert_int_equal(spill_node_attributes(node)[1].id,
	                 CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT);
	assert_int_equal(spill_node_attributes(node)[1].value.words[0], 50);
	node = spill_graph_nodes_next(nodes, node);
	assert_ptr_equal(node->handle, &copy);
	assert_memory_equal(&node->copy, &copy.copy, sizeof(copy.copy));
	node = spill_graph_nodes_next(nodes, node);
	assert_ptr_equal(node->handle, &set);
	assert_memory_equal(&node->set, &set.set, sizeof(set.set));
	node = spill_graph_nodes_next(nodes, node);
	assert_is_kernel(node);
	assert_ptr_equal(node->handle, &second);
	assert_int_equal(node->kernel.attributes, 0);
	assert_null(spill_graph_nodes_next(nodes, node));
	free(nodes);
}

/* An odd number of parameters, and none. */
TEST(values_are_aligned)
{
	for (driver.parameters = 0; driver.parameters < 4; driver.parameters++) {
		struct node kernel = a_kernel();
		kernel.kernel.kernelParams = driver.parameters ? values : NULL;
		struct spill_graph_nodes *nodes = read_node(&kernel);
		const struct spill_node *node = spill_graph_nodes_next(nodes, NULL);
		assert_int_equal((uintptr_t)spill_node_values(node) % 8, 0);
		assert_int_equal(node->kernel.parameters, driver.parameters);
		free(nodes);
	}
}

/* More than fit into the first block of memory, up to the most. */
TEST(large_graphs_are_copied_up_to_2_mib)
{
	struct node kernels[MOST], children[MOST];
	struct graph inner = {.count = MOST}, outer = {.count = MOST};
	driver.parameters = 1;
	driver.sizes[0] = 30000;
	static char large[30000];
	void *one[] = {large};
	memset(large, 'x', sizeof(large));
	for (unsigned i = 0; i < MOST; i++) {
		kernels[i] = a_kernel();
		kernels[i].kernel.kernelParams = one;
		children[i] = (struct node){.type = CU_GRAPH_NODE_TYPE_GRAPH, .child = &inner};
		inner.nodes[i] = &kernels[i];
		outer.nodes[i] = &children[i];
	}
	fake_libc_fail(FAKE_realloc, 1, 0, 0);
	struct spill_graph_nodes *nodes = read_graph(&outer); /* 64 of 30 KiB */
	assert_non_null(nodes);
	assert_in_range(nodes->room, nodes->bytes, 2 << 20);
	assert_in_range(fake_libc[FAKE_realloc].calls, 1, 8); /* it is doubled */
	unsigned count = 0;
	for (const struct spill_node *node = NULL; (node = spill_graph_nodes_next(nodes, node)); count++)
		assert_memory_equal(spill_node_values(node), large, sizeof(large));
	assert_int_equal(count, MOST * MOST);
	free(nodes);
	driver.sizes[0] = 32764;
	static char larger[32764];
	one[0] = larger;
	assert_null(read_graph(&outer));
}

/* -- what is left whole ----------------------------------------------------------------------------------- */

TEST(a_node_that_cannot_be_launched_leaves_the_graph_whole)
{
	assert_true(is_copied(a_kernel()));
	for (int type = 0; type < 16; type++) /* host functions, events, memory, conditions … */
		if (type > CU_GRAPH_NODE_TYPE_GRAPH || type == 3)
			assert_int_equal(is_copied((struct node){.type = type}),
			                 type == CU_GRAPH_NODE_TYPE_EMPTY);
	struct node kernel = a_kernel();
	kernel.attributes[CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE] = 1;
	assert_false(is_copied(kernel));
	kernel = a_kernel();
	kernel.kernel.kernelParams = NULL;
	assert_false(is_copied(kernel));
	kernel.kernel.kernelParams = (void *[]){&pointer, NULL, pair};
	assert_false(is_copied(kernel));
	driver.refuses_types = true;
	assert_false(is_copied(a_kernel()));
	driver.refuses_types = false;
	driver.refuses_kernels = true;
	assert_false(is_copied(a_kernel()));
	driver.refuses_kernels = false;
	fake_libc_fail(FAKE_malloc, 1, FAKE_LIBC_FOR_EVER, ENOMEM); /* as a compiler has realloc(NULL, …) */
	fake_libc_fail(FAKE_realloc, 1, FAKE_LIBC_FOR_EVER, ENOMEM);
	assert_false(is_copied(a_kernel()));
	fake_libc_reset();
	driver.refuses_sizes = true;
	assert_false(is_copied(a_kernel()));
	assert_false(is_copied(a_set(3)));
}

static char block[40] = "all parameters in a block of memory";
static size_t block_bytes = sizeof(block);
static void *extra[] = {CU_LAUNCH_PARAM_BUFFER_SIZE, &block_bytes, CU_LAUNCH_PARAM_BUFFER_POINTER, block,
                        CU_LAUNCH_PARAM_END};

static struct node a_kernel_with_block(void)
{
	struct node kernel = a_kernel();
	kernel.kernel.kernelParams = NULL;
	kernel.kernel.extra = extra;
	return kernel;
}

/* As cuBLAS does. */
TEST(parameters_in_a_block)
{
	struct node kernel = a_kernel_with_block();
	kernel.attributes[CU_LAUNCH_ATTRIBUTE_COOPERATIVE] = 1;
	driver.refuses_sizes = true; /* which are not needed */
	struct spill_graph_nodes *nodes = read_node(&kernel);
	const struct spill_node *node = spill_graph_nodes_next(nodes, NULL);
	assert_int_equal(node->kernel.buffer_bytes, sizeof(block));
	assert_int_equal(node->kernel.parameters, 0);
	assert_int_equal(node->kernel.attributes, 1);
	assert_memory_equal(spill_node_values(node), block, sizeof(block));
	assert_int_equal((uintptr_t)spill_node_values(node) % 8, 0);
	assert_null(spill_graph_nodes_next(nodes, node));
	/* Other values, of the same size. */
	char other[sizeof(block)] = "others";
	struct node change = a_kernel_with_block();
	change.kernel.extra = (void *[]){CU_LAUNCH_PARAM_BUFFER_POINTER, other, CU_LAUNCH_PARAM_BUFFER_SIZE,
	                                 &block_bytes, CU_LAUNCH_PARAM_END};
	struct spill_graph_change changes = {.at = (CUgraphNode)&kernel, .kernel_v2 = &change.kernel};
	assert_true(spill_graph_nodes_change(nodes, &changes));
	assert_memory_equal(spill_node_values(node), other, sizeof(other));
	size_t less = sizeof(other) - 1;
	change.kernel.extra[3] = &less;
	assert_false(spill_graph_nodes_change(nodes, &changes));
	change = a_kernel(); /* values in place of a block */
	assert_false(spill_graph_nodes_change(nodes, &changes));
	free(nodes);
	driver.refuses_sizes = false;
	struct node plain = a_kernel();
	nodes = read_node(&plain);
	change = a_kernel_with_block();
	changes.at = (CUgraphNode)&plain;
	assert_false(spill_graph_nodes_change(nodes, &changes));
	free(nodes);
}

TEST(a_block_that_cannot_be_read_leaves_the_graph_whole)
{
	struct node kernel = a_kernel_with_block();
	assert_true(is_copied(kernel));
	kernel.kernel.kernelParams = values; /* both */
	assert_false(is_copied(kernel));
	kernel = a_kernel_with_block();
	kernel.kernel.extra = (void *[]){(void *)9, block, CU_LAUNCH_PARAM_END};
	assert_false(is_copied(kernel));
	kernel.kernel.extra = (void *[]){CU_LAUNCH_PARAM_BUFFER_SIZE, &block_bytes, CU_LAUNCH_PARAM_END};
	assert_false(is_copied(kernel));
	kernel.kernel.extra = (void *[]){CU_LAUNCH_PARAM_BUFFER_POINTER, block, CU_LAUNCH_PARAM_END};
	assert_false(is_copied(kernel));
}

/* The driver names a kernel by either handle. */
TEST(a_kernel_of_a_library)
{
	struct node kernel = a_kernel();
	kernel.kernel.kern = (CUkernel)kernel.kernel.func;
	kernel.kernel.func = NULL;
	assert_true(is_copied(kernel));
}

/* Memory of the host is read when the copy is submitted if it is pageable, and nobody knows whether it is. */
TEST(copies_of_host_memory_leave_the_graph_whole)
{
	assert_true(is_copied(a_copy(CU_MEMORYTYPE_DEVICE, CU_MEMORYTYPE_DEVICE)));
	assert_false(is_copied(a_copy(CU_MEMORYTYPE_HOST, CU_MEMORYTYPE_DEVICE)));
	assert_false(is_copied(a_copy(CU_MEMORYTYPE_DEVICE, CU_MEMORYTYPE_HOST)));
	assert_false(is_copied(a_copy(CU_MEMORYTYPE_DEVICE, CU_MEMORYTYPE_ARRAY)));
	assert_false(is_copied(a_copy(CU_MEMORYTYPE_DEVICE, CU_MEMORYTYPE_UNIFIED)));
	assert_true(spill_chunk_map_set(BASE, SPILL_CHUNK_MAP_UNIT, false, false));
	assert_true(is_copied(a_copy(CU_MEMORYTYPE_DEVICE, CU_MEMORYTYPE_UNIFIED)));
	assert_true(is_copied(a_copy(CU_MEMORYTYPE_UNIFIED, CU_MEMORYTYPE_DEVICE)));
	spill_chunk_map_clear(BASE, SPILL_CHUNK_MAP_UNIT);
}

/* They do nothing, and a change gives none an extent later. */
TEST(copies_and_sets_without_an_extent_are_left_out)
{
	for (unsigned i = 0; i < 5; i++) {
		struct node copy = a_copy(CU_MEMORYTYPE_DEVICE, CU_MEMORYTYPE_DEVICE), set = a_set(4);
		copy.copy.WidthInBytes *= i != 0;
		copy.copy.Height *= i != 1;
		copy.copy.Depth *= i != 2;
		set.set.width *= i != 3;
		set.set.height *= i != 4;
		struct node *node = i < 3 ? &copy : &set;
		struct spill_graph_nodes *nodes = read_node(node);
		assert_non_null(nodes);
		assert_null(spill_graph_nodes_next(nodes, NULL));
		free(nodes);
		struct node whole = i < 3 ? a_copy(CU_MEMORYTYPE_DEVICE, CU_MEMORYTYPE_DEVICE) : a_set(4);
		nodes = read_node(&whole);
		assert_false(spill_graph_nodes_change(
		    nodes, &(struct spill_graph_change){.at = (CUgraphNode)&whole,
		                                        .copy = i < 3 ? &copy.copy : NULL,
		                                        .set = i < 3 ? NULL : &set.set}));
		free(nodes);
	}
}

TEST(kernels_of_several_contexts_leave_the_graph_whole)
{
	struct node first = a_kernel(), second = a_kernel();
	struct graph graph = {.count = 2, .nodes = {&first, &second}};
	struct spill_graph_nodes *nodes = read_graph(&graph);
	assert_ptr_equal(nodes->context, CONTEXT);
	free(nodes);
	first.kernel.ctx = NULL; /* a driver that does not tell */
	assert_null(read_graph(&graph));
	first.kernel.ctx = (CUcontext)0x5000;
	assert_null(read_graph(&graph));
}

TEST(an_order_that_is_not_that_of_the_list_leaves_the_graph_whole)
{
	struct node first = a_kernel(), second = a_set(1);
	struct graph graph = {.count = 2, .nodes = {&first, &second}, .edges = 1, .from = {1}, .to = {0}};
	assert_null(read_graph(&graph));
	graph.from[0] = 0;
	graph.to[0] = 1;
	driver.has_no_v2 = true; /* before CUDA 12.3 */
	struct spill_graph_nodes *nodes = read_graph(&graph);
	assert_non_null(nodes);
	free(nodes);
	driver.refuses_edges = true;
	assert_null(read_graph(&graph));
	/* An edge to a node that is not listed. */
	driver.refuses_edges = false;
	graph.count = 1;
	assert_null(read_graph(&graph));
}

TEST(graphs_nested_too_deep_are_left_whole)
{
	struct node node = a_set(1), children[SPILL_GRAPH_DEEPEST + 1];
	struct graph graphs[SPILL_GRAPH_DEEPEST + 2] = {{.count = 1, .nodes = {&node}}};
	for (unsigned i = 0; i <= SPILL_GRAPH_DEEPEST; i++) {
		children[i] = (struct node){.type = CU_GRAPH_NODE_TYPE_GRAPH, .child = &graphs[i]};
		graphs[i + 1] = (struct graph){.count = 1, .nodes = {&children[i]}};
	}
	struct spill_graph_nodes *nodes = read_graph(&graphs[SPILL_GRAPH_DEEPEST]);
	assert_non_null(nodes);
	free(nodes);
	assert_null(read_graph(&graphs[SPILL_GRAPH_DEEPEST + 1]));
}

/* -- changes ---------------------------------------------------------------------------------------------- */

static bool change(struct spill_graph_nodes *nodes, struct spill_graph_change change)
{
	return spill_graph_nodes_change(nodes, &change);
}

TEST(a_copy_follows_changes_of_its_nodes)
{
	struct node kernel = a_kernel(), copy = a_copy(CU_MEMORYTYPE_DEVICE, CU_MEMORYTYPE_DEVICE),
	            set = a_set(1);
	struct spill_graph_nodes *nodes =
	    read_graph(&(struct graph){.count = 3, .nodes = {&kernel, &copy, &set}});
	const struct spill_node *first = spill_graph_nodes_next(nodes, NULL),
	                        *second = spill_graph_nodes_next(nodes, first),
	                        *third = spill_graph_nodes_next(nodes, second);
	CUgraphNode at = (CUgraphNode)&kernel;
	struct node other = a_kernel();
	other.kernel.kernelParams = (void *[]){&(uint64_t){77}, (void *)"xyz", &(uint64_t[2]){8, 9}};
	other.kernel.gridDimY = 20;
	assert_true(change(nodes, (struct spill_graph_change){.at = at, .kernel_v2 = &other.kernel}));
	assert_int_equal(*(const uint64_t *)(const void *)spill_node_values(first), 77);
	assert_int_equal(first->kernel.size[1], 20);
	CUDA_KERNEL_NODE_PARAMS_v1 old_form;
	memcpy(&old_form, &kernel.kernel, sizeof(old_form));
	assert_true(change(nodes, (struct spill_graph_change){.at = at, .kernel = &old_form}));
	assert_is_kernel(first);
	copy.copy.WidthInBytes = 32;
	assert_true(change(nodes, (struct spill_graph_change){.at = (CUgraphNode)&copy, .copy = &copy.copy}));
	assert_int_equal(second->copy.WidthInBytes, 32);
	set.set.value = 3;
	assert_true(change(nodes, (struct spill_graph_change){.at = (CUgraphNode)&set, .set = &set.set}));
	assert_int_equal(third->set.value, 3);
	free(nodes);
}

TEST(other_changes_cannot_be_followed)
{
	struct node kernel = a_kernel(), copy = a_copy(CU_MEMORYTYPE_DEVICE, CU_MEMORYTYPE_DEVICE), unknown;
	struct spill_graph_nodes *nodes = read_graph(&(struct graph){.count = 2, .nodes = {&kernel, &copy}});
	CUgraphNode at = (CUgraphNode)&kernel;
	struct node other = a_kernel();
	assert_false(change(nodes, (struct spill_graph_change){.kernel_v2 = &other.kernel}));
	assert_false(change(nodes, (struct spill_graph_change){.at = at})); /* enabled or disabled */
	assert_false(change(
	    nodes, (struct spill_graph_change){.at = (CUgraphNode)&unknown, .kernel_v2 = &other.kernel}));
	assert_false(change(nodes, (struct spill_graph_change){.at = at, .copy = &copy.copy}));
	assert_false(
	    change(nodes, (struct spill_graph_change){.at = (CUgraphNode)&copy, .kernel_v2 = &other.kernel}));
	other.kernel.func = (CUfunction)0x3100;
	assert_false(change(nodes, (struct spill_graph_change){.at = at, .kernel_v2 = &other.kernel}));
	other = a_kernel();
	driver.parameters = 2; /* the function is another with the same handle */
	assert_false(change(nodes, (struct spill_graph_change){.at = at, .kernel_v2 = &other.kernel}));
	driver.parameters = 3;
	driver.refuses_sizes = true;
	assert_false(change(nodes, (struct spill_graph_change){.at = at, .kernel_v2 = &other.kernel}));
	copy.copy.srcMemoryType = CU_MEMORYTYPE_HOST;
	assert_false(
	    change(nodes, (struct spill_graph_change){.at = (CUgraphNode)&copy, .copy = &copy.copy}));
	free(nodes);
}
