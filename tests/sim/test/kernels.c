/*
 * The kernels of the tests, for the simulator and for a real GPU (kernel.h). A word has 8 bytes.
 * Data differs by word and by seed, so verify finds a page that is lost, doubled or swapped.
 */
#include "kernel.h"

#if defined(__CUDACC__) || defined(__HIPCC__)
#define INLINE static __device__ inline
#else
#define INLINE static inline
#endif

INLINE u64 pattern(u64 index, u64 seed)
{
	u64 x = index + seed * 0x9e3779b97f4a7c15ull;

	x = (x ^ (x >> 32)) * 0xd6e8feb86659fd93ull;
	return x ^ (x >> 29);
}

SIM_KERNEL(fill, (u64 ptr, u64 words, u64 seed), (ptr, words, seed))
{
	u64 *p = SIM_RANGE(u64, ptr, words, 1);

	SIM_FOR(i, words)
	p[i] = pattern(i, seed);
}

/* Adds to *mismatches the number of words that differ from fill with that seed. */
SIM_KERNEL(verify, (u64 ptr, u64 words, u64 seed, u64 mismatches), (ptr, words, seed, mismatches))
{
	const u64 *p = SIM_RANGE(const u64, ptr, words, 1);
	u64 *out = SIM_ADDRESS(u64, mismatches), wrong = 0;

	SIM_FOR(i, words)
	wrong += p[i] != pattern(i, seed);
	if (wrong)
		SIM_ADD(out, wrong);
}

SIM_KERNEL(add, (u64 ptr, u64 words, u64 value), (ptr, words, value))
{
	u64 *p = SIM_RANGE(u64, ptr, words, 1);

	SIM_FOR(i, words)
	p[i] += value;
}

/* Adds the sum of the words to *out. */
SIM_KERNEL(checksum, (u64 ptr, u64 words, u64 out), (ptr, words, out))
{
	const u64 *p = SIM_RANGE(const u64, ptr, words, 1);
	u64 *o = SIM_ADDRESS(u64, out), sum = 0;

	SIM_FOR(i, words)
	sum += p[i];
	SIM_ADD(o, sum);
}

SIM_KERNEL(copy, (u64 to, u64 from, u64 words), (to, from, words))
{
	u64 *t = SIM_RANGE(u64, to, words, 1);
	const u64 *f = SIM_RANGE(const u64, from, words, 1);

	SIM_FOR(i, words)
	t[i] = f[i];
}

/* Runs until the pinned host word at `flag` is not 0: a kernel that is certainly running. */
SIM_KERNEL(hold, (u64 flag), (flag))
{
	const volatile u64 *f = SIM_ADDRESS(const volatile u64, flag);

	SIM_ONCE
	{
		while (!*f)
			SIM_SPIN();
	}
}

/* hold, then fill: the host decides when this work begins. */
SIM_KERNEL(hold_fill, (u64 flag, u64 ptr, u64 words, u64 seed), (flag, ptr, words, seed))
{
	const volatile u64 *f = SIM_ADDRESS(const volatile u64, flag);
	u64 *p = SIM_ADDRESS(u64, ptr);

	while (!*f)
		SIM_SPIN();
	SIM_FOR(i, words)
	p[i] = pattern(i, seed);
}

/* Reads all words `times` times and adds the sum to *out. */
SIM_KERNEL(read_loop, (u64 ptr, u64 words, u64 times, u64 out), (ptr, words, times, out))
{
	const volatile u64 *p = SIM_RANGE(const volatile u64, ptr, words, times);
	u64 *o = SIM_ADDRESS(u64, out), sum = 0;

	for (u64 n = 0; n < times; n++)
		SIM_FOR(i, words)
	sum += p[i];
	SIM_ADD(o, sum);
}

/* Reads all words `times` times, and adds the sum of the last time to *out. */
SIM_KERNEL(reread, (u64 ptr, u64 words, u64 times, u64 out), (ptr, words, times, out))
{
	const volatile u64 *p = SIM_RANGE(const volatile u64, ptr, words, times);
	u64 *o = SIM_ADDRESS(u64, out), sum = 0;

	for (u64 n = 0; n < SIM_ROUNDS(times); n++) {
		sum = 0;
		SIM_FOR(i, words)
		sum += p[i];
	}
	SIM_ADD(o, sum);
}

/*
 * One rank's part of a collective of two, as NCCL's kernels do it: gives the words to the other
 * rank, waits for the other rank's kernel of the same round, and adds up. `own` and `other` are
 * host words that both ranks share, `mine` and `theirs` host ranges. The result is twice our words
 * plus the other's, so a lost round and swapped ranks show.
 */
SIM_KERNEL(meet, (u64 own, u64 other, u64 round, u64 ptr, u64 words, u64 mine, u64 theirs),
           (own, other, round, ptr, words, mine, theirs))
{
	volatile u64 *o = SIM_ADDRESS(volatile u64, own), *t = SIM_ADDRESS(volatile u64, theirs);
	const volatile u64 *f = SIM_ADDRESS(const volatile u64, other);
	u64 *p = SIM_ADDRESS(u64, ptr), *m = SIM_ADDRESS(u64, mine);

	SIM_ONCE
	{
		for (u64 i = 0; i < words; i++)
			m[i] = p[i];
		SIM_FENCE();
		*o = round;
		while (*f < round)
			SIM_SPIN();
		SIM_FENCE();
		for (u64 i = 0; i < words; i++)
			p[i] = 2 * p[i] + t[i];
	}
}

/* -- for memory that moves --------------------------------------------------------------------- */

/* Words of fill from number `first` on: several launches fill parts of a range. */
SIM_KERNEL(fill_part, (u64 ptr, u64 words, u64 seed, u64 first), (ptr, words, seed, first))
{
	u64 *p = SIM_RANGE(u64, ptr, words, 1);

	SIM_FOR(i, words)
	p[i] = pattern(first + i, seed);
}

/* Adds the number of wrong words in such a part. A thread that writes to the host is slower. */
SIM_KERNEL(verify_quietly, (u64 ptr, u64 words, u64 seed, u64 first, u64 mismatches),
           (ptr, words, seed, first, mismatches))
{
	const u64 *p = SIM_RANGE(const u64, ptr, words, 1);
	u64 *out = SIM_ADDRESS(u64, mismatches), wrong = 0;

	SIM_FOR(i, words)
	wrong += p[i] != pattern(first + i, seed);
	if (wrong)
		SIM_ADD(out, wrong);
}

/* Adds wrong words in such a part to counts[0], and words that it read to counts[1]. */
SIM_KERNEL(verify_part, (u64 ptr, u64 words, u64 seed, u64 first, u64 counts),
           (ptr, words, seed, first, counts))
{
	const u64 *p = SIM_RANGE(const u64, ptr, words, 1);
	u64 *out = SIM_ADDRESS(u64, counts), wrong = 0, seen = 0;

	SIM_FOR(i, words)
	{
		wrong += p[i] != pattern(first + i, seed);
		seen++;
	}
	if (wrong)
		SIM_ADD(out, wrong);
	SIM_ADD(out + 1, seen);
}

/* Works until the pinned host word at `flag` is not 0, then leaves the words of fill. */
SIM_KERNEL(fill_until, (u64 flag, u64 ptr, u64 words, u64 seed), (flag, ptr, words, seed))
{
	const volatile u64 *f = SIM_ADDRESS(const volatile u64, flag);
	volatile u64 *p = SIM_ADDRESS(volatile u64, ptr);
	u64 last = 0;

	while (!last) {
		last = *f;
		SIM_FOR(i, words)
		p[i] = pattern(i, seed);
		SIM_SPIN();
	}
}

/* Reads each `stride`th word, again and again, until the pinned host word at `flag` is not 0. */
SIM_KERNEL(read_until, (u64 flag, u64 ptr, u64 words, u64 stride, u64 out), (flag, ptr, words, stride, out))
{
	const volatile u64 *f = SIM_ADDRESS(const volatile u64, flag);
	const volatile u64 *p = SIM_ADDRESS(const volatile u64, ptr);
	u64 *o = SIM_ADDRESS(u64, out), sum = 0;

	while (!*f) {
		SIM_FOR(i, words / stride)
		sum += p[i * stride];
		SIM_SPIN();
	}
	SIM_ADD(o, sum);
}

/*
 * `array` has `count` device addresses of ranges of `words` words. Adds to *mismatches the words
 * that differ from fill with seed `seed`, `seed` + 1 and so on. The addresses must stay valid when
 * memory moves.
 */
SIM_KERNEL(verify_all, (u64 array, u64 count, u64 words, u64 seed, u64 mismatches),
           (array, count, words, seed, mismatches))
{
	const u64 *a = SIM_ADDRESS(const u64, array);
	u64 *out = SIM_ADDRESS(u64, mismatches), wrong = 0;

	for (u64 n = 0; n < count; n++) {
		const u64 *p = SIM_RANGE(const u64, a[n], words, 1);

		SIM_FOR(i, words)
		wrong += p[i] != pattern(i, seed + n);
	}
	if (wrong)
		SIM_ADD(out, wrong);
}

/* Fills the ranges of such an array. No parameter names the memory that it writes. */
SIM_KERNEL(fill_all, (u64 array, u64 count, u64 words, u64 seed), (array, count, words, seed))
{
	const u64 *a = SIM_ADDRESS(const u64, array);

	for (u64 n = 0; n < count; n++) {
		u64 *p = SIM_RANGE(u64, a[n], words, 1);

		SIM_FOR(i, words)
		p[i] = pattern(i, seed + n);
	}
}

/* Adds to all words: a lost write stays lost. */
SIM_KERNEL(add_all, (u64 array, u64 count, u64 words, u64 value), (array, count, words, value))
{
	const u64 *a = SIM_ADDRESS(const u64, array);

	for (u64 n = 0; n < count; n++) {
		u64 *p = SIM_RANGE(u64, a[n], words, 1);

		SIM_FOR(i, words)
		p[i] += value;
	}
}

/* Addresses inside of a parameter, at odd places. */
struct views {
	u64 count;
	struct {
		unsigned dimensions, stride;
		u64 address;
	} view[4];
};

SIM_KERNEL_WITH_STRUCT(fill_views, struct views, v, words, seed)
{
	for (u64 n = 0; n < v.count; n++) {
		u64 *p = SIM_RANGE(u64, v.view[n].address, words, 1);

		SIM_FOR(i, words)
		p[i] = pattern(i, seed + n);
	}
}

/* -- memory other than allocations ------------------------------------------------------------- */

SIM_GLOBAL(u64, sums, 4)

/* Adds to the module's variable, and copies it to *out. */
SIM_KERNEL(count_up, (u64 by, u64 out), (by, out))
{
	u64 *s = SIM_VARIABLE(u64, sums), *o = SIM_ADDRESS(u64, out);

	SIM_ONCE
	{
		s[1] += by;
		o[0] = s[1];
	}
}

#define DEEP 512 /* words */

/* Keeps 4 KiB per thread in local memory, because no compiler knows the indexes. */
SIM_KERNEL_WITH_LOCAL(deep, (u64 ptr, u64 words, u64 seed), (ptr, words, seed), DEEP * 8)
{
	u64 *p = SIM_RANGE(u64, ptr, words, 1), own[DEEP];

	for (u64 n = 0; n < DEEP; n++)
		own[n] = pattern(n, seed);
	SIM_FOR(i, words)
	p[i] = own[(p[i] + i) % DEEP];
}
