/*
 * Which chunk of a list has a unit of 2 MiB. The choice of an exchange asks for each access of a period, some
 * 9,000 times in a step of training, and the program waits meanwhile (docs/measurements.md, "Predictions that
 * return, and cheaper choices").
 *
 * A chunk is in the index once for each block of units that it touches. The caller owns the slots. Zeroed,
 * they are empty. Chunks do not overlap.
 */
#ifndef SPILL_CHUNK_INDEX_H
#define SPILL_CHUNK_INDEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "hash.h"

/* Units of a block: 32 MiB, so that a chunk has two or three of them, and a block has few chunks. */
#define SPILL_CHUNK_BLOCK 16u

struct spill_chunk_slot {
	uint32_t first, units; /* of the chunk; 0 units: free */
	uint32_t place;        /* in the list */
};

struct spill_chunk_index {
	struct spill_chunk_slot *slots; /* 1 << bits */
	unsigned bits;                  /* spill_chunk_index_bits */
	unsigned taken;
};

/* Most slots that so many chunks take which have so many units in all. */
static inline unsigned spill_chunk_index_entries(unsigned chunks, uint64_t units)
{
	return (unsigned)(units / SPILL_CHUNK_BLOCK) + 2 * chunks;
}

/* Of an index with so many slots taken. Half of its slots stay free, so that a search is short. */
static inline unsigned spill_chunk_index_bits(unsigned entries)
{
	unsigned bits = 1;

	while (bits < 31 && 1u << bits < 2 * entries)
		bits++;
	return bits;
}

/* False: there is no room for it. */
static inline bool spill_chunk_index_add(struct spill_chunk_index *index, uint32_t first, uint32_t units,
                                         unsigned place)
{
	uint32_t block = first / SPILL_CHUNK_BLOCK, end = (first + units - 1) / SPILL_CHUNK_BLOCK + 1;
	unsigned last = (1u << index->bits) - 1;

	if (end - block > last - index->taken)
		return false;
	index->taken += end - block;
	for (; block < end; block++) {
		unsigned at = spill_hash_key(block, index->bits);

		while (index->slots[at].units)
			at = at == last ? 0 : at + 1;
		index->slots[at] = (struct spill_chunk_slot){first, units, place};
	}
	return true;
}

/* The chunk that has the unit; NULL: none has. */
static inline const struct spill_chunk_slot *spill_chunk_index_find(const struct spill_chunk_index *index,
                                                                    uint32_t unit)
{
	unsigned at = spill_hash_key(unit / SPILL_CHUNK_BLOCK, index->bits), last = (1u << index->bits) - 1;

	while (index->slots[at].units) {
		if (unit - index->slots[at].first < index->slots[at].units)
			return &index->slots[at];
		at = at == last ? 0 : at + 1;
	}
	return NULL;
}

#endif
