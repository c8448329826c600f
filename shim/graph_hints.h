/*
 * What executable graphs are going to use, read from the nodes of the graph that they are made of: parameters of kernels as those of a
 * launch (hints.h), copies and sets, child graphs. Other nodes say nothing: operations on values and batches of them touch a few bytes,
 * host functions nothing of ours, bodies of conditional nodes cannot be known to run. Kept in graph_access.h.
 * Where graphs have memory of their own, how much it is, too (make_room.h).
 */
#ifndef SPILL_GRAPH_HINTS_H
#define SPILL_GRAPH_HINTS_H

#include <stdbool.h>

#include "abi/cuda_work.h"

/* In the `fill` column of rows that make or change executable graphs: what it is to be made of from now on, or in addition. */
struct spill_graph_change {
	const CUgraphExec *made; /* by this call; or: */
	CUgraphExec exec;
	CUgraph graph;
	bool child; /* graph: of one of its nodes */
	const CUDA_KERNEL_NODE_PARAMS_v1 *kernel;
	const CUDA_KERNEL_NODE_PARAMS_v2 *kernel_v2;
	const CUDA_MEMCPY3D *copy;
	const CUDA_MEMSET_NODE_PARAMS_v1 *set;
	const CUgraphNodeParams *node;
};

/*
 * The driver has done it. Looks at the nodes by calls that change nothing, if anything is movable and
 * movable.follow wants to know, or if graphs have memory of their own. Not while anything captures: then nothing
 * is known of the graph. Keeps errno. pre: the call's arguments, which the driver took
 */
void spill_graph_changed(const struct spill_graph_change *change);

#endif
