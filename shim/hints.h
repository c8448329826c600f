/*
 * What a call that submits work is going to use, read from its arguments before it enters the gate (src/follow.h). Copies
 * and sets say it exactly. Of a launch every word of its parameters that is an address of ours counts, with all that lies
 * behind it up to the next address that a launch was given, in the same allocation: nobody says how long a buffer is.
 *
 * So a hint is wrong where memory is reached by pointers in memory; where a word looks like an address and is none; where an
 * address in the middle of a buffer was given once, which splits it (its first part is then all that its begin stands for);
 * and where a buffer was never given to a launch (it is taken for the end of the one before). It costs time, never results.
 */
#ifndef SPILL_HINTS_H
#define SPILL_HINTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "abi/cuda_work.h"
#include "follow.h"

/* The `fill` column of HINTED rows (hooks_cuda_work.def) sets what the call has. */
struct spill_hint {
	const void *function; /* CUfunction or CUkernel; NULL: a copy or set */
	const CUlaunchConfig *config;
	bool configured;        /* config says the dimensions and the stream; it can be NULL all the same */
	unsigned size[6];       /* grid, then block */
	void **params, **extra; /* as of cuLaunchKernel */
	struct {
		uint64_t va, bytes;
	} ranges[2];
	void *stream;
	bool per_thread; /* by the row */
};

/*
 * Tells the use, waits and moves as spill_follow_before does, and returns its stopwatch, or NULL. Keeps errno. pre: as there, and
 * the call's arguments are what the driver will be given
 */
void *spill_hint(const struct spill_hint *hint);

#endif
