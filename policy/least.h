/* The smaller and the larger of two, and what of one the other leaves. */
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

#endif
