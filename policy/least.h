/* The smaller and the larger of two, what of one the other leaves, and classes of sizes. */
#ifndef SPILL_LEAST_H
#define SPILL_LEAST_H

#include <stdint.h>

static inline uint64_t spill_least(uint64_t one, uint64_t other)
{
	return one < other ? one : other;
}

static inline uint64_t spill_most(uint64_t one, uint64_t other)
{
	return one > other ? one : other;
}

/* from - take, 0 where that would be below it. */
static inline uint64_t spill_less(uint64_t from, uint64_t take)
{
	return from > take ? from - take : 0;
}

/* Sizes from one power of two up to the next are a class, 1 to 64; 0 is that of 0. */
static inline unsigned spill_size_class(uint64_t bytes)
{
	return bytes ? 64 - (unsigned)__builtin_clzll(bytes) : 0;
}

#endif
