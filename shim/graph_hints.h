/*
 * Hints for executable graphs: the addresses that a launch of the graph will use. They are read
 * from the graph's nodes when it is instantiated or changed, and kept in graph_access.h. Kernel
 * nodes are read like launches (hints.h); copies, sets and child graphs count too.
 *
 * Other nodes give no hint. Operations on values touch a few bytes, host functions use no device
 * memory, and bodies of conditional nodes may not run.
 *
 * For a graph with memory of its own, the amount is recorded too (make_room.h).
 */
#ifndef SPILL_GRAPH_HINTS_H
#define SPILL_GRAPH_HINTS_H

#include <stdbool.h>

#include "abi/cuda_work.h"

/* The `fill` column of rows that change executable graphs: the new or added content. */
struct spill_graph_change {
	const CUgraphExec *made; /* made by this call; NULL: the call changes `exec` */
	CUgraphExec exec;
	CUgraph graph;
	bool child;     /* `graph` belongs to a child graph node */
	bool alone;     /* graphs can be launched as a whole only from now on (graph_copies.h) */
	CUgraphNode at; /* the node that changes, of the graph that `exec` was made from; NULL: all may */
	const CUDA_KERNEL_NODE_PARAMS_v1 *kernel;
	const CUDA_KERNEL_NODE_PARAMS_v2 *kernel_v2;
	const CUDA_MEMCPY3D *copy;
	const CUDA_MEMSET_NODE_PARAMS_v1 *set;
	const CUgraphNodeParams *node;
};

/*
 * Records the change after the driver accepted it. Reads nodes if memory is movable and
 * movable.follow or movable.record is on, or if graphs have memory of their own. During a capture it
 * forgets the graph instead. Keeps errno. pre: the driver has accepted these arguments
 */
void spill_graph_changed(const struct spill_graph_change *change);

#endif
