#include "graph_hints.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "access_recording.h"
#include "descriptors.h"
#include "capture.h"
#include "chunk_map.h"
#include "graph_access.h"
#include "graph_ask.h"
#include "graph_copies.h"
#include "minmax.h"
#include "vendor_pool.h"
#include "params.h"
#include "chunked.h"
#include "process.h"

#define SLOTS (2 * SPILL_GRAPH_RANGES)

struct reading {
	uint16_t slots[SLOTS];          /* hash table: index into `ranges` plus 1 */
	struct spill_graph_access uses; /* `uses.ranges` points to `ranges` */
	struct spill_graph_range ranges[SPILL_GRAPH_RANGES];
};

/* -- ranges ----------------------------------------------------------------------------------- */

/* Adds a range once. Drops it if the table is full. */
static void add_range(struct reading *reading, uint64_t va, uint64_t bytes)
{
	uint32_t *count = &reading->uses.count;
	uint64_t hash = ((va >> SPILL_CHUNK_MAP_UNIT_SHIFT) + bytes) * 0x9e3779b97f4a7c15ull;
	unsigned slot = hash >> 32 & (SLOTS - 1);
	for (; reading->slots[slot]; slot = (slot + 1) & (SLOTS - 1)) {
		const struct spill_graph_range *there = &reading->ranges[reading->slots[slot] - 1];
		if (there->va >> SPILL_CHUNK_MAP_UNIT_SHIFT == va >> SPILL_CHUNK_MAP_UNIT_SHIFT &&
		    there->bytes == bytes)
			return;
	}
	if (*count == SPILL_GRAPH_RANGES)
		return;
	reading->ranges[*count] = (struct spill_graph_range){va, bytes};
	reading->slots[slot] = (uint16_t)++ * count;
}

/* One address stands for its whole granule. The granules record where each buffer begins. */
static void add_word(void *closure, uint64_t word)
{
	struct spill_chunk_map_entry granule;
	if (!spill_chunk_map_of(word, &granule))
		return;
	spill_chunk_map_begins(word);
	add_range(closure, word, 0);
}

/* Rounds to whole granules, because no two chunks share a granule. */
static void add_box(struct reading *reading, struct spill_box box)
{
	struct spill_chunk_map_entry granule;
	uint64_t begin = box.va & ~(SPILL_CHUNK_MAP_UNIT - 1), end = box.va + box.bytes;
	if (end > box.va && spill_chunk_map_of(box.va, &granule))
		add_range(reading, begin, ((end - 1) | (SPILL_CHUNK_MAP_UNIT - 1)) - begin + 1);
}

/* -- nodes ------------------------------------------------------------------------------------ */

static void mix_into_site(struct reading *reading, uint64_t value)
{
	reading->uses.site = spill_hash(reading->uses.site, value);
}

static void read_kernel(struct reading *reading, const CUDA_KERNEL_NODE_PARAMS_v1 *kernel,
                        const void *function)
{
	const unsigned size[6] = {kernel->gridDimX,  kernel->gridDimY,  kernel->gridDimZ,
	                          kernel->blockDimX, kernel->blockDimY, kernel->blockDimZ};
	mix_into_site(reading, spill_params_site(function, size));
	reading->uses.once = false;
	spill_params_words(function, kernel->kernelParams, kernel->extra, add_word, reading);
}

/* The second version begins like the first. */
static void read_kernel_v2(struct reading *reading, const CUDA_KERNEL_NODE_PARAMS_v2 *kernel)
{
	read_kernel(reading, (const CUDA_KERNEL_NODE_PARAMS_v1 *)(const void *)kernel,
	            spill_graph_kernel(kernel));
}

static void read_copy(struct reading *reading, const CUDA_MEMCPY3D *copy)
{
	struct spill_boxes boxes = spill_boxes_3d(copy);
	add_box(reading, boxes.to);
	add_box(reading, boxes.from);
}

static void read_set(struct reading *reading, const CUDA_MEMSET_NODE_PARAMS_v1 *set)
{
	add_box(reading, spill_box_set(set->dst, set->pitch, set->width * set->elementSize, set->height));
}

static void read_graph(struct reading *reading, CUgraph graph, unsigned depth);

static void read_node(struct reading *reading, CUgraphNode handle, unsigned depth)
{
	struct spill_graph_node node;
	if (!spill_graph_ask_node(handle, &node))
		return;
	mix_into_site(reading, (uint64_t)node.type);
	if (!node.told)
		return;
	if (node.type == CU_GRAPH_NODE_TYPE_KERNEL)
		read_kernel_v2(reading, &node.kernel);
	else if (node.type == CU_GRAPH_NODE_TYPE_MEMCPY)
		read_copy(reading, &node.copy);
	else if (node.type == CU_GRAPH_NODE_TYPE_MEMSET)
		read_set(reading, &node.set);
	else
		read_graph(reading, node.child, depth + 1);
}

static void read_graph(struct reading *reading, CUgraph graph, unsigned depth)
{
	CUgraphNode *nodes;
	size_t count;
	if (depth > SPILL_GRAPH_DEEPEST || !spill_graph_list(graph, &nodes, &count))
		return;
	for (size_t i = 0; i < count && reading->uses.count < SPILL_GRAPH_RANGES; i++)
		read_node(reading, nodes[i], depth);
	free(nodes);
}

/* All types keep their parameters at this offset (cuda.h, CUgraphNodeParams). */
static void read_params(struct reading *reading, const CUgraphNodeParams *node)
{
	const void *params = node->reserved1;
	const CUDA_MEMCPY_NODE_PARAMS *copy = params;
	switch ((int)node->type) {
	case CU_GRAPH_NODE_TYPE_KERNEL:
		read_kernel_v2(reading, params);
		break;
	case CU_GRAPH_NODE_TYPE_MEMCPY:
		read_copy(reading, &copy->copyParams);
		break;
	case CU_GRAPH_NODE_TYPE_MEMSET:
		read_set(reading, params);
		break;
	case CU_GRAPH_NODE_TYPE_GRAPH:
		read_graph(reading, *(const CUgraph *)params, 1);
		break;
	}
}

/* -- memory of the graph's own ---------------------------------------------------------------- */

struct spans {
	struct spill_graph_range *ranges;
	size_t count, room;
	bool incomplete;
};

static void add_span(struct spans *spans, uint64_t va, uint64_t bytes)
{
	if (spans->count == spans->room) {
		size_t room = spans->room ? 2 * spans->room : 16;
		struct spill_graph_range *larger = realloc(spans->ranges, room * sizeof(*larger));
		spans->incomplete |= !larger;
		if (!larger)
			return;
		spans->ranges = larger;
		spans->room = room;
	}
	spans->ranges[spans->count++] = (struct spill_graph_range){va, bytes};
}

static void read_spans(struct spans *spans, CUgraph graph, unsigned depth)
{
	CUgraphNode *nodes;
	size_t count;
	if (depth > SPILL_GRAPH_DEEPEST || !spill_graph_list(graph, &nodes, &count)) {
		spans->incomplete = true;
		return;
	}
	for (size_t i = 0; i < count; i++) {
		CUDA_MEM_ALLOC_NODE_PARAMS memory;
		CUgraph child;
		int type;
		if (!spill_ask_cuGraphNodeGetType(nodes[i], &type))
			spans->incomplete = true;
		else if (type == CU_GRAPH_NODE_TYPE_MEM_ALLOC &&
		         spill_ask_cuGraphMemAllocNodeGetParams(nodes[i], &memory))
			add_span(spans, memory.dptr, memory.bytesize);
		else if (type == CU_GRAPH_NODE_TYPE_GRAPH &&
		         spill_ask_cuGraphChildGraphNodeGetGraph(nodes[i], &child))
			read_spans(spans, child, depth + 1);
		else
			spans->incomplete |=
			    type == CU_GRAPH_NODE_TYPE_MEM_ALLOC || type == CU_GRAPH_NODE_TYPE_GRAPH;
	}
	free(nodes);
}

static int compare_addresses(const void *one, const void *other)
{
	uint64_t a = ((const struct spill_graph_range *)one)->va,
	         b = ((const struct spill_graph_range *)other)->va;
	return (a > b) - (a < b);
}

/* An upper bound: small allocations share steps and waste less than half of each. */
static uint64_t round_to_pool_steps(uint64_t bytes)
{
	return bytes > SPILL_MEMPOOL_STEP / 2 ? spill_round_up(bytes, SPILL_MEMPOOL_STEP) : 2 * bytes;
}

/* Allocations at one address count once. 0: there are none, or a node could not be read. */
static uint64_t memory_bytes_of(CUgraph graph)
{
	struct spans spans = {0};
	uint64_t sum = 0;
	read_spans(&spans, graph, 0);
	if (spans.count)
		qsort(spans.ranges, spans.count, sizeof(*spans.ranges), compare_addresses);
	for (size_t i = 0, next; i < spans.count; i = next) {
		uint64_t begin = spans.ranges[i].va, end = begin;
		for (next = i; next < spans.count && spans.ranges[next].va <= end; next++)
			end = spill_max(end, spans.ranges[next].va + spans.ranges[next].bytes);
		sum += round_to_pool_steps(end - begin);
	}
	free(spans.ranges);
	return spans.incomplete || !sum ? 0 : round_to_pool_steps(spill_max(sum, SPILL_MEMPOOL_STEP));
}

/* -- changes ---------------------------------------------------------------------------------- */

static void add_recorded(void *closure, const struct spill_graph_access *known)
{
	struct reading *reading = closure;
	reading->uses.once = known->once;
	for (uint32_t i = 0; i < known->count; i++)
		add_range(reading, known->ranges[i].va, known->ranges[i].bytes);
}

static void copy_site(void *closure, const struct spill_graph_access *known)
{
	*(uint64_t *)closure = known->site;
}

static void read_change(struct reading *reading, const struct spill_graph_change *change)
{
	if (change->kernel)
		read_kernel(reading, change->kernel, change->kernel->func);
	if (change->kernel_v2)
		read_kernel_v2(reading, change->kernel_v2);
	if (change->copy)
		read_copy(reading, change->copy);
	if (change->set)
		read_set(reading, change->set);
	if (change->node)
		read_params(reading, change->node);
	if (change->graph)
		read_graph(reading, change->graph, 0);
}

/*
 * Keeps the ranges that were recorded before, because the change may have replaced any of them.
 * Keeps the site too: the cost of launches is remembered by site, and the same graph instantiated
 * again has the same site.
 */
static void record_graph(struct reading *reading, CUgraphExec exec, const struct spill_graph_change *change,
                         bool follows)
{
	uint64_t site = 0;
	void *nodes = spill_graph_copies_take(exec);
	reading->uses.once = true;
	/* A change does not affect nodes that allocate. */
	if (!change->made)
		reading->uses.memory = spill_graph_access_memory(exec);
	else if (spill_vendor_pool_has_graphs())
		reading->uses.memory = memory_bytes_of(change->graph);
	reading->uses.ranges = reading->ranges;
	if (!change->made)
		spill_graph_access_look(exec, copy_site, &site);
	if (!change->made && (change->child || !change->graph))
		spill_graph_access_look(exec, add_recorded, reading);
	if (follows)
		read_change(reading, change);
	/* Sites 0 and 1 are reserved. */
	reading->uses.site = site ? site : reading->uses.site | 2;
	reading->uses.nodes = spill_graph_copies_of(nodes, change, follows ? reading->uses.site : 0);
	spill_graph_access_keep(exec, &reading->uses);
}

void spill_graph_changed(const struct spill_graph_change *change)
{
	CUgraphExec exec = change->made ? *change->made : change->exec;
	bool follows = spill_chunked_any() && (spill_process_policy()->movable_follow != SPILL_FOLLOW_OFF ||
	                                       spill_access_recording_on());
	if (change->alone)
		spill_graph_copies_forbid();
	if (!exec)
		return;
	if (!follows && !(change->made && spill_vendor_pool_has_graphs())) {
		spill_graph_copies_missed(exec, change->made);
		return;
	}
	int error = errno, cancel = spill_ours_begin();
	struct reading *reading = spill_capture_any() ? NULL : calloc(1, sizeof(*reading));
	if (reading)
		record_graph(reading, exec, change, follows);
	else
		spill_graph_copies_lost(exec);
	free(reading);
	spill_ours_end(cancel);
	errno = error;
}
