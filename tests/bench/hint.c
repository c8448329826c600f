/*
 * What it costs to tell what a launch uses (shim/hints.h): launches of four pointers and two numbers through a stub of the
 * library, on a driver that does nothing, with all memory on the device. Prints as gate.c does: with nobody who wants to know,
 * with the arguments read, and with the whole of launch_access.c behind. scripts/bench --gate runs it.
 *
 * usage: hint [ROUNDS [CALLS]]
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "chunk_map.h"
#include "real.h"
#include "work.h"

#define BASE (3ull << 40)
#define CHUNK (64ull << 20)

static const size_t sizes[] = {8, 8, 8, 8, 4, 4};

static CUresult info(const void *function, size_t index, size_t *offset, size_t *size)
{
	if (index >= sizeof(sizes) / sizeof(sizes[0]))
		return CUDA_ERROR_INVALID_VALUE;
	*offset = 0;
	*size = sizes[index];
	return CUDA_SUCCESS;
}

static __attribute__((noinline)) CUresult nothing(CUfunction f, unsigned gx, unsigned gy, unsigned gz,
                                                  unsigned bx, unsigned by, unsigned bz, unsigned shared,
                                                  CUstream stream, void **params, void **extra)
{
	__asm__ volatile("");
	return CUDA_SUCCESS;
}

/* -- what the library is given ---------------------------------------------------------------------------- */

const struct spill_row spill_rows[SPILL_HOOKS];
_Atomic uint64_t spill_row_hits[SPILL_HOOKS][SPILL_WAYS_COUNT];

bool spill_shim_ready(void)
{
	return true;
}

void *spill_real(const struct spill_row *row, const void *caller)
{
	return (void *)nothing;
}

void *spill_real_resolve(enum spill_domain domain, const char *symbol)
{
	return (void *)info;
}

/* Only reads what a launch uses. No vendor is entered, so no launch is timed. */
static void *check(const struct spill_launch_access *use)
{
	if (use->count != 4 || use->on_host)
		abort();
	return NULL;
}

static const struct spill_launch_calls reader = {.before = check};

SPILL_HINTED_STUB(static __attribute__((noinline)), launch, LINK, CUresult, cuLaunchKernel,
                  (CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                   unsigned shared, CUstream stream, void **params, void **extra),
                  (f, gx, gy, gz, bx, by, bz, shared, stream, params, extra), .function = f,
                  .size = {gx, gy, gz, bx, by, bz}, .stream = stream, .params = params, .extra = extra)

/* -- measuring -------------------------------------------------------------------------------------------- */

static double now(void)
{
	struct timespec time;
	clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

static void measure(const char *name, uint64_t calls)
{
	uint64_t pointers[4];
	int numbers[2] = {7, 1 << 30};
	void *params[] = {&pointers[0], &pointers[1], &pointers[2], &pointers[3], &numbers[0], &numbers[1]};
	double start = now();
	for (uint64_t i = 0; i < calls; i++) {
		for (unsigned k = 0; k < 4;
		     k++) /* other memory each time: nothing stays in the cache of one line */
			pointers[k] = BASE + (4 * (i % 16) + k) * CHUNK;
		launch((CUfunction)&pointers, 1, 1, 1, 32, 1, 1, 0, NULL, params, NULL);
	}
	printf("%s %.2f\n", name, (now() - start) / (double)calls);
}

int main(int count, char **arguments)
{
	unsigned long rounds = count > 1 ? strtoul(arguments[1], NULL, 10) : 5;
	uint64_t calls = count > 2 ? strtoull(arguments[2], NULL, 10) : 1000000;
	for (unsigned i = 0; i < 64; i++)
		if (!spill_chunk_map_set(BASE + i * CHUNK, CHUNK, false, false))
			return 1;
	for (unsigned long round = 0; round < rounds && calls; round++) {
		atomic_store(&spill_launch_access_wanted, false);
		measure("launch", calls);
		atomic_store(&spill_launch_access_wanted, true);
		spill_launch_access_use(&reader);
		measure("launch-read", calls);
		spill_launch_access_use(NULL);
		measure("launch-followed", calls);
	}
	return 0;
}
