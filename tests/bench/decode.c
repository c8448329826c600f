/*
 * A program that uses memory as a language model decodes: weights that each step reads once, a buffer that came later and
 * that each step reads several times (a KV cache), and a scratch pool that grows while it runs, by physical memory of its own
 * (cuMemCreate) in one reserved range, and that each step reads and writes. It knows nothing of libspill.
 *
 *	decode KERNELS [--weights MIB] [--buffer MIB] [--times N] [--scratch MIB] [--grow MIB] [--steps N]
 *	decode KERNELS --bandwidth MIB        only measures how fast the same kernels read device memory, and host memory in place
 *
 * Prints `NAME VALUE` lines: bytes, microseconds, GB/s. All data is verified: each step's sums must be those of the first,
 * and at the end every word of everything must be what it was made. Exit status: 1 data wrong, 3 out of memory, 2 other errors.
 */
#include "driver.h"

#include <stdio.h>
#include <stdlib.h>

#define WORD sizeof(uint64_t)
#define WARM_UP 3   /* steps after the last growth that are not counted */
#define MOST 4096   /* steps */
#define SEEDS 1000u /* seed of the first piece of the scratch */

static struct {
	uint64_t weights, buffer, times, scratch, grow, steps;
} want;

static CUdeviceptr weights, buffer, scratch, sums; /* sums: two words a step */
static uint64_t scratch_size, pieces,
    born[MOST];       /* born: the step at which a piece of the scratch was made */
static uint64_t done; /* steps so far */

static void step(void)
{
	bench_launch(BENCH_WIDE_SUM, weights, want.weights / WORD, sums + done * 2 * WORD, 0);
	for (uint64_t i = 0; i < want.times; i++)
		bench_launch(BENCH_WIDE_SUM, buffer, want.buffer / WORD, sums + (done * 2 + 1) * WORD, 0);
	if (scratch_size)
		bench_launch(BENCH_WIDE_ADD, scratch, scratch_size / WORD, 1, 0);
	bench_finish();
	done++;
}

static uint64_t timed_step(void)
{
	uint64_t start = bench_now_us();

	step();
	return bench_now_us() - start;
}

/* One piece more, behind the others. Returns the microseconds that it took until it could be used. */
static uint64_t grow(void)
{
	uint64_t bytes = want.grow < want.scratch - scratch_size ? want.grow : want.scratch - scratch_size;
	uint64_t start = bench_now_us();
	CUmemGenericAllocationHandle handle = bench_create(bytes, 0);

	bench_map(scratch + scratch_size, bytes, handle);
	uint64_t took = bench_now_us() - start;
	bench_check("release", cuMemRelease(handle));
	bench_launch(BENCH_FILL, scratch + scratch_size, bytes / WORD, SEEDS + pieces, 0);
	bench_finish();
	born[pieces++] = done;
	scratch_size += bytes;
	return took;
}

/* Words that are not what they were made, in all three. */
static uint64_t wrong_words(void)
{
	uint64_t *wrong = bench_pinned_word(), out = (uint64_t)(uintptr_t)wrong, offset = 0;

	bench_launch(BENCH_VERIFY, weights, want.weights / WORD, 1, out);
	bench_launch(BENCH_VERIFY, buffer, want.buffer / WORD, 2, out);
	for (uint64_t i = 0; i < pieces; i++, offset += want.grow) {
		uint64_t bytes = want.grow < want.scratch - offset ? want.grow : want.scratch - offset;

		bench_launch(BENCH_WIDE_ADD, scratch + offset, bytes / WORD, -(done - born[i]), 0);
		bench_launch(BENCH_VERIFY, scratch + offset, bytes / WORD, SEEDS + i, out);
	}
	bench_finish();
	return *wrong;
}

/* Steps whose sums are not those of the first: they read something wrong, even if it is right again at the end. */
static uint64_t wrong_sums(void)
{
	uint64_t *copy = malloc(done * 2 * WORD), wrong = 0;

	if (!copy)
		exit(2);
	bench_check("sums", cuMemcpyDtoH_v2(copy, sums, done * 2 * WORD));
	for (uint64_t i = 1; i < done; i++)
		wrong += copy[2 * i] != copy[0] || copy[2 * i + 1] != copy[1];
	free(copy);
	return wrong;
}

static double rate(uint64_t bytes, uint64_t us)
{
	return us ? (double)bytes / (double)us / 1e3 : 0;
}

static void measure(void)
{
	static uint64_t times[MOST];
	uint64_t growth = 0, slowest = 0;

	timed_step(); /* before there is a scratch, as a program's first use */
	while (scratch_size < want.scratch) {
		uint64_t took = grow();

		growth += took;
		slowest = took > slowest ? took : slowest;
		step();
	}
	for (int i = 0; i < WARM_UP; i++)
		step();
	for (uint64_t i = 0; i < want.steps; i++)
		times[i] = timed_step();
	uint64_t median = bench_median(times, (unsigned)want.steps);
	uint64_t bytes = want.weights + want.times * want.buffer + 2 * want.scratch;

	printf("growths %llu\ngrowth_us %llu\nslowest_growth_us %llu\n", (unsigned long long)pieces,
	       (unsigned long long)growth, (unsigned long long)slowest);
	printf("step_bytes %llu\nstep_us %llu\nleast_us %llu\nmost_us %llu\nrate %.1f\n",
	       (unsigned long long)bytes, (unsigned long long)median, (unsigned long long)times[0],
	       (unsigned long long)times[want.steps - 1], rate(bytes, median));
}

static int decode(void)
{
	uint64_t start = bench_now_us();

	printf("free %llu\n", (unsigned long long)bench_free_bytes());
	bench_check("sums", cuMemAlloc_v2(&sums, MOST * 2 * WORD));
	bench_check("sums", cuMemsetD8_v2(sums, 0, MOST * 2 * WORD));
	bench_check("weights", cuMemAlloc_v2(&weights, want.weights));
	bench_launch(BENCH_FILL, weights, want.weights / WORD, 1, 0);
	bench_finish(); /* weights are loaded before anything else is asked for */
	bench_check("buffer", cuMemAlloc_v2(&buffer, want.buffer));
	bench_launch(BENCH_FILL, buffer, want.buffer / WORD, 2, 0);
	bench_check("scratch", cuMemAddressReserve(&scratch, want.scratch, 0, 0, 0));
	bench_finish();
	printf("weights %llu\nbuffer %llu\ntimes %llu\nscratch %llu\nstart_us %llu\n",
	       (unsigned long long)want.weights, (unsigned long long)want.buffer,
	       (unsigned long long)want.times, (unsigned long long)want.scratch,
	       (unsigned long long)(bench_now_us() - start));
	measure();
	uint64_t words = wrong_words(), steps = wrong_sums();

	printf("wrong_words %llu\nwrong_steps %llu\n", (unsigned long long)words, (unsigned long long)steps);
	return words || steps;
}

/* Median GB/s of one kernel over memory that is used for nothing else. */
static double bandwidth(enum bench_kernel kernel, uint64_t address, uint64_t bytes, uint64_t third)
{
	uint64_t times[7];

	bench_launch(BENCH_FILL, address, bytes / WORD, 3, 0);
	for (int i = -1; i < 7; i++) {
		bench_finish();
		uint64_t start = bench_now_us();

		bench_launch(kernel, address, bytes / WORD, third, 0);
		bench_finish();
		if (i >= 0)
			times[i] = bench_now_us() - start;
	}
	return rate(bytes, bench_median(times, 7));
}

static int machine(uint64_t bytes)
{
	CUdeviceptr sum, on_device, on_host;
	CUmemGenericAllocationHandle handle = bench_create(bytes, 1);

	bench_check("sum", cuMemAlloc_v2(&sum, WORD));
	bench_check("device memory", cuMemAlloc_v2(&on_device, bytes));
	bench_check("addresses", cuMemAddressReserve(&on_host, bytes, 0, 0, 0));
	bench_map(on_host, bytes, handle);
	printf("device_read %.1f\n", bandwidth(BENCH_WIDE_SUM, on_device, bytes, sum));
	printf("device_rewrite %.1f\n", 2 * bandwidth(BENCH_WIDE_ADD, on_device, bytes, 1));
	printf("host_read %.1f\n", bandwidth(BENCH_WIDE_SUM, on_host, bytes, sum));
	return 0;
}

int main(int count, char **arguments)
{
	if (count < 2)
		return 2;
	uint64_t bytes = bench_option(arguments, "bandwidth", 0) * BENCH_MIB;

	want.weights = bench_option(arguments, "weights", 7168) * BENCH_MIB;
	want.buffer = bench_option(arguments, "buffer", 2048) * BENCH_MIB;
	want.times = bench_option(arguments, "times", 4);
	want.scratch = bench_option(arguments, "scratch", 600) * BENCH_MIB;
	want.grow = bench_option(arguments, "grow", 100) * BENCH_MIB;
	want.steps = bench_option(arguments, "steps", 20);
	if (!want.grow || !want.steps || want.scratch / want.grow + want.steps + WARM_UP + 2 > MOST)
		return 2;
	bench_start(arguments[1]);
	return bytes ? machine(bytes) : decode();
}
