/* Operations on the bytes of blocks: kernels, sets, copies, checks. */
#include "api.h"

#include <stdlib.h>
#include <string.h>

#include "pattern.h"

bool block_is_on_host(const struct block *block)
{
	return block->kind == PINNED || block->kind == REGISTERED;
}

void work_apply(const struct action *action)
{
	unsigned char *to = action->to->shadow + action->offset;
	uint64_t *words = (uint64_t *)to;

	switch (action->what) {
	case FILL:
	case CALL_FILL:
		for (uint64_t i = 0; i < action->bytes / 8; i++)
			words[i] = pattern(i, action->value);
		break;
	case ADD:
		for (uint64_t i = 0; i < action->bytes / 8; i++)
			words[i] += action->value;
		break;
	case SET:
		memset(to, (int)action->value, action->bytes);
		break;
	default:
		memcpy(to, action->from->shadow + action->from_offset, action->bytes);
	}
}

struct call_fill {
	uint64_t *at, words, value;
};

static void fill_by_program(void *argument)
{
	const struct call_fill *fill = argument;

	for (uint64_t i = 0; i < fill->words; i++)
		fill->at[i] = pattern(i, fill->value);
}

void work_call(const struct action *action, void (**function)(void *), void **argument)
{
	struct call_fill *fill = malloc(sizeof(*fill));

	if (!fill)
		abort();
	*fill = (struct call_fill){(uint64_t *)(uintptr_t)(action->to->address + action->offset),
	                           action->bytes / 8, action->value};
	*function = fill_by_program;
	*argument = fill;
}

int work_submit(struct worker *worker, const struct action *action, void *stream, int device, unsigned way)
{
	static const enum kernel kernel_of[] = {KERNEL_FILL, KERNEL_ADD, KERNELS, KERNELS, KERNEL_COPY_WORDS};
	void (*function)(void *);
	void *argument;
	uint64_t address = action->to->address + action->offset, words = action->bytes / 8;
	uint64_t third = action->value, from = 0;
	void *parameters[] = {&address, &words, &third};

	(void)worker;
	if (action->from)
		from = action->from->address + action->from_offset;
	if (action->what == CALL_FILL) {
		work_call(action, &function, &argument);
		return api.call(stream, function, argument);
	}
	if (action->what == SET)
		return api.set(address, (unsigned char)action->value, action->bytes, stream, way);
	if (action->what == COPY && action->to->device != action->from->device)
		return api.copy_peer(address, action->to->device, from, action->from->device, action->bytes,
		                     stream);
	if (action->what == COPY)
		return api.copy(address, from, action->bytes, ON_DEVICE, stream, way);
	if (action->what == KERNEL_COPY) {
		parameters[1] = &from;
		parameters[2] = &words;
	}
	return api.launch(device, kernel_of[action->what], stream, parameters, way);
}

void work_part(const struct block *block, uint64_t o, uint64_t l, struct action *action)
{
	uint64_t words = block->bytes / 8, first = words * (o % 1000) / 1000;
	uint64_t count = (words - first) * (l % 1000 + 1) / 1000;

	action->offset = first * 8;
	action->bytes = (count ? count : 1) * 8;
}

/* Now, or into the capture. A capture has one stream and works on one device. */
static struct outcome do_work(struct worker *worker, const struct action *action, uint64_t stream,
                              unsigned way)
{
	int device = action->to->device, error = 0;

	if (worker->capturing) {
		struct graph *graph = &worker->captured;

		if (device != graph->device || graph->count == ACTIONS ||
		    (action->from && action->from->device != device))
			return NOTHING_TO_DO;
		error = work_submit(worker, action, worker->capturing, device, way);
		if (!error)
			graph->actions[graph->count++] = *action;
		return DONE_WITH(error, 1);
	}
	use_device(worker, device);
	error = block_order(worker, action->to, (unsigned)(stream % STREAMS));
	if (action->from && action->from->device == device && !error)
		error = block_order(worker, action->from, (unsigned)(stream % STREAMS));
	if (action->from && action->from->device != device && !error)
		error = api.wait(worker->streams[action->from->device][action->from->stream]);
	if (!error)
		error = work_submit(worker, action, worker->streams[device][stream % STREAMS], device, way);
	/* Work of another device has no place in the order of its streams. */
	if (action->from && action->from->device != device && !error)
		error = api.wait(worker->streams[device][stream % STREAMS]);
	if (!error)
		work_apply(action);
	return DONE_WITH(error, 0);
}

/* `block` may be NULL. */
static struct outcome change(struct worker *worker, struct block *block, const uint64_t *a, int what)
{
	struct action action = {.what = what, .to = block, .value = a[3]};

	if (!block || !block->kind)
		return NOTHING_TO_DO;
	work_part(block, a[1], a[2], &action);
	return do_work(worker, &action, a[4], (unsigned)a[5]);
}

static struct block *block_of(struct worker *worker, const uint64_t *a)
{
	return &worker->blocks[a[0] % SLOTS];
}

struct outcome run_fill(struct worker *worker, const uint64_t *a)
{
	return change(worker, block_of(worker, a), a, FILL);
}

struct outcome run_add(struct worker *worker, const uint64_t *a)
{
	return change(worker, block_of(worker, a), a, ADD);
}

struct outcome run_set(struct worker *worker, const uint64_t *a)
{
	return change(worker, block_of(worker, a), a, SET);
}

struct outcome run_call(struct worker *worker, const uint64_t *a)
{
	return api.call ? change(worker, block_from(worker, a[0], block_is_on_host), a, CALL_FILL)
	                : NOTHING_TO_DO;
}

static struct outcome copy_between(struct worker *worker, const uint64_t *a, int what)
{
	struct block *from = &worker->blocks[a[0] % SLOTS], *to = &worker->blocks[a[1] % SLOTS];
	struct action action = {.what = what, .to = to, .from = from};

	if (!from->kind || !to->kind || from == to)
		return NOTHING_TO_DO;
	/* It waits for streams. */
	if (from->device != to->device && global_captures)
		return NOTHING_TO_DO;
	if (from->device != to->device &&
	    (what == KERNEL_COPY || !api.copy_peer || block_is_on_host(from) || block_is_on_host(to)))
		return NOTHING_TO_DO;
	work_part(from->bytes < to->bytes ? from : to, a[2], a[3], &action);
	action.from_offset = action.offset;
	return do_work(worker, &action, a[4], (unsigned)a[5]);
}

struct outcome run_copy(struct worker *worker, const uint64_t *a)
{
	return copy_between(worker, a, COPY);
}

struct outcome run_kernel_copy(struct worker *worker, const uint64_t *a)
{
	return copy_between(worker, a, KERNEL_COPY);
}

/* From pageable memory, which the call reads before it returns; or pinned, which is waited for. */
struct outcome run_upload(struct worker *worker, const uint64_t *a)
{
	struct block *block = &worker->blocks[a[0] % SLOTS];
	struct action action = {.what = FILL, .to = block, .value = a[3]};

	if (!block->kind)
		return NOTHING_TO_DO;
	use_device(worker, block->device);
	work_part(block, a[1], a[2], &action);
	work_apply(&action);
	void *stream = worker->streams[block->device][block->stream];
	unsigned char *source = a[4] % 3 ? worker->copy : worker->staging[block->device];
	memcpy(source, block->shadow + action.offset, action.bytes);
	int error = a[4] % 3 == 1 ? api.wait(stream) : 0;
	uint64_t to = block->address + action.offset, from = (uintptr_t)source;
	if (!error && a[4] % 3 == 1)
		error = api.copy_now(to, from, action.bytes, UPLOAD, (unsigned)a[4]);
	else if (!error)
		error = api.copy(to, from, action.bytes, UPLOAD, stream, (unsigned)a[4]);
	return DONE_WITH(error ? error : api.wait(stream), 0);
}

static bool is_reached_by_peers(const struct block *block)
{
	return block->kind == PLAIN || block->kind == PITCHED;
}

/* By a kernel of another device, which has access while there are peers. */
struct outcome run_far(struct worker *worker, const uint64_t *a)
{
	struct block *block = block_from(worker, a[0], is_reached_by_peers);
	struct action action = {.what = FILL, .to = block, .value = a[3]};

	if (!peers || !block)
		return NOTHING_TO_DO;
	int other = (block->device + 1) % DEVICES;
	use_device(worker, other);
	work_part(block, a[1], a[2], &action);
	int error = api.wait(worker->streams[block->device][block->stream]);
	void *stream = worker->streams[other][a[4] % STREAMS];
	error = error ? error : work_submit(worker, &action, stream, other, 0);
	if (!error)
		work_apply(&action);
	return DONE_WITH(error ? error : api.wait(stream), 0);
}

static bool is_managed(const struct block *block)
{
	return block->kind == MANAGED;
}

struct outcome run_prefetch(struct worker *worker, const uint64_t *a)
{
	struct block *block = block_from(worker, a[0], is_managed);

	if (!block || !api.prefetch)
		return NOTHING_TO_DO;
	use_device(worker, block->device);
	int error = block_order(worker, block, a[2] % STREAMS);
	void *stream = worker->streams[block->device][block->stream];
	return DONE_WITH(error ? error : api.prefetch(block, (unsigned)a[1], stream), 0);
}

struct outcome compare(const struct block *block, const unsigned char *found)
{
	uint64_t at = 0;

	if (!memcmp(block->shadow, found, block->bytes))
		return DONE_WITH(0, 0);
	while (block->shadow[at] == found[at])
		at++;
	return (struct outcome){.how = WRONG, .figure = at};
}

struct outcome run_check_copy(struct worker *worker, const uint64_t *a)
{
	struct block *block = &worker->blocks[a[0] % SLOTS];

	if (!block->kind)
		return NOTHING_TO_DO;
	use_device(worker, block->device);
	void *stream = worker->streams[block->device][block->stream];
	unsigned char *to = a[1] % 3 ? worker->copy : worker->staging[block->device];
	memset(to, (int)~block->shadow[0], block->bytes);
	int error = a[1] % 3 == 1 ? api.wait(stream) : 0;
	if (!error && a[1] % 3 == 1)
		error = api.copy_now((uintptr_t)to, block->address, block->bytes, DOWNLOAD, (unsigned)a[1]);
	else if (!error)
		error =
		    api.copy((uintptr_t)to, block->address, block->bytes, DOWNLOAD, stream, (unsigned)a[1]);
	error = error ? error : api.wait(stream);
	return error ? DONE_WITH(error, 0) : compare(block, to);
}

struct outcome run_check_kernel(struct worker *worker, const uint64_t *a)
{
	struct block *block = &worker->blocks[a[0] % SLOTS];

	if (!block->kind)
		return NOTHING_TO_DO;
	use_device(worker, block->device);
	unsigned char *to = worker->staging[block->device];
	uint64_t address = (uintptr_t)to, from = block->address, words = block->bytes / 8;
	void *parameters[] = {&address, &from, &words};
	memset(to, (int)~block->shadow[0], block->bytes);
	int error = block_order(worker, block, a[1] % STREAMS);
	void *stream = worker->streams[block->device][block->stream];
	error = error ? error : api.launch(block->device, KERNEL_COPY_WORDS, stream, parameters, 0);
	error = error ? error : api.wait(stream);
	return error ? DONE_WITH(error, 0) : compare(block, to);
}

static bool is_reached_by_processor(const struct block *block)
{
	return is_managed(block) || block_is_on_host(block);
}

struct outcome run_check_host(struct worker *worker, const uint64_t *a)
{
	struct block *block = block_from(worker, a[0], is_reached_by_processor);

	if (!block)
		return NOTHING_TO_DO;
	use_device(worker, block->device);
	int error = api.wait(worker->streams[block->device][block->stream]);
	return error ? DONE_WITH(error, 0) : compare(block, (void *)(uintptr_t)block->address);
}

struct outcome run_wait(struct worker *worker, const uint64_t *a)
{
	use_device(worker, (int)(a[0] % DEVICES));
	return DONE_WITH(api.wait(worker->streams[worker->device][a[1] % STREAMS]), 0);
}
