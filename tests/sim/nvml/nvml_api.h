/*
 * nvml: the simulated libnvidia-ml.so.1. This header has its prototypes and the types that libspill
 * does not need (src/vendor/abi/nvml.h has the others).
 *
 * It shows all devices of the machine, whatever CUDA_VISIBLE_DEVICES leaves. It never starts a
 * driver and knows no other process: each process has GPUs of its own here.
 *
 * Begin with nvml_api.def, the table of functions.
 */
#ifndef SIM_NVML_TYPES_H
#define SIM_NVML_TYPES_H

#include "abi/nvml.h"

typedef struct nvmlPciInfo_st {
	char busIdLegacy[16];
	unsigned int domain, bus, device, pciDeviceId, pciSubSystemId;
	char busId[32];
} nvmlPciInfo_t;

#define NVML(ret, symbol, parameters) __attribute__((visibility("default"))) ret symbol parameters;
#include "nvml_api.def"

#endif
