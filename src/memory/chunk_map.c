#include "chunk_map.h"

#include <errno.h>
#include <sys/mman.h>

/* Leaves come when they are needed and stay for good: whoever reads has no lock. */
_Atomic(spill_chunk_map_word *) spill_chunk_map_leaves[SPILL_GRANULE_LEAF];

#define LEAF_BYTES (SPILL_GRANULE_LEAF * sizeof(spill_chunk_map_word))
#define MOST_GRANULES ((1u << 23) - 1) /* struct spill_granule, count */

union word {
	uint64_t word;
	struct spill_granule granule;
};

_Static_assert(sizeof(struct spill_granule) == sizeof(uint64_t), "one load");

static bool make_leaf(uint64_t number)
{
	_Atomic(spill_chunk_map_word *) *slot = &spill_chunk_map_leaves[number >> SPILL_GRANULE_BITS];
	spill_chunk_map_word *there = NULL;
	if (atomic_load_explicit(slot, memory_order_acquire))
		return true;
	int error = errno;
	void *made = mmap(NULL, LEAF_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	errno = error;
	if (made == MAP_FAILED)
		return false;
	if (!atomic_compare_exchange_strong(slot, &there, made))
		munmap(made, LEAF_BYTES); /* another thread was faster */
	return true;
}

/* NULL: nothing has been kept there. */
static spill_chunk_map_word *word_of(uint64_t number)
{
	spill_chunk_map_word *leaf =
	    atomic_load_explicit(&spill_chunk_map_leaves[number >> SPILL_GRANULE_BITS], memory_order_acquire);
	return leaf ? &leaf[number & (SPILL_GRANULE_LEAF - 1)] : NULL;
}

static bool whole(uint64_t va, uint64_t bytes)
{
	uint64_t end = 1ull << (2 * SPILL_GRANULE_BITS + SPILL_GRANULE_SHIFT);
	return va % SPILL_GRANULE == 0 && bytes % SPILL_GRANULE == 0 && bytes && va < end &&
	       bytes <= end - va && bytes / SPILL_GRANULE <= MOST_GRANULES;
}

/* What has begun there stays, also what begins meanwhile. */
static void keep(spill_chunk_map_word *slot, union word fresh)
{
	union word old = {.word = atomic_load_explicit(slot, memory_order_relaxed)};
	do {
		bool same = old.granule.there && old.granule.key == fresh.granule.key;
		fresh.granule.begun = same && old.granule.begun;
		fresh.granule.inside = same && old.granule.inside;
	} while (!atomic_compare_exchange_weak_explicit(slot, &old.word, fresh.word, memory_order_relaxed,
	                                                memory_order_relaxed));
}

bool spill_chunk_map_set(uint64_t va, uint64_t bytes, bool on_host, bool more)
{
	if (!whole(va, bytes))
		return false;
	uint64_t first = va >> SPILL_GRANULE_SHIFT, count = bytes >> SPILL_GRANULE_SHIFT;
	for (uint64_t at = first; at < first + count; at = (at | (SPILL_GRANULE_LEAF - 1)) + 1)
		if (!make_leaf(at))
			return false;
	union word fresh = {.granule = {.key = (uint32_t)first,
	                                .count = (uint32_t)count & MOST_GRANULES,
	                                .there = 1,
	                                .on_host = on_host,
	                                .more = more}};
	for (uint64_t at = first; at < first + count; at++)
		keep(word_of(at), fresh);
	return true;
}

void spill_chunk_map_clear(uint64_t va, uint64_t bytes)
{
	if (!whole(va, bytes))
		return;
	uint64_t first = va >> SPILL_GRANULE_SHIFT, count = bytes >> SPILL_GRANULE_SHIFT;
	for (uint64_t at = first; at < first + count; at++) {
		spill_chunk_map_word *slot = word_of(at);
		if (slot)
			atomic_store_explicit(slot, 0, memory_order_relaxed);
	}
}

/* Unless another chunk is there by now. */
static void mark(uint64_t number, uint32_t key, bool inside)
{
	spill_chunk_map_word *slot = word_of(number);
	union word old = {.word = slot ? atomic_load_explicit(slot, memory_order_relaxed) : 0}, fresh;
	do {
		fresh = old;
		if (inside)
			fresh.granule.inside = 1;
		else
			fresh.granule.begun = 1;
		if (!old.granule.there || old.granule.key != key || fresh.word == old.word)
			return;
	} while (!atomic_compare_exchange_weak_explicit(slot, &old.word, fresh.word, memory_order_relaxed,
	                                                memory_order_relaxed));
}

void spill_chunk_map_begins(uint64_t address)
{
	struct spill_granule granule;
	uint64_t number = address >> SPILL_GRANULE_SHIFT;
	if (!spill_chunk_map_of(address, &granule))
		return;
	bool inside = address != (uint64_t)granule.key << SPILL_GRANULE_SHIFT;
	if (number != granule.key || !inside)
		mark(number, granule.key, false);
	if (inside)
		mark(granule.key, granule.key, true);
}
