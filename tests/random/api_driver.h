/* Shared by the files of CUDA's driver. */
#ifndef RANDOM_API_DRIVER_H
#define RANDOM_API_DRIVER_H

#include "api.h"
#include "cuda_api.h"

extern CUcontext contexts[DEVICES];
extern CUfunction functions[DEVICES][KERNELS];

#endif
