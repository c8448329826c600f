/*
 * Graphs that are built node by node. The arguments of a line are the seed of a whole graph. Nodes that
 * use the same block have an edge, so the order of the actions is one that the graph allows.
 */
#include "api.h"

static uint64_t draw(uint64_t *state, uint64_t below)
{
	*state = *state * 6364136223846793005ull + 1442695040888963407ull;
	return (*state >> 33) % below;
}

/* -- what a graph does ------------------------------------------------------------------------- */

/* One of the device, from a random one on. NULL: there is none but `other`. */
static struct block *draw_block(struct worker *worker, uint64_t *state, int device, const struct block *other)
{
	uint64_t first = draw(state, SLOTS);

	for (unsigned i = 0; i < SLOTS; i++) {
		struct block *block = &worker->blocks[(first + i) % SLOTS];

		if (block->kind && block->device == device && block != other)
			return block;
	}
	return NULL;
}

static bool draw_action(struct worker *worker, uint64_t *state, int device, struct action *action)
{
	static const int kinds[] = {FILL, ADD, SET, COPY, KERNEL_COPY, CALL_FILL};
	struct block *to = draw_block(worker, state, device, NULL);

	if (!to)
		return false;
	*action = (struct action){.what = kinds[draw(state, 6)], .to = to, .value = 1 + draw(state, 255)};
	if (action->what == CALL_FILL && !block_is_on_host(to))
		action->what = FILL;
	if (action->what == COPY || action->what == KERNEL_COPY)
		action->from = draw_block(worker, state, device, to);
	if (!action->from && (action->what == COPY || action->what == KERNEL_COPY))
		action->what = ADD;
	const struct block *smaller = action->from && action->from->bytes < to->bytes ? action->from : to;
	uint64_t first = draw(state, 2) ? 0 : draw(state, 1000);
	work_part(smaller, first, draw(state, 2) ? 999 : draw(state, 1000), action);
	action->from_offset = action->offset;
	return true;
}

static bool shares_block(const struct action *one, const struct action *other)
{
	return one->to == other->to || one->to == other->from || (one->from && one->from == other->to);
}

/* Actions on other blocks may run at the same time, now and then in an order all the same. */
static void draw_edges(struct graph *graph, unsigned i, uint64_t *state)
{
	for (unsigned j = 0; j < i; j++)
		if (shares_block(&graph->actions[i], &graph->actions[j]) || draw(state, 6) == 0)
			graph->after[i] |= (uint16_t)(1u << j);
	if (i && draw(state, 6) == 0)
		graph->children |= (uint16_t)(1u << i);
	if (draw(state, 4) == 0)
		graph->late |= (uint16_t)(1u << i);
}

/* -- nodes ------------------------------------------------------------------------------------- */

/* A node and all that it points to. */
struct described {
	struct node node;
	uint64_t address, from, words, value;
	void *parameters[3];
};

static void describe(const struct action *action, int device, struct described *out)
{
	static const struct {
		int type;
		enum kernel kernel;
	} of[] = {[FILL] = {NODE_KERNEL, KERNEL_FILL},
	          [ADD] = {NODE_KERNEL, KERNEL_ADD},
	          [SET] = {NODE_SET, KERNELS},
	          [COPY] = {NODE_COPY, KERNELS},
	          [KERNEL_COPY] = {NODE_KERNEL, KERNEL_COPY_WORDS},
	          [CALL_FILL] = {NODE_CALL, KERNELS}};

	*out = (struct described){.address = action->to->address + action->offset,
	                          .from = action->from ? action->from->address + action->from_offset : 0,
	                          .words = action->bytes / 8,
	                          .value = action->value};
	bool copies = action->what == KERNEL_COPY;
	out->parameters[0] = &out->address;
	out->parameters[1] = copies ? &out->from : &out->words;
	out->parameters[2] = copies ? &out->words : &out->value;
	out->node = (struct node){.type = of[action->what].type,
	                          .device = device,
	                          .kernel = of[action->what].kernel,
	                          .parameters = out->parameters,
	                          .to = out->address,
	                          .from = out->from,
	                          .bytes = action->bytes,
	                          .byte = (unsigned char)action->value};
	if (action->what == CALL_FILL)
		work_call(action, &out->node.call, &out->node.data);
}

/* The handles of earlier actions, each once. Those in a child graph have one together. */
static size_t handles_before(const struct graph *graph, unsigned i, void *const *handles, void **out)
{
	size_t count = 0;

	for (unsigned j = 0; j < i; j++) {
		bool known = !(graph->after[i] & 1u << j);

		for (size_t k = 0; k < count && !known; k++)
			known = out[k] == handles[j];
		if (!known)
			out[count++] = handles[j];
	}
	return count;
}

/* All that there is becomes a child graph of a new one. */
static int wrap(void **made, void **handles, void **nodes, unsigned count)
{
	void *outer = NULL, *child = NULL;
	int error = graphs.create(&outer);

	if (error)
		return error;
	error = graphs.add_child(outer, *made, &child);
	graphs.drop(*made);
	*made = outer;
	for (unsigned i = 0; i < count; i++) {
		handles[i] = child;
		nodes[i] = NULL;
	}
	return error;
}

static int add_action(const struct graph *graph, unsigned i, void *made, void **handles)
{
	bool late = graph->late & 1u << i;
	struct described described;
	void *before[ACTIONS];
	size_t count = handles_before(graph, i, handles, before);

	describe(&graph->actions[i], graph->device, &described);
	int error = graphs.add(made, before, late ? 0 : count, &described.node, i, &handles[i]);
	for (size_t k = 0; k < count && late && !error; k++)
		error = graphs.add_edge(made, before[k], handles[i]);
	return error;
}

int graph_assemble(const struct graph *graph, void **made, void **nodes)
{
	void *handles[ACTIONS];
	int error = graphs.create(made);

	for (unsigned i = 0; i < graph->count && !error; i++) {
		if (graph->children & 1u << i)
			error = wrap(made, handles, nodes, i);
		if (!error)
			error = add_action(graph, i, *made, handles);
		nodes[i] = handles[i];
	}
	return error;
}

/* -- the operations ---------------------------------------------------------------------------- */

struct outcome run_build(struct worker *worker, const uint64_t *a)
{
	struct graph *graph = &worker->graphs[a[0] % GRAPHS], built = {.device = worker->device};
	uint64_t state = a[2] * 1000 + a[3], wanted = a[1] % ACTIONS + 1;

	while (built.count < wanted && draw_action(worker, &state, built.device, &built.actions[built.count]))
		draw_edges(&built, built.count++, &state);
	if (!built.count)
		return NOTHING_TO_DO;
	if (graph->exec)
		graph_end(worker, graph);
	use_device(worker, built.device);
	int error = graph_assemble(&built, &built.made, built.nodes);
	if (!error)
		error = graphs.make(&built.exec, built.made);
	if (!error)
		*graph = built;
	else if (built.made)
		graphs.drop(built.made);
	return DONE_WITH(error, built.count);
}

/* A block of the same kind that nothing in the graph uses may take the place of the node's. */
static bool may_take(const struct graph *graph, const struct action *action, const struct block *block)
{
	return block->kind == action->to->kind && block->device == graph->device &&
	       !graph_has(graph, block) && action->offset + action->bytes <= block->bytes;
}

/* One node gets another value, and perhaps another block. */
struct outcome run_node(struct worker *worker, const uint64_t *a)
{
	struct graph *graph = graph_from(worker, a[0], true);
	struct block *block = &worker->blocks[a[3] % SLOTS];
	struct described described;

	if (!graph)
		return NOTHING_TO_DO;
	unsigned n = graph->count - 1; /* which is never in a child graph */
	if (graph->nodes[a[1] % graph->count])
		n = (unsigned)(a[1] % graph->count);
	use_device(worker, graph->device);
	struct action changed = graph->actions[n];
	changed.value = a[2] & 255;
	if (a[4] % 2 && may_take(graph, &changed, block))
		changed.to = block;
	describe(&changed, graph->device, &described);
	int error = graphs.change(graph->exec, graph->nodes[n], &described.node, (unsigned)(a[4] / 2));
	if (!error)
		graph->actions[n] = changed;
	return DONE_WITH(error, n);
}
