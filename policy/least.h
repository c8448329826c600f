/* The smaller and the larger of two. */
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

#endif
