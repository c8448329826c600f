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

#endif
