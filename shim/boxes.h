/*
 * Which addresses a copy or set of rows touches, from its first byte to its last: what lies between two rows counts as well. Read as the
 * CUDA Driver API describes cuMemcpy2D, cuMemcpy3D and cuMemsetD2D8; what the driver will refuse may come out as anything.
 */
#ifndef SPILL_BOXES_H
#define SPILL_BOXES_H

#include <stdint.h>

#include "abi/cuda_work.h"

struct spill_box {
	uint64_t va, bytes; /* bytes 0: an array, or nothing */
};

struct spill_boxes {
	struct spill_box to, from;
};

struct spill_boxes spill_boxes_2d(const CUDA_MEMCPY2D *copy);
struct spill_boxes spill_boxes_3d(const CUDA_MEMCPY3D *copy);
struct spill_boxes spill_boxes_peer(const CUDA_MEMCPY3D_PEER *copy);
/* Nothing, if one of the two is an array: lengths are in its elements then. */
struct spill_boxes spill_boxes_of_batch(const CUDA_MEMCPY3D_BATCH_OP *copy);

/* `height` rows of `bytes` each. */
struct spill_box spill_box_set(CUdeviceptr to, size_t pitch, size_t bytes, size_t height);

#endif
