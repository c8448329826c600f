/*
 * Buffers that are elsewhere than in the step before. Some programs run the same code in each step, but on
 * other addresses, because their allocator places the same buffers elsewhere. So the buffers of a launch
 * replace those that the same launch accessed in the step before, and a prediction from that step gets their
 * new places.
 *
 * A place is the number of a buffer's first unit of 2 MiB. Zeroed, each buffer is where it was. A full table
 * forgets older entries.
 */
#ifndef SPILL_BUFFER_MOVES_H
#define SPILL_BUFFER_MOVES_H

#include <stdbool.h>
#include <stdint.h>

#include "hash.h"
#include "minmax.h"

/* A power of two. */
#define SPILL_BUFFER_MOVES 4096

/* A buffer was found elsewhere. Times are numbers of accesses. */
struct spill_buffer_move {
	uint32_t from, to;
	uint64_t since, period; /* the time of the new access, and from the old one to it */
};

struct spill_buffer_moves {
	struct spill_buffer_move slots[SPILL_BUFFER_MOVES]; /* by the hash of `from` */
	uint64_t taken[SPILL_BUFFER_MOVES / 64];            /* a bit for each slot that has an entry */
	uint64_t since;                                     /* the time of the last one */
};

/* It changed by at most this share. */
#define SPILL_SAME_PERIOD 8

static inline bool spill_is_same_period(uint64_t one, uint64_t other)
{
	return spill_max(one, other) - spill_min(one, other) <= other / SPILL_SAME_PERIOD;
}

static inline unsigned spill_buffer_moves_slot(uint32_t place)
{
	return spill_hash(1, place) % SPILL_BUFFER_MOVES;
}

/* The part of spill_buffer_moves_get for a slot with an entry. */
bool spill_buffer_moves_find(const struct spill_buffer_moves *moves, uint32_t *place, uint64_t time,
                             uint64_t period);

/*
 * Where the buffer was found that was at `*place` at that time, a period ago. An older entry belongs to the
 * step before, and one of another period to another repetition: they do not count. False: it was not found
 * since.
 */
static inline bool spill_buffer_moves_get(const struct spill_buffer_moves *moves, uint32_t *place,
                                          uint64_t time, uint64_t period)
{
	/* Most programs move nothing, and the others only a part of their buffers: that costs no call. */
	if (moves->since <= time)
		return false;

	unsigned slot = spill_buffer_moves_slot(*place);

	return moves->taken[slot / 64] >> slot % 64 & 1 &&
	       spill_buffer_moves_find(moves, place, time, period);
}

/* A launch found a buffer at `to`, and at `from` in the step before, at the time `before`. */
void spill_buffer_moves_found(struct spill_buffer_moves *moves, uint64_t now, uint64_t before, uint32_t from,
                              uint32_t to);

#endif
