/*
 * What one allocation and its free cost a program: the driver's own entry points, resolved as a plain program does.
 * Prints `BYTES NANOSECONDS` for each size, the median of many pairs; in stream order `BYTES-async
 * NANOSECONDS`. scripts/bench runs it with and without the library in turns, because only ratios
 * within one run mean anything on a shared machine.
 *
 * usage: pair [PAIRS]
 */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

typedef int init_fn(unsigned);
typedef int device_fn(int *, int);
typedef int retain_fn(void **, int);
typedef int current_fn(void *);
typedef int alloc_fn(unsigned long long *, size_t);
typedef int free_fn(unsigned long long);
typedef int alloc_async_fn(unsigned long long *, size_t, void *);
typedef int free_async_fn(unsigned long long, void *);

static void *driver;

static void *find(const char *name)
{
	void *found = dlsym(driver, name);
	if (!found) {
		fprintf(stderr, "pair: the driver has no %s\n", name);
		exit(1);
	}
	return found;
}

static void check(const char *what, int result)
{
	if (result) {
		fprintf(stderr, "pair: %s: error %d\n", what, result);
		exit(1);
	}
}

static uint64_t now(void)
{
	struct timespec time;
	clock_gettime(CLOCK_MONOTONIC, &time);
	return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

static int compare(const void *left, const void *right)
{
	uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;
	return (a > b) - (a < b);
}

static const size_t sizes[] = {1 << 10, 1 << 20, 64 << 20};
#define SIZES (sizeof(sizes) / sizeof(sizes[0]))

static void print(size_t bytes, const char *how, uint64_t *times, size_t pairs)
{
	qsort(times, pairs, sizeof(*times), compare);
	printf("%zu%s %llu\n", bytes, how, (unsigned long long)times[pairs / 2]);
}

/* In the default stream. The neighbour keeps the pool's memory. */
static void run_async(uint64_t *times, size_t pairs)
{
	alloc_async_fn *alloc = (alloc_async_fn *)find("cuMemAllocAsync");
	free_async_fn *release = (free_async_fn *)find("cuMemFreeAsync");
	for (size_t size = 0; size < SIZES; size++) {
		unsigned long long neighbour, pointer;
		check("cuMemAllocAsync", alloc(&neighbour, sizes[size], NULL));
		for (size_t i = 0; i < pairs; i++) {
			uint64_t start = now();
			check("cuMemAllocAsync", alloc(&pointer, sizes[size], NULL));
			check("cuMemFreeAsync", release(pointer, NULL));
			times[i] = now() - start;
		}
		check("cuMemFreeAsync", release(neighbour, NULL));
		print(sizes[size], "-async", times, pairs);
	}
}

int main(int count, char **arguments)
{
	size_t pairs = count > 1 ? strtoul(arguments[1], NULL, 10) : 2000;
	uint64_t *times = malloc(pairs * sizeof(*times));
	int device;
	void *context;
	driver = dlopen("libcuda.so.1", RTLD_NOW);
	if (!driver || !times || !pairs) {
		fprintf(stderr, "pair: %s\n", driver ? "no memory" : dlerror());
		return 1;
	}
	check("cuInit", ((init_fn *)find("cuInit"))(0));
	check("cuDeviceGet", ((device_fn *)find("cuDeviceGet"))(&device, 0));
	check("cuDevicePrimaryCtxRetain", ((retain_fn *)find("cuDevicePrimaryCtxRetain"))(&context, device));
	check("cuCtxSetCurrent", ((current_fn *)find("cuCtxSetCurrent"))(context));
	alloc_fn *alloc = (alloc_fn *)find("cuMemAlloc_v2");
	free_fn *release = (free_fn *)find("cuMemFree_v2");
	for (size_t size = 0; size < SIZES; size++) {
		/* A neighbour that stays: the last free of a block gives it back to the system, which costs far more. */
		unsigned long long neighbour;
		check("cuMemAlloc_v2", alloc(&neighbour, sizes[size]));
		for (size_t i = 0; i < pairs; i++) {
			unsigned long long pointer;
			uint64_t start = now();
			check("cuMemAlloc_v2", alloc(&pointer, sizes[size]));
			check("cuMemFree_v2", release(pointer));
			times[i] = now() - start;
		}
		check("cuMemFree_v2", release(neighbour));
		print(sizes[size], "", times, pairs);
	}
	run_async(times, pairs);
	return 0;
}
