/*
 * What passing the gate costs (gate.h): calls of functions that submit work, resolved as a plain program does, on a
 * driver that does nothing (fake_driver.c). Prints `FUNCTION NANOSECONDS` a round: the mean of its calls. scripts/bench --gate
 * runs it with and without the library in turns.
 *
 * usage: gate [ROUNDS [CALLS]]
 */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "abi/cuda.h"
#include "abi/cuda_work.h"

typedef CUresult launch_fn(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                           CUstream, void **, void **);
typedef CUresult copy_fn(CUdeviceptr, CUdeviceptr, size_t, CUstream);

static launch_fn *launch;
static copy_fn *copy;

static double now(void)
{
	struct timespec time;
	clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

static unsigned launches(uint64_t calls)
{
	unsigned failures = 0;
	for (uint64_t i = 0; i < calls; i++)
		failures += launch(NULL, 1, 1, 1, 32, 1, 1, 0, NULL, NULL, NULL) != CUDA_SUCCESS;
	return failures;
}

static unsigned copies(uint64_t calls)
{
	unsigned failures = 0;
	for (uint64_t i = 0; i < calls; i++)
		failures += copy(0, 0, i, NULL) != CUDA_SUCCESS;
	return failures;
}

static unsigned measure(const char *name, unsigned (*make)(uint64_t calls), uint64_t calls)
{
	double start = now();
	unsigned failures = make(calls);
	printf("%s %.2f\n", name, (now() - start) / (double)calls);
	return failures;
}

int main(int count, char **arguments)
{
	unsigned long rounds = count > 1 ? strtoul(arguments[1], NULL, 10) : 5;
	uint64_t calls = count > 2 ? strtoull(arguments[2], NULL, 10) : 2000000;
	unsigned failures = 0;
	void *driver = dlopen("libcuda.so.1", RTLD_NOW);
	if (driver) {
		*(void **)&launch = dlsym(driver, "cuLaunchKernel");
		*(void **)&copy = dlsym(driver, "cuMemcpyAsync");
	}
	if (!launch || !copy || !calls) {
		fprintf(stderr, "gate: %s\n", driver ? "the driver lacks a function" : dlerror());
		return 1;
	}
	for (unsigned long round = 0; round < rounds; round++) {
		failures += measure("cuLaunchKernel", launches, calls);
		failures += measure("cuMemcpyAsync", copies, calls);
	}
	return failures != 0;
}
