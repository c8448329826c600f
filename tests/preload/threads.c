/*
 * Runs THREADS threads. ROUNDS times each thread takes memory of various sizes, three allocations
 * at a time. It writes data of its own, reads it back, and frees it. Usage: threads THREADS ROUNDS
 * [small]. Exit status: 0; 1 data wrong or a call failed.
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "cuda_api.h"

#define HELD 3
#define LARGEST ((size_t)5 << 20)

static CUcontext context;
static unsigned rounds;

struct held {
	CUdeviceptr address;
	size_t bytes;
	unsigned value;
};

static const size_t mixed[] = {4096, 3 << 20, 1 << 20, 100000, 5 << 20, 2 << 20, 512};
static const size_t small[] = {4096, 512, 20000};
static const size_t *sizes = mixed, *sizes_end = mixed + sizeof(mixed) / sizeof(*mixed);

static int take(struct held *held, unsigned number)
{
	held->bytes = sizes[number % (size_t)(sizes_end - sizes)];
	held->value = number * 2654435761u;
	return cuMemAlloc_v2(&held->address, held->bytes) ||
	       cuMemsetD32_v2(held->address, held->value, held->bytes / 4);
}

static int give(struct held *held, unsigned *copy)
{
	int bad = cuMemcpyDtoH_v2(copy, held->address, held->bytes);

	for (size_t i = 0; !bad && i < held->bytes / 4; i++)
		bad = copy[i] != held->value;
	return cuMemFree_v2(held->address) || bad;
}

static void *run(void *number)
{
	struct held held[HELD] = {0};
	unsigned *copy = malloc(LARGEST), first = (unsigned)(uintptr_t)number * 1000003u;
	uintptr_t bad = cuCtxSetCurrent(context);

	for (unsigned i = 0; i < rounds; i++) {
		struct held *one = &held[i % HELD];

		bad += one->bytes && give(one, copy);
		bad += (uintptr_t)take(one, first + i);
	}
	for (int i = 0; i < HELD; i++)
		bad += held[i].bytes && give(&held[i], copy);
	free(copy);
	return (void *)bad;
}

int main(int argc, char **argv)
{
	unsigned count = argc >= 3 ? (unsigned)atoi(argv[1]) : 0;
	pthread_t threads[64];
	uintptr_t bad = 0;

	if (!count || count > 64)
		return 64;
	rounds = (unsigned)atoi(argv[2]);
	if (argc == 4) {
		sizes = small;
		sizes_end = small + sizeof(small) / sizeof(*small);
	}
	if (cuInit(0) || cuDevicePrimaryCtxRetain(&context, 0))
		return 1;
	for (unsigned i = 0; i < count; i++)
		if (pthread_create(&threads[i], NULL, run, (void *)(uintptr_t)i))
			return 1;
	for (unsigned i = 0; i < count; i++) {
		void *result;

		pthread_join(threads[i], &result);
		bad += (uintptr_t)result;
	}
	printf("bad %llu\n", (unsigned long long)bad);
	return bad != 0;
}
