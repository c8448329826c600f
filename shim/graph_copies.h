/*
 * Keeps the copied nodes of executable graphs (nodes.h) up to date, from their instantiation to their end. The
 * table of graph_access.h owns them.
 *
 * pre of all: this thread's calls are our own (spill_ours_begin), and the program uses the graph in no other thread
 */
#ifndef SPILL_GRAPH_COPIES_H
#define SPILL_GRAPH_COPIES_H

#include <stdbool.h>

#include "graph_hints.h"

/*
 * Called around recording what a graph uses (graph_hints.h). The first takes the copy that there is, or NULL; the
 * second returns the one to keep. Nodes are copied only while memory is on the host, and
 * not with site 0: then nobody follows launches.
 */
void *spill_graph_copies_take(CUgraphExec exec);
void *spill_graph_copies_of(void *nodes, const struct spill_graph_change *change, uint64_t site);

/*
 * From now on all graphs of the process are launched as a whole: the program disables nodes, which an update keeps, or
 * graphs own objects of the program, which the driver ends when it knows of no more launches. For any thread.
 */
void spill_graph_copies_forbid(void);
bool spill_graph_copies_forbidden(void);

/* The executable graph has changed, or was just made, and nobody looked at it. For calls of the program. */
void spill_graph_copies_missed(CUgraphExec exec, bool made);

/* Nobody knows any more what the executable graph uses (spill_graph_access_forget). */
void spill_graph_copies_lost(CUgraphExec exec);

/* Before the executable graph ends. For calls of the program: this thread's need not be our own. Keeps errno. */
void spill_graph_copies_end(CUgraphExec exec);

#endif
