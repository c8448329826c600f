/*
 * Blocks: the parts of a movable allocation that a framework's allocator has handed out. PyTorch's native allocator
 * keeps the segments that it gets from cudaMalloc, and reports each block of them that it gives to the program or takes
 * back (c10/core/Allocator.h, reportMemoryUsageToProfiler; shim/torch_blocks.c). So the library knows of which chunks
 * nothing is in use. They are dead once the device is idle: PyTorch gives such memory to work that comes later, and
 * promises no content (c10/cuda/CUDACachingAllocator.cpp). A move copies nothing of them (spill_chunked_live).
 *
 * The memory of a CUDA graph is in use although its blocks were taken back. So from the first capture on all memory counts
 * as in use. An allocation in which no block was reported is in use, too.
 */
#ifndef SPILL_BLOCKS_H
#define SPILL_BLOCKS_H

#include "chunked.h"

/* Blocks of a new movable allocation may be reported from now on. Without memory for that, none of it is ever dead. */
void spill_blocks_follow(struct spill_chunked *chunked);
/* The allocation is being released. Does nothing for others. */
void spill_blocks_end(const struct spill_chunked *chunked);

bool spill_blocks_any(void); /* allocations that are followed. Costs one load. */

/*
 * The program gets a block. Returns its allocation, which lives as long as the block, for spill_unpark; NULL: it is not
 * followed. Any thread.
 */
struct spill_chunked *spill_blocks_taken(uint64_t ptr, uint64_t bytes);
/* The program has given it back. */
void spill_blocks_given(uint64_t ptr, uint64_t bytes);

extern const struct spill_fork_lock spill_blocks_fork_lock;

#endif
