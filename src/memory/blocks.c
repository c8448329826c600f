#include "blocks.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "capture.h"
#include "minmax.h"

/* The bytes in use of each chunk, and whether a report did not fit the ones before it. */
struct in_use {
	bool wrong;
	uint64_t bytes[];
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* SPILL_RANK_BLOCKS */
static struct spill_chunked **followed;                  /* in order of their addresses */
static unsigned capacity;
static _Atomic unsigned count;
static _Atomic bool captured; /* a capture was seen */

bool spill_blocks_any(void)
{
	return atomic_load_explicit(&count, memory_order_relaxed) != 0;
}

/* -- the list. pre: locked ---------------------------------------------------------------------- */

/* The number of those that begin at or below the address. */
static unsigned followed_up_to(uint64_t ptr)
{
	unsigned low = 0, high = count;
	while (low < high) {
		unsigned middle = (low + high) / 2;
		if (followed[middle]->base.ptr <= ptr)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static struct spill_chunked *find(uint64_t ptr, uint64_t bytes)
{
	unsigned before = followed_up_to(ptr);
	struct spill_chunked *chunked = before ? followed[before - 1] : NULL;
	uint64_t offset = chunked ? ptr - chunked->base.ptr : 0;
	return chunked && offset < chunked->range && bytes <= chunked->range - offset ? chunked : NULL;
}

static bool make_room(void)
{
	if (count < capacity)
		return true;
	unsigned larger = capacity ? 2 * capacity : 64;
	struct spill_chunked **list = realloc(followed, larger * sizeof(*list));
	if (!list)
		return false;
	followed = list;
	capacity = larger;
	return true;
}

void spill_blocks_follow(struct spill_chunked *chunked)
{
	pthread_mutex_lock(&lock);
	if (!chunked->set && make_room()) {
		unsigned at = followed_up_to(chunked->base.ptr);
		memmove(followed + at + 1, followed + at, (count - at) * sizeof(*followed));
		followed[at] = chunked;
		count++;
	}
	pthread_mutex_unlock(&lock);
}

/* pre: locked */
static void take_off(const struct spill_chunked *chunked)
{
	unsigned before = followed_up_to(chunked->base.ptr);
	if (!before || followed[before - 1] != chunked)
		return;
	memmove(followed + before - 1, followed + before, (count - before) * sizeof(*followed));
	count--;
}

void spill_blocks_end(const struct spill_chunked *chunked)
{
	if (!spill_blocks_any())
		return;
	pthread_mutex_lock(&lock);
	take_off(chunked);
	pthread_mutex_unlock(&lock);
}

/* -- blocks ------------------------------------------------------------------------------------- */

/* spill_chunked_live of an allocation with blocks. */
static unsigned live_chunk(const struct spill_chunked *chunked, unsigned index,
                           struct spill_span spans[SPILL_SPANS])
{
	pthread_mutex_lock(&lock);
	const struct in_use *in_use = chunked->owner;
	bool dead = !in_use->wrong && !in_use->bytes[index] && !atomic_load(&captured);
	pthread_mutex_unlock(&lock);
	spans[0] = (struct spill_span){0, chunked->chunks[index].bytes};
	return !dead;
}

/* Adds the block's part of each chunk, or subtracts it. pre: locked */
static void count_block(struct spill_chunked *chunked, uint64_t ptr, uint64_t bytes, bool taken)
{
	struct in_use *in_use = chunked->owner;
	for (unsigned i = 0; i < chunked->count; i++) {
		uint64_t begin = spill_chunked_address(chunked, i), end = begin + chunked->chunks[i].bytes;
		uint64_t from = spill_max(ptr, begin), to = spill_min(ptr + bytes, end);
		uint64_t part = from < to ? to - from : 0;
		uint64_t most = taken ? chunked->chunks[i].bytes - in_use->bytes[i] : in_use->bytes[i];
		in_use->wrong |= part > most;
		in_use->bytes[i] += taken ? part : -part;
	}
}

/*
 * True: the allocation counts its blocks. Without memory for that it is followed no longer, because its first block
 * would be missing. pre: locked
 */
static bool begin_blocks(struct spill_chunked *chunked)
{
	if (!chunked->owner)
		chunked->owner = calloc(1, sizeof(struct in_use) + chunked->count * sizeof(uint64_t));
	if (chunked->owner)
		atomic_store_explicit(&chunked->live, live_chunk, memory_order_release);
	else
		take_off(chunked);
	return chunked->owner;
}

static void look_for_captures(void)
{
	if (spill_capture_any())
		atomic_store(&captured, true);
}

struct spill_chunked *spill_blocks_taken(uint64_t ptr, uint64_t bytes)
{
	look_for_captures();
	pthread_mutex_lock(&lock);
	struct spill_chunked *chunked = find(ptr, bytes);
	if (chunked && begin_blocks(chunked))
		count_block(chunked, ptr, bytes, true);
	pthread_mutex_unlock(&lock);
	return chunked;
}

void spill_blocks_given(uint64_t ptr, uint64_t bytes)
{
	look_for_captures();
	pthread_mutex_lock(&lock);
	struct spill_chunked *chunked = find(ptr, bytes);
	if (chunked && chunked->owner)
		count_block(chunked, ptr, bytes, false);
	pthread_mutex_unlock(&lock);
}

/* The child has no GPU. */
static void forget_parent(void)
{
	count = 0;
	atomic_store(&captured, false);
}

const struct spill_fork_lock spill_blocks_fork_lock = {&lock, forget_parent};
