/*
 * Chunks that have taken the place of others. Some programs run the same code in each step, but on
 * other addresses: their allocator places the same buffers elsewhere. PyTorch with expandable
 * segments moves all activations by some 50 MiB a step (measured, docs/recordings.md). So the chunks
 * of a launch replace those that the same launch accessed in the step before, and a prediction from
 * that step gets the new names.
 *
 * A chunk can hold parts of several buffers, so it has up to two new names. Zeroed, the table is
 * empty: each chunk has its own name. When it is full, new names replace old ones.
 */
#ifndef SPILL_CHUNK_RENAMES_H
#define SPILL_CHUNK_RENAMES_H

#include <stdint.h>

#include "hash.h"

/* A power of two. */
#define SPILL_CHUNK_RENAMES 4096
#define SPILL_CHUNK_NAMES 2

struct spill_chunk_rename {
	uint32_t from, to[SPILL_CHUNK_NAMES]; /* the last one first; 0: none */
	uint64_t since, period; /* the time of the last one; from the old access to the new one */
};

struct spill_chunk_renames {
	struct spill_chunk_rename slots[SPILL_CHUNK_RENAMES]; /* by the hash of `from` */
	uint64_t taken[SPILL_CHUNK_RENAMES / 64];             /* a bit for each slot that has a name */
	uint64_t since;                                       /* the time of the last rename */
};

static inline unsigned spill_chunk_renames_slot(uint32_t key)
{
	return spill_hash(1, key) % SPILL_CHUNK_RENAMES;
}

/* The part of spill_chunk_renames_get for a table with renames since that time. pre: names[0] is key */
unsigned spill_chunk_renames_find(const struct spill_chunk_renames *renames, uint32_t key, uint64_t time,
                                  uint64_t period, uint32_t names[SPILL_CHUNK_NAMES]);

/*
 * The names of a chunk that was accessed at that time, a period ago. Times are numbers of accesses. An
 * older rename belongs to the step before, and one of another period to another repetition: they do not
 * count. Returns the number of names, at least 1.
 */
static inline unsigned spill_chunk_renames_get(const struct spill_chunk_renames *renames, uint32_t key,
                                               uint64_t time, uint64_t period,
                                               uint32_t names[SPILL_CHUNK_NAMES])
{
	names[0] = key;
	/* Most programs rename nothing, and the others only a part of their chunks: that costs no call. */
	if (renames->since <= time)
		return 1;

	unsigned slot = spill_chunk_renames_slot(key);

	return renames->taken[slot / 64] >> slot % 64 & 1
	           ? spill_chunk_renames_find(renames, key, time, period, names)
	           : 1;
}

/*
 * A launch accesses `keys` now, and accessed `old` at the time `before`. Both lists are in the order of
 * its arguments. Where the buffers do not match, or are too many, nothing is learned.
 */
void spill_chunk_renames_learn(struct spill_chunk_renames *renames, uint64_t now, uint64_t before,
                               const uint32_t *old, unsigned old_count, const uint32_t *keys, unsigned count);

#endif
