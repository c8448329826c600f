/* Nodes and graphs, which graph.c builds and graph_exec.c runs. */
#ifndef SIM_GRAPH_NODES_H
#define SIM_GRAPH_NODES_H

#include "core_internal.h"

/* Work of a node. Executable graphs and launches under way share it. */
struct work {
	atomic_uint references;
	work_function run;
	void *data;
	struct sim_context *context;
	uint64_t context_id;
};

struct sim_node {
	struct object object;
	enum sim_node_type type;
	struct sim_graph *graph;
	struct sim_node *next;
	struct work *work;       /* NULL: no work */
	struct sim_event *event; /* RECORD, WAIT */
	/* ALLOC, FREE; memory of another graph is kept by a reference */
	struct graph_allocation *allocation;
	struct sim_graph *child; /* CHILD */
	struct sim_node **after;
	size_t afters;
	enum { UNSEEN, SEEN, DONE } state; /* of a traversal */
};

struct sim_graph {
	struct object object;
	struct sim_node *first, **end;
	size_t count;
	struct graph_memory *memory;
	bool memory_nodes, owned; /* by a node */
};

/* References. NULL is allowed. */
struct work *graph_work_get(struct work *work);
void graph_work_put(struct work *work);

/* In an order that the edges allow. False: a cycle, or no memory. pre: the lock is held. */
bool graph_sort(struct sim_graph *graph, struct sim_node **sorted);

#define LOCKED(call) \
	do { \
		pthread_mutex_lock(&sim_graph_lock); \
		enum sim_status locked_status = (call); \
		pthread_mutex_unlock(&sim_graph_lock); \
		return locked_status; \
	} while (0)

#endif
