/*
 * What the benchmarks of moving memory share: a device through the driver API, its kernels, and a clock. One program
 * runs on a real GPU and on the simulated one. Every failure ends the program with status 2.
 */
#ifndef BENCH_DRIVER_H
#define BENCH_DRIVER_H

#include <stdint.h>

#include "cuda_api.h"

#define BENCH_MIB ((uint64_t)1 << 20)

enum bench_kernel {
	BENCH_FILL,     /* ptr, words, seed */
	BENCH_VERIFY,   /* ptr, words, seed, out */
	BENCH_WIDE_SUM, /* ptr, words, out */
	BENCH_WIDE_ADD, /* ptr, words, value */
	BENCH_KERNELS
};

extern CUstream bench_stream; /* all work of the program is in it */

/* Device 0's primary context, current; its stream; the kernels of the module at that path, loaded. */
void bench_start(const char *kernels);

/* Ends the program unless `result` is 0: status 3 for out of memory, which some callers expect, 2 for all else. */
void bench_check(const char *what, CUresult result);

/* Launches over the whole device: u64 parameters, as the kernel has them. */
void bench_launch(enum bench_kernel kernel, uint64_t first, uint64_t second, uint64_t third, uint64_t fourth);

void bench_finish(void); /* waits for the stream */

/* Microseconds of CLOCK_MONOTONIC. */
uint64_t bench_now_us(void);

/* Sorts. */
uint64_t bench_median(uint64_t *values, unsigned count);

/* Physical memory on device 0 or on its host node. */
CUmemGenericAllocationHandle bench_create(uint64_t bytes, int on_host);

/* Maps and gives device 0 access. */
void bench_map(CUdeviceptr at, uint64_t bytes, CUmemGenericAllocationHandle handle);

/* A pinned word that kernels reach at its own address. */
uint64_t *bench_pinned_word(void);

uint64_t bench_free_bytes(void);

/* The value behind `--NAME` in the arguments, or `otherwise`. */
uint64_t bench_option(char **arguments, const char *name, uint64_t otherwise);

#endif
