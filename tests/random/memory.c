/* Operations that make blocks and give them back. */
#include "api.h"

static struct outcome take(struct worker *worker, enum kind kind, const uint64_t *a)
{
	struct block *block = &worker->blocks[a[0] % SLOTS];

	if (block->kind || !api.kinds[kind])
		return NOTHING_TO_DO;
	int error = block_take(worker, block, kind, a[1], a[2] % STREAMS, (unsigned char)a[3]);
	return DONE_WITH(error, block->address % 256);
}

#define TAKE(name, kind) \
	struct outcome run_##name(struct worker *worker, const uint64_t *a) \
	{ \
		return take(worker, kind, a); \
	}
TAKE(plain, PLAIN)
TAKE(pitched, PITCHED)
TAKE(managed, MANAGED)
TAKE(pinned, PINNED)
TAKE(registered, REGISTERED)
TAKE(ordered, ORDERED)
TAKE(pooled, POOLED)
TAKE(created, CREATED)
TAKE(created_shared, CREATED_SHARED)
TAKE(pooled_shared, POOLED_SHARED)

struct outcome run_free(struct worker *worker, const uint64_t *a)
{
	struct block *block = &worker->blocks[a[0] % SLOTS];

	return block->kind ? DONE_WITH(block_give(worker, block, false), 0) : NOTHING_TO_DO;
}

struct outcome run_free_other(struct worker *worker, const uint64_t *a)
{
	struct block *block = &worker->blocks[a[0] % SLOTS];
	bool two = block->kind == PLAIN || block_is_in_order(block);

	return two && api.ordered ? DONE_WITH(block_give(worker, block, true), 0) : NOTHING_TO_DO;
}

static bool pool_is_used(const struct worker *worker)
{
	for (unsigned i = 0; i < SLOTS; i++)
		if (worker->blocks[i].kind == POOLED && worker->blocks[i].device == worker->device)
			return true;
	return false;
}

/* A new pool, or what the present one keeps. */
struct outcome run_pool(struct worker *worker, const uint64_t *a)
{
	void **pool = &worker->pool[worker->device];

	if (!api.pool_make)
		return NOTHING_TO_DO;
	if (a[0] % 4 == 0)
		return DONE_WITH(api.pool_keep(*pool, a[0] % 8 ? UINT64_MAX : 0), 0);
	if (a[0] % 4 == 1 || pool_is_used(worker))
		return DONE_WITH(api.pool_trim(*pool), 0);
	/* Driver 580 crashed where a pool ended before a stream had reached the frees of its memory. */
	int error = 0;
	for (unsigned i = 0; i < STREAMS; i++)
		error = error ? error : api.wait(worker->streams[worker->device][i]);
	error = error ? error : api.pool_end(*pool);
	return DONE_WITH(error ? error : api.pool_make(worker->device, false, pool), 0);
}

struct outcome run_trim(struct worker *worker, const uint64_t *a)
{
	return api.trim ? DONE_WITH(api.trim(worker->device), 0) : NOTHING_TO_DO;
}

struct outcome run_device(struct worker *worker, const uint64_t *a)
{
	uint64_t figure = 0;

	if (!api.use_by || a[1] % 4 == 0) {
		use_device(worker, (int)(a[0] % DEVICES));
		return DONE_WITH(0, 0);
	}
	worker->device = (int)(a[0] % DEVICES);
	int error = api.use_by(worker->device, (unsigned)a[1], &figure);
	return DONE_WITH(error, figure);
}

/* A stream ends and another one takes its place. */
struct outcome run_stream(struct worker *worker, const uint64_t *a)
{
	use_device(worker, (int)(a[0] % DEVICES));
	void **stream = &worker->streams[worker->device][a[1] % STREAMS];

	int error = api.wait(*stream);
	error = error ? error : api.stream_end(*stream);
	return DONE_WITH(error ? error : api.stream_make(stream), 0);
}
