/* Memory that vendors' descriptors name: an array's bytes, a copy's address ranges. */
#ifndef SPILL_DESCRIPTORS_H
#define SPILL_DESCRIPTORS_H

#include <stdint.h>

#include "abi/cuda.h"
#include "abi/cuda_work.h"
#include "abi/hip.h"

/*
 * Bytes of an array, for the log, the ledger and the limit. The vendors do not publish layouts, so
 * this is the size of the texels on all levels. 0: the pointer is NULL, or the array takes no
 * memory when it is made.
 */
uint64_t spill_array_bytes_cuda(const CUDA_ARRAY_DESCRIPTOR *array);
uint64_t spill_array_bytes_cuda_3d(const CUDA_ARRAY3D_DESCRIPTOR *array, unsigned levels);
uint64_t spill_array_bytes_hip(const HIP_ARRAY_DESCRIPTOR *array);
uint64_t spill_array_bytes_hip_3d(const HIP_ARRAY3D_DESCRIPTOR *array, unsigned levels);
uint64_t spill_array_bytes_hip_channels(const hipChannelFormatDesc *channels, hipExtent extent,
                                        unsigned flags, unsigned levels);

struct spill_box {
	uint64_t va, bytes; /* bytes 0: an array, or empty */
};

struct spill_boxes {
	struct spill_box to, from;
};

struct spill_boxes spill_boxes_2d(const CUDA_MEMCPY2D *copy);
struct spill_boxes spill_boxes_3d(const CUDA_MEMCPY3D *copy);
struct spill_boxes spill_boxes_peer(const CUDA_MEMCPY3D_PEER *copy);
/* Empty if either side is an array, because the lengths then count elements. */
struct spill_boxes spill_boxes_of_batch(const CUDA_MEMCPY3D_BATCH_OP *copy);

/* A set of `height` rows of `bytes` each. */
struct spill_box spill_box_set(CUdeviceptr to, size_t pitch, size_t bytes, size_t height);

#endif
