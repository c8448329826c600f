/*
 * What moving memory costs: the bare sequence of driver calls, made here, and the same made by libspill for an allocation
 * that does not fit.
 *
 *	moves KERNELS bare MIB CHUNK_MIB
 *		MIB of device memory in chunks goes to the host and comes back, chunk after chunk: memory there is made and mapped,
 *		the chunk copied, its address mapped anew, the old memory released; and the copies alone, between memory that
 *		exists. To be run without libspill.
 *	moves KERNELS through MIB [AHEAD_MIB]
 *		Allocates MIB twice. Under libspill with SPILL_DEVICE_LIMIT = MIB the first gives way to the second, and comes back
 *		when the second is freed, in later calls. AHEAD_MIB: what host.ahead makes ready, and is waited for first.
 *
 * Prints `NAME MICROSECONDS` lines, and wrong_words. Exit status: 1 data wrong or not back in time, 3 out of memory, 2 other errors.
 */
#include "driver.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST 4096 /* chunks */
#define WORD sizeof(uint64_t)

static void print(const char *name, uint64_t value)
{
	printf("%s %llu\n", name, (unsigned long long)value);
}

/* Adds what has passed since *mark to *sum, and sets the mark. */
static void lap(uint64_t *sum, uint64_t *mark)
{
	uint64_t now = bench_now_us();

	*sum += now - *mark;
	*mark = now;
}

static CUdeviceptr range, staging;
static CUmemGenericAllocationHandle handles[MOST];
static uint64_t bytes, chunk, chunks;

static void copy_chunk(CUdeviceptr to, CUdeviceptr from)
{
	bench_check("copy", cuMemcpyDtoDAsync_v2(to, from, chunk, bench_stream));
}

/* Moves every chunk of the range; prints the total and its parts under names that begin with `what`. */
static void move_all(const char *what, int to_host)
{
	uint64_t create = 0, copy = 0, map = 0, release = 0, start = bench_now_us(), mark = start;
	char name[64];

	for (uint64_t i = 0; i < chunks; i++) {
		CUdeviceptr at = range + i * chunk;
		CUmemGenericAllocationHandle home = bench_create(chunk, to_host);

		lap(&create, &mark);
		bench_map(staging, chunk, home);
		lap(&map, &mark);
		copy_chunk(staging, at);
		bench_finish();
		lap(&copy, &mark);
		bench_check("unmap", cuMemUnmap(staging, chunk));
		bench_check("unmap", cuMemUnmap(at, chunk));
		bench_map(at, chunk, home);
		lap(&map, &mark);
		bench_check("release", cuMemRelease(handles[i]));
		handles[i] = home;
		lap(&release, &mark);
	}
	uint64_t parts[] = {mark - start, create, copy, map, release};
	static const char *const names[] = {"total", "create", "copy", "map", "release"};

	for (int i = 0; i < 5; i++) {
		snprintf(name, sizeof(name), "%s_%s", what, names[i]);
		print(name, parts[i]);
	}
}

/* The copies alone, to host memory that exists, and back. */
static void copies_alone(void)
{
	CUdeviceptr there;
	uint64_t took[2][3] = {0}; /* out, back */

	bench_check("addresses", cuMemAddressReserve(&there, bytes, 0, 0, 0));
	for (uint64_t i = 0; i < chunks; i++) {
		CUmemGenericAllocationHandle handle = bench_create(chunk, 1);

		bench_map(there + i * chunk, chunk, handle);
		bench_check("release", cuMemRelease(handle));
	}
	for (int round = 0; round < 6; round++) {
		uint64_t start = bench_now_us();

		for (uint64_t i = 0; i < chunks; i++)
			round % 2 ? copy_chunk(range + i * chunk, there + i * chunk)
			          : copy_chunk(there + i * chunk, range + i * chunk);
		bench_finish();
		took[round % 2][round / 2] = bench_now_us() - start;
	}
	print("copy_out", bench_median(took[0], 3));
	print("copy_back", bench_median(took[1], 3));
	for (uint64_t i = 0; i < chunks; i++)
		bench_check("unmap", cuMemUnmap(there + i * chunk, chunk));
	bench_check("addresses", cuMemAddressFree(there, bytes));
}

static int bare(const uint64_t *wrong)
{
	uint64_t out = (uint64_t)(uintptr_t)wrong;

	bench_check("addresses", cuMemAddressReserve(&range, bytes, 0, 0, 0));
	bench_check("addresses", cuMemAddressReserve(&staging, chunk, 0, 0, 0));
	for (uint64_t i = 0; i < chunks; i++) {
		handles[i] = bench_create(chunk, 0);
		bench_map(range + i * chunk, chunk, handles[i]);
	}
	bench_launch(BENCH_FILL, range, bytes / WORD, 1, 0);
	bench_finish();
	copies_alone();
	move_all("demote", 1);
	bench_launch(BENCH_VERIFY, range, bytes / WORD, 1, out);
	bench_finish();
	move_all("promote", 0);
	bench_launch(BENCH_VERIFY, range, bytes / WORD, 1, out);
	bench_finish();
	print("wrong_words", *wrong);
	return *wrong != 0;
}

/* Bytes of host memory in use by anyone: a machine may be given more of it while this runs. */
static uint64_t host_used(void)
{
	char line[128];
	unsigned long long kib, total = 0, available = 0;
	FILE *file = fopen("/proc/meminfo", "r");

	while (file && fgets(line, sizeof(line), file)) {
		if (sscanf(line, "MemTotal: %llu kB", &kib) == 1)
			total = kib;
		else if (sscanf(line, "MemAvailable: %llu kB", &kib) == 1)
			available = kib;
	}
	if (file)
		fclose(file);
	return (total - available) << 10;
}

/* Makes small calls, as a program does, until `there` holds; false: not within the time. `allocate`: memory calls, too. */
static int calls_until(int (*there)(uint64_t), uint64_t than, uint64_t limit_us, int allocate)
{
	uint64_t start = bench_now_us();
	CUdeviceptr small;

	while (!there(than)) {
		if (bench_now_us() - start > limit_us)
			return 0;
		if (allocate) {
			bench_check("small allocation", cuMemAlloc_v2(&small, 4096));
			bench_launch(BENCH_FILL, small, 8, 9, 0);
			bench_finish();
			bench_check("small free", cuMemFree_v2(small));
		}
		sched_yield();
	}
	return 1;
}

static int host_is_taken(uint64_t than)
{
	return host_used() >= than;
}

/* No more has been taken for 300 ms: the thread of host.ahead, which pauses between two chunks, is done. */
static int host_is_at_rest(uint64_t unused)
{
	static uint64_t most, since;
	uint64_t now = bench_now_us(), used = host_used();

	(void)unused;
	if (used > most + (16 << 20)) {
		most = used;
		since = now;
	}
	return now - since > 300000;
}

static int device_is_taken(uint64_t than)
{
	return bench_free_bytes() < than;
}

static int through(const uint64_t *wrong, uint64_t ahead)
{
	uint64_t words = bytes / WORD, out = (uint64_t)(uintptr_t)wrong, before = host_used(), start;
	uint64_t device_free;
	CUdeviceptr first, second;

	bench_check("first", cuMemAlloc_v2(&first, bytes));
	bench_launch(BENCH_FILL, first, words, 1, 0);
	bench_finish();
	if (ahead)
		print("ahead_ready",
		      (uint64_t)(calls_until(host_is_taken, before + ahead / 10 * 9, 10000000, 0) &&
		                 calls_until(host_is_at_rest, 0, 10000000, 0)));
	device_free = bench_free_bytes();
	start = bench_now_us();
	bench_check("second", cuMemAlloc_v2(&second, bytes));
	print("allocation", bench_now_us() - start);
	bench_launch(BENCH_FILL, second, words, 2, 0);
	bench_launch(BENCH_VERIFY, first, words, 1, out);
	bench_launch(BENCH_VERIFY, second, words, 2, out);
	bench_finish();
	bench_check("free", cuMemFree_v2(second));
	start = bench_now_us();
	/* Nearly: device.reserve may keep the rest of it out. */
	int back = calls_until(device_is_taken, device_free + bytes / 4, 20000000, 1);

	print("until_back", bench_now_us() - start);
	print("back", (uint64_t)back);
	bench_launch(BENCH_VERIFY, first, words, 1, out);
	bench_finish();
	bench_check("free", cuMemFree_v2(first));
	print("wrong_words", *wrong);
	return *wrong != 0 || !back;
}

int main(int count, char **arguments)
{
	if (count < 4)
		return 2;
	bytes = strtoull(arguments[3], NULL, 10) * BENCH_MIB;
	chunk = (count > 4 ? strtoull(arguments[4], NULL, 10) : 0) * BENCH_MIB;
	int by_hand = strcmp(arguments[2], "bare") == 0;

	if (by_hand && (!chunk || bytes % chunk || (chunks = bytes / chunk) > MOST))
		return 2;
	bench_start(arguments[1]);
	uint64_t *wrong = bench_pinned_word();
	int status = by_hand ? bare(wrong) : through(wrong, chunk);

	bench_check("free", cuMemFreeHost(wrong));
	return status;
}
