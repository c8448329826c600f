/*
 * Maps an address to its chunk, and to the side that the chunk is on. shim/hints.c asks for each
 * word of each launch's parameters. So the map is a table of two levels, read without lock or
 * reference. The mover writes it. An answer is a hint, and may be out of date at once.
 */
#ifndef SPILL_CHUNK_MAP_H
#define SPILL_CHUNK_MAP_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * The map has an entry for each unit of addresses, the driver's usual granularity. Chunks that are
 * not whole units are not in the map.
 */
#define SPILL_CHUNK_MAP_UNIT_SHIFT 21
#define SPILL_CHUNK_MAP_UNIT (1ull << SPILL_CHUNK_MAP_UNIT_SHIFT)
/*
 * 48 bits of address: 14 + 13 + 21. The device shares the program's addresses (CUDA Programming
 * Guide, "Unified Virtual Addressing"), which have 47 bits on x86-64, and 48 on aarch64 (Linux,
 * Documentation/arch/arm64/memory.rst).
 */
#define SPILL_CHUNK_MAP_LEAVES (1u << 14)
#define SPILL_CHUNK_MAP_LEAF_BITS 13
#define SPILL_CHUNK_MAP_LEAF_ENTRIES (1u << SPILL_CHUNK_MAP_LEAF_BITS)

/* The entry of a unit; 0: no chunk. */
struct spill_chunk_map_entry {
	uint32_t key;         /* the chunk's name everywhere: the number of its first unit. */
	uint32_t count : 23;  /* units of its chunk. */
	uint32_t present : 1; /* a chunk is there. */
	uint32_t on_host : 1; /* the chunk's side. */
	uint32_t more : 1;    /* the allocation continues after the chunk. */
	uint32_t begun : 1;   /* a buffer begins in this unit; in a chunk's first: at its begin. */
	uint32_t inside : 1;  /* in a chunk's first unit: a buffer begins after its begin. */
	uint32_t exact : 1;   /* the begins are all that there are (spill_chunk_map_buffer). */
};

/* A whole entry, in one load. */
typedef _Atomic uint64_t spill_chunk_map_word;
extern _Atomic(spill_chunk_map_word *) spill_chunk_map_leaves[SPILL_CHUNK_MAP_LEAVES];

static inline bool spill_chunk_map_of(uint64_t address, struct spill_chunk_map_entry *entry)
{
	union {
		uint64_t word;
		struct spill_chunk_map_entry entry;
	} found;
	uint64_t number = address >> SPILL_CHUNK_MAP_UNIT_SHIFT;
	if (number >> SPILL_CHUNK_MAP_LEAF_BITS >= SPILL_CHUNK_MAP_LEAVES)
		return false;
	spill_chunk_map_word *leaf = atomic_load_explicit(
	    &spill_chunk_map_leaves[number >> SPILL_CHUNK_MAP_LEAF_BITS], memory_order_acquire);
	if (!leaf)
		return false;
	found.word =
	    atomic_load_explicit(&leaf[number & (SPILL_CHUNK_MAP_LEAF_ENTRIES - 1)], memory_order_relaxed);
	*entry = found.entry;
	return found.entry.present;
}

/*
 * Enters a chunk, or its new side after a move. Keeps the begins of buffers. `more`: as above.
 * False: there is no memory for the table, or the chunk is not whole units. One thread at a time
 * calls this for a chunk.
 */
bool spill_chunk_map_set(uint64_t va, uint64_t bytes, bool on_host, bool more);
void spill_chunk_map_clear(uint64_t va, uint64_t bytes);

/* A buffer begins at this address, because a launch has it as a parameter. */
void spill_chunk_map_begins(uint64_t address);

/*
 * A buffer is at [at, at + bytes), and nothing else: begins within are out of date. For allocators of
 * ours, which know their buffers.
 */
void spill_chunk_map_buffer(uint64_t at, uint64_t bytes);

#endif
