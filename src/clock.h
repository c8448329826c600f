/* The one clock of bounds and rates. */
#ifndef SPILL_CLOCK_H
#define SPILL_CLOCK_H

#include <stdint.h>
#include <time.h>

/* CLOCK_MONOTONIC, nanoseconds; no system call where the kernel has a vDSO. */
static inline uint64_t spill_clock_ns(void)
{
	struct timespec time;
	clock_gettime(CLOCK_MONOTONIC, &time);
	return (uint64_t)time.tv_sec * 1000000000ull + (uint64_t)time.tv_nsec;
}

#endif
