/* Operations on captures and graphs. What a graph does is known: its actions, in their order. */
#include "api.h"

#include <string.h>

#include "pattern.h"

bool graph_has(const struct graph *graph, const struct block *block)
{
	for (unsigned i = 0; i < graph->count; i++)
		if (graph->actions[i].to == block || graph->actions[i].from == block)
			return true;
	return false;
}

void graph_end(struct worker *worker, struct graph *graph)
{
	use_device(worker, graph->device);
	graphs.end(graph->exec);
	if (graph->made)
		graphs.drop(graph->made);
	*graph = (struct graph){0};
}

void capture_keep(struct worker *worker)
{
	if (!worker->capturing)
		return;
	use_device(worker, worker->captured.device);
	worker->end_error = graphs.capture_end(worker->capturing, &worker->ended);
	worker->capturing = NULL;
}

void capture_drop(struct worker *worker)
{
	capture_keep(worker);
	if (worker->ended)
		graphs.drop(worker->ended);
	worker->ended = NULL;
	worker->end_error = 0;
}

/* The operation takes place of an earlier capture that nothing was made of. */
struct outcome run_capture(struct worker *worker, const uint64_t *a)
{
	void *stream = worker->streams[worker->device][a[0] % STREAMS];

	capture_drop(worker);
	int error = graphs.capture(stream, global_captures ? GLOBAL : a[1] % 2 ? RELAXED : THREAD_LOCAL);
	if (error)
		return DONE_WITH(error, 0);
	worker->capturing = stream;
	worker->captured = (struct graph){.device = worker->device};
	return DONE_WITH(0, 0);
}

/* The graph takes the place of an earlier one. */
static struct outcome make_captured(struct worker *worker, struct graph *graph)
{
	void *made = worker->ended;
	int error = worker->end_error;

	worker->ended = NULL;
	worker->end_error = 0;
	if (error || !made)
		return DONE_WITH(error, 1);
	if (graph->exec)
		graph_end(worker, graph);
	use_device(worker, worker->captured.device);
	error = graphs.make(&worker->captured.exec, made);
	if (!error)
		*graph = worker->captured;
	int dropped = graphs.drop(made);
	return DONE_WITH(error ? error : dropped, graph->count);
}

struct outcome run_capture_end(struct worker *worker, const uint64_t *a)
{
	if (!worker->capturing)
		return NOTHING_TO_DO;
	capture_keep(worker);
	return make_captured(worker, &worker->graphs[a[0] % GRAPHS]);
}

/* Of a capture in the global mode, which ended earlier. */
struct outcome run_graph_make(struct worker *worker, const uint64_t *a)
{
	if (!worker->ended && !worker->end_error)
		return NOTHING_TO_DO;
	return make_captured(worker, &worker->graphs[a[0] % GRAPHS]);
}

struct graph *graph_from(struct worker *worker, uint64_t first, bool built)
{
	for (unsigned i = 0; i < GRAPHS; i++) {
		struct graph *graph = &worker->graphs[(first + i) % GRAPHS];

		if (graph->exec && graph->count && (graph->made || !built))
			return graph;
	}
	return NULL;
}

/* All blocks of the graph come into the order of the stream. */
static int order_blocks(struct worker *worker, const struct graph *graph, unsigned stream)
{
	int error = 0;

	for (unsigned i = 0; i < graph->count && !error; i++) {
		error = block_order(worker, graph->actions[i].to, stream);
		if (graph->actions[i].from && !error)
			error = block_order(worker, graph->actions[i].from, stream);
	}
	return error;
}

/* Once, or a few times in a row. */
struct outcome run_launch(struct worker *worker, const uint64_t *a)
{
	struct graph *graph = graph_from(worker, a[0], false);
	unsigned stream = a[1] % STREAMS;

	if (!graph)
		return NOTHING_TO_DO;
	use_device(worker, graph->device);
	int error = order_blocks(worker, graph, stream);
	for (uint64_t times = 0; times <= a[2] % 4 && !error; times++) {
		error = graphs.launch(graph->exec, worker->streams[graph->device][stream]);
		for (unsigned i = 0; i < graph->count && !error; i++)
			work_apply(&graph->actions[i]);
	}
	return DONE_WITH(error, graph->count);
}

/* The actions are captured again. */
static int capture_again(struct worker *worker, const struct graph *graph, void **made)
{
	void *stream = worker->streams[graph->device][0];
	int error = graphs.capture(stream, RELAXED), submitted = 0;

	for (unsigned i = 0; i < graph->count && !error && !submitted; i++)
		submitted = work_submit(worker, &graph->actions[i], stream, graph->device, 0);
	if (!error)
		error = graphs.capture_end(stream, made);
	return submitted ? submitted : error;
}

/* The same actions with other values. */
struct outcome run_update(struct worker *worker, const uint64_t *a)
{
	struct graph *graph = graph_from(worker, a[0], false);
	void *made = NULL, *nodes[ACTIONS];

	if (!graph)
		return NOTHING_TO_DO;
	use_device(worker, graph->device);
	for (unsigned i = 0; i < graph->count; i++)
		graph->actions[i].value = (graph->actions[i].value ^ a[1]) & 255;
	int error = graph->made ? graph_assemble(graph, &made, nodes) : capture_again(worker, graph, &made);
	error = error ? error : graphs.update(graph->exec, made);
	if (made)
		graphs.drop(made);
	return DONE_WITH(error, graph->count);
}

struct outcome run_graph_drop(struct worker *worker, const uint64_t *a)
{
	struct graph *graph = &worker->graphs[a[0] % GRAPHS];

	if (!graph->exec)
		return NOTHING_TO_DO;
	graph_end(worker, graph);
	return DONE_WITH(0, 0);
}

/* Memory of the graph is allocated, filled, copied out and freed: captured. */
static int capture_memory(struct worker *worker, uint64_t bytes, uint64_t seed, void *stream)
{
	uint64_t address = 0, words = bytes / 8;
	void *parameters[] = {&address, &words, &seed};
	int error = api.ordered(&address, bytes, stream);

	if (error)
		return error;
	error = api.launch(worker->device, KERNEL_FILL, stream, parameters, 0);
	if (!error)
		error =
		    api.copy((uintptr_t)worker->staging[worker->device], address, bytes, DOWNLOAD, stream, 0);
	int freed = api.ordered_free(address, stream);
	return error ? error : freed;
}

static int capture_with_memory(struct worker *worker, uint64_t bytes, uint64_t seed, void *stream,
                               void **made)
{
	int error = graphs.capture(stream, RELAXED);

	if (error)
		return error;
	error = capture_memory(worker, bytes, seed, stream);
	int ended = graphs.capture_end(stream, made);
	return error ? error : ended;
}

/* The same node by node. */
static int build_with_memory(const struct worker *worker, uint64_t bytes, uint64_t seed, void **made)
{
	uint64_t address = 0, words = bytes / 8;
	void *parameters[] = {&address, &words, &seed}, *nodes[4];
	int device = worker->device, error = graphs.create(made);

	if (!error)
		error = graphs.add_memory(*made, device, bytes, &address, &nodes[0]);
	const struct node fill = {NODE_KERNEL, device, KERNEL_FILL, parameters};
	const struct node copy = {NODE_COPY, device, .to = (uintptr_t)worker->staging[device],
	                          .from = address, .bytes = bytes};
	if (!error)
		error = graphs.add(*made, &nodes[0], 1, &fill, 0, &nodes[1]);
	if (!error)
		error = graphs.add(*made, &nodes[1], 1, &copy, 0, &nodes[2]);
	return error ? error : graphs.add_free(*made, &nodes[2], 1, address, &nodes[3]);
}

static struct outcome look_at_staging(const struct worker *worker, uint64_t bytes, uint64_t seed)
{
	const uint64_t *words = (const uint64_t *)worker->staging[worker->device];

	for (uint64_t i = 0; i < bytes / 8; i++)
		if (words[i] != pattern(i, seed))
			return (struct outcome){.how = WRONG, .figure = i * 8};
	return DONE_WITH(0, bytes);
}

struct outcome run_graph_memory(struct worker *worker, const uint64_t *a)
{
	void *stream = worker->streams[worker->device][a[2] % STREAMS], *made = NULL, *exec = NULL;
	uint64_t bytes = a[0] % LARGEST / 8 * 8 + 8;

	if (!api.ordered || !graphs.trim)
		return NOTHING_TO_DO;
	memset(worker->staging[worker->device], 0, bytes);
	int error = a[3] % 3 == 2 && graphs.add_memory
	                ? build_with_memory(worker, bytes, a[1], &made)
	                : capture_with_memory(worker, bytes, a[1], stream, &made);
	error = error ? error : graphs.make(&exec, made);
	for (unsigned i = 0; i < 1 + a[3] % 2 && !error; i++)
		error = graphs.launch(exec, stream);
	error = error ? error : api.wait(stream);
	if (exec)
		graphs.end(exec);
	if (made)
		graphs.drop(made);
	int trimmed = a[3] % 4 ? 0 : graphs.trim(worker->device);
	error = error ? error : trimmed;
	return error ? DONE_WITH(error, 0) : look_at_staging(worker, bytes, a[1]);
}
