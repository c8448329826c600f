/*
 * What it costs to have weights in host memory that are read once a token (decode): by the device in place, over the link, or by the CPU
 * if the program leaves those layers to it. Pure. Rates are GB/s: 10^9 bytes a second.
 */
#ifndef SPILL_CLI_DECODE_H
#define SPILL_CLI_DECODE_H

#include <stdint.h>

/* What kernels that read in place get of a copy's rate: 51.4 of 55.5 GB/s (docs/measurements.md, "The host part is read at link speed"). */
#define DECODE_IN_PLACE 0.93

/* Milliseconds that a token takes longer for `bytes` more in host memory. pre: copy_rate > 0 */
double decode_over_link(uint64_t bytes, double copy_rate);

/* The least that a CPU takes to read them, at the rate of the host's memory. pre: memory_rate > 0 */
double decode_by_cpu(uint64_t bytes, double memory_rate);

enum decode_verdict { DECODE_CPU_FASTER, DECODE_CPU_SIMILAR, DECODE_CPU_SLOWER };

/*
 * Whether the program's own CPU offload would probably be faster. A CPU that also has to compute with the weights was seen to get less
 * than the memory gives, so it is "faster" only with a margin of two.
 */
enum decode_verdict decode_compare(double copy_rate, double memory_rate);

#endif
