/* Shared by the contract tests of the simulated HIP. */
#ifndef SIM_HIP_TEST_H
#define SIM_HIP_TEST_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "hip_api.h"
#include "check.h"

static inline size_t free_bytes(void)
{
	size_t free = 0, total = 0;

	CHECK(hipMemGetInfo(&free, &total), hipSuccess);
	return free;
}

static inline bool has_cap(const char *cap)
{
	const char *caps = getenv("SPILL_SIM_CAPS");

	return caps && strstr(caps, cap);
}

#endif
