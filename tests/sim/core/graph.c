/* Graphs: nodes that keep work of a stream, and the edges between them. */
#include <stdlib.h>
#include <string.h>

#include "graph_nodes.h"

pthread_mutex_t sim_graph_lock = PTHREAD_MUTEX_INITIALIZER;

void graph_work_put(struct work *work)
{
	if (!work || atomic_fetch_sub(&work->references, 1) != 1)
		return;
	free(work->data);
	free(work);
}

struct work *graph_work_get(struct work *work)
{
	if (work)
		atomic_fetch_add(&work->references, 1);
	return work;
}

bool sim_graph_alive(struct sim_graph *graph)
{
	return object_is(graph, OBJECT_GRAPH);
}

/* -- nodes: all with the lock held ------------------------------------------------------------- */

static bool spot_good(const struct sim_spot *spot)
{
	if (!sim_graph_alive(spot->graph) || (spot->count && !spot->after))
		return false;
	for (size_t i = 0; i < spot->count; i++) {
		if (!object_is(spot->after[i], OBJECT_NODE) || spot->after[i]->graph != spot->graph)
			return false;
		for (size_t j = 0; j < i; j++)
			if (spot->after[i] == spot->after[j])
				return false;
	}
	return true;
}

static enum sim_status node_new(const struct sim_spot *spot, enum sim_node_type type, struct sim_node **out)
{
	if (!spot_good(spot))
		return SIM_INVALID;
	struct sim_node **after = calloc(spot->count + 1, sizeof(struct sim_node *));
	struct sim_node *node = after ? object_new(OBJECT_NODE, sizeof(*node)) : NULL;
	if (!node) {
		free(after);
		return SIM_NO_HOST_MEMORY;
	}
	if (spot->count)
		memcpy(after, spot->after, spot->count * sizeof(struct sim_node *));
	node->type = type;
	node->graph = spot->graph;
	node->after = after;
	node->afters = spot->count;
	*spot->graph->end = node;
	spot->graph->end = &node->next;
	spot->graph->count++;
	*out = node;
	return SIM_OK;
}

enum sim_status node_work(const struct sim_spot *spot, struct sim_context *context, enum sim_node_type type,
                          work_function run, void *data, struct sim_node **out)
{
	struct work *work = malloc(sizeof(*work));
	enum sim_status status = work ? node_new(spot, type, out) : SIM_NO_HOST_MEMORY;

	if (status) {
		free(work);
		return status;
	}
	*work = (struct work){.references = 1,
	                      .run = run,
	                      .data = data,
	                      .context = context,
	                      .context_id = sim_context_id(context)};
	(*out)->work = work;
	return SIM_OK;
}

/* An allocation of the same size that is freed before the spot. The new one takes its place. */
static struct graph_allocation *find_freed_before(const struct sim_spot *spot, int device, unsigned devices,
                                                  uint64_t bytes)
{
	for (struct sim_node *node = spot->graph->first; node; node = node->next) {
		struct graph_allocation *one = node->type == SIM_NODE_FREE ? node->allocation : NULL;

		if (one && one->freed_by == node && !one->replaced && one->device == device &&
		    one->devices == devices && round_up(one->bytes, 512) == round_up(bytes, 512) &&
		    graph_leads_to(spot->graph, &node, 1, spot->after, spot->count))
			return one;
	}
	return NULL;
}

enum sim_status node_alloc(const struct sim_spot *spot, int device, unsigned devices, uint64_t bytes,
                           uint64_t *address, struct sim_node **out)
{
	struct graph_allocation *one;

	if (!spot_good(spot) || !bytes || device < 0 || device >= sim_config()->devices)
		return SIM_INVALID;
	enum sim_status status = graph_memory_add(spot->graph->memory, device, devices, bytes,
	                                          find_freed_before(spot, device, devices, bytes), &one);
	if (!status)
		status = node_new(spot, SIM_NODE_ALLOC, out);
	if (status)
		return status;
	(*out)->allocation = one;
	*address = one->address;
	spot->graph->memory_nodes = true;
	return SIM_OK;
}

static bool graph_frees(const struct sim_graph *graph, const struct graph_allocation *one)
{
	for (const struct sim_node *node = graph->first; node; node = node->next)
		if (node->type == SIM_NODE_FREE && node->allocation == one)
			return true;
	return false;
}

enum sim_status node_free(const struct sim_spot *spot, uint64_t address, struct sim_node **out)
{
	struct graph_allocation *one = graph_memory_find(address);

	if (!spot_good(spot) || !one || one->freed_here)
		return SIM_INVALID;
	bool here = one->memory == spot->graph->memory;
	if (here ? one->freed_elsewhere : graph_frees(spot->graph, one))
		return SIM_INVALID;
	enum sim_status status = node_new(spot, SIM_NODE_FREE, out);
	if (status)
		return status;
	(*out)->allocation = one;
	spot->graph->memory_nodes = true;
	if (here) {
		one->freed_here = true;
		one->freed_by = *out;
	} else {
		one->freed_elsewhere = true;
		graph_memory_get(one->memory);
	}
	return SIM_OK;
}

enum sim_status node_event(const struct sim_spot *spot, enum sim_node_type type, struct sim_event *event,
                           struct sim_node **out)
{
	enum sim_status status = sim_event_alive(event) ? node_new(spot, type, out) : SIM_INVALID;

	if (!status)
		(*out)->event = event;
	return status;
}

/* Copies a graph. False: out of memory. pre: it has no memory nodes. */
static bool clone_into(struct sim_graph *to, const struct sim_graph *from)
{
	struct sim_node **made = calloc(from->count + 1, sizeof(struct sim_node *));
	bool good = made;
	size_t i = 0;

	/* An edge may lead to an earlier or a later node, so edges follow all nodes. */
	for (const struct sim_node *node = from->first; node && good; node = node->next, i++) {
		const struct sim_spot spot = {to, NULL, 0};

		good = node_new(&spot, node->type, &made[i]) == SIM_OK;
		if (!good)
			break;
		made[i]->work = graph_work_get(node->work);
		made[i]->event = node->event;
		if (node->child && (good = sim_graph_create(&made[i]->child) == SIM_OK)) {
			made[i]->child->owned = true;
			good = clone_into(made[i]->child, node->child);
		}
	}
	i = 0;
	for (const struct sim_node *node = from->first; node && good; node = node->next, i++) {
		good = node->afters == 0 ||
		       (made[i]->after = realloc(made[i]->after, node->afters * sizeof(struct sim_node *)));
		for (size_t a = 0; good && a < node->afters; a++) {
			const struct sim_node *other = from->first;
			size_t at = 0;

			for (; other != node->after[a]; other = other->next)
				at++;
			made[i]->after[made[i]->afters++] = made[at];
		}
	}
	free(made);
	return good;
}

static bool has_memory(const struct sim_graph *graph)
{
	bool has = graph->memory_nodes;

	for (const struct sim_node *node = graph->first; node; node = node->next)
		has |= node->child && has_memory(node->child);
	return has;
}

static enum sim_status node_child(const struct sim_spot *spot, const struct sim_graph *child,
                                  struct sim_graph *copy, struct sim_node **out)
{
	if (!sim_graph_alive((struct sim_graph *)child))
		return SIM_INVALID;
	if (has_memory(child))
		return SIM_NOT_SUPPORTED;
	if (!clone_into(copy, child))
		return SIM_NO_HOST_MEMORY;
	enum sim_status status = node_new(spot, SIM_NODE_CHILD, out);
	if (!status)
		(*out)->child = copy;
	return status;
}

void graph_delete(struct sim_graph *graph)
{
	for (struct sim_node *node = graph->first, *next; node; node = next) {
		next = node->next;
		graph_work_put(node->work);
		free(node->after);
		if (node->type == SIM_NODE_FREE && node->allocation->memory != graph->memory)
			graph_memory_put(node->allocation->memory);
		if (node->child)
			graph_delete(node->child);
		object_delete(node);
	}
	graph_memory_put(graph->memory);
	object_delete(graph);
}

/* -- traversal --------------------------------------------------------------------------------- */

static void clear_marks(struct sim_graph *graph)
{
	for (struct sim_node *node = graph->first; node; node = node->next)
		node->state = UNSEEN;
}

bool graph_leads_to(struct sim_graph *graph, struct sim_node *const *nodes, size_t count,
                    struct sim_node *const *before, size_t before_count)
{
	struct sim_node **todo = calloc(graph->count + 1, sizeof(struct sim_node *));
	size_t left = 0;
	bool all = todo;

	if (!todo)
		return false;
	clear_marks(graph);
	for (size_t i = 0; i < before_count; i++) {
		before[i]->state = SEEN;
		todo[left++] = before[i];
	}
	while (left) {
		struct sim_node *node = todo[--left];

		for (size_t i = 0; i < node->afters; i++) {
			if (node->after[i]->state == UNSEEN) {
				node->after[i]->state = SEEN;
				todo[left++] = node->after[i];
			}
		}
	}
	for (size_t i = 0; i < count; i++)
		all &= nodes[i]->state == SEEN;
	free(todo);
	return all;
}

static bool is_runnable(const struct sim_node *node)
{
	for (size_t i = 0; i < node->afters; i++)
		if (node->after[i]->state != DONE)
			return false;
	return node->state != DONE;
}

bool graph_sort(struct sim_graph *graph, struct sim_node **sorted)
{
	size_t count = 0, before;

	clear_marks(graph);
	do {
		before = count;
		for (struct sim_node *node = graph->first; node; node = node->next) {
			if (!is_runnable(node))
				continue;
			node->state = DONE;
			sorted[count++] = node;
		}
	} while (count > before);
	return count == graph->count;
}

/* -- the interface ----------------------------------------------------------------------------- */

enum sim_status sim_graph_create(struct sim_graph **out)
{
	struct graph_memory *memory = graph_memory_new();
	struct sim_graph *graph = memory ? object_new(OBJECT_GRAPH, sizeof(*graph)) : NULL;

	if (!graph) {
		free(memory);
		return SIM_NO_HOST_MEMORY;
	}
	graph->memory = memory;
	graph->end = &graph->first;
	*out = graph;
	return SIM_OK;
}

enum sim_status sim_graph_destroy(struct sim_graph *graph)
{
	pthread_mutex_lock(&sim_graph_lock);
	bool good = sim_graph_alive(graph) && !graph->owned;
	if (good)
		graph_delete(graph);
	pthread_mutex_unlock(&sim_graph_lock);
	return good ? SIM_OK : SIM_INVALID;
}

enum sim_status sim_node_empty(const struct sim_spot *spot, struct sim_node **out)
{
	LOCKED(node_new(spot, SIM_NODE_EMPTY, out));
}

enum sim_status sim_node_event(const struct sim_spot *spot, enum sim_node_type record_or_wait,
                               struct sim_event *event, struct sim_node **out)
{
	LOCKED(node_event(spot, record_or_wait, event, out));
}

enum sim_status sim_node_alloc(const struct sim_spot *spot, int device, unsigned devices, uint64_t bytes,
                               uint64_t *address, struct sim_node **out)
{
	LOCKED(node_alloc(spot, device, devices, bytes, address, out));
}

enum sim_status sim_node_free(const struct sim_spot *spot, uint64_t address, struct sim_node **out)
{
	LOCKED(node_free(spot, address, out));
}

enum sim_status sim_node_child(const struct sim_spot *spot, struct sim_graph *child, struct sim_node **out)
{
	struct sim_graph *copy = NULL;
	enum sim_status status = sim_graph_create(&copy);

	if (status)
		return status;
	copy->owned = true;
	pthread_mutex_lock(&sim_graph_lock);
	status = node_child(spot, child, copy, out);
	if (status)
		graph_delete(copy);
	pthread_mutex_unlock(&sim_graph_lock);
	return status;
}

static enum sim_status add_edge(struct sim_graph *graph, struct sim_node *from, struct sim_node *to)
{
	if (!sim_graph_alive(graph) || !object_is(from, OBJECT_NODE) || !object_is(to, OBJECT_NODE) ||
	    from->graph != graph || to->graph != graph || from == to)
		return SIM_INVALID;
	for (size_t i = 0; i < to->afters; i++)
		if (to->after[i] == from)
			return SIM_INVALID;
	struct sim_node **after = realloc(to->after, (to->afters + 1) * sizeof(struct sim_node *));
	if (!after)
		return SIM_NO_HOST_MEMORY;
	after[to->afters++] = from;
	to->after = after;
	return SIM_OK;
}

enum sim_status sim_graph_edge(struct sim_graph *graph, struct sim_node *from, struct sim_node *to)
{
	LOCKED(add_edge(graph, from, to));
}

enum sim_status sim_graph_nodes(struct sim_graph *graph, struct sim_node **nodes, size_t room, size_t *count)
{
	pthread_mutex_lock(&sim_graph_lock);
	bool good = sim_graph_alive(graph);
	size_t i = 0;
	for (struct sim_node *node = good ? graph->first : NULL; node; node = node->next, i++)
		if (nodes && i < room)
			nodes[i] = node;
	pthread_mutex_unlock(&sim_graph_lock);
	if (good)
		*count = i;
	return good ? SIM_OK : SIM_INVALID;
}

enum sim_status sim_graph_edges(struct sim_graph *graph, struct sim_node **from, struct sim_node **to,
                                size_t room, size_t *count)
{
	size_t n = 0;

	pthread_mutex_lock(&sim_graph_lock);
	bool good = sim_graph_alive(graph);
	for (struct sim_node *node = good ? graph->first : NULL; node; node = node->next) {
		for (size_t i = 0; i < node->afters; i++, n++) {
			if (from && to && n < room) {
				from[n] = node->after[i];
				to[n] = node;
			}
		}
	}
	pthread_mutex_unlock(&sim_graph_lock);
	if (good)
		*count = n;
	return good ? SIM_OK : SIM_INVALID;
}

enum sim_status sim_node_about(struct sim_node *node, enum sim_node_type *type)
{
	if (!object_is(node, OBJECT_NODE))
		return SIM_INVALID;
	*type = node->type;
	return SIM_OK;
}

enum sim_status sim_node_kernel(struct sim_node *node, struct sim_kernel_node *out)
{
	if (!object_is(node, OBJECT_NODE) || node->type != SIM_NODE_KERNEL)
		return SIM_INVALID;
	*out = *launch_about(node->work->data);
	out->context = node->work->context;
	return SIM_OK;
}

enum sim_status sim_node_box(struct sim_node *node, enum sim_node_type copy_or_set, struct sim_box_node *out)
{
	if (!object_is(node, OBJECT_NODE) || node->type != copy_or_set)
		return SIM_INVALID;
	*out = *(copy_or_set == SIM_NODE_COPY ? copy_about(node->work->data) : set_about(node->work->data));
	return SIM_OK;
}

enum sim_status sim_node_graph(struct sim_node *node, struct sim_graph **out)
{
	if (!object_is(node, OBJECT_NODE) || node->type != SIM_NODE_CHILD)
		return SIM_INVALID;
	*out = node->child;
	return SIM_OK;
}

enum sim_status sim_node_memory(struct sim_node *node, enum sim_node_type type, uint64_t *address,
                                uint64_t *bytes, int *device)
{
	if (!object_is(node, OBJECT_NODE) || node->type != type || !node->allocation)
		return SIM_INVALID;
	*address = node->allocation->address;
	*bytes = node->allocation->bytes;
	*device = node->allocation->device;
	return SIM_OK;
}
