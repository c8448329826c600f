/*
 * Shared by the contract tests of the driver (driver_test.c): the driver, loaded without its
 * runtime, and helpers. Each test is a process of its own, because a driver starts once, and an
 * error may break it for good.
 */
#ifndef SIM_DRIVER_TEST_H
#define SIM_DRIVER_TEST_H

#include <dlfcn.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cuda_api.h"

#define MIB ((size_t)1 << 20)
#define GRANULE (2 * MIB)
#define SKIP 77

/* A function that an older driver lacks is NULL. A test that needs it crashes. */
struct driver {
#define DRIVER(symbol, base, since, variant, parameters) __typeof__(symbol) *symbol;
#include "cuda_api.def"
};

extern struct driver d;
extern const char *kernels_path;
extern void *library;
extern bool simulated;
extern CUcontext context; /* the primary one of device 0, current after start() */
extern CUmodule module;   /* kernels_path, in it */

#define CHECK(condition) \
	do { \
		if (!(condition)) { \
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition); \
			_exit(1); \
		} \
	} while (0)
#define GIVES(code, call) \
	do { \
		CUresult gave = (call); \
		if (gave != (code)) { \
			fprintf(stderr, "%s:%d: %s gives %d, not %d\n", __FILE__, __LINE__, #call, gave, \
			        (code)); \
			_exit(1); \
		} \
	} while (0)
#define OK(call) GIVES(CUDA_SUCCESS, call)

void load(void);  /* loads the driver and does not initialise it */
void start(void); /* also sets the variables above */
bool has(int attribute);
void need(int attribute); /* skips the test without it */
void need_simulator(void);

CUresult launch(CUstream stream, const char *name, const uint64_t *values, unsigned count);
#define RUN(stream, name, ...) \
	launch(stream, name, (uint64_t[]){__VA_ARGS__}, sizeof((uint64_t[]){__VA_ARGS__}) / sizeof(uint64_t))

uint64_t *pinned(void); /* a page of pinned host memory, zeroed */
void fill(CUdeviceptr at, size_t bytes, uint64_t seed);
uint64_t mismatches(CUdeviceptr at, size_t bytes, uint64_t seed);
size_t free_memory(void);
CUmemGenericAllocationHandle chunk(CUmemLocationType type, size_t bytes);
CUresult allow(CUdeviceptr at, size_t bytes, CUmemAccess_flags flags);
unsigned type_of(CUdeviceptr at);
_Atomic uint64_t *word_at(uint64_t *word);
/* Waits until a counter stops. An early stop gives a lower result. `enough`: need not wait. */
unsigned at_rest(atomic_uint *counter, unsigned enough);

/* -- running the tests: usage PROGRAM KERNELS [TEST] ------------------------------------------- */

/* Defines a test and adds it to those of its program, which run in the order of their lines. */
#define DRIVER_TEST(name) \
	static void name(void); \
	__attribute__((constructor(1000 + __LINE__))) static void add_##name(void) \
	{ \
		add_test(#name, name); \
	} \
	static void name(void)
void add_test(const char *name, void (*run)(void));

#endif
