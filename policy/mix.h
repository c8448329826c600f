/* One hash for what is told apart by several numbers in their order: functions with their grids, nodes of graphs, uses. */
#ifndef SPILL_MIX_H
#define SPILL_MIX_H

#include <stdint.h>

/* The hash of what had the hash `hash`, with one number more. */
static inline uint64_t spill_mix(uint64_t hash, uint64_t number)
{
	hash = (hash ^ number) * UINT64_C(0x9e3779b97f4a7c15);
	return hash ^ hash >> 29;
}

#endif
