/*
 * Which chunk an address belongs to, and where that is now: asked for each word of each launch's parameters (shim/hints.c),
 * so it is a table of two levels without lock or reference, written by the mover. An answer is a hint: it may be out of
 * date at once.
 */
#ifndef SPILL_CHUNK_MAP_H
#define SPILL_CHUNK_MAP_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Addresses are told apart in units of the driver's granule; chunks that are no multiple of it are not kept here. */
#define SPILL_GRANULE_SHIFT 21
#define SPILL_GRANULE (1ull << SPILL_GRANULE_SHIFT)
/* 47 bits of address (CUDA Programming Guide, "Unified Virtual Addressing"): 13 + 13 bits of granules. */
#define SPILL_GRANULE_BITS 13
#define SPILL_GRANULE_LEAF (1u << SPILL_GRANULE_BITS)

/* What is kept of each granule: 0 for none of ours. */
struct spill_granule {
	uint32_t
	    key; /* number of the first granule of its chunk (address / SPILL_GRANULE): the chunk's name everywhere */
	uint32_t count : 23; /* granules of its chunk */
	uint32_t there : 1;
	uint32_t on_host : 1;
	uint32_t more : 1; /* the next granule behind the chunk is of the same allocation */
	uint32_t
	    begun : 1; /* a begin has been seen in this granule; in the chunk's first: at its first byte */
	uint32_t inside : 1; /* in the chunk's first granule: a begin has been seen behind its first byte */
};

/* Both words in one load. */
typedef _Atomic uint64_t spill_chunk_map_word;
extern _Atomic(spill_chunk_map_word *) spill_chunk_map_leaves[SPILL_GRANULE_LEAF];

static inline bool spill_chunk_map_of(uint64_t address, struct spill_granule *granule)
{
	union {
		uint64_t word;
		struct spill_granule granule;
	} found;
	uint64_t number = address >> SPILL_GRANULE_SHIFT;
	if (number >> (2 * SPILL_GRANULE_BITS))
		return false;
	spill_chunk_map_word *leaf =
	    atomic_load_explicit(&spill_chunk_map_leaves[number >> SPILL_GRANULE_BITS], memory_order_acquire);
	if (!leaf)
		return false;
	found.word = atomic_load_explicit(&leaf[number & (SPILL_GRANULE_LEAF - 1)], memory_order_relaxed);
	*granule = found.granule;
	return found.granule.there;
}

/*
 * A chunk is at these addresses now (again, after a move: on the other side). False: not kept, because there is no memory for
 * the table or the chunk is no multiple of a granule. `more`: see above. Keeps what has begun. Called by one thread at a time for the same chunk.
 */
bool spill_chunk_map_set(uint64_t va, uint64_t bytes, bool on_host, bool more);
void spill_chunk_map_clear(uint64_t va, uint64_t bytes);

/* A launch was given this address: it is the begin of something. */
void spill_chunk_map_begins(uint64_t address);

#endif
