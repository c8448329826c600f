/*
 * Blocks: the parts of a movable allocation that a framework's allocator has handed out. PyTorch's native allocator
 * keeps the segments that it gets from cudaMalloc, and reports each block of them that it gives to the program or takes
 * back (c10/core/Allocator.h, reportMemoryUsageToProfiler; shim/torch_blocks.c). With expandable segments it maps chunk sets side
 * by side, and a block reaches over several. So the library knows of which chunks nothing is in use. They are dead once the device is idle: PyTorch gives such memory to work that comes later, and
 * promises no content (c10/cuda/CUDACachingAllocator.cpp). A move copies nothing of them (spill_chunked_live).
 *
 * Each block is one buffer, whose begin and end are known (spill_chunk_map_buffer).
 *
 * The memory of a CUDA graph is in use although its blocks were taken back. So from the first capture on all memory counts
 * as in use. An allocation in which no block was reported is in use, too.
 */
#ifndef SPILL_BLOCKS_H
#define SPILL_BLOCKS_H

#include "chunked.h"

/*
 * Blocks of a movable allocation may be reported from now on, or of a chunk set, while it is mapped. Without memory for
 * that, none of it is ever dead. Does nothing if it is followed.
 */
void spill_blocks_follow(struct spill_chunked *chunked);
/* The allocation is being released, or the set was unmapped. Does nothing for others. pre: it is delisted */
void spill_blocks_end(struct spill_chunked *chunked);

bool spill_blocks_any(void); /* allocations that are followed. Costs one load. */

/*
 * The program gets a block. Calls `each` for the part in each followed allocation: these live as long as the block. Any
 * thread.
 */
typedef bool spill_blocks_part_fn(struct spill_chunked *chunked, uint64_t ptr, uint64_t bytes);
void spill_blocks_taken(uint64_t ptr, uint64_t bytes, spill_blocks_part_fn *each);
/* The program has given it back. */
void spill_blocks_given(uint64_t ptr, uint64_t bytes);

/*
 * A block may reach over memory that never moves, and that nobody finds in the chunk map: a set was pinned. So what a
 * launch names of blocks that begin in front of it is not all that it uses, for good (exact_begins).
 */
void spill_blocks_reach_over(void);

extern const struct spill_fork_lock spill_blocks_fork_lock;

#endif
