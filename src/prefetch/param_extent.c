#include "param_extent.h"

#include <assert.h>
#include <stdatomic.h>
#include <string.h>

#include "chunk_map.h"

#define ENTRIES 8192
#define MOST_UNITS UINT16_MAX

/* One word, read and written as a whole. Extents are in units of the chunk map. */
struct extent_entry {
	uint16_t tag; /* of its parameter */
	uint16_t extent;
	uint16_t longest_since;  /* the longest of these; the next extent */
	uint16_t launches_since; /* launches with shorter extents since */
};

static _Atomic uint64_t entries[ENTRIES];
static_assert(sizeof(struct extent_entry) == sizeof(uint64_t), "an entry is one word");

static uint16_t units_of(uint64_t bytes)
{
	uint64_t count = (bytes + SPILL_CHUNK_MAP_UNIT - 1) >> SPILL_CHUNK_MAP_UNIT_SHIFT;
	return count < MOST_UNITS ? (uint16_t)count : MOST_UNITS;
}

static void note_shorter(struct extent_entry *entry, uint16_t seen)
{
	entry->longest_since = seen > entry->longest_since ? seen : entry->longest_since;
	if (++entry->launches_since < SPILL_PARAM_EXTENTS)
		return;
	entry->extent = entry->longest_since;
	entry->longest_since = entry->launches_since = 0;
}

uint64_t spill_param_extent(uint64_t site, uint32_t slot, uint64_t bytes)
{
	uint64_t hash = (site ^ slot) * 0x9e3779b97f4a7c15ull;
	hash = (hash ^ hash >> 31) * 0x9e3779b97f4a7c15ull;
	_Atomic uint64_t *slot_word = &entries[(hash >> 16) % ENTRIES];
	uint64_t word = atomic_load_explicit(slot_word, memory_order_relaxed);
	struct extent_entry entry;
	memcpy(&entry, &word, sizeof(entry));
	uint16_t tag = (uint16_t)(hash >> 48 | 1), seen = units_of(bytes);
	if (entry.tag != tag || seen >= entry.extent)
		entry = (struct extent_entry){.tag = tag, .extent = seen};
	else
		note_shorter(&entry, seen);
	memcpy(&word, &entry, sizeof(word));
	atomic_store_explicit(slot_word, word, memory_order_relaxed);
	uint64_t extent = (uint64_t)entry.extent << SPILL_CHUNK_MAP_UNIT_SHIFT;
	return extent > bytes ? extent : bytes;
}
