/* Operations on captures and graphs. What a graph does is known: its actions, in their order. */
#include "api.h"

#include <string.h>

#include "pattern.h"

void graph_end(struct worker *worker, struct graph *graph)
{
	use_device(worker, graph->device);
	api.graph_end(graph->exec);
	*graph = (struct graph){0};
}

void capture_drop(struct worker *worker)
{
	void *graph = NULL;

	if (!worker->capturing)
		return;
	use_device(worker, worker->captured.device);
	if (!api.capture_end(worker->capturing, &graph) && graph)
		api.graph_drop(graph);
	worker->capturing = NULL;
}

struct outcome run_capture(struct worker *worker, const uint64_t *a)
{
	void *stream = worker->streams[worker->device][a[0] % STREAMS];

	int error = api.capture(stream, a[1] % 2);
	if (error)
		return DONE_WITH(error, 0);
	worker->capturing = stream;
	worker->captured = (struct graph){.device = worker->device};
	return DONE_WITH(0, 0);
}

/* The graph takes the place of an earlier one. */
struct outcome run_capture_end(struct worker *worker, const uint64_t *a)
{
	struct graph *graph = &worker->graphs[a[0] % GRAPHS];
	void *made = NULL;

	if (!worker->capturing)
		return NOTHING_TO_DO;
	use_device(worker, worker->captured.device);
	int error = api.capture_end(worker->capturing, &made);
	worker->capturing = NULL;
	if (error || !made)
		return DONE_WITH(error, 1);
	if (graph->exec)
		graph_end(worker, graph);
	use_device(worker, worker->captured.device);
	error = api.graph_make(&worker->captured.exec, made);
	if (!error)
		*graph = worker->captured;
	int dropped = api.graph_drop(made);
	return DONE_WITH(error ? error : dropped, graph->count);
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

struct outcome run_launch(struct worker *worker, const uint64_t *a)
{
	struct graph *graph = &worker->graphs[a[0] % GRAPHS];
	unsigned stream = a[1] % STREAMS;

	if (!graph->exec)
		return NOTHING_TO_DO;
	use_device(worker, graph->device);
	int error = order_blocks(worker, graph, stream);
	error = error ? error : api.graph_launch(graph->exec, worker->streams[graph->device][stream]);
	for (unsigned i = 0; i < graph->count && !error; i++)
		work_apply(&graph->actions[i]);
	return DONE_WITH(error, graph->count);
}

/* The same actions with other values. */
static int capture_again(struct worker *worker, struct graph *graph, uint64_t value, void **made)
{
	void *stream = worker->streams[graph->device][0];
	int error = api.capture(stream, true), submitted = 0;

	for (unsigned i = 0; i < graph->count && !error && !submitted; i++) {
		graph->actions[i].value = (graph->actions[i].value ^ value) & 255;
		submitted = work_submit(worker, &graph->actions[i], stream, graph->device, 0);
	}
	if (!error)
		error = api.capture_end(stream, made);
	return submitted ? submitted : error;
}

struct outcome run_update(struct worker *worker, const uint64_t *a)
{
	struct graph *graph = &worker->graphs[a[0] % GRAPHS];
	void *made = NULL;

	if (!graph->exec || !graph->count || !api.graph_update)
		return NOTHING_TO_DO;
	use_device(worker, graph->device);
	int error = capture_again(worker, graph, a[1], &made);
	error = error ? error : api.graph_update(graph->exec, made);
	if (made)
		api.graph_drop(made);
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

/* Captured: memory of the graph is allocated, filled, copied out and freed. */
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

	if (!api.ordered || !api.graph_trim)
		return NOTHING_TO_DO;
	memset(worker->staging[worker->device], 0, bytes);
	int error = api.capture(stream, true);
	if (error)
		return DONE_WITH(error, 0);
	error = capture_memory(worker, bytes, a[1], stream);
	int ended = api.capture_end(stream, &made);
	error = error ? error : ended;
	error = error ? error : api.graph_make(&exec, made);
	for (unsigned i = 0; i < 1 + a[3] % 2 && !error; i++)
		error = api.graph_launch(exec, stream);
	error = error ? error : api.wait(stream);
	if (exec)
		api.graph_end(exec);
	if (made)
		api.graph_drop(made);
	int trimmed = a[3] % 4 ? 0 : api.graph_trim(worker->device);
	error = error ? error : trimmed;
	return error ? DONE_WITH(error, 0) : look_at_staging(worker, bytes, a[1]);
}
