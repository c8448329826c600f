/*
 * Chunk sets: physical memory that the program creates (cuMemCreate) and maps at its own addresses,
 * made of chunks. So it can be split and moved like any chunked placement. The program has a handle
 * of ours, which the vendor does not know. The calls that take it are carried out here.
 *
 * A set moves while it is mapped once, as a whole, and devices may read and write all of it, its own
 * among them. With another mapping, other access or an export it stays where it is for life. CUDA
 * Driver API, "Virtual Memory Management".
 */
#ifndef SPILL_CHUNK_SET_H
#define SPILL_CHUNK_SET_H

#include "chunked.h"

/*
 * Is this a handle of ours? Their upper half is a number that the driver's have not: those are small
 * numbers or addresses below 2^57.
 */
#define SPILL_CHUNK_SET_TAG 0x5e70000000000000ull
static inline bool spill_chunk_set_is(uint64_t handle)
{
	return (handle & 0xfff0000000000000ull) == SPILL_CHUNK_SET_TAG;
}

/* Exportable memory up to this size can be a set. */
#define SPILL_CHUNK_SET_EXPORTABLE ((uint64_t)64 << 20)

/* A set without chunks, with a new handle. NULL with *error. */
spill_chunked_new_fn spill_chunk_set_new;

/*
 * Maps all chunks at `va`. Returns the vendor's error: then none is mapped. pre: the mover is held, and a set
 * that is mapped already is pinned
 */
int spill_chunk_set_map(struct spill_chunked *set, uint64_t va, uint64_t bytes);

/* After a mapping of the delisted set should end. `done`: the vendor has unmapped what was at `va`. */
void spill_chunk_set_unmapped(struct spill_chunked *set, uint64_t va, bool done);

/*
 * The program has given `users`, a bit for each device, access to [va, va + bytes), to read and write.
 * 0: something else than that. Once the set's own device has it, the set may move; or it is pinned.
 * pre: the mover is held, since the vendor's call if the set may move
 */
void spill_chunk_set_accessed(struct spill_chunked *set, uint64_t va, uint64_t bytes, uint64_t users);

/*
 * The vendor's handle, for an export, if the set is one chunk that never moved; else 0. pre: the set
 * is pinned
 */
uint64_t spill_chunk_set_real(const struct spill_chunked *set);

#endif
