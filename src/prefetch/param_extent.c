#include "param_extent.h"

#include <assert.h>
#include <stdatomic.h>
#include <string.h>

#include "chunk_map.h"

#define PLACES 8192
#define MOST UINT16_MAX

/* Of one word, so that it is read and written as a whole. Reaches are in granules. */
struct place {
	uint16_t tag; /* of whose it is */
	uint16_t reach;
	uint16_t later; /* the furthest since, which takes its place */
	uint16_t uses;  /* since */
};

static _Atomic uint64_t places[PLACES];
static_assert(sizeof(struct place) == sizeof(uint64_t), "a place is one word");

static uint16_t granules(uint64_t bytes)
{
	uint64_t count = (bytes + SPILL_CHUNK_MAP_UNIT - 1) >> SPILL_CHUNK_MAP_UNIT_SHIFT;
	return count < MOST ? (uint16_t)count : MOST;
}

static void less(struct place *place, uint16_t seen)
{
	place->later = seen > place->later ? seen : place->later;
	if (++place->uses < SPILL_PARAM_EXTENTS)
		return;
	place->reach = place->later;
	place->later = place->uses = 0;
}

uint64_t spill_param_extent(uint64_t site, uint32_t slot, uint64_t bytes)
{
	uint64_t hash = (site ^ slot) * 0x9e3779b97f4a7c15ull;
	hash = (hash ^ hash >> 31) * 0x9e3779b97f4a7c15ull;
	_Atomic uint64_t *at = &places[(hash >> 16) % PLACES];
	uint64_t word = atomic_load_explicit(at, memory_order_relaxed);
	struct place place;
	memcpy(&place, &word, sizeof(place));
	uint16_t tag = (uint16_t)(hash >> 48 | 1), seen = granules(bytes);
	if (place.tag != tag || seen >= place.reach)
		place = (struct place){.tag = tag, .reach = seen};
	else
		less(&place, seen);
	memcpy(&word, &place, sizeof(word));
	atomic_store_explicit(at, word, memory_order_relaxed);
	uint64_t reach = (uint64_t)place.reach << SPILL_CHUNK_MAP_UNIT_SHIFT;
	return reach > bytes ? reach : bytes;
}
