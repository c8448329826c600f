/* The clock for time limits and rates. */
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

/* The time `ns` nanoseconds from now, for calls that wait until a time of CLOCK_MONOTONIC. */
static inline struct timespec spill_clock_in(uint64_t ns)
{
	uint64_t until = spill_clock_ns() + ns;
	return (struct timespec){.tv_sec = (time_t)(until / 1000000000),
	                         .tv_nsec = (long)(until % 1000000000)};
}

#endif
