/* Executable graphs: nodes in an order that the edges allow. A launch runs them in a stream. */
#include <stdlib.h>

#include "graph_nodes.h"

struct step {
	enum sim_node_type type;
	struct work *work;
	struct sim_event *event;
	struct graph_allocation *frees; /* allocation of another graph, kept by a reference */
	const struct sim_node *node;    /* of the original graph, which may have ended */
	bool disabled;
};

struct sim_exec {
	struct object object;
	struct graph_memory *memory;
	bool memory_nodes, auto_free;
	struct operation *last; /* of the latest launch */
	struct sim_context *context;
	uint64_t context_id, room; /* context that gave the room, and device bytes */
	size_t count;
	struct step *step;
};

/* -- executable graphs ------------------------------------------------------------------------- */

/* Counts nodes with work. A child graph counts as its nodes. */
static size_t count_steps(const struct sim_graph *graph)
{
	size_t count = 0;

	for (const struct sim_node *node = graph->first; node; node = node->next)
		count += node->child ? count_steps(node->child) : 1;
	return count;
}

static void step_fill(struct step *step, const struct sim_graph *graph, const struct sim_node *node,
                      const struct sim_node *top)
{
	*step = (struct step){node->type, graph_work_get(node->work), node->event, NULL, top};
	if (node->type == SIM_NODE_FREE && node->allocation->memory != graph->memory) {
		step->frees = node->allocation;
		graph_memory_get(step->frees->memory);
	}
}

/* Fills steps and counts them. `top`: the node that contains the graph, or NULL. */
static enum sim_status fill_steps(struct step *steps, size_t *filled, struct sim_graph *graph,
                                  const struct sim_node *top)
{
	struct sim_node **sorted = calloc(graph->count + 1, sizeof(struct sim_node *));
	enum sim_status status = !sorted                      ? SIM_NO_HOST_MEMORY
	                         : !graph_sort(graph, sorted) ? SIM_INVALID
	                                                      : SIM_OK;

	for (size_t i = 0; i < graph->count && !status; i++) {
		const struct sim_node *node = sorted[i], *of = top ? top : node;

		if (node->child)
			status = fill_steps(steps, filled, node->child, of);
		else
			step_fill(&steps[(*filled)++], graph, node, of);
	}
	free(sorted);
	return status;
}

static void steps_put(struct step *steps, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		graph_work_put(steps[i].work);
		if (steps[i].frees)
			graph_memory_put(steps[i].frees->memory);
	}
}

/* All steps of a graph. NULL: see *status. */
static struct step *steps_of(struct sim_graph *graph, size_t *count, enum sim_status *status)
{
	struct step *steps = calloc(count_steps(graph) + 1, sizeof(*steps));

	*count = 0;
	*status = steps ? fill_steps(steps, count, graph, NULL) : SIM_NO_HOST_MEMORY;
	if (*status && steps) {
		steps_put(steps, *count);
		free(steps);
	}
	return *status ? NULL : steps;
}

static enum sim_status instantiate_graph(struct sim_graph *graph, bool auto_free, struct sim_exec **out)
{
	if (!sim_graph_alive(graph))
		return SIM_INVALID;
	struct sim_exec *exec = NULL;
	enum sim_status status;
	size_t count;
	struct step *step = steps_of(graph, &count, &status);
	if (!status && graph->memory_nodes && !graph_memory_exec(graph->memory, 1))
		status = SIM_NOT_SUPPORTED;
	if (!status && !(exec = object_new(OBJECT_EXEC, sizeof(*exec))))
		status = SIM_NO_HOST_MEMORY;
	if (!status) {
		exec->memory = graph->memory;
		exec->memory_nodes = graph->memory_nodes;
		exec->auto_free = auto_free;
		exec->count = count;
		exec->step = step;
		graph_memory_get(exec->memory);
		*out = exec;
	} else if (step) {
		steps_put(step, count);
		free(step);
	}
	return status;
}

/* The context of the graph's work. NULL: no work. pre: the lock is held. */
static struct sim_context *context_of(const struct sim_graph *graph)
{
	struct sim_context *found = NULL;

	for (const struct sim_node *node = graph->first; node && !found; node = node->next) {
		if (node->child)
			found = context_of(node->child);
		else if (node->work && sim_context_alive(node->work->context) &&
		         sim_context_id(node->work->context) == node->work->context_id)
			found = node->work->context;
	}
	return found;
}

enum sim_status sim_graph_instantiate(struct sim_graph *graph, bool auto_free, struct sim_exec **out)
{
	uint64_t room = 0, id = 0;
	struct sim_exec *exec = NULL;

	pthread_mutex_lock(&sim_graph_lock);
	struct sim_context *context = sim_graph_alive(graph) ? context_of(graph) : NULL;
	if (context)
		id = sim_context_id(context);
	pthread_mutex_unlock(&sim_graph_lock);
	enum sim_status status = context ? room_take(context, SIM_ROOM_EXEC, 0, &room) : SIM_OK;
	if (status)
		return status;
	pthread_mutex_lock(&sim_graph_lock);
	status = instantiate_graph(graph, auto_free, &exec);
	if (!status) {
		exec->context = context;
		exec->context_id = id;
		exec->room = room;
		*out = exec;
	}
	pthread_mutex_unlock(&sim_graph_lock);
	if (status)
		room_give(context, id, room);
	return status;
}

enum sim_status sim_exec_destroy(struct sim_exec *exec)
{
	struct sim_context *context = NULL;
	uint64_t id = 0, room = 0;

	pthread_mutex_lock(&sim_graph_lock);
	bool good = object_is(exec, OBJECT_EXEC);
	if (good) {
		steps_put(exec->step, exec->count);
		if (exec->memory_nodes)
			graph_memory_exec(exec->memory, -1);
		graph_memory_put(exec->memory);
		operation_put(exec->last);
		free(exec->step);
		context = exec->context;
		id = exec->context_id;
		room = exec->room;
		object_delete(exec);
	}
	pthread_mutex_unlock(&sim_graph_lock);
	room_give(context, id, room);
	return good ? SIM_OK : SIM_INVALID;
}

/* -- updates ----------------------------------------------------------------------------------- */

/* Replaces the work of `count` steps. Launches under way keep their own references. */
static enum sim_status replace_steps(struct sim_exec *exec, size_t first, size_t count,
                                     struct sim_graph *graph, bool *fits)
{
	enum sim_status status;
	size_t fresh_count;
	struct step *fresh = steps_of(graph, &fresh_count, &status);

	if (!fresh)
		return status;
	*fits = fresh_count == count && !exec->memory_nodes && !graph->memory_nodes;
	for (size_t i = 0; i < count && *fits; i++)
		*fits = fresh[i].type == exec->step[first + i].type;
	for (size_t i = 0; i < count && *fits; i++) {
		struct step *step = &exec->step[first + i], old = *step;

		fresh[i].node = old.node;
		*step = fresh[i];
		fresh[i] = old;
	}
	steps_put(fresh, fresh_count);
	free(fresh);
	return SIM_OK;
}

enum sim_status sim_exec_update(struct sim_exec *exec, struct sim_graph *graph, bool *fits)
{
	enum sim_status status = SIM_INVALID;

	*fits = false;
	pthread_mutex_lock(&sim_graph_lock);
	if (object_is(exec, OBJECT_EXEC) && sim_graph_alive(graph))
		status = replace_steps(exec, 0, exec->count, graph, fits);
	pthread_mutex_unlock(&sim_graph_lock);
	return status;
}

enum sim_status sim_exec_replace(struct sim_exec *exec, const struct sim_node *node, struct sim_graph *graph,
                                 bool *fits)
{
	enum sim_status status = SIM_INVALID;
	size_t first = 0, count = 0;

	*fits = false;
	pthread_mutex_lock(&sim_graph_lock);
	if (object_is(exec, OBJECT_EXEC) && sim_graph_alive(graph)) {
		while (first < exec->count && exec->step[first].node != node)
			first++;
		while (first + count < exec->count && exec->step[first + count].node == node)
			count++;
		if (count)
			status = replace_steps(exec, first, count, graph, fits);
	}
	pthread_mutex_unlock(&sim_graph_lock);
	return status;
}

enum sim_status sim_exec_enable(struct sim_exec *exec, const struct sim_node *node, bool enabled)
{
	enum sim_status status = SIM_INVALID;

	pthread_mutex_lock(&sim_graph_lock);
	for (size_t i = 0; object_is(exec, OBJECT_EXEC) && i < exec->count; i++) {
		enum sim_node_type type = exec->step[i].type;
		if (exec->step[i].node != node ||
		    (type != SIM_NODE_KERNEL && type != SIM_NODE_COPY && type != SIM_NODE_SET))
			continue;
		exec->step[i].disabled = !enabled;
		status = SIM_OK;
	}
	pthread_mutex_unlock(&sim_graph_lock);
	return status;
}

/* -- launches ---------------------------------------------------------------------------------- */

static void run_step(void *data)
{
	struct work *work = *(struct work **)data;

	/* Guarded separately, so that a bad address does not leak the reference. */
	if (!sim_context_status(work->context) && sim_context_id(work->context) == work->context_id)
		guard_run(work->context, work->run, work->data);
	graph_work_put(work);
}

struct finish { /* ends a launch that has memory */
	struct graph_memory *memory;
	size_t count;
	struct graph_allocation *frees[];
};

static void finish_launch(void *data)
{
	struct finish *finish = data;

	for (size_t i = 0; i < finish->count; i++)
		graph_memory_freed(finish->frees[i]);
	graph_memory_launched(finish->memory);
}

static enum sim_status submit_step(const struct step *step, struct sim_stream *stream)
{
	if (step->type == SIM_NODE_RECORD)
		return sim_event_record(step->event, stream);
	if (step->type == SIM_NODE_WAIT)
		return sim_stream_wait(stream, step->event);
	if (!step->work || step->disabled)
		return SIM_OK;
	struct work **data = malloc(sizeof(struct work *));
	if (!data)
		return SIM_NO_HOST_MEMORY;
	*data = graph_work_get(step->work);
	return stream_submit(stream, SIM_NODE_NONE, run_step, data, false, true);
}

static struct finish *finish_new(const struct sim_exec *exec)
{
	struct finish *finish = calloc(1, sizeof(*finish) + exec->count * sizeof(struct graph_allocation *));

	for (size_t i = 0; finish && i < exec->count; i++)
		if (exec->step[i].frees)
			finish->frees[finish->count++] = exec->step[i].frees;
	if (finish)
		finish->memory = exec->memory;
	return finish;
}

/* Each launch waits for the one before, in any stream. */
static enum sim_status in_turn(struct sim_exec *exec, struct sim_stream *stream, struct operation *mark)
{
	pthread_mutex_lock(&sim_graph_lock);
	struct operation *before = exec->last;
	exec->last = mark;
	pthread_mutex_unlock(&sim_graph_lock);
	enum sim_status status = before && !mark ? stream_after(stream, before) : SIM_OK;
	operation_put(before);
	return status;
}

enum sim_status sim_exec_launch(struct sim_exec *exec, struct sim_stream *stream)
{
	enum sim_status status = object_is(exec, OBJECT_EXEC) ? sim_capture_refuse(stream) : SIM_INVALID;
	struct finish *end = NULL;

	if (!status && exec->memory_nodes && !(end = finish_new(exec)))
		status = SIM_NO_HOST_MEMORY;
	if (!status && end)
		status = graph_memory_launch(exec->memory, sim_stream_context(stream), exec->auto_free,
		                             end->frees, end->count);
	if (status) {
		free(end);
		return status;
	}
	stream_has_room(stream);
	status = in_turn(exec, stream, NULL);
	for (size_t i = 0; i < exec->count && !status; i++)
		status = submit_step(&exec->step[i], stream);
	if (end)
		stream_submit(stream, SIM_NODE_NONE, finish_launch, end, false, true);
	if (!status) {
		struct operation *mark = stream_mark(stream, &status);

		if (mark)
			in_turn(exec, stream, mark);
	}
	return status;
}

enum sim_status sim_exec_upload(struct sim_exec *exec, struct sim_stream *stream)
{
	enum sim_status status = object_is(exec, OBJECT_EXEC) ? sim_capture_refuse(stream) : SIM_INVALID;

	return status ? status : graph_memory_upload(exec->memory);
}
