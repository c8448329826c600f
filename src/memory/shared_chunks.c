#include "shared_chunks.h"

#include <pthread.h>
#include <stdlib.h>

#include "peer.h"
#include "minmax.h"

struct range {
	uint64_t at, bytes; /* offset in the chunk */
	struct range *next;
};

struct chunk {
	struct spill_placement *backing;
	const struct spill_place_ops *ops;
	struct spill_managed_advice advice; /* advice that the chunk's memory has */
	struct range *free;                 /* by offset; neighbours are joined */
	unsigned blocks;                    /* in use */
	struct chunk *next;
};

struct block {
	struct spill_placement base;
	struct chunk *chunk;
	uint64_t at, bytes;
	struct range *spare; /* made beforehand, so that a release cannot fail for lack of memory */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* SPILL_RANK_SHARED_CHUNKS */
static struct chunk *chunks;

static bool belongs(const struct chunk *chunk, const struct spill_backend *backend, int device,
                    const void *context)
{
	const struct spill_placement *backing = chunk->backing;
	return backing->backend == backend &&
	       (context ? backing->context == context : backing->device == device);
}

/* First fit. False: the chunk has no range of that size. pre: locked */
static bool take(struct chunk *chunk, uint64_t bytes, uint64_t *at)
{
	for (struct range **link = &chunk->free; *link; link = &(*link)->next) {
		struct range *range = *link;
		if (range->bytes < bytes)
			continue;
		*at = range->at;
		range->at += bytes;
		range->bytes -= bytes;
		if (!range->bytes) {
			*link = range->next;
			free(range);
		}
		chunk->blocks++;
		return true;
	}
	return false;
}

/* Puts a range back, joining its neighbours; takes ownership of `spare`. pre: locked */
static void give(struct chunk *chunk, uint64_t at, uint64_t bytes, struct range *spare)
{
	struct range *before = NULL, *after = chunk->free;
	while (after && after->at < at) {
		before = after;
		after = after->next;
	}
	*spare = (struct range){at, bytes, after};
	if (after && at + bytes == after->at) {
		spare->bytes += after->bytes;
		spare->next = after->next;
		free(after);
	}
	if (!before) {
		chunk->free = spare;
	} else if (before->at + before->bytes == at) {
		before->bytes += spare->bytes;
		before->next = spare->next;
		free(spare);
	} else {
		before->next = spare;
	}
	chunk->blocks--;
}

/* True: the chunk has the same advice. Chunks are never prefetched, so that is not compared. */
static bool advised(const struct chunk *chunk, const struct spill_managed_advice *advice)
{
	const struct spill_managed_advice *its = &chunk->advice;
	return chunk->ops->place != SPILL_PLACE_MANAGED ||
	       (its->preferred == advice->preferred &&
	        its->accessed_by_device == advice->accessed_by_device &&
	        its->accessed_by_host == advice->accessed_by_host && its->read_mostly == advice->read_mostly);
}

static bool take_from_any(const struct spill_place_ops *ops, const struct spill_place_request *want,
                          struct block *block)
{
	bool found = false;
	pthread_mutex_lock(&lock);
	for (struct chunk *chunk = chunks; chunk && !found; chunk = chunk->next) {
		if (chunk->ops != ops || !belongs(chunk, want->backend, want->device, want->context) ||
		    !advised(chunk, &want->advice) || spill_placement_ending(chunk->backing))
			continue;
		found = take(chunk, block->bytes, &block->at);
		if (found)
			block->chunk = chunk;
	}
	pthread_mutex_unlock(&lock);
	return found;
}

static void destroy(struct chunk *chunk, bool context_ended)
{
	spill_placement_release(chunk->backing, context_ended);
	free(chunk->free);
	free(chunk);
}

/*
 * Makes a chunk, takes the block, and then publishes the chunk. No lock is held in the vendor's
 * calls.
 */
static bool take_from_new(const struct spill_place_ops *ops, const struct spill_place_request *want,
                          struct block *block, const char **error)
{
	struct chunk *chunk = calloc(1, sizeof(*chunk));
	struct range *whole = calloc(1, sizeof(*whole));
	if (!chunk || !whole) {
		free(chunk);
		free(whole);
		*error = "no memory for bookkeeping";
		return false;
	}
	struct spill_place_request chunk_want = *want;
	chunk_want.bytes = SPILL_SHARED_CHUNKS_CHUNK;
	chunk_want.device_room = 0; /* the device is full, and a chunk on both sides is no use */
	/*
	 * No block has the chunk's address. A second free of a block, passed on to the vendor, must
	 * not free the chunk.
	 */
	*whole = (struct range){.at = SPILL_SHARED_CHUNKS_ALIGNMENT,
	                        .bytes = SPILL_SHARED_CHUNKS_CHUNK - SPILL_SHARED_CHUNKS_ALIGNMENT};
	chunk->ops = ops;
	chunk->advice = want->advice;
	chunk->free = whole;
	chunk->backing = ops->make(&chunk_want, error);
	if (!chunk->backing) {
		destroy(chunk, false);
		return false;
	}
	chunk->backing->generation = spill_context_generation();
	take(chunk, block->bytes, &block->at);
	block->chunk = chunk;
	/* stays, because it has the block */
	const struct spill_placement *backing = chunk->backing;
	pthread_mutex_lock(&lock);
	chunk->next = chunks;
	chunks = chunk;
	pthread_mutex_unlock(&lock);
	spill_peer_placed(backing);
	return true;
}

/* Unlinks an empty chunk of the same owner, if the owner has another empty one. pre: locked */
static struct chunk *unlink_surplus(const struct chunk *emptied)
{
	bool kept = false, ends = spill_placement_ending(emptied->backing);
	for (struct chunk **link = &chunks; *link; link = &(*link)->next) {
		struct chunk *chunk = *link;
		const struct spill_placement *backing = emptied->backing;
		if (chunk->blocks || chunk->ops != emptied->ops ||
		    !belongs(chunk, backing->backend, backing->device, backing->context) ||
		    spill_placement_ending(chunk->backing) != ends)
			continue;
		if (kept) {
			*link = chunk->next;
			return chunk;
		}
		kept = true;
	}
	return NULL;
}

/* One empty chunk stays for the next request: making one costs milliseconds of pinning. */
static void release(struct spill_placement *placement, bool context_ended)
{
	struct block *block = (struct block *)placement;
	struct chunk *surplus = NULL;
	pthread_mutex_lock(&lock);
	give(block->chunk, block->at, block->bytes, block->spare);
	if (!block->chunk->blocks)
		surplus = unlink_surplus(block->chunk);
	pthread_mutex_unlock(&lock);
	if (surplus)
		destroy(surplus, context_ended);
	free(block);
}

/* The places of blocks: a release returns the block to its chunk. */
static const struct spill_place_ops pooled[SPILL_PLACES] = {
    [SPILL_PLACE_SPLIT] = {SPILL_PLACE_SPLIT, NULL, release},
    [SPILL_PLACE_MANAGED] = {SPILL_PLACE_MANAGED, NULL, release},
    [SPILL_PLACE_HOST] = {SPILL_PLACE_HOST, NULL, release},
};

struct spill_placement *spill_shared_chunks_make(const struct spill_place_ops *ops,
                                                 const struct spill_place_request *want, const char **error)
{
	struct block *block = calloc(1, sizeof(*block));
	struct range *spare = calloc(1, sizeof(*spare));
	if (!block || !spare) {
		*error = "no memory for bookkeeping";
		goto fail;
	}
	block->spare = spare;
	block->bytes = spill_round_up(want->bytes, SPILL_SHARED_CHUNKS_ALIGNMENT);
	if (!take_from_any(ops, want, block) && !take_from_new(ops, want, block, error))
		goto fail;
	const struct spill_placement *backing = block->chunk->backing;
	block->base = spill_placement_of(&pooled[ops->place], want, backing->ptr + block->at);
	*(backing->held.managed ? &block->base.held.managed : &block->base.held.host) = block->bytes;
	return &block->base;

fail:
	free(block);
	free(spare);
	return NULL;
}

void spill_shared_chunks_each(void (*visit)(const struct spill_placement *backing, void *data), void *data)
{
	pthread_mutex_lock(&lock);
	for (const struct chunk *chunk = chunks; chunk; chunk = chunk->next)
		visit(chunk->backing, data);
	pthread_mutex_unlock(&lock);
}

/*
 * True: the chunk is empty, and the end covers it, or without an end: its owner lives. pre: locked
 */
static bool is_over(const struct chunk *chunk, const struct spill_context_end *end,
                    const struct spill_backend *backend, int device, const void *context)
{
	if (chunk->blocks)
		return false;
	return end ? spill_placement_ends_with(chunk->backing, end)
	           : belongs(chunk, backend, device, context) && !spill_placement_ending(chunk->backing);
}

static void release_empty(const struct spill_context_end *end, const struct spill_backend *backend,
                          int device, const void *context)
{
	struct chunk *empty;
	do {
		struct chunk **link = &chunks;
		pthread_mutex_lock(&lock);
		while (*link && !is_over(*link, end, backend, device, context))
			link = &(*link)->next;
		empty = *link;
		if (empty)
			*link = empty->next;
		pthread_mutex_unlock(&lock);
		if (empty)
			destroy(empty, end != NULL);
	} while (empty);
}

void spill_shared_chunks_trim(const struct spill_backend *backend, int device, const void *context)
{
	release_empty(NULL, backend, device, context);
}

void spill_shared_chunks_context_ended(const struct spill_context_end *end)
{
	release_empty(end, NULL, 0, NULL);
}

/* The child has no GPU. The chunks stay with the parent. */
static void forget_parent(void)
{
	chunks = NULL;
}

const struct spill_fork_lock spill_shared_chunks_fork_lock = {&lock, forget_parent};
