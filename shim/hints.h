/*
 * What a call that submits work is going to use, read from its arguments before it enters the gate (follow.h). Copies
 * and sets say it exactly, graphs have said it when they were made (graph_hints.h). Of a launch every word of its parameters
 * that is an address of ours counts, with all that lies behind it up to the next address that a launch was given, in the same
 * allocation, or as far as the same parameter reached lately (param_extent.h): nobody says how long a buffer is.
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
	const void *function; /* CUfunction or CUkernel; NULL: a graph, copy or set */
	const CUlaunchConfig *config;
	bool configured;        /* config says the dimensions and the stream; it can be NULL all the same */
	unsigned size[6];       /* grid, then block */
	void **params, **extra; /* as of cuLaunchKernel */
	CUgraphExec graph;      /* graph_hints.h */
	struct {
		uint64_t va, bytes;
	} ranges[2];
	/* Copies of rows, and batches of `count` copies (boxes.h). */
	const CUDA_MEMCPY2D *copy_2d;
	const CUDA_MEMCPY3D *copy_3d;
	const CUDA_MEMCPY3D_PEER *copy_peer;
	const CUDA_MEMCPY3D_BATCH_OP *copies_3d;
	const CUdeviceptr *to, *from;
	const size_t *sizes;
	size_t count;
	struct {
		CUdeviceptr to;
		size_t pitch, bytes, height; /* bytes of a row */
	} set;
	void *stream;
	bool per_thread; /* by the row */
};

/*
 * Tells the use, waits and moves as spill_follow_before does, and returns its stopwatch, or NULL. Keeps errno. pre: as there, and
 * the call's arguments are what the driver will be given
 */
void *spill_hint(const struct spill_hint *hint);

#endif
