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
	uint16_t longest_since;  /* of the shorter extents since */
	uint16_t launches_since; /* launches with a shorter extent, in a row */
};

static _Atomic uint64_t entries[ENTRIES];
static_assert(sizeof(struct extent_entry) == sizeof(uint64_t), "an entry is one word");

/* Sites whose extents are too short. One word each, as above. */
#define SITES 1024
/* Places that a site can have. If others have them all, it replaces the one at the first. */
#define PLACES 8
/* Most doublings of an extent, and the longest extent that they make. */
#define DOUBLINGS 3
#define DOUBLED_MOST (256ull << 20)
/* Launches that are still too slow with all doublings, before these are given up. */
#define VAIN 64

struct short_site {
	uint32_t tag;  /* 0: none */
	uint16_t fast; /* launches since the last slow one */
	uint8_t slow;
	uint8_t doublings : 7, given_up : 1;
};

static _Atomic uint64_t short_sites[SITES];
static _Atomic bool any_short;
static_assert(sizeof(struct short_site) == sizeof(uint64_t), "an entry is one word");

/* `*word`: its place, or the one for it. */
static struct short_site find_short_site(uint64_t site, _Atomic uint64_t **word)
{
	uint64_t hash = site * 0x9e3779b97f4a7c15ull;
	uint32_t tag = (uint32_t)(hash >> 32) | 1;
	for (unsigned i = 0; i < PLACES; i++) {
		struct short_site found;
		*word = &short_sites[((hash >> 16) + i) % SITES];
		uint64_t value = atomic_load_explicit(*word, memory_order_relaxed);
		memcpy(&found, &value, sizeof(found));
		if (found.tag == tag)
			return found;
		if (!found.tag)
			return (struct short_site){.tag = tag};
	}
	*word = &short_sites[(hash >> 16) % SITES];
	return (struct short_site){.tag = tag};
}

static void store_short_site(_Atomic uint64_t *word, const struct short_site *site)
{
	uint64_t value;
	memcpy(&value, site, sizeof(value));
	atomic_store_explicit(word, value, memory_order_relaxed);
}

bool spill_param_extent_too_short(uint64_t site)
{
	_Atomic uint64_t *word;
	struct short_site found = find_short_site(site, &word);
	if (found.given_up)
		return false;
	found.fast = 0;
	unsigned most = found.doublings < DOUBLINGS ? SPILL_PARAM_EXTENT_SLOW : VAIN;
	if (++found.slow >= most) {
		found.slow = 0;
		found.given_up = found.doublings == DOUBLINGS;
		found.doublings = found.given_up ? 0 : found.doublings + 1;
	}
	store_short_site(word, &found);
	atomic_store_explicit(&any_short, true, memory_order_relaxed);
	return !found.given_up;
}

void spill_param_extent_suffices(uint64_t site)
{
	_Atomic uint64_t *word;
	if (!atomic_load_explicit(&any_short, memory_order_relaxed))
		return;
	struct short_site found = find_short_site(site, &word);
	if (!found.slow)
		return;
	if (++found.fast == SPILL_PARAM_EXTENT_RARE)
		found.slow = 0;
	store_short_site(word, &found);
}

/* The extent with the doublings of its site. */
static uint64_t doubled(uint64_t site, uint64_t extent)
{
	_Atomic uint64_t *word;
	if (!atomic_load_explicit(&any_short, memory_order_relaxed) || extent >= DOUBLED_MOST)
		return extent;
	uint64_t longer = extent << find_short_site(site, &word).doublings;
	return longer < DOUBLED_MOST ? longer : DOUBLED_MOST;
}

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
	uint64_t extent = doubled(site, (uint64_t)entry.extent << SPILL_CHUNK_MAP_UNIT_SHIFT);
	return extent > bytes ? extent : bytes;
}
