/*
 * The kernels of the benchmarks: those of the tests, and two that move bytes as fast as the memory gives them. A thread
 * has four loads of 16 bytes in flight, and a block of 256 threads goes through 16 KiB at a time, so `words` is to be a
 * multiple of 2,048.
 */
#include "../sim/test/kernels.c"

struct wide {
	u64 low, high;
} __attribute__((aligned(16)));

/* The first of the four places of 16 bytes that thread `i` of all threads reads; the others are LANES further each. */
#define LANES 256ull
#define FIRST(i) ((i) / LANES * (4 * LANES) + (i) % LANES)

#if defined(__CUDACC__)
/* One addition a warp: one a thread would take longer than the reading. */
#define ADD_ONCE(pointer, value) \
	do { \
		for (int step = 16; step; step /= 2) \
			(value) += __shfl_xor_sync(~0u, (value), step); \
		if (threadIdx.x % 32 == 0) \
			atomicAdd((pointer), (value)); \
	} while (0)
#else
#define ADD_ONCE(pointer, value) SIM_ADD(pointer, value)
#endif

/* Adds the sum of the words to *out. */
SIM_KERNEL(wide_sum, (u64 ptr, u64 words, u64 out), (ptr, words, out))
{
	const struct wide *p = SIM_RANGE(const struct wide, ptr, words / 2, 1);
	u64 *o = SIM_ADDRESS(u64, out), sum = 0;

	SIM_FOR(i, words / 8)
	{
		struct wide a = p[FIRST(i)], b = p[FIRST(i) + LANES], c = p[FIRST(i) + 2 * LANES],
		            d = p[FIRST(i) + 3 * LANES];
		sum += a.low + a.high + b.low + b.high + c.low + c.high + d.low + d.high;
	}
	ADD_ONCE(o, sum);
}

/* Adds `value` to each word. */
SIM_KERNEL(wide_add, (u64 ptr, u64 words, u64 value), (ptr, words, value))
{
	struct wide *p = SIM_RANGE(struct wide, ptr, words / 2, 1);

	SIM_FOR(i, words / 8)
	{
		u64 first = FIRST(i);
		struct wide a = p[first], b = p[first + LANES], c = p[first + 2 * LANES],
		            d = p[first + 3 * LANES];
		p[first] = (struct wide){a.low + value, a.high + value};
		p[first + LANES] = (struct wide){b.low + value, b.high + value};
		p[first + 2 * LANES] = (struct wide){c.low + value, c.high + value};
		p[first + 3 * LANES] = (struct wide){d.low + value, d.high + value};
	}
}
