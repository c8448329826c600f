/*
 * A hint names the memory that a call will use. It is read from the call's arguments before the
 * call enters the gate (launch_access.h). Copies and sets name their ranges exactly. Graphs are
 * read when they are made (graph_hints.h).
 *
 * For a launch, every parameter word that points into a chunk counts as a buffer. No argument tells
 * the buffer's length. It ends where another launch's buffer begins in the same allocation, or
 * where the same parameter ended lately (param_extent.h).
 *
 * A hint can be wrong in these cases. It costs time, never results.
 * - A kernel follows pointers in memory.
 * - A word looks like an address and is none.
 * - A launch was once given an address inside a buffer. That splits the buffer.
 * - A buffer was never given to a launch. It counts as the end of the one before.
 */
#ifndef SPILL_HINTS_H
#define SPILL_HINTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "abi/cuda_work.h"
#include "launch_access.h"

/* The `fill` column of HINTED rows sets these members (hooks_cuda_work.def). */
struct spill_hint {
	const void *function; /* CUfunction or CUkernel; NULL: a graph, copy or set */
	const CUlaunchConfig *config;
	bool configured;        /* config has the sizes and the stream; config may be NULL */
	unsigned size[6];       /* grid, then block */
	void **params, **extra; /* as of cuLaunchKernel */
	CUgraphExec graph;      /* read by graph_hints.h */
	struct {
		uint64_t va, bytes;
	} ranges[2];
	/* Copies of rows, and batches of `count` copies (descriptors.h). */
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
	bool per_thread; /* from the row's variant */
};

/*
 * Passes the access to spill_before_launch and returns its stopwatch, or NULL. May wait and move
 * chunks. Keeps errno. pre: as for spill_before_launch; the driver gets the same arguments
 */
void *spill_hint(const struct spill_hint *hint);

#endif
