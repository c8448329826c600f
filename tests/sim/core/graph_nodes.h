/* Nodes and graphs as graph.c builds them and graph_exec.c runs them. */
#ifndef SIM_GRAPH_NODES_H
#define SIM_GRAPH_NODES_H

#include "core_internal.h"

/* What a node does; shared with the executable graphs made of it and with their launches on the way. */
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
	struct work *work;                   /* NULL: nothing to run */
	struct sim_event *event;             /* RECORD, WAIT */
	struct graph_allocation *allocation; /* ALLOC, FREE; another graph's memory is kept by a reference */
	struct sim_graph *child;             /* CHILD */
	struct sim_node **after;
	size_t afters;
	enum { UNSEEN, SEEN, DONE } state; /* of a walk */
};

struct sim_graph {
	struct object object;
	struct sim_node *first, **end;
	size_t count;
	struct graph_memory *memory;
	bool memory_nodes, owned; /* by a node */
};

/* Counted; NULL is nothing. */
struct work *graph_work_get(struct work *work);
void graph_work_put(struct work *work);

/* pre: the lock is held. The nodes in an order that every edge allows. False: there is none. */
bool graph_sort(struct sim_graph *graph, struct sim_node **sorted);

#define LOCKED(call) \
	do { \
		pthread_mutex_lock(&sim_graph_lock); \
		enum sim_status locked_status = (call); \
		pthread_mutex_unlock(&sim_graph_lock); \
		return locked_status; \
	} while (0)

#endif
