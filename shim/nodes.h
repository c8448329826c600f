/*
 * Copies of the nodes of an executable graph, in an order in which they can be launched one by one
 * (graph_launch.h). They are made from the graph that it was instantiated from or updated with, because the
 * program may destroy that one. CUDA does not tell what an executable graph holds.
 *
 * A copy is one block of memory, which free() ends. Its values are those of the driver: parameters of kernels
 * with their bytes, copies and sets of device memory. Nodes of graphs within the graph stand in its place.
 */
#ifndef SPILL_NODES_H
#define SPILL_NODES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "abi/cuda_work.h"
#include "graph_hints.h"

/*
 * Followed by the attributes, the values' places (bytes from `values`) and the values. Or by the attributes and the buffer that the
 * program gave in place of values.
 */
struct spill_node_kernel {
	CUfunction function; /* or CUkernel */
	unsigned size[6], shared_bytes;
	uint32_t attributes, parameters;
	size_t buffer_bytes; /* 0: there is none */
};

struct spill_node {
	CUgraphNode handle; /* in the program's graph */
	int type;           /* KERNEL, MEMCPY or MEMSET */
	uint32_t bytes;     /* with all that follows; the next node is behind */
	union {
		struct spill_node_kernel kernel;
		CUDA_MEMCPY3D copy; /* of device memory */
		CUDA_MEMSET_NODE_PARAMS_v1 set;
	};
};

/*
 * CUDA has launches of an executable graph wait for each other. `last`: the stream of the last launch that was seen;
 * the next one by nodes is in the same. If the last was by nodes, one in another stream waits for `done`.
 */
struct spill_graph_order {
	CUevent done;
	CUstream last;
	uint64_t thread; /* whose stream that is; 0: the program's */
	bool seen, pending;
};

struct spill_graph_nodes {
	size_t bytes, room; /* of the nodes */
	bool outdated;      /* the graph is another by now, and launched as a whole */
	bool unreadable;    /* outdated for good: a node cannot be launched by itself */
	CUcontext context;  /* of its kernels; NULL: it has none */
	struct spill_graph_order order;
	_Alignas(8) char nodes[]; /* struct spill_node each */
};

/*
 * Copies a graph's nodes. NULL: one cannot be launched by itself, or its order is not known. pre: this thread's
 * calls are our own (spill_ours_begin), and the program uses the graph in no other thread
 */
struct spill_graph_nodes *spill_graph_nodes_read(CUgraph graph);

/* A node of the executable graph has changed. False: the copy cannot follow. pre: as above */
bool spill_graph_nodes_change(struct spill_graph_nodes *nodes, const struct spill_graph_change *change);

/* The first node, and the next. NULL: no more. */
const struct spill_node *spill_graph_nodes_next(const struct spill_graph_nodes *nodes,
                                                const struct spill_node *node);

/* Of a kernel's node. Values keep their alignment of 8 bytes. */
static inline const CUlaunchAttribute *spill_node_attributes(const struct spill_node *node)
{
	return (const CUlaunchAttribute *)(const void *)(node + 1);
}

static inline const uint32_t *spill_node_places(const struct spill_node *node)
{
	return (const uint32_t *)(const void *)(spill_node_attributes(node) + node->kernel.attributes);
}

static inline const char *spill_node_values(const struct spill_node *node)
{
	/* an even number of places, so that values are aligned */
	return (const char *)(spill_node_places(node) + (node->kernel.parameters + 1) / 2 * 2);
}

#endif
