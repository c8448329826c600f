/* What the contract tests of the simulated HIP begin with. */
#ifndef SIM_HIP_TEST_H
#define SIM_HIP_TEST_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#ifdef REAL_HEADERS
#include <hip/hip_runtime_api.h>
#else
#include "hip_api.h"
#endif

#include "check.h"

#define MIB ((size_t)1 << 20)
#define GARBAGE ((void *)0x1000)

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
