/*
 * NVML's devices by the numbers of the CUDA driver. NVML knows all devices of the machine in an order of its own, the driver those
 * that CUDA_VISIBLE_DEVICES names, in that order: what both have is the UUID.
 */
#ifndef SPILL_NVML_DEVICE_H
#define SPILL_NVML_DEVICE_H

#include <stdint.h>

#include "backend.h"

/*
 * `real`: a function of the NVML that gave the handle, so that no other copy of the library is asked about it. Negative: a device
 * that this process does not see, part of one (MIG), or a driver that is not initialised here.
 */
int spill_nvml_device(const struct spill_backend *backend, const void *real, uint64_t handle);

#endif
