/*
 * Stream-ordered memory. A chunk is one range of addresses, cut into blocks. A block is free, in
 * use, or given back by a stream. That stream may use the block again at once. Another stream has
 * to wait for the operation that stands for the free. The block is free, and its chunk can leave
 * the pool, when the host has waited behind the free. To ask whether it is done does not count
 * (H200, 580.159).
 *
 * Follows "Stream Ordered Memory Allocator" of the CUDA programming guide, and the text about pools
 * in cuda.h.
 */
#include <stdlib.h>
#include <unistd.h>

#include "core_internal.h"

#define CHUNK ((uint64_t)32 << 20)
#define UNIT_BYTES 512

struct block {
	struct block *next;
	uint64_t start, bytes, asked, id;
	enum { FREE, USED, LEAVING, GIVEN } state;
	uint64_t stream;             /* GIVEN: by this stream; 0: by none */
	uint64_t legacy;             /* GIVEN: the default stream that waits for that stream, or 0 */
	struct operation *after;     /* GIVEN: free when this is done; NULL: it is done */
	struct sim_context *context; /* context of the allocation */
	uint64_t context_id;
};

struct sim_pool {
	struct object object;
	struct sim_pool *next;
	struct range *chunks;
	struct sim_pool_about about;
	unsigned read, write; /* devices: bit 1 << device */
	bool closed;          /* destroyed; ends with its last allocation */
	struct pool_import import;
	_Alignas(16) char face[SIM_FACE];
};

/* All under sim_memory_lock. */
static struct sim_pool *pools;

/* -- blocks: all with the lock held ------------------------------------------------------------ */

static void make_free(struct block *block)
{
	operation_put(block->after);
	block->after = NULL;
	block->state = FREE;
}

static void join_next(struct block *block)
{
	struct block *next = block->next;

	block->bytes += next->bytes;
	block->next = next->next;
	operation_put(next->after);
	free(next);
}

static bool split_block(struct block *block, uint64_t bytes)
{
	struct block *rest = malloc(sizeof(*rest));

	if (!rest)
		return false;
	*rest = *block;
	rest->start += bytes;
	rest->bytes -= bytes;
	if (rest->after)
		operation_get(rest->after);
	block->bytes = bytes;
	block->next = rest;
	return true;
}

static bool block_passed(const struct block *block)
{
	return !block->after || operation_done(block->after);
}

/* Does a wait of the host for `stream` cover the free of the block? */
static bool block_observed(const struct block *block, uint64_t stream)
{
	return stream == SIM_ALL_STREAMS || !block->stream || block->stream == stream ||
	       (stream && block->legacy == stream);
}

/* Frees blocks that their streams have passed. The host has waited for `stream`. */
static void settle_pool(struct sim_pool *pool, uint64_t stream)
{
	for (struct range *chunk = pool->chunks; chunk; chunk = chunk->pool_next) {
		for (struct block *b = chunk->blocks; b; b = b->next)
			if (b->state == GIVEN && block_observed(b, stream) && block_passed(b))
				make_free(b);
		for (struct block *b = chunk->blocks; b; b = b->next)
			while (b->state == FREE && b->next && b->next->state == FREE)
				join_next(b);
	}
}

struct run {
	struct range *chunk;
	struct block *first, *last;
	unsigned blocks;
	uint64_t before_last; /* bytes of all blocks but the last */
};

static bool block_usable(const struct sim_pool *pool, const struct block *block, uint64_t stream, bool any)
{
	if (block->state != GIVEN)
		return block->state == FREE;
	return any || block->stream == stream || (pool->about.opportunistic && block_passed(block));
}

/* Adjacent blocks that `stream` may use, large enough together. `any`: also ones to wait for. */
static bool find_run(struct sim_pool *pool, uint64_t bytes, uint64_t stream, bool any, struct run *run)
{
	for (struct range *chunk = pool->chunks; chunk; chunk = chunk->pool_next) {
		*run = (struct run){.chunk = chunk};
		for (struct block *b = chunk->blocks; b; b = b->next) {
			if (!block_usable(pool, b, stream, any)) {
				*run = (struct run){.chunk = chunk};
				continue;
			}
			if (run->last)
				run->before_last += run->last->bytes;
			else
				run->first = b;
			run->last = b;
			run->blocks++;
			if (run->before_last + b->bytes >= bytes)
				return true;
		}
	}
	return false;
}

/* Makes one block of the run. *waits: at most run->blocks operations to wait for. */
static struct block *occupy_run(struct run *run, uint64_t bytes, uint64_t stream, struct operation **waits,
                                unsigned *count)
{
	struct block *block = run->first;
	uint64_t of_last = bytes - run->before_last;

	if (run->last->bytes > of_last && !split_block(run->last, of_last))
		return NULL;
	for (struct block *b = run->first; b != run->last->next; b = b->next)
		if (b->state == GIVEN && b->stream != stream && b->after)
			waits[(*count)++] = operation_get(b->after);
	for (unsigned i = 1; i < run->blocks; i++)
		join_next(block);
	make_free(block);
	block->state = USED;
	block->id = sim_next_id();
	return block;
}

static struct block *block_at(const struct range *range, uint64_t address)
{
	struct block *block = range->blocks;

	while (block && address - block->start >= block->bytes)
		block = block->next;
	return block;
}

bool pool_allocation(const struct range *range, uint64_t address, uint64_t *start, uint64_t *bytes,
                     uint64_t *id)
{
	const struct block *block = block_at(range, address);

	if (!block || block->state != USED || address - block->start >= block->asked)
		return false;
	*start = block->start;
	*bytes = block->asked;
	*id = block->id;
	return true;
}

/* -- chunks: all with the lock held ------------------------------------------------------------ */

static enum sim_status add_chunk(struct sim_pool *pool, uint64_t bytes)
{
	const struct range like = {.kind = pool->about.kind,
	                           .device = pool->about.device < 0 ? 0 : pool->about.device,
	                           .pool = pool};
	struct range *chunk;

	if (pool->about.limit && pool->about.reserved + bytes > pool->about.limit)
		return SIM_NO_MEMORY;
	struct block *block = calloc(1, sizeof(*block));
	if (!block)
		return SIM_NO_HOST_MEMORY;
	enum sim_status status = range_new(&like, bytes, &chunk);
	if (status) {
		free(block);
		return status;
	}
	block->start = chunk->address;
	block->bytes = chunk->bytes;
	chunk->blocks = block;
	chunk->pool_next = pool->chunks;
	pool->chunks = chunk;
	pool->about.reserved += chunk->bytes;
	if (pool->about.reserved > pool->about.reserved_high)
		pool->about.reserved_high = pool->about.reserved;
	return SIM_OK;
}

static enum sim_status add_chunks_for(struct sim_pool *pool, uint64_t bytes)
{
	if (bytes > UINT64_MAX / 2)
		return SIM_NO_MEMORY;
	enum sim_status status = add_chunk(pool, round_up(bytes, CHUNK));
	if (status == SIM_NO_MEMORY && bytes % CHUNK)
		status = add_chunk(pool, round_up(bytes, SIM_GRANULE));
	return status;
}

static void remove_chunk(struct sim_pool *pool, struct range **link)
{
	struct range *chunk = *link;

	*link = chunk->pool_next;
	pool->about.reserved -= chunk->bytes;
	free(chunk->blocks);
	range_remove(chunk);
}

/* pre: settled. */
static void give_back(struct sim_pool *pool, uint64_t keep)
{
	for (struct range **link = &pool->chunks; *link;) {
		const struct block *first = (*link)->blocks;

		if (first->state == FREE && !first->next && pool->about.reserved - (*link)->bytes >= keep)
			remove_chunk(pool, link);
		else
			link = &(*link)->pool_next;
	}
}

/* A destroyed pool gives back its chunks as soon as possible, and then ends. */
static void end_closed(struct sim_pool *pool)
{
	settle_pool(pool, SIM_ALL_STREAMS);
	give_back(pool, 0);
	if (pool->chunks)
		return;
	struct sim_pool **link = &pools;
	while (*link != pool)
		link = &(*link)->next;
	*link = pool->next;
	if (pool->import.descriptor >= 0)
		close(pool->import.descriptor);
	object_delete(pool);
}

const struct pool_import *pool_import(const struct sim_pool *pool)
{
	return &pool->import;
}

void pool_set_import(struct sim_pool *pool, struct pool_import import)
{
	pool->import = import;
	pool->about.imported = true;
}

/* A real driver does so when memory is short, whatever the thresholds (H200, 580.159). */
void pools_reclaim(int device)
{
	for (struct sim_pool *pool = pools; pool; pool = pool->next) {
		if (pool->about.device == device && pool->about.kind == SIM_DEVICE)
			give_back(pool, 0);
	}
}

/* -- allocating -------------------------------------------------------------------------------- */

static enum sim_status find_room(struct sim_pool *pool, uint64_t bytes, uint64_t stream, struct run *run)
{
	if (find_run(pool, bytes, stream, false, run))
		return SIM_OK;
	enum sim_status status = add_chunks_for(pool, bytes);
	if (!status)
		return find_run(pool, bytes, stream, false, run) ? SIM_OK : SIM_NO_MEMORY;
	return pool->about.internal && find_run(pool, bytes, stream, true, run) ? SIM_OK : status;
}

enum sim_status sim_pool_alloc(struct sim_pool *pool, struct sim_stream *stream, uint64_t bytes,
                               uint64_t *address)
{
	struct operation **waits = NULL;
	struct block *block = NULL;
	struct run run;
	unsigned count = 0;

	if (!bytes || !sim_pool_alive(pool) || pool->about.imported)
		return SIM_INVALID;
	if (!sim_stream_alive(stream))
		return SIM_BAD_CONTEXT;
	if (bytes > UINT64_MAX / 2)
		return SIM_NO_MEMORY;
	uint64_t whole = round_up(bytes, UNIT_BYTES), id = sim_stream_id(stream);
	pthread_mutex_lock(&sim_memory_lock);
	enum sim_status status = find_room(pool, whole, id, &run);
	if (!status) {
		waits = malloc(run.blocks * sizeof(struct operation *));
		block = waits ? occupy_run(&run, whole, id, waits, &count) : NULL;
		status = block ? SIM_OK : SIM_NO_HOST_MEMORY;
	}
	if (block) {
		block->asked = bytes;
		block->context = sim_stream_context(stream);
		block->context_id = sim_context_id(block->context);
		*address = block->start;
		pool->about.used += bytes;
		if (pool->about.used > pool->about.used_high)
			pool->about.used_high = pool->about.used;
	}
	pthread_mutex_unlock(&sim_memory_lock);
	for (unsigned i = 0; i < count; i++) {
		stream_after(stream, waits[i]);
		operation_put(waits[i]);
	}
	free(waits);
	return status;
}

/* -- freeing ----------------------------------------------------------------------------------- */

struct leaving {
	struct range *chunk;
	struct block *block; /* LEAVING: no other thread touches it */
	struct sim_context *context;
};

/* Invalidates the allocation for the program. Its memory is not reused yet. */
static enum sim_status take_from_program(uint64_t address, struct leaving *out)
{
	enum sim_status status = SIM_NOT_FOUND;

	pthread_mutex_lock(&sim_memory_lock);
	struct range *range = va_range(address);
	if (range && range->pool) {
		struct block *block = block_at(range, address);

		status = SIM_INVALID;
		if (block && block->state == USED && block->start == address) {
			block->state = LEAVING;
			share_forget(block->id);
			*out = (struct leaving){range, block, block->context};
			status = SIM_OK;
		}
	}
	pthread_mutex_unlock(&sim_memory_lock);
	return status;
}

struct wipe {
	char *start;
	uint64_t bytes;
};

/* Freed memory must not be read again. Emptying its pages also gives them back to the machine. */
static void empty_pages(void *data)
{
	const struct wipe *pages = data;

	if (pages->bytes)
		device_empty(pages->start, pages->bytes);
}

static struct wipe pages_of(const struct leaving *leaving)
{
	const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	uint64_t start =
	    (uint64_t)leaving->chunk->physical->home + leaving->block->start - leaving->chunk->address;
	uint64_t end = (start + leaving->block->bytes) / page * page;

	start = round_up(start, page);
	return (struct wipe){(char *)start, end > start ? end - start : 0};
}

/* Done when all current work of the context is. NULL: it is done, or had to be waited for. */
static struct operation *after_all(struct sim_context *context)
{
	struct operation *pending[64], *mark = NULL;
	enum sim_status status;
	struct sim_stream *stream;
	unsigned count = stream_pending(context, pending, 64);

	/* The stream is no program's, so it takes no room: the free must not fail, or wait, for that. */
	if (count == 64 || (count && stream_create(context, true, 0, 0, &stream))) {
		sim_context_synchronize(context);
	} else if (count) {
		for (unsigned i = 0; i < count; i++)
			stream_after(stream, pending[i]);
		mark = stream_mark(stream, &status);
		sim_stream_destroy(stream);
	}
	for (unsigned i = 0; i < count; i++)
		operation_put(pending[i]);
	return mark;
}

/*
 * Frees without a stream. A real driver returns at once even if work runs. If no work runs, it
 * gives back memory above the threshold. It never lowers "used" here (H200, 580.159), and neither
 * do we.
 */
enum sim_status pool_free(uint64_t address)
{
	struct leaving leaving;
	enum sim_status status = take_from_program(address, &leaving);

	if (status)
		return status;
	struct sim_context *context = leaving.block->context;
	bool lives = sim_context_alive(context) && sim_context_id(context) == leaving.block->context_id;
	struct operation *mark = lives ? after_all(context) : NULL;
	if (!mark) {
		struct wipe pages = pages_of(&leaving);

		empty_pages(&pages);
	}
	pthread_mutex_lock(&sim_memory_lock);
	struct sim_pool *pool = leaving.chunk->pool;
	leaving.block->state = GIVEN;
	leaving.block->stream = leaving.block->legacy = 0;
	leaving.block->after = mark;
	if (pool->closed) {
		end_closed(pool);
	} else {
		settle_pool(pool, 0);
		give_back(pool, pool->about.threshold);
	}
	pthread_mutex_unlock(&sim_memory_lock);
	return SIM_OK;
}

enum sim_status pool_free_ordered(uint64_t address, struct sim_stream *stream)
{
	struct leaving leaving;
	struct operation *mark = NULL;
	struct wipe *pages = malloc(sizeof(*pages));
	enum sim_status ignored, status = pages ? take_from_program(address, &leaving) : SIM_NO_HOST_MEMORY;

	if (status) {
		free(pages);
		return status;
	}
	*pages = pages_of(&leaving);
	bool alive = sim_stream_alive(stream);
	uint64_t id = alive ? sim_stream_id(stream) : 0;
	uint64_t legacy =
	    alive && !sim_stream_non_blocking(stream) ? sim_stream_id(sim_stream_context(stream)->legacy) : 0;
	status = stream_submit(stream, SIM_NODE_NONE, empty_pages, pages, false, true);
	if (!status)
		mark = stream_mark(stream, &ignored); /* none in a broken context, where no work runs */
	pthread_mutex_lock(&sim_memory_lock);
	if (status) {
		leaving.block->state = USED;
	} else {
		leaving.chunk->pool->about.used -= leaving.block->asked;
		leaving.block->state = GIVEN;
		leaving.block->stream = id;
		leaving.block->legacy = legacy;
		leaving.block->after = mark;
	}
	pthread_mutex_unlock(&sim_memory_lock);
	return status;
}

/* -- pools ------------------------------------------------------------------------------------- */

enum sim_status sim_pool_create(enum sim_memory kind, int device, uint64_t limit, struct sim_pool **out)
{
	struct sim_pool *pool = object_new(OBJECT_POOL, sizeof(*pool));

	if (!pool)
		return SIM_NO_HOST_MEMORY;
	pool->about = (struct sim_pool_about){.kind = kind,
	                                      .device = device,
	                                      .limit = limit,
	                                      .follow = true,
	                                      .opportunistic = true,
	                                      .internal = true};
	if (kind == SIM_DEVICE)
		pool->read = pool->write = 1u << device;
	pool->import.descriptor = -1;
	pthread_mutex_lock(&sim_memory_lock);
	pool->next = pools;
	pools = pool;
	pthread_mutex_unlock(&sim_memory_lock);
	*out = pool;
	return SIM_OK;
}

bool sim_pool_alive(const struct sim_pool *pool)
{
	return object_is(pool, OBJECT_POOL) && !__atomic_load_n(&pool->closed, __ATOMIC_RELAXED);
}

enum sim_status sim_pool_destroy(struct sim_pool *pool)
{
	pthread_mutex_lock(&sim_memory_lock);
	bool good = sim_pool_alive(pool);
	if (good) {
		__atomic_store_n(&pool->closed, true, __ATOMIC_RELAXED);
		end_closed(pool);
	}
	pthread_mutex_unlock(&sim_memory_lock);
	return good ? SIM_OK : SIM_INVALID;
}

void *sim_pool_face(struct sim_pool *pool)
{
	return pool->face;
}

void sim_pool_about(struct sim_pool *pool, struct sim_pool_about *out)
{
	pthread_mutex_lock(&sim_memory_lock);
	*out = pool->about;
	pthread_mutex_unlock(&sim_memory_lock);
}

void sim_pool_set(struct sim_pool *pool, const struct sim_pool_about *set)
{
	struct sim_pool_about *about = &pool->about;

	pthread_mutex_lock(&sim_memory_lock);
	about->threshold = set->threshold;
	about->follow = set->follow;
	about->opportunistic = set->opportunistic;
	about->internal = set->internal;
	if (!set->reserved_high)
		about->reserved_high = about->reserved;
	if (!set->used_high)
		about->used_high = about->used;
	pthread_mutex_unlock(&sim_memory_lock);
}

void pool_access(const struct sim_pool *pool, int device, bool *read, bool *write)
{
	*read = pool->read & 1u << device;
	*write = pool->write & 1u << device;
}

void sim_pool_set_access(struct sim_pool *pool, int device, bool read, bool write)
{
	unsigned bit = device < 0 ? 0 : 1u << device;

	pthread_mutex_lock(&sim_memory_lock);
	pool->read = read ? pool->read | bit : pool->read & ~bit;
	pool->write = write ? pool->write | bit : pool->write & ~bit;
	for (struct range *chunk = pool->chunks; bit && chunk; chunk = chunk->pool_next)
		alloc_pool_changed(chunk, device);
	pthread_mutex_unlock(&sim_memory_lock);
}

void sim_pool_get_access(struct sim_pool *pool, int device, bool *read, bool *write)
{
	pthread_mutex_lock(&sim_memory_lock);
	if (device >= 0)
		pool_access(pool, device, read, write);
	else
		*read = *write = pool->about.kind != SIM_DEVICE;
	pthread_mutex_unlock(&sim_memory_lock);
}

void sim_pool_trim(struct sim_pool *pool, uint64_t keep)
{
	pthread_mutex_lock(&sim_memory_lock);
	settle_pool(pool, 0);
	give_back(pool, keep);
	pthread_mutex_unlock(&sim_memory_lock);
}

void sim_pools_synchronized(int device, uint64_t stream)
{
	pthread_mutex_lock(&sim_memory_lock);
	for (struct sim_pool *pool = pools, *next; pool; pool = next) {
		next = pool->next;
		if (pool->about.device != device && pool->about.device >= 0)
			continue;
		if (pool->closed) {
			end_closed(pool);
			continue;
		}
		settle_pool(pool, stream);
		give_back(pool, pool->about.threshold);
	}
	pthread_mutex_unlock(&sim_memory_lock);
}
