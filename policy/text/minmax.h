/* Minimum, maximum, sums, differences and multiples that stop at the ends, waits that double, and classes of sizes. */
#ifndef SPILL_MINMAX_H
#define SPILL_MINMAX_H

#include <stdint.h>

static inline uint64_t spill_min(uint64_t one, uint64_t other)
{
	return one < other ? one : other;
}

static inline uint64_t spill_max(uint64_t one, uint64_t other)
{
	return one > other ? one : other;
}

static inline uint64_t spill_median_of_three(const uint64_t of[3])
{
	uint64_t a = of[0], b = of[1], c = of[2];
	return spill_max(spill_min(a, b), spill_min(spill_max(a, b), c));
}

/* from - take, or 0 if that would be negative. */
static inline uint64_t spill_minus(uint64_t from, uint64_t take)
{
	return from > take ? from - take : 0;
}

/* one + other, or the largest number if that would overflow. */
static inline uint64_t spill_plus(uint64_t one, uint64_t other)
{
	return one > UINT64_MAX - other ? UINT64_MAX : one + other;
}

/* The next multiple of `unit` from `bytes` on; `bytes` itself if that would overflow. */
static inline uint64_t spill_round_up(uint64_t bytes, uint64_t unit)
{
	return bytes > UINT64_MAX - unit ? bytes : (bytes + unit - 1) / unit * unit;
}

/* The wait after one in vain: twice as long, at most `most`. before == 0: there was none, so it is `first`. */
static inline uint64_t spill_longer_wait(uint64_t before, uint64_t first, uint64_t most)
{
	return before ? spill_min(2 * before, most) : first;
}

/* Sizes from a power of two up to the next are a class, 1 to 64. The class of 0 is 0. */
static inline unsigned spill_size_class(uint64_t bytes)
{
	return bytes ? 64 - (unsigned)__builtin_clzll(bytes) : 0;
}

#endif
