/* The word that the kernel `fill` writes at `index`: the same as pattern() of tests/sim/test/kernels.c. */
#ifndef PATTERN_H
#define PATTERN_H

#include <stdint.h>

static inline uint64_t pattern(uint64_t index, uint64_t seed)
{
	uint64_t x = index + seed * 0x9e3779b97f4a7c15ull;

	x = (x ^ (x >> 32)) * 0xd6e8feb86659fd93ull;
	return x ^ (x >> 29);
}

#endif
