/* What management.c tells. */
#ifndef SPILL_TEST_MANAGEMENT_H
#define SPILL_TEST_MANAGEMENT_H

#include "abi/nvml.h"

struct management {
	unsigned begun, asked; /* calls */
	unsigned long long free;
	nvmlReturn_t memory, users[2];
	unsigned count[2];
	nvmlProcessInfo_t list[2][64];
};

#endif
