/*
 * For each graph: whether it is launched as a whole or node by node (graph_mode.h). shim/graph_launch.c
 * carries it out.
 */
#ifndef SPILL_GRAPH_MODES_H
#define SPILL_GRAPH_MODES_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "launch_access.h"
#include "stopwatch.h"

/* True from the first launch of a graph on that had memory on the host: graphs may be launched node by node. */
extern _Atomic bool spill_graph_modes_used;

/*
 * Before a whole launch of a graph that has memory on the host. `copy_ns`: what an exchange of a MiB costs.
 * True: the launch shall be timed.
 */
bool spill_graph_modes_whole(const struct spill_launch_access *access, uint64_t copy_ns);

/* True: launch it node by node. `site`: the graph's (graph_access.h). */
bool spill_graph_modes_by_nodes(uint64_t site);

/* The nodes cannot be launched now (graph_mode.h). */
void spill_graph_modes_refused(uint64_t site);

/* True: its launches may soon be made node by node, so the nodes should be known. */
bool spill_graph_modes_wants_nodes(uint64_t site);

/* A launch of a graph was measured (access->graph). */
void spill_graph_modes_measured(const struct spill_stopwatch_access *access, uint64_t ns);

void spill_graph_modes_reset(void); /* in a forked child */

#endif
