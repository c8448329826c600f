#include "chunk_map.h"

#include <errno.h>
#include <sys/mman.h>

/* Leaves are made when needed and never freed, because readers hold no lock. */
_Atomic(spill_chunk_map_word *) spill_chunk_map_leaves[SPILL_CHUNK_MAP_LEAVES];

#define LEAF_BYTES (SPILL_CHUNK_MAP_LEAF_ENTRIES * sizeof(spill_chunk_map_word))
#define MOST_UNITS ((1u << 23) - 1) /* the 23 bits of count */

union word {
	uint64_t word;
	struct spill_chunk_map_entry entry;
};

_Static_assert(sizeof(struct spill_chunk_map_entry) == sizeof(uint64_t), "one load");

static bool ensure_leaf(uint64_t unit)
{
	_Atomic(spill_chunk_map_word *) *slot = &spill_chunk_map_leaves[unit >> SPILL_CHUNK_MAP_LEAF_BITS];
	spill_chunk_map_word *existing = NULL;
	if (atomic_load_explicit(slot, memory_order_acquire))
		return true;
	int error = errno;
	void *made = mmap(NULL, LEAF_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	errno = error;
	if (made == MAP_FAILED)
		return false;
	if (!atomic_compare_exchange_strong(slot, &existing, made))
		munmap(made, LEAF_BYTES); /* another thread was faster */
	return true;
}

/* NULL: no chunk was ever there. */
static spill_chunk_map_word *word_of(uint64_t unit)
{
	uint64_t number = unit >> SPILL_CHUNK_MAP_LEAF_BITS;
	spill_chunk_map_word *leaf =
	    number < SPILL_CHUNK_MAP_LEAVES
	        ? atomic_load_explicit(&spill_chunk_map_leaves[number], memory_order_acquire)
	        : NULL;
	return leaf ? &leaf[unit & (SPILL_CHUNK_MAP_LEAF_ENTRIES - 1)] : NULL;
}

static bool is_whole_units(uint64_t va, uint64_t bytes)
{
	uint64_t end = (uint64_t)SPILL_CHUNK_MAP_LEAVES
	               << (SPILL_CHUNK_MAP_LEAF_BITS + SPILL_CHUNK_MAP_UNIT_SHIFT);
	return va % SPILL_CHUNK_MAP_UNIT == 0 && bytes % SPILL_CHUNK_MAP_UNIT == 0 && bytes && va < end &&
	       bytes <= end - va && bytes / SPILL_CHUNK_MAP_UNIT <= MOST_UNITS;
}

/* Writes an entry, and keeps the begins of the same chunk, also those noted meanwhile. */
static void write_entry(spill_chunk_map_word *slot, union word fresh)
{
	union word old = {.word = atomic_load_explicit(slot, memory_order_relaxed)};
	do {
		bool same = old.entry.present && old.entry.key == fresh.entry.key;
		fresh.entry.begun = same && old.entry.begun;
		fresh.entry.inside = same && old.entry.inside;
		fresh.entry.exact = same && old.entry.exact;
	} while (!atomic_compare_exchange_weak_explicit(slot, &old.word, fresh.word, memory_order_relaxed,
	                                                memory_order_relaxed));
}

bool spill_chunk_map_set(uint64_t va, uint64_t bytes, bool on_host, bool more)
{
	if (!is_whole_units(va, bytes))
		return false;
	uint64_t first = va >> SPILL_CHUNK_MAP_UNIT_SHIFT, count = bytes >> SPILL_CHUNK_MAP_UNIT_SHIFT;
	for (uint64_t unit = first; unit < first + count;
	     unit = (unit | (SPILL_CHUNK_MAP_LEAF_ENTRIES - 1)) + 1)
		if (!ensure_leaf(unit))
			return false;
	union word fresh = {.entry = {.key = (uint32_t)first,
	                              .count = (uint32_t)count & MOST_UNITS,
	                              .present = 1,
	                              .on_host = on_host,
	                              .more = more}};
	for (uint64_t unit = first; unit < first + count; unit++)
		write_entry(word_of(unit), fresh);
	return true;
}

void spill_chunk_map_clear(uint64_t va, uint64_t bytes)
{
	if (!is_whole_units(va, bytes))
		return;
	uint64_t first = va >> SPILL_CHUNK_MAP_UNIT_SHIFT, count = bytes >> SPILL_CHUNK_MAP_UNIT_SHIFT;
	for (uint64_t unit = first; unit < first + count; unit++) {
		spill_chunk_map_word *slot = word_of(unit);
		if (slot)
			atomic_store_explicit(slot, 0, memory_order_relaxed);
	}
}

/* Notes a begin, unless another chunk is there by now. */
static void note_begin(uint64_t unit, uint32_t key, bool inside)
{
	spill_chunk_map_word *slot = word_of(unit);
	union word old = {.word = slot ? atomic_load_explicit(slot, memory_order_relaxed) : 0}, fresh;
	do {
		fresh = old;
		if (inside)
			fresh.entry.inside = 1;
		else
			fresh.entry.begun = 1;
		if (!old.entry.present || old.entry.key != key || fresh.word == old.word)
			return;
	} while (!atomic_compare_exchange_weak_explicit(slot, &old.word, fresh.word, memory_order_relaxed,
	                                                memory_order_relaxed));
}

void spill_chunk_map_begins(uint64_t address)
{
	struct spill_chunk_map_entry entry;
	uint64_t unit = address >> SPILL_CHUNK_MAP_UNIT_SHIFT;
	if (!spill_chunk_map_of(address, &entry))
		return;
	bool inside = address != (uint64_t)entry.key << SPILL_CHUNK_MAP_UNIT_SHIFT;
	if (unit != entry.key || !inside)
		note_begin(unit, entry.key, false);
	if (inside)
		note_begin(entry.key, entry.key, true);
}

/* The flags of a unit that a buffer at `at` reaches, up to `end`. Its own begin is noted later. */
static union word with_buffer(union word word, uint64_t unit, uint64_t at, uint64_t end)
{
	uint64_t unit_start = unit << SPILL_CHUNK_MAP_UNIT_SHIFT,
	         chunk_end = (uint64_t)(word.entry.key + word.entry.count) << SPILL_CHUNK_MAP_UNIT_SHIFT;
	word.entry.exact = 1;
	if (unit_start > at)
		word.entry.begun = 0;
	if (unit == word.entry.key)
		word.entry.inside = end < chunk_end;
	return word;
}

void spill_chunk_map_buffer(uint64_t at, uint64_t bytes)
{
	struct spill_chunk_map_entry entry;
	uint64_t end = at + bytes;
	for (uint64_t unit = at >> SPILL_CHUNK_MAP_UNIT_SHIFT; unit << SPILL_CHUNK_MAP_UNIT_SHIFT < end;
	     unit++) {
		spill_chunk_map_word *slot = word_of(unit);
		union word old = {.word = slot ? atomic_load_explicit(slot, memory_order_relaxed) : 0}, fresh;
		do {
			if (!old.entry.present)
				break;
			fresh = with_buffer(old, unit, at, end);
		} while (!atomic_compare_exchange_weak_explicit(slot, &old.word, fresh.word,
		                                                memory_order_relaxed, memory_order_relaxed));
	}
	spill_chunk_map_begins(at);
	if (spill_chunk_map_of(end, &entry) && entry.exact)
		spill_chunk_map_begins(end);
}
