/* Blocks: made, given back, ordered. And what a worker has on a device. */
#include "api.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

void use_device(struct worker *worker, int device)
{
	if (worker->device != device)
		api.use(device);
	worker->device = device;
}

/* Pinned memory of the device's context. */
static int take_staging(struct worker *worker, int device)
{
	struct block staging = {.kind = PINNED, .bytes = LARGEST};
	int error = api.take(&staging, NULL);

	worker->staging[device] = (unsigned char *)(uintptr_t)staging.address;
	return error;
}

static int give_staging(struct worker *worker, int device)
{
	struct block staging = {
	    .kind = PINNED, .bytes = LARGEST, .address = (uintptr_t)worker->staging[device]};

	return api.give(&staging, NULL, false);
}

int worker_open(struct worker *worker, int device)
{
	int error = api.event_make(&worker->event[device]);

	for (unsigned i = 0; i < STREAMS && !error; i++)
		error = api.stream_make(&worker->streams[device][i]);
	if (!error)
		error = take_staging(worker, device);
	if (!error && api.pool_make)
		error = api.pool_make(device, false, &worker->pool[device]);
	if (!error && api.kinds[POOLED_SHARED])
		error = api.pool_make(device, true, &worker->shared_pool[device]);
	return error;
}

int worker_close(struct worker *worker, int device)
{
	int error = 0;

	for (unsigned i = 0; i < STREAMS; i++)
		error = error ? error : api.wait(worker->streams[device][i]);
	for (unsigned i = 0; i < GRAPHS; i++)
		if (worker->graphs[i].exec && worker->graphs[i].device == device)
			graph_end(worker, &worker->graphs[i]);
	if (worker->pool[device])
		error = error ? error : api.pool_end(worker->pool[device]);
	if (worker->shared_pool[device])
		error = error ? error : api.pool_end(worker->shared_pool[device]);
	error = error ? error : give_staging(worker, device);
	for (unsigned i = 0; i < STREAMS; i++)
		error = error ? error : api.stream_end(worker->streams[device][i]);
	return error ? error : api.event_end(worker->event[device]);
}

static bool is_registered(const struct block *block)
{
	return block->kind == REGISTERED;
}

/* Memory of the program, which the interface only registers. */
static void take_pages(struct block *block)
{
	void *pages = mmap(NULL, block->bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (pages == MAP_FAILED)
		abort();
	block->address = (uintptr_t)pages;
}

static void give_pages(struct block *block)
{
	munmap((void *)(uintptr_t)block->address, block->bytes);
}

static uint64_t usable_bytes(enum kind kind, uint64_t bytes)
{
	uint64_t granule = kind == CREATED || kind == CREATED_SHARED ? GRANULE
	                   : kind == REGISTERED                      ? 4096
	                                                             : 8;

	bytes = bytes % LARGEST + 1;
	return (bytes + granule - 1) / granule * granule;
}

int block_take(struct worker *worker, struct block *block, enum kind kind, uint64_t bytes, unsigned stream,
               unsigned char value)
{
	struct block made = {.kind = kind,
	                     .device = worker->device,
	                     .stream = stream,
	                     .bytes = usable_bytes(kind, bytes),
	                     .pool = kind == POOLED_SHARED ? worker->shared_pool[worker->device]
	                                                   : worker->pool[worker->device]};
	void *on = worker->streams[made.device][stream];

	if (is_registered(&made))
		take_pages(&made);
	int error = api.take(&made, on);
	if (error && is_registered(&made))
		give_pages(&made);
	if (error)
		return error;
	*block = made;
	block->shadow = malloc(block->bytes);
	memset(block->shadow, value, block->bytes);
	return api.set(block->address, value, block->bytes, on, value);
}

void block_lose(struct block *block)
{
	if (is_registered(block))
		give_pages(block);
	free(block->shadow);
	*block = (struct block){0};
}

bool block_is_in_order(const struct block *block)
{
	return block->kind == ORDERED || block->kind == POOLED || block->kind == POOLED_SHARED;
}

/* Memory in stream order goes in the order of its last stream. Other memory is not in use any more. */
int block_give(struct worker *worker, struct block *block, bool other)
{
	void *on = worker->streams[block->device][block->stream];
	int error = 0;

	for (unsigned i = 0; i < GRAPHS; i++)
		if (worker->graphs[i].exec && graph_has(&worker->graphs[i], block))
			graph_end(worker, &worker->graphs[i]);
	if (worker->ended && graph_has(&worker->captured, block))
		capture_drop(worker);
	use_device(worker, block->device);
	/* A plain free waits by itself, and in the other order each works in that of the stream. */
	if (block_is_in_order(block) ? other : block->kind > PITCHED)
		error = api.wait(on);
	int given = api.give(block, on, other);
	if (!given)
		block_lose(block);
	return error ? error : given;
}

struct block *block_from(struct worker *worker, uint64_t first, bool (*fits)(const struct block *block))
{
	for (unsigned i = 0; i < SLOTS; i++) {
		struct block *block = &worker->blocks[(first + i) % SLOTS];

		if (block->kind && fits(block))
			return block;
	}
	return NULL;
}

int block_order(struct worker *worker, struct block *block, unsigned stream)
{
	int error = 0;

	if (block->stream != stream)
		error = api.order(worker->event[block->device], worker->streams[block->device][block->stream],
		                  worker->streams[block->device][stream]);
	block->stream = stream;
	return error;
}
