/* A hash of several numbers in their order: a function and its grid, nodes of graphs, accesses. */
#ifndef SPILL_HASH_H
#define SPILL_HASH_H

#include <stdint.h>

/* Returns `hash` with one more number. */
static inline uint64_t spill_hash(uint64_t hash, uint64_t number)
{
	hash = (hash ^ number) * UINT64_C(0x9e3779b97f4a7c15);
	return hash ^ hash >> 29;
}

/* A place of `bits` bits for a key of 32, as those of chunks. */
static inline unsigned spill_hash_key(uint32_t key, unsigned bits)
{
	return (uint32_t)(key * UINT32_C(0x9e3779b1)) >> (32 - bits);
}

#endif
