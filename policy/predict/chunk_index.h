/*
 * Where the chunk of a key is in a list of chunks. The choice of an exchange asks for each access of a
 * period, some 8,000 times in a step of training, and the program waits meanwhile (docs/measurements.md,
 * "Predictions that return, and cheaper choices").
 *
 * The caller owns the slots. Zeroed, they are empty. Keys are unique.
 */
#ifndef SPILL_CHUNK_INDEX_H
#define SPILL_CHUNK_INDEX_H

#include <limits.h>
#include <stdint.h>

#include "hash.h"

struct spill_chunk_slot {
	uint32_t key;
	uint32_t place; /* in the list, + 1; 0: free */
};

struct spill_chunk_index {
	struct spill_chunk_slot *slots; /* 1 << bits */
	unsigned bits;                  /* spill_chunk_index_bits */
};

/* The list has no chunk of that key. */
#define SPILL_CHUNK_NOWHERE UINT_MAX

/* Of an index for so many chunks. Half of its slots stay free, so that a search is short. */
static inline unsigned spill_chunk_index_bits(unsigned chunks)
{
	unsigned bits = 1;

	while (bits < 31 && 1u << bits < 2 * chunks)
		bits++;
	return bits;
}

/* The slot of the key, or the free one where it would be. */
static inline struct spill_chunk_slot *spill_chunk_index_slot(const struct spill_chunk_index *index,
                                                              uint32_t key)
{
	unsigned at = spill_hash_key(key, index->bits), last = (1u << index->bits) - 1;

	while (index->slots[at].place && index->slots[at].key != key)
		at = at == last ? 0 : at + 1;
	return &index->slots[at];
}

/* pre: the index is for more chunks than it has */
static inline void spill_chunk_index_add(struct spill_chunk_index *index, uint32_t key, unsigned place)
{
	*spill_chunk_index_slot(index, key) = (struct spill_chunk_slot){key, place + 1};
}

static inline unsigned spill_chunk_index_find(const struct spill_chunk_index *index, uint32_t key)
{
	const struct spill_chunk_slot *slot = spill_chunk_index_slot(index, key);

	return slot->place ? slot->place - 1 : SPILL_CHUNK_NOWHERE;
}

#endif
