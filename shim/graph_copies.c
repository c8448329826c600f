#include "graph_copies.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "chunked.h"
#include "graph_access.h"
#include "graph_ask.h"
#include "graph_modes.h"
#include "nodes.h"
#include "process.h"

static _Atomic bool forbidden; /* for good */

static void end_nodes(struct spill_graph_nodes *nodes)
{
	if (nodes && nodes->order.done)
		spill_ask_cuEventDestroy_v2(nodes->order.done);
	free(nodes);
}

void *spill_graph_copies_take(CUgraphExec exec)
{
	uint64_t site;
	return spill_graph_access_take_nodes(exec, &site);
}

/* Memory is short, so the graph may come to be launched by nodes. */
static bool is_wanted(uint64_t site)
{
	return site && spill_chunked_on_host() && spill_graph_modes_wants_nodes(site);
}

/* NULL: a node cannot be launched by itself. */
static struct spill_graph_nodes *read_nodes(CUgraphExec exec, CUgraph graph)
{
	cuuint64_t flags;
	bool device =
	    spill_ask_cuGraphExecGetFlags(exec, &flags) && flags & CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH;
	return device ? NULL : spill_graph_nodes_read(graph);
}

/* A copy of the executable graph as it is now. NULL: none is wanted. */
static struct spill_graph_nodes *copy_nodes(CUgraphExec exec, CUgraph graph, uint64_t site)
{
	if (spill_graph_copies_forbidden() || !is_wanted(site))
		return NULL;
	struct spill_graph_nodes *nodes = read_nodes(exec, graph);
	if (nodes)
		return nodes;
	/* So that it is not read again with each change. */
	nodes = calloc(1, sizeof(*nodes));
	if (nodes)
		nodes->unreadable = nodes->outdated = true;
	return nodes;
}

/* The old copy in place of none, which still has the event that a launch waits for; or a new one that has it. */
static struct spill_graph_nodes *replace(struct spill_graph_nodes *old, struct spill_graph_nodes *fresh)
{
	if (!old)
		return fresh;
	if (!fresh) {
		old->outdated = true;
		return old;
	}
	fresh->order = old->order;
	free(old);
	return fresh;
}

void *spill_graph_copies_of(void *nodes, const struct spill_graph_change *change, uint64_t site)
{
	struct spill_graph_nodes *old = nodes;
	if (change->made) {
		free(old); /* the handle was another graph's, whose context has ended */
		return copy_nodes(*change->made, change->graph, site);
	}
	if (old && old->unreadable)
		return old;
	if (change->graph && !change->child)
		return replace(old, copy_nodes(change->exec, change->graph, site));
	if (old && !old->outdated)
		old->outdated = !spill_graph_nodes_change(old, change);
	return old;
}

void spill_graph_copies_forbid(void)
{
	atomic_store(&forbidden, true);
}

bool spill_graph_copies_forbidden(void)
{
	return atomic_load_explicit(&forbidden, memory_order_relaxed);
}

void spill_graph_copies_missed(CUgraphExec exec, bool made)
{
	uint64_t site;
	struct spill_graph_nodes *nodes = spill_graph_access_take_nodes(exec, &site);
	if (!nodes)
		return;
	nodes->outdated = true;
	if (made || !spill_graph_access_give_nodes(exec, nodes))
		free(nodes); /* the handle was another graph's */
}

void spill_graph_copies_lost(CUgraphExec exec)
{
	uint64_t site;
	struct spill_graph_nodes *nodes = spill_graph_access_take_nodes(exec, &site);
	bool pending = nodes && nodes->order.pending;
	spill_graph_access_forget(exec);
	if (!pending) {
		end_nodes(nodes);
		return;
	}
	nodes->outdated = true;
	spill_graph_access_keep(exec, &(const struct spill_graph_access){.site = site, .nodes = nodes});
}

void spill_graph_copies_end(CUgraphExec exec)
{
	uint64_t site;
	int error = errno, cancel = spill_ours_begin();
	end_nodes(spill_graph_access_take_nodes(exec, &site));
	spill_ours_end(cancel);
	errno = error;
}
