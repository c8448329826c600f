/*
 * Launches the nodes of an executable graph one by one, where that takes less time (graph_modes.h). The result is
 * that of the graph: each node comes behind those that it depends on, in the stream of the launch, and launches of
 * the same graph wait for each other.
 */
#ifndef SPILL_GRAPH_LAUNCH_H
#define SPILL_GRAPH_LAUNCH_H

#include <stdbool.h>

#include "graph_modes.h"
#include "hints.h"

/* True: launches of graphs are to be passed to spill_graph_launch. */
static inline bool spill_graph_launch_looks(void)
{
	return __builtin_expect(atomic_load_explicit(&spill_graph_modes_used, memory_order_relaxed), 0);
}

/*
 * `may`: memory is short, and hints are wanted (spill_work_followed). Without it only the order of launches is kept.
 * True: the graph's nodes were launched, and *result is the driver's. False: nothing was, and the caller launches
 * the graph. Keeps errno. pre: as for spill_before_launch; hint->graph
 */
bool spill_graph_launch(const struct spill_hint *hint, bool may, CUresult *result);

#endif
