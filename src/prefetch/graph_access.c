#include "graph_access.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define BUCKETS 1024
/* 16 MiB of ranges at most, whatever a program instantiates and never destroys. */
#define MOST_GRAPHS 16384
#define MOST_RANGES (1u << 20)
/* Most graphs with copied nodes, of 2 MiB at most each. */
#define MOST_WITH_NODES 256

struct known_graph {
	struct known_graph *next;
	const void *exec;
	struct spill_graph_access access;
	struct spill_graph_range ranges[]; /* `access` points here */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* SPILL_RANK_GRAPH_ACCESS */
static struct known_graph *buckets[BUCKETS];
static _Atomic uint32_t graph_count; /* written with the lock held */
static uint32_t range_count, with_nodes;

static struct known_graph **bucket_of(const void *exec)
{
	return &buckets[((uintptr_t)exec >> 4) * 0x9e3779b97f4a7c15ull >> 54];
}

/* The link to the graph, or to the end of its bucket. pre: locked */
static struct known_graph **link_of(const void *exec)
{
	struct known_graph **link = bucket_of(exec);
	while (*link && (*link)->exec != exec)
		link = &(*link)->next;
	return link;
}

static void free_graph(struct known_graph *graph)
{
	if (graph)
		free(graph->access.nodes);
	free(graph);
}

/* Takes the copied nodes of a graph. pre: locked */
static void *take_nodes(struct known_graph *graph)
{
	void *nodes = graph->access.nodes;
	graph->access.nodes = NULL;
	with_nodes -= nodes != NULL;
	return nodes;
}

/* Unlinks a graph, which the caller frees. pre: locked */
static struct known_graph *unlink_graph(struct known_graph **link)
{
	struct known_graph *graph = *link;
	if (graph) {
		*link = graph->next;
		graph_count--;
		range_count -= graph->access.count;
		with_nodes -= graph->access.nodes != NULL;
	}
	return graph;
}

void spill_graph_access_keep(const void *exec, const struct spill_graph_access *access)
{
	size_t bytes = access->count * sizeof(access->ranges[0]);
	void *left_over = NULL;
	struct known_graph *fresh =
	    access->count || access->memory || access->nodes ? malloc(sizeof(*fresh) + bytes) : NULL;
	if (fresh) {
		fresh->exec = exec;
		fresh->access = *access;
		fresh->access.ranges = fresh->ranges;
		if (bytes)
			memcpy(fresh->ranges, access->ranges, bytes);
	} else {
		free(access->nodes);
	}
	pthread_mutex_lock(&lock);
	struct known_graph *old = unlink_graph(link_of(exec));
	if (fresh && graph_count < MOST_GRAPHS && range_count + access->count <= MOST_RANGES) {
		struct known_graph **bucket = bucket_of(exec);
		fresh->next = *bucket;
		*bucket = fresh;
		graph_count++;
		range_count += access->count;
		fresh->access.nodes = NULL;
		if (access->nodes && with_nodes < MOST_WITH_NODES) {
			fresh->access.nodes = access->nodes;
			with_nodes++;
		} else {
			left_over = access->nodes;
		}
		fresh = NULL;
	}
	pthread_mutex_unlock(&lock);
	free(left_over);
	free_graph(fresh);
	free_graph(old);
}

void spill_graph_access_forget(const void *exec)
{
	if (!atomic_load(&graph_count))
		return;
	pthread_mutex_lock(&lock);
	struct known_graph *old = unlink_graph(link_of(exec));
	pthread_mutex_unlock(&lock);
	free_graph(old);
}

bool spill_graph_access_look(const void *exec, spill_graph_access_fn *visit, void *closure)
{
	if (!atomic_load(&graph_count) || pthread_mutex_trylock(&lock))
		return false;
	const struct known_graph *graph = *link_of(exec);
	if (graph)
		visit(closure, &graph->access);
	pthread_mutex_unlock(&lock);
	return graph;
}

uint64_t spill_graph_access_memory(const void *exec)
{
	if (!atomic_load(&graph_count))
		return 0;
	pthread_mutex_lock(&lock);
	const struct known_graph *graph = *link_of(exec);
	uint64_t memory = graph ? graph->access.memory : 0;
	pthread_mutex_unlock(&lock);
	return memory;
}

void *spill_graph_access_take_nodes(const void *exec, uint64_t *site)
{
	if (!atomic_load(&graph_count))
		return NULL;
	pthread_mutex_lock(&lock);
	struct known_graph *graph = *link_of(exec);
	void *nodes = graph ? take_nodes(graph) : NULL;
	if (nodes)
		*site = graph->access.site;
	pthread_mutex_unlock(&lock);
	return nodes;
}

bool spill_graph_access_give_nodes(const void *exec, void *nodes)
{
	pthread_mutex_lock(&lock);
	struct known_graph *graph = *link_of(exec);
	bool takes = graph && !graph->access.nodes;
	if (takes) {
		graph->access.nodes = nodes;
		with_nodes++;
	}
	pthread_mutex_unlock(&lock);
	return takes;
}

/*
 * The accessed memory may be another's by now. The graph's own memory stays its own. Copied nodes stay, because a launch of a
 * graph that lives has to wait for the one before; those of an ended one are replaced when its handle is used again.
 */
void spill_graph_access_forget_all(void)
{
	if (!atomic_load(&graph_count))
		return;
	pthread_mutex_lock(&lock);
	for (unsigned i = 0; i < BUCKETS; i++)
		for (struct known_graph **link = &buckets[i]; *link;) {
			struct known_graph *graph = *link;
			if (!graph->access.memory && !graph->access.nodes) {
				free_graph(unlink_graph(link));
				continue;
			}
			range_count -= graph->access.count;
			graph->access.count = 0;
			link = &graph->next;
		}
	pthread_mutex_unlock(&lock);
}

void spill_graph_access_reset(void)
{
	pthread_mutex_init(&lock, NULL);
	memset(buckets, 0, sizeof(buckets));
	graph_count = 0;
	range_count = with_nodes = 0;
}
