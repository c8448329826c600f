#include "nodes.h"

#include <stdlib.h>
#include <string.h>

#include "chunk_map.h"
#include "descriptors.h"
#include "graph_ask.h"
#include "layouts.h"
#include "minmax.h"
#include "params.h"

/* Larger graphs are not copied. */
#define MOST_BYTES (2u << 20)

/* -- room -------------------------------------------------------------------------------------- */

static struct spill_graph_nodes *resize(struct spill_graph_nodes *nodes, size_t room)
{
	struct spill_graph_nodes *larger = realloc(nodes, sizeof(*nodes) + room);
	if (larger && !nodes)
		memset(larger, 0, sizeof(*larger));
	if (larger)
		larger->room = room;
	return larger;
}

/* A new node at the end, with so many bytes behind it. Moves *nodes if they need more room. NULL: there is none. */
static struct spill_node *add_node(struct spill_graph_nodes **nodes, CUgraphNode handle, int type,
                                   size_t behind)
{
	size_t bytes = spill_round_up(sizeof(struct spill_node) + behind, 8);
	size_t end = (*nodes)->bytes + bytes;
	if (end > (*nodes)->room) {
		size_t room = spill_min(spill_max(2 * (*nodes)->room, end), MOST_BYTES);
		struct spill_graph_nodes *larger = end <= room ? resize(*nodes, room) : NULL;
		if (!larger)
			return NULL;
		*nodes = larger;
	}
	struct spill_node *node = (struct spill_node *)(void *)((*nodes)->nodes + (*nodes)->bytes);
	(*nodes)->bytes = end;
	memset(node, 0, bytes);
	node->handle = handle;
	node->type = type;
	node->bytes = (uint32_t)bytes;
	return node;
}

const struct spill_node *spill_graph_nodes_next(const struct spill_graph_nodes *nodes,
                                                const struct spill_node *node)
{
	const char *next = node ? (const char *)node + node->bytes : nodes->nodes;
	return next < nodes->nodes + nodes->bytes ? (const struct spill_node *)(const void *)next : NULL;
}

/* -- kernels ----------------------------------------------------------------------------------- */

/* Attributes that change what a kernel does. Others order launches, or only make them faster. */
static const int attributes[] = {
    CU_LAUNCH_ATTRIBUTE_COOPERATIVE,
    CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION,
    CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE,
    CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION,
    CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT,
};
#define ATTRIBUTES (sizeof(attributes) / sizeof(attributes[0]))

/* True: it is not at its default. A driver does not know those that are newer. */
static bool has_attribute(CUgraphNode handle, int attribute, CUlaunchAttributeValue *value)
{
	static const CUlaunchAttributeValue none;
	*value = none;
	return spill_ask_cuGraphKernelNodeGetAttribute(handle, attribute, value) &&
	       memcmp(value, &none, sizeof(none)) != 0;
}

static uint32_t read_attributes(CUgraphNode handle, CUlaunchAttribute *found)
{
	uint32_t count = 0;
	for (unsigned i = 0; i < ATTRIBUTES; i++) {
		CUlaunchAttributeValue value;
		if (has_attribute(handle, attributes[i], &value))
			found[count++] = (CUlaunchAttribute){.id = attributes[i], .value = value};
	}
	return count;
}

/* A kernel on the device may change the node. */
static bool is_changed_by_device(CUgraphNode handle)
{
	CUlaunchAttributeValue value;
	return has_attribute(handle, CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE, &value);
}

/* Values, or a buffer, of the same sizes as the node's. False: they differ, or one is missing. */
static bool fill_values(struct spill_node *node, const CUDA_KERNEL_NODE_PARAMS_v1 *kernel,
                        const uint16_t *sizes)
{
	char *values = (char *)spill_node_values(node);
	const uint32_t *places = spill_node_places(node);
	size_t bytes = 0;
	if (kernel->extra) {
		const void *buffer = kernel->kernelParams ? NULL : spill_params_buffer(kernel->extra, &bytes);
		if (!buffer || bytes != node->kernel.buffer_bytes)
			return false;
		memcpy(values, buffer, bytes);
		return true;
	}
	if (node->kernel.buffer_bytes || (node->kernel.parameters && !kernel->kernelParams))
		return false;
	for (uint32_t i = 0; i < node->kernel.parameters; i++) {
		if (!kernel->kernelParams[i])
			return false;
		memcpy(values + places[i], kernel->kernelParams[i], sizes[i]);
	}
	return true;
}

static bool fill_kernel(struct spill_node *node, const CUDA_KERNEL_NODE_PARAMS_v1 *kernel,
                        const uint16_t *sizes)
{
	const unsigned size[6] = {kernel->gridDimX,  kernel->gridDimY,  kernel->gridDimZ,
	                          kernel->blockDimX, kernel->blockDimY, kernel->blockDimZ};
	memcpy(node->kernel.size, size, sizeof(size));
	node->kernel.shared_bytes = kernel->sharedMemBytes;
	return fill_values(node, kernel, sizes);
}

/* What the values of a kernel take. False: the driver does not tell. */
static bool size_values(const CUDA_KERNEL_NODE_PARAMS_v2 *kernel, struct spill_node_kernel *node,
                        uint16_t *sizes, size_t *bytes)
{
	*bytes = 0;
	if (kernel->extra && !kernel->kernelParams) {
		spill_params_buffer(kernel->extra, &node->buffer_bytes);
		*bytes = spill_round_up(node->buffer_bytes, 8);
		return node->buffer_bytes;
	}
	if (!spill_layout_sizes(spill_graph_kernel(kernel), sizes, &node->parameters))
		return false;
	for (uint32_t i = 0; i < node->parameters; i++)
		*bytes += spill_round_up(sizes[i], 8);
	return true;
}

static bool add_kernel(struct spill_graph_nodes **nodes, CUgraphNode handle,
                       const CUDA_KERNEL_NODE_PARAMS_v2 *kernel)
{
	struct spill_node_kernel head = {.function = (CUfunction)spill_graph_kernel(kernel)};
	uint16_t sizes[SPILL_LAYOUT_PARAMETERS];
	CUlaunchAttribute found[ATTRIBUTES];
	CUcontext *context = &(*nodes)->context;
	size_t bytes;
	if (is_changed_by_device(handle) || !size_values(kernel, &head, sizes, &bytes) || !kernel->ctx ||
	    (*context && *context != kernel->ctx))
		return false;
	*context = kernel->ctx;
	head.attributes = read_attributes(handle, found);
	size_t listed = head.attributes * sizeof(found[0]);
	struct spill_node *node = add_node(nodes, handle, CU_GRAPH_NODE_TYPE_KERNEL,
	                                   listed + (head.parameters + 1) / 2 * 8 + bytes);
	if (!node)
		return false;
	node->kernel = head;
	memcpy((void *)spill_node_attributes(node), found, listed);
	uint32_t *places = (uint32_t *)spill_node_places(node);
	for (uint32_t i = 0, place = 0; i < head.parameters; place += (uint32_t)spill_round_up(sizes[i++], 8))
		places[i] = place;
	return fill_kernel(node, (const CUDA_KERNEL_NODE_PARAMS_v1 *)(const void *)kernel, sizes);
}

/* -- copies and sets --------------------------------------------------------------------------- */

/* Memory of the host would be read when the copy is submitted, not when it runs (pageable memory). */
static bool is_of_device(CUmemorytype type, uint64_t va)
{
	struct spill_chunk_map_entry entry;
	return type == CU_MEMORYTYPE_DEVICE ||
	       (type == CU_MEMORYTYPE_UNIFIED && spill_chunk_map_of(va, &entry));
}

static bool fill_copy(struct spill_node *node, const CUDA_MEMCPY3D *params)
{
	struct spill_boxes boxes = spill_boxes_3d(params);
	node->copy = *params;
	return boxes.to.bytes && is_of_device(params->dstMemoryType, boxes.to.va) &&
	       is_of_device(params->srcMemoryType, boxes.from.va);
}

static bool fill_set(struct spill_node *node, const CUDA_MEMSET_NODE_PARAMS_v1 *params)
{
	node->set = *params;
	return params->width && params->height &&
	       (params->elementSize == 1 || params->elementSize == 2 || params->elementSize == 4);
}

/* A copy or set without an extent does nothing. */
static bool add_copy(struct spill_graph_nodes **nodes, CUgraphNode handle, const CUDA_MEMCPY3D *params)
{
	if (!params->WidthInBytes || !params->Height || !params->Depth)
		return true;
	struct spill_node *node = add_node(nodes, handle, CU_GRAPH_NODE_TYPE_MEMCPY, 0);
	return node && fill_copy(node, params);
}

static bool add_set(struct spill_graph_nodes **nodes, CUgraphNode handle,
                    const CUDA_MEMSET_NODE_PARAMS_v1 *params)
{
	if (!params->width || !params->height)
		return true;
	struct spill_node *node = add_node(nodes, handle, CU_GRAPH_NODE_TYPE_MEMSET, 0);
	return node && fill_set(node, params);
}

/* -- graphs ------------------------------------------------------------------------------------ */

static bool add_graph(struct spill_graph_nodes **nodes, CUgraph graph, unsigned depth);

/* False: it cannot be launched by itself, there is no room, or the driver does not tell all of it. */
static bool add_any(struct spill_graph_nodes **nodes, CUgraphNode handle, unsigned depth)
{
	struct spill_graph_node node;
	if (!spill_graph_ask_node(handle, &node))
		return false;
	if (!node.told)
		return node.type == CU_GRAPH_NODE_TYPE_EMPTY;
	return node.type == CU_GRAPH_NODE_TYPE_KERNEL   ? add_kernel(nodes, handle, &node.kernel)
	       : node.type == CU_GRAPH_NODE_TYPE_MEMCPY ? add_copy(nodes, handle, &node.copy)
	       : node.type == CU_GRAPH_NODE_TYPE_MEMSET ? add_set(nodes, handle, &node.set)
	                                                : add_graph(nodes, node.child, depth + 1);
}

struct place {
	CUgraphNode node;
	size_t place;
};

static int compare_nodes(const void *one, const void *other)
{
	uintptr_t a = (uintptr_t)((const struct place *)one)->node,
	          b = (uintptr_t)((const struct place *)other)->node;
	return (a > b) - (a < b);
}

static bool are_in_order(const struct place *places, size_t count, const CUgraphNode *from,
                         const CUgraphNode *to, size_t edges)
{
	for (size_t i = 0; i < edges; i++) {
		const struct place *before =
		    bsearch(&(struct place){.node = from[i]}, places, count, sizeof(*places), compare_nodes);
		const struct place *after =
		    bsearch(&(struct place){.node = to[i]}, places, count, sizeof(*places), compare_nodes);
		if (!before || !after || before->place >= after->place)
			return false;
	}
	return true;
}

/* Edges can have data, which only the second form tells (CUDA 12.3). They make kernels overlap, and never have to. */
static bool read_edges(CUgraph graph, CUgraphNode *from, CUgraphNode *to, CUgraphEdgeData *data,
                       size_t *count)
{
	return spill_ask_cuGraphGetEdges_v2(graph, from, to, data, count) ||
	       spill_ask_cuGraphGetEdges(graph, from, to, count);
}

/*
 * True: each node is behind those that it depends on. Drivers list nodes as they were made, so this is so unless
 * edges were added later. Else the graph is left whole.
 */
static bool is_in_order(CUgraph graph, const CUgraphNode *nodes, size_t count)
{
	size_t edges = 0;
	if (!read_edges(graph, NULL, NULL, NULL, &edges))
		return false;
	struct place *places = calloc(count + 1, sizeof(*places));
	CUgraphNode *ends = calloc(2 * edges + 1, sizeof(*ends));
	CUgraphEdgeData *data = calloc(edges + 1, sizeof(*data));
	for (size_t i = 0; places && i < count; i++)
		places[i] = (struct place){nodes[i], i};
	if (places)
		qsort(places, count, sizeof(*places), compare_nodes);
	bool is = places && ends && data && (!edges || read_edges(graph, ends, ends + edges, data, &edges)) &&
	          are_in_order(places, count, ends, ends + edges, edges);
	free(places);
	free(ends);
	free(data);
	return is;
}

static bool add_graph(struct spill_graph_nodes **nodes, CUgraph graph, unsigned depth)
{
	CUgraphNode *handles;
	size_t count;
	if (depth > SPILL_GRAPH_DEEPEST || !spill_graph_list(graph, &handles, &count))
		return false;
	bool added = is_in_order(graph, handles, count);
	for (size_t i = 0; i < count && added; i++)
		added = add_any(nodes, handles[i], depth);
	free(handles);
	return added;
}

struct spill_graph_nodes *spill_graph_nodes_read(CUgraph graph)
{
	struct spill_graph_nodes *nodes = resize(NULL, 4096);
	if (nodes && add_graph(&nodes, graph, 0))
		return nodes;
	free(nodes);
	return NULL;
}

/* -- changes ----------------------------------------------------------------------------------- */

/* Another function has other parameters. Attributes stay those of the node (CUDA Driver API). */
static bool change_kernel(struct spill_node *node, const CUDA_KERNEL_NODE_PARAMS_v1 *kernel,
                          const void *function)
{
	uint16_t sizes[SPILL_LAYOUT_PARAMETERS];
	uint32_t parameters = 0;
	return function == node->kernel.function &&
	       (node->kernel.buffer_bytes || spill_layout_sizes(function, sizes, &parameters)) &&
	       parameters == node->kernel.parameters && fill_kernel(node, kernel, sizes);
}

bool spill_graph_nodes_change(struct spill_graph_nodes *nodes, const struct spill_graph_change *change)
{
	struct spill_node *node = NULL;
	while ((node = (struct spill_node *)spill_graph_nodes_next(nodes, node)) &&
	       node->handle != change->at)
		;
	if (!node || !change->at)
		return false;
	if (node->type == CU_GRAPH_NODE_TYPE_KERNEL && change->kernel)
		return change_kernel(node, change->kernel, change->kernel->func);
	if (node->type == CU_GRAPH_NODE_TYPE_KERNEL && change->kernel_v2)
		return change_kernel(node,
		                     (const CUDA_KERNEL_NODE_PARAMS_v1 *)(const void *)change->kernel_v2,
		                     spill_graph_kernel(change->kernel_v2));
	if (node->type == CU_GRAPH_NODE_TYPE_MEMCPY && change->copy)
		return fill_copy(node, change->copy);
	return node->type == CU_GRAPH_NODE_TYPE_MEMSET && change->set && fill_set(node, change->set);
}
