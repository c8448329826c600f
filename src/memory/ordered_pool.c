#include "ordered_pool.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "capture.h"
#include "chunk_map.h"
#include "deferred.h"
#include "minmax.h"
#include "stream_frees.h"

#define SMALL ((uint64_t)1 << 20)
#define SMALL_SEGMENT SPILL_ORDERED_CHUNK
#define SEGMENT ((uint64_t)64 << 20)

struct segment {
	struct spill_chunked *chunked;
	struct spill_ordered_pool *pool;
	enum spill_range_kind kind;
	struct spill_range *first; /* by address; it lives as long as the segment */
	unsigned in_use;           /* ranges */
	unsigned told;             /* the last close that it was told */
	TAILQ_ENTRY(segment) link;
};

struct spill_ordered_pool {
	const struct spill_backend *backend;
	int device;
	const void *handle;      /* of the vendor's pool; NULL: ended */
	_Atomic unsigned closed; /* times */
	_Atomic uint64_t keep;   /* bytes */
	struct spill_stream_frees frees;
	struct spill_ordered_figures figures;
	TAILQ_HEAD(segments, segment) segments; /* oldest first */
	struct spill_ordered_pool *next;
};

/* A range in use. */
struct block {
	struct spill_placement base;
	struct spill_range *range;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* SPILL_RANK_ORDERED_POOL */
static struct spill_ordered_pool *_Atomic pools;         /* grows at its head only; written under the lock */
static _Atomic unsigned segment_count;

static void release(struct spill_placement *placement, bool context_ended);
static const struct spill_place_ops ranges = {SPILL_PLACE_MOVABLE, NULL, release, NULL};

static enum spill_range_kind kind_of(uint64_t bytes)
{
	return bytes <= SMALL ? SPILL_SMALL_RANGES : SPILL_LARGE_RANGES;
}

/* -- pools ------------------------------------------------------------------------------------- */

/* pre: locked */
static struct spill_ordered_pool *find_pool(const struct spill_backend *backend, const void *handle)
{
	struct spill_ordered_pool *pool = pools;
	while (pool && (pool->backend != backend || pool->handle != handle))
		pool = pool->next;
	return pool;
}

/*
 * An ended pool without segments and spilled memory, as a new one. A caller that walks the pools may
 * look at it: its device and its frees stay. pre: locked
 */
static struct spill_ordered_pool *renew_pool(const struct spill_backend *backend, int device,
                                             const void *handle)
{
	struct spill_ordered_pool *pool = pools;
	while (pool && (pool->handle || pool->backend != backend || pool->device != device ||
	                !TAILQ_EMPTY(&pool->segments) || pool->figures.used))
		pool = pool->next;
	if (!pool)
		return NULL;
	pool->handle = handle;
	pool->figures = (struct spill_ordered_figures){0};
	atomic_store(&pool->closed, 0);
	atomic_store(&pool->keep, 0);
	return pool;
}

/* pre: locked */
static struct spill_ordered_pool *make_pool(const struct spill_backend *backend, int device,
                                            const void *handle)
{
	struct spill_ordered_pool *pool = calloc(1, sizeof(*pool));
	if (!pool)
		return NULL;
	pool->backend = backend;
	pool->device = device;
	pool->handle = handle;
	TAILQ_INIT(&pool->segments);
	pool->next = pools;
	atomic_store(&pools, pool);
	return pool;
}

struct spill_ordered_pool *spill_ordered_pool_made(const struct spill_backend *backend, int device,
                                                   const void *handle)
{
	pthread_mutex_lock(&lock);
	struct spill_ordered_pool *pool = find_pool(backend, handle);
	if (!pool)
		pool = renew_pool(backend, device, handle);
	if (!pool)
		pool = make_pool(backend, device, handle);
	pthread_mutex_unlock(&lock);
	return pool;
}

struct spill_ordered_pool *spill_ordered_pool_of(const struct spill_backend *backend, const void *handle)
{
	pthread_mutex_lock(&lock);
	struct spill_ordered_pool *pool = handle ? find_pool(backend, handle) : NULL;
	pthread_mutex_unlock(&lock);
	return pool;
}

int spill_ordered_device(const struct spill_ordered_pool *pool)
{
	return pool->device;
}

void *spill_ordered_handle(const struct spill_ordered_pool *pool)
{
	pthread_mutex_lock(&lock);
	const void *handle = pool->handle;
	pthread_mutex_unlock(&lock);
	return (void *)handle;
}

struct spill_ordered_pool *spill_ordered_next(const struct spill_ordered_pool *pool)
{
	return pool ? pool->next : atomic_load_explicit(&pools, memory_order_acquire);
}

void spill_ordered_keep(struct spill_ordered_pool *pool, uint64_t bytes)
{
	atomic_store(&pool->keep, bytes);
}

uint64_t spill_ordered_kept(const struct spill_ordered_pool *pool)
{
	return atomic_load(&pool->keep);
}

void spill_ordered_pool_close(struct spill_ordered_pool *pool)
{
	pthread_mutex_lock(&lock);
	atomic_fetch_add(&pool->closed, 1);
	pthread_mutex_unlock(&lock);
}

bool spill_ordered_pool_is_closed(const struct spill_ordered_pool *pool)
{
	return atomic_load(&pool->closed) != 0;
}

/* Not by index, because other threads unlink segments meanwhile. */
struct spill_chunked *spill_ordered_next_closed(struct spill_ordered_pool *pool)
{
	pthread_mutex_lock(&lock);
	struct segment *segment = TAILQ_FIRST(&pool->segments);
	while (segment && segment->told == pool->closed)
		segment = TAILQ_NEXT(segment, link);
	if (segment)
		segment->told = pool->closed;
	pthread_mutex_unlock(&lock);
	return segment ? segment->chunked : NULL;
}

struct spill_ordered_pool *spill_ordered_pool_ended(const struct spill_backend *backend, const void *handle)
{
	pthread_mutex_lock(&lock);
	struct spill_ordered_pool *pool = find_pool(backend, handle);
	if (pool)
		pool->handle = NULL;
	pthread_mutex_unlock(&lock);
	return pool;
}

void spill_ordered_pool_alive(struct spill_ordered_pool *pool, const void *handle)
{
	pthread_mutex_lock(&lock);
	if (pool && !pool->handle && !find_pool(pool->backend, handle))
		pool->handle = handle;
	pthread_mutex_unlock(&lock);
}

/* -- taking ------------------------------------------------------------------------------------ */

/* The map has the sides of chunks that can move. Others are where they were made. */
static bool is_on_device(const struct spill_range *range, uint64_t bytes)
{
	struct spill_chunk_map_entry entry;
	uint64_t unit = SPILL_CHUNK_MAP_UNIT;
	for (uint64_t at = range->at; at < range->at + bytes; at = (at / unit + 1) * unit)
		if (spill_chunk_map_of(at, &entry) && entry.on_host)
			return false;
	return true;
}

/*
 * The better one of those that the stream may use. When its frees settle depends on the time, and no
 * address may. pre: locked
 */
static struct spill_range *find_range(struct spill_ordered_pool *pool, uint64_t bytes,
                                      const struct spill_stream_order *name, bool anywhere)
{
	enum spill_range_kind kind = kind_of(bytes);
	bool (*usable)(const struct spill_range *, uint64_t) = anywhere ? NULL : is_on_device;
	const struct spill_free_ranges *own =
	    name->stream ? spill_stream_frees_of(&pool->frees, name, kind) : NULL;
	struct spill_range *range =
	    spill_range_better(own ? spill_free_ranges_find(own, bytes, usable) : NULL,
	                       spill_free_ranges_find(&pool->frees.settled[kind], bytes, usable));
	return range ? spill_free_ranges_cut(range, bytes) : NULL;
}

/* pre: locked */
static void count_used(struct spill_ordered_pool *pool, uint64_t bytes)
{
	struct spill_ordered_figures *figures = &pool->figures;
	figures->used += bytes;
	figures->most_used = spill_max(figures->most_used, figures->used);
}

/* pre: locked */
static void count_reserved(struct spill_ordered_pool *pool, uint64_t bytes)
{
	struct spill_ordered_figures *figures = &pool->figures;
	figures->reserved += bytes;
	figures->most_reserved = spill_max(figures->most_reserved, figures->reserved);
}

/* pre: locked */
static void begin_use(struct spill_ordered_pool *pool, struct block *block, struct spill_range *range)
{
	block->range = range;
	struct segment *segment = range->segment;
	segment->in_use++;
	/* Launches name memory by its address, and so it is known how far they reach (shim/hints.c). */
	if (segment->kind == SPILL_LARGE_RANGES)
		spill_chunk_map_buffer(range->at, range->bytes);
	count_used(pool, range->bytes);
}

static struct spill_placement *begin_block(const struct spill_ordered_pool *pool, struct block *block,
                                           uint64_t bytes, const struct spill_stream_order *order)
{
	block->base = (struct spill_placement){.ops = &ranges,
	                                       .backend = pool->backend,
	                                       .device = pool->device,
	                                       .context = (void *)order->context,
	                                       .ptr = block->range->at,
	                                       .order = *order,
	                                       .bytes = bytes};
	return &block->base;
}

static bool take_range(struct spill_ordered_pool *pool, struct block *block, uint64_t bytes,
                       const struct spill_stream_order *order, bool anywhere)
{
	pthread_mutex_lock(&lock);
	struct spill_range *range = find_range(pool, bytes, order, anywhere);
	if (range)
		begin_use(pool, block, range);
	pthread_mutex_unlock(&lock);
	return range != NULL;
}

/*
 * While exchanges follow each other, a range on the host is as good as one on the device: it comes when
 * it is used, without a copy. So the addresses do not depend on where memory happens to be. They repeat
 * with the program's steps, and exchanges can be foreseen (docs/measurements.md, "PyTorch's allocators").
 */
static bool take_any_range(struct spill_ordered_pool *pool, struct block *block, uint64_t bytes,
                           const struct spill_stream_order *order, bool anywhere)
{
	bool at_once = anywhere && spill_chunked_is_held();
	return take_range(pool, block, bytes, order, at_once) ||
	       (spill_stream_frees_look(&pool->frees, pool->backend, &lock) &&
	        take_range(pool, block, bytes, order, at_once)) ||
	       (anywhere && !at_once && take_range(pool, block, bytes, order, true));
}

struct spill_placement *spill_ordered_take(struct spill_ordered_pool *pool, uint64_t bytes,
                                           const struct spill_stream_order *order, bool anywhere)
{
	struct block *block = calloc(1, sizeof(*block));
	if (!block)
		return NULL;
	if (take_any_range(pool, block, bytes, order, anywhere))
		return begin_block(pool, block, bytes, order);
	free(block);
	return NULL;
}

/* -- freeing ----------------------------------------------------------------------------------- */

bool spill_ordered_is(const struct spill_placement *placement)
{
	return placement && placement->ops == &ranges;
}

struct spill_chunked *spill_ordered_segment(const struct spill_placement *range)
{
	const struct segment *segment = ((const struct block *)range)->range->segment;
	return segment->chunked;
}

/* pre: locked */
static void give_range(struct spill_range *range, struct spill_free_ranges *set, uint64_t number)
{
	struct segment *segment = range->segment;
	segment->in_use--;
	segment->pool->figures.used -= range->bytes;
	spill_free_ranges_give(range, set, &segment->pool->frees.settled[segment->kind], number);
}

/*
 * Without memory for a list the free waits for its work, as a plain free does. In a capture, which
 * forbids that, the range is lost until the process ends.
 */
static void give_behind_wait(struct spill_range *range, const struct spill_stream_order *order, int device)
{
	const struct segment *segment = range->segment;
	struct spill_ordered_pool *pool = segment->pool;
	if (spill_capture_any() || spill_deferred_wait(pool->backend, device, (void *)order->context))
		return;
	pthread_mutex_lock(&lock);
	give_range(range, &pool->frees.settled[segment->kind], 0);
	pthread_mutex_unlock(&lock);
}

void spill_ordered_free(struct spill_placement *placement, const struct spill_stream_order *order, int device)
{
	struct spill_range *range = ((struct block *)placement)->range;
	const struct segment *segment = range->segment;
	pthread_mutex_lock(&lock);
	struct spill_free_ranges *set =
	    spill_stream_frees_make(&segment->pool->frees, order, device, segment->kind);
	if (set)
		give_range(range, set, spill_stream_frees_count());
	pthread_mutex_unlock(&lock);
	if (!set)
		give_behind_wait(range, order, device);
	free(placement);
}

/*
 * The memory is the process's, so the end of a context does not end it. The range may have been
 * taken behind work of its order.
 */
static void release(struct spill_placement *placement, bool context_ended)
{
	const struct spill_stream_order order = placement->order;
	spill_ordered_free(placement, &order, placement->device);
}

void spill_ordered_stream_ended(const struct spill_backend *backend, const void *stream)
{
	pthread_mutex_lock(&lock);
	for (struct spill_ordered_pool *pool = pools; pool; pool = pool->next)
		if (pool->backend == backend)
			spill_stream_frees_stream_ended(&pool->frees, stream);
	pthread_mutex_unlock(&lock);
}

uint64_t spill_ordered_number(void)
{
	return spill_stream_frees_number();
}

void spill_ordered_done(const struct spill_backend *backend, const struct spill_stream_order *order,
                        uint64_t number)
{
	pthread_mutex_lock(&lock);
	for (struct spill_ordered_pool *pool = pools; pool; pool = pool->next)
		if (pool->backend == backend)
			spill_stream_frees_done(&pool->frees, order, number);
	pthread_mutex_unlock(&lock);
}

void spill_ordered_context_ended(const struct spill_context_end *end)
{
	pthread_mutex_lock(&lock);
	for (struct spill_ordered_pool *pool = pools; pool; pool = pool->next)
		if (pool->backend == end->backend)
			spill_stream_frees_context_ended(&pool->frees, end);
	pthread_mutex_unlock(&lock);
}

void spill_ordered_idle(const struct spill_backend *backend, int device, uint64_t number)
{
	const struct spill_stream_order all = {NULL, NULL};
	pthread_mutex_lock(&lock);
	for (struct spill_ordered_pool *pool = pools; pool; pool = pool->next)
		if (pool->backend == backend && pool->device == device)
			spill_stream_frees_done(&pool->frees, &all, number);
	pthread_mutex_unlock(&lock);
}

/* -- segments ---------------------------------------------------------------------------------- */

uint64_t spill_ordered_segment_bytes(uint64_t bytes)
{
	uint64_t least = kind_of(bytes) == SPILL_SMALL_RANGES ? SMALL_SEGMENT : SEGMENT;
	return spill_max(least, spill_round_up(bytes, SPILL_ORDERED_CHUNK));
}

/* Adds a span, joined with the last one if they touch. False: there are too many. */
static bool add_span(struct spill_span *spans, unsigned *count, uint64_t offset, uint64_t bytes)
{
	struct spill_span *last = *count ? &spans[*count - 1] : NULL;
	if (last && last->offset + last->bytes == offset) {
		last->bytes += bytes;
		return true;
	}
	if (*count == SPILL_SPANS)
		return false;
	spans[(*count)++] = (struct spill_span){offset, bytes};
	return true;
}

/* spill_chunked_live of a segment. Free ranges are dead, because the device is idle. */
static unsigned live_spans(const struct spill_chunked *chunked, unsigned index,
                           struct spill_span spans[SPILL_SPANS])
{
	const struct segment *segment = chunked->owner;
	uint64_t begin = spill_chunked_address(chunked, index), end = begin + chunked->chunks[index].bytes;
	unsigned count = 0;
	bool fits = true;
	pthread_mutex_lock(&lock);
	for (const struct spill_range *range = segment->first; range && range->at < end && fits;
	     range = range->after) {
		uint64_t from = spill_max(range->at, begin), to = spill_min(range->at + range->bytes, end);
		if (!range->in && from < to)
			fits = add_span(spans, &count, from - begin, to - from);
	}
	pthread_mutex_unlock(&lock);
	if (fits)
		return count;
	spans[0] = (struct spill_span){0, end - begin};
	return 1;
}

/* pre: locked */
static void link_segment(struct segment *segment)
{
	struct spill_ordered_pool *pool = segment->pool;
	segment->chunked->owner = segment;
	segment->chunked->live = live_spans;
	segment->chunked->exact_begins = true;
	TAILQ_INSERT_TAIL(&pool->segments, segment, link);
	segment_count++;
	count_reserved(pool, segment->chunked->range);
}

bool spill_ordered_add(struct spill_ordered_pool *pool, struct spill_chunked *chunked, uint64_t bytes)
{
	struct segment *segment = calloc(1, sizeof(*segment));
	if (!segment)
		return false;
	*segment = (struct segment){.chunked = chunked, .pool = pool, .kind = kind_of(bytes)};
	pthread_mutex_lock(&lock);
	bool closed = spill_ordered_pool_is_closed(pool);
	if (!closed)
		link_segment(segment);
	pthread_mutex_unlock(&lock);
	if (closed)
		free(segment);
	return !closed;
}

/* Nobody sees it any more. A move may look at it until the chunks are delisted. pre: locked */
static struct spill_chunked *unlink_segment(struct segment *segment)
{
	struct spill_ordered_pool *pool = segment->pool;
	TAILQ_REMOVE(&pool->segments, segment, link);
	segment_count--;
	pool->figures.reserved -= segment->chunked->range;
	if (segment->first)
		spill_free_ranges_remove(segment->first);
	segment->first = NULL;
	return segment->chunked;
}

struct spill_placement *spill_ordered_open(struct spill_chunked *chunked, uint64_t bytes,
                                           const struct spill_stream_order *order)
{
	struct segment *segment = chunked->owner;
	struct spill_ordered_pool *pool = segment->pool;
	struct block *block = calloc(1, sizeof(*block));
	pthread_mutex_lock(&lock);
	struct spill_range *first = NULL;
	if (block)
		first = spill_free_ranges_add(&pool->frees.settled[segment->kind], chunked->base.ptr,
		                              chunked->range, segment);
	segment->first = first;
	if (first)
		begin_use(pool, block, spill_free_ranges_cut(first, bytes));
	else
		unlink_segment(segment);
	pthread_mutex_unlock(&lock);
	if (first)
		return begin_block(pool, block, bytes, order);
	free(block);
	return NULL;
}

bool spill_ordered_any(struct spill_ordered_pool *pool)
{
	if (!pool)
		return atomic_load_explicit(&segment_count, memory_order_relaxed) != 0;
	pthread_mutex_lock(&lock);
	bool any = !TAILQ_EMPTY(&pool->segments);
	pthread_mutex_unlock(&lock);
	return any;
}

uint64_t spill_ordered_unused(const struct spill_backend *backend, int device)
{
	const struct segment *segment;
	uint64_t bytes = 0;
	pthread_mutex_lock(&lock);
	for (const struct spill_ordered_pool *pool = pools; pool; pool = pool->next)
		TAILQ_FOREACH(segment, &pool->segments, link)
		{
			if (pool->backend == backend && pool->device == device && !segment->in_use)
				bytes += segment->chunked->range;
		}
	pthread_mutex_unlock(&lock);
	return bytes;
}

/* pre: locked */
static bool is_empty(const struct segment *segment, bool on_host)
{
	const struct spill_free_ranges *settled = &segment->pool->frees.settled[segment->kind];
	const struct spill_range *first = segment->first;
	return first && first->in == settled && spill_range_is_segment(first) &&
	       (!on_host || !is_on_device(first, first->bytes));
}

/* pre: locked */
static struct segment *find_empty(const struct spill_ordered_pool *pool, bool on_host)
{
	struct segment *segment;
	TAILQ_FOREACH(segment, &pool->segments, link)
	{
		if (is_empty(segment, on_host))
			return segment;
	}
	return NULL;
}

static struct spill_chunked *unlink_empty(struct spill_ordered_pool *pool, bool on_host)
{
	pthread_mutex_lock(&lock);
	struct segment *segment = find_empty(pool, on_host);
	struct spill_chunked *found = segment ? unlink_segment(segment) : NULL;
	pthread_mutex_unlock(&lock);
	return found;
}

struct spill_chunked *spill_ordered_empty(const struct spill_backend *backend, int device,
                                          const struct spill_ordered_pool *only, bool on_host)
{
	struct spill_chunked *found = NULL;
	for (struct spill_ordered_pool *pool = spill_ordered_next(NULL); pool && !found;
	     pool = spill_ordered_next(pool)) {
		if (pool->backend != backend || pool->device != device || (only && pool != only))
			continue;
		found = unlink_empty(pool, on_host);
		if (!found && spill_stream_frees_look(&pool->frees, pool->backend, &lock))
			found = unlink_empty(pool, on_host);
	}
	return found;
}

/* -- figures ----------------------------------------------------------------------------------- */

struct spill_ordered_figures spill_ordered_figures(struct spill_ordered_pool *pool)
{
	pthread_mutex_lock(&lock);
	struct spill_ordered_figures figures = pool->figures;
	pthread_mutex_unlock(&lock);
	return figures;
}

void spill_ordered_restart(struct spill_ordered_pool *pool, bool used, bool reserved)
{
	struct spill_ordered_figures *figures = &pool->figures;
	pthread_mutex_lock(&lock);
	if (used)
		figures->most_used = figures->used;
	if (reserved)
		figures->most_reserved = figures->reserved;
	pthread_mutex_unlock(&lock);
}

static uint64_t counted_bytes(const struct spill_placement *placement)
{
	return spill_round_up(placement->bytes, SPILL_RANGE_UNIT);
}

void spill_ordered_count(struct spill_ordered_pool *pool, struct spill_placement *placement)
{
	pthread_mutex_lock(&lock);
	placement->counted = pool;
	count_used(pool, counted_bytes(placement));
	count_reserved(pool, counted_bytes(placement));
	pthread_mutex_unlock(&lock);
}

void spill_ordered_uncount(struct spill_placement *placement)
{
	struct spill_ordered_pool *pool = placement->counted;
	if (!pool)
		return;
	pthread_mutex_lock(&lock);
	placement->counted = NULL;
	pool->figures.used -= counted_bytes(placement);
	pool->figures.reserved -= counted_bytes(placement);
	pthread_mutex_unlock(&lock);
}

void spill_ordered_each(void (*visit)(const struct spill_placement *segment, void *data), void *data)
{
	const struct segment *segment;
	pthread_mutex_lock(&lock);
	for (const struct spill_ordered_pool *pool = pools; pool; pool = pool->next)
		TAILQ_FOREACH(segment, &pool->segments, link)
		{
			visit(&segment->chunked->base, data);
		}
	pthread_mutex_unlock(&lock);
}

/* The child has no GPU. Its parent keeps the segments. */
static void forget_parent(void)
{
	atomic_store(&pools, NULL);
	atomic_store(&segment_count, 0);
}

const struct spill_fork_lock spill_ordered_fork_lock = {&lock, forget_parent};
