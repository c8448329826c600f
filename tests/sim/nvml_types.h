/* What programs of the simulated NVML see of it: src/vendor/abi/nvml.h and what libspill does not need. */
#ifndef SIM_NVML_TYPES_H
#define SIM_NVML_TYPES_H

#include "abi/nvml.h"

typedef struct nvmlPciInfo_st {
	char busIdLegacy[16];
	unsigned int domain, bus, device, pciDeviceId, pciSubSystemId;
	char busId[32];
} nvmlPciInfo_t;

#define NVML(ret, symbol, parameters) __attribute__((visibility("default"))) ret symbol parameters;
#include "nvml.def"

#endif
