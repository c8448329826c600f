/*
 * What an array takes, from its description: for the log, the ledger and the limit. Layouts are the vendors' secret, so
 * this is what the texels of all levels take. 0 for NULL and for an array that takes no memory when it is made.
 */
#ifndef SPILL_ARRAY_BYTES_H
#define SPILL_ARRAY_BYTES_H

#include <stdint.h>

#include "abi/cuda.h"
#include "abi/hip.h"

uint64_t spill_array_bytes_cuda(const CUDA_ARRAY_DESCRIPTOR *array);
uint64_t spill_array_bytes_cuda_3d(const CUDA_ARRAY3D_DESCRIPTOR *array, unsigned levels);
uint64_t spill_array_bytes_hip(const HIP_ARRAY_DESCRIPTOR *array);
uint64_t spill_array_bytes_hip_3d(const HIP_ARRAY3D_DESCRIPTOR *array, unsigned levels);
uint64_t spill_array_bytes_hip_channels(const hipChannelFormatDesc *channels, hipExtent extent,
                                        unsigned flags, unsigned levels);

#endif
