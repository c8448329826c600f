#include "blocks.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "capture.h"
#include "chunk_map.h"
#include "minmax.h"
#include "process.h"

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
static _Atomic bool gaps;     /* a block reaches over memory that never moves */

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

/* The allocation at `ptr`; NULL: none. *bytes becomes the part in it, or the part in front of the next one. */
static struct spill_chunked *find(uint64_t ptr, uint64_t *bytes)
{
	unsigned next = followed_up_to(ptr);
	struct spill_chunked *chunked = next ? followed[next - 1] : NULL;
	if (chunked && ptr - chunked->base.ptr < chunked->range) {
		*bytes = spill_min(*bytes, chunked->base.ptr + chunked->range - ptr);
		return chunked;
	}
	if (next < count)
		*bytes = spill_min(*bytes, followed[next]->base.ptr - ptr);
	return NULL;
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
	unsigned at = followed_up_to(chunked->base.ptr);
	bool known = at && followed[at - 1] == chunked;
	if (!known && make_room()) {
		memmove(followed + at + 1, followed + at, (count - at) * sizeof(*followed));
		followed[at] = chunked;
		count++;
	}
	pthread_mutex_unlock(&lock);
}

/* False: it was not followed. pre: locked */
static bool take_off(const struct spill_chunked *chunked)
{
	unsigned before = followed_up_to(chunked->base.ptr);
	if (!before || followed[before - 1] != chunked)
		return false;
	memmove(followed + before - 1, followed + before, (count - before) * sizeof(*followed));
	count--;
	return true;
}

/* A set can be mapped again, with other blocks. */
void spill_blocks_end(struct spill_chunked *chunked)
{
	if (!spill_blocks_any())
		return;
	pthread_mutex_lock(&lock);
	if (take_off(chunked)) {
		atomic_store(&chunked->exact_begins, false);
		free(chunked->owner);
		chunked->owner = NULL;
	}
	pthread_mutex_unlock(&lock);
}

/* -- blocks ------------------------------------------------------------------------------------- */

/* spill_chunked_live of an allocation that has or had blocks. */
static unsigned live_chunk(const struct spill_chunked *chunked, unsigned index,
                           struct spill_span spans[SPILL_SPANS])
{
	pthread_mutex_lock(&lock);
	const struct in_use *in_use = chunked->owner;
	bool dead = in_use && !in_use->wrong && !in_use->bytes[index] && !atomic_load(&captured);
	pthread_mutex_unlock(&lock);
	spans[0] = (struct spill_span){0, chunked->chunks[index].bytes};
	return !dead;
}

/* A report did not fit the ones before it. pre: locked */
static void distrust(struct spill_chunked *chunked)
{
	((struct in_use *)chunked->owner)->wrong = true;
	atomic_store(&chunked->exact_begins, false);
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
		if (part > most)
			distrust(chunked);
		in_use->bytes[i] += taken ? part : -part;
	}
}

/*
 * True: where its buffers begin counts. In segments of the native allocator what launches tell serves better, unless memory
 * moves beside kernels: with the true ends, exchanges are smaller, and more (docs/measurements.md).
 */
static bool begins_count(const struct spill_chunked *chunked)
{
	return chunked->set || spill_process_policy()->movable_follow == SPILL_FOLLOW_OVERLAP;
}

/* Its first block. */
static void begin_counts(struct spill_chunked *chunked)
{
	chunked->owner = calloc(1, sizeof(struct in_use) + chunked->count * sizeof(uint64_t));
	if (!chunked->owner)
		return;
	atomic_store(&chunked->exact_begins, begins_count(chunked) && !atomic_load(&gaps));
	atomic_store_explicit(&chunked->live, live_chunk, memory_order_release);
}

/*
 * True: the allocation counts its blocks. Without memory for that it is followed no longer, because its first block
 * would be missing. pre: locked
 */
static bool begin_blocks(struct spill_chunked *chunked)
{
	if (!chunked->owner)
		begin_counts(chunked);
	if (!chunked->owner)
		take_off(chunked);
	return chunked->owner;
}

static void look_for_captures(void)
{
	if (spill_capture_any())
		atomic_store(&captured, true);
}

/* Counts the part of a block in the allocation at `ptr`, which is returned, as by find. */
static struct spill_chunked *count_part(uint64_t ptr, uint64_t *bytes, bool taken)
{
	pthread_mutex_lock(&lock);
	struct spill_chunked *chunked = find(ptr, bytes);
	if (chunked && (taken ? begin_blocks(chunked) : chunked->owner != NULL))
		count_block(chunked, ptr, *bytes, taken);
	pthread_mutex_unlock(&lock);
	return chunked;
}

void spill_blocks_reach_over(void)
{
	pthread_mutex_lock(&lock);
	bool known = atomic_exchange(&gaps, true); /* nothing is exact since */
	for (unsigned i = 0; i < count && !known; i++)
		atomic_store(&followed[i]->exact_begins, false);
	pthread_mutex_unlock(&lock);
}

void spill_blocks_taken(uint64_t ptr, uint64_t bytes, spill_blocks_part_fn *each)
{
	bool begins = false, whole = true;
	look_for_captures();
	for (uint64_t at = ptr, left = bytes, part = left; left; at += part, part = left -= part) {
		struct spill_chunked *chunked = count_part(at, &part, true);
		whole &= chunked != NULL;
		if (chunked) {
			begins |= begins_count(chunked);
			each(chunked, at, part);
		}
	}
	if (begins)
		spill_chunk_map_buffer(ptr, bytes);
	if (begins && !whole)
		spill_blocks_reach_over();
}

void spill_blocks_given(uint64_t ptr, uint64_t bytes)
{
	look_for_captures();
	for (uint64_t part = bytes; bytes; ptr += part, part = bytes -= part)
		count_part(ptr, &part, false);
}

/* The child has no GPU. */
static void forget_parent(void)
{
	count = 0;
	atomic_store(&captured, false);
	atomic_store(&gaps, false);
}

const struct spill_fork_lock spill_blocks_fork_lock = {&lock, forget_parent};
