/*
 * The memory that executable graphs access. It is kept by graph handle, from instantiation
 * (shim/graph_hints.h) to the launches that report it (shim/hints.h). Only addresses are kept, and
 * looked up at the launch, because memory moves and is freed meanwhile. Like all hints these may be
 * wrong or missing, which only costs time.
 */
#ifndef SPILL_GRAPH_ACCESS_H
#define SPILL_GRAPH_ACCESS_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Most ranges of one graph. A graph with more has those of its first nodes. A launch access has
 * fewer keys (launch_access.h).
 */
#define SPILL_GRAPH_RANGES 4096

struct spill_graph_range {
	uint64_t va, bytes; /* bytes 0: the buffer at va, as for a parameter of a launch */
};

struct spill_graph_access {
	uint64_t site;   /* as in struct spill_launch_access */
	bool once;       /* only copies and sets */
	uint64_t memory; /* most device bytes of the graph's own memory; 0: none, or not known */
	uint32_t count;
	const struct spill_graph_range *ranges;
	void *nodes; /* the caller's: copies of its nodes, of malloc (shim/nodes.h); NULL: none */
};

/*
 * Replaces the accesses of a graph. The table keeps a copy, and owns access->nodes from now on. If there is
 * nothing to keep, or no room, it forgets the graph.
 */
void spill_graph_access_keep(const void *exec, const struct spill_graph_access *access);
void spill_graph_access_forget(const void *exec);

/*
 * The graph's own memory, as above. Waits for the table's lock. pre: no lock of ours of a higher
 * rank is held
 */
uint64_t spill_graph_access_memory(const void *exec);

/*
 * Calls `visit` with the graph's accesses and with the table's lock held
 * (SPILL_RANK_GRAPH_ACCESS). It takes no lock of a lower rank and calls no vendor. False: none are
 * known, or the lock is contended, because a launch does not wait here.
 */
typedef void spill_graph_access_fn(void *closure, const struct spill_graph_access *access);
bool spill_graph_access_look(const void *exec, spill_graph_access_fn *visit, void *closure);

/*
 * Takes the graph's copied nodes out of the table; the caller owns them. Stores its site. NULL: there are none.
 * While they are out, spill_graph_access_keep and _forget do not see them.
 */
void *spill_graph_access_take_nodes(const void *exec, uint64_t *site);

/* Puts them back. False: the graph is not known any more, or has others. Then the caller still owns them. */
bool spill_graph_access_give_nodes(const void *exec, void *nodes);

/* A context has ended, and graphs with it. It is not known which. */
void spill_graph_access_forget_all(void);

/*
 * In a forked child, which has no GPU. No memory is freed and no lock is taken, because a signal
 * handler that forks may have interrupted the thread that holds it.
 */
void spill_graph_access_reset(void);

#endif
