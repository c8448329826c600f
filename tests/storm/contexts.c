/*
 * contexts SEED ROUNDS CARD_MIB
 *
 * The storm of contexts. Threads make contexts, allocate in them, verify their data, and end the
 * contexts with their memory. Drivers give an ended context's handle to the next one. So another
 * thread's memory soon has the handle that one thread is ending. Every call is legal.
 *
 * Exit status: 0; 1 data was wrong or a call failed; 2 no device; 64 usage.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cuda_api.h"

#define THREADS 8
#define BLOCKS 6
#define KIB ((uint64_t)1 << 10)

struct block {
	CUdeviceptr address;
	uint64_t bytes;
	unsigned char value;
	bool ordered; /* from cuMemAllocAsync: it outlives its context, so it is freed */
};

struct worker {
	unsigned index;
	uint64_t random, round, largest, made, refused;
	bool failed;
	unsigned char *copy; /* `largest` bytes */
	struct block blocks[BLOCKS];
};

static atomic_bool over;
static uint64_t rounds;

static uint64_t below(struct worker *worker, uint64_t limit)
{
	uint64_t x = worker->random += 0x9e3779b97f4a7c15ull;
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
	return (x ^ (x >> 31)) % limit;
}

static void fail(struct worker *worker, const char *what, int result)
{
	fprintf(stderr, "thread %u, round %llu: %s: %d\n", worker->index, (unsigned long long)worker->round,
	        what, result);
	worker->failed = true;
	atomic_store(&over, true);
}

static bool must(struct worker *worker, const char *what, CUresult result)
{
	if (result)
		fail(worker, what, (int)result);
	return !result;
}

/* Half of them are small and share chunks; the others are large enough to move. */
static void make(struct worker *worker, struct block *block)
{
	block->bytes = below(worker, 2) ? KIB * (1 + below(worker, 512)) : 1 + below(worker, worker->largest);
	block->value = (unsigned char)(1 + below(worker, 255));
	block->ordered = below(worker, 4) == 0;
	CUresult result = block->ordered ? cuMemAllocAsync(&block->address, block->bytes, NULL)
	                                 : cuMemAlloc_v2(&block->address, block->bytes);
	if (result == CUDA_ERROR_OUT_OF_MEMORY)
		worker->refused++;
	else if (must(worker, "allocate", result)) {
		worker->made++;
		if (must(worker, "set", cuMemsetD8_v2(block->address, block->value, block->bytes)))
			return;
	}
	*block = (struct block){0};
}

static void verify(struct worker *worker, const struct block *block)
{
	if (!must(worker, "copy", cuMemcpyDtoH_v2(worker->copy, block->address, block->bytes)))
		return;
	/* Each byte is as the one before it. */
	if (worker->copy[0] != block->value || memcmp(worker->copy, worker->copy + 1, block->bytes - 1) != 0)
		fail(worker, "a byte is wrong", worker->copy[0]);
}

static void give(struct worker *worker, struct block *block)
{
	if (block->ordered)
		must(worker, "free in order", cuMemFreeAsync(block->address, NULL));
	else
		must(worker, "free", cuMemFree_v2(block->address));
	*block = (struct block){0};
}

/* The remaining memory ends with the context. Memory of the primary one is freed: others may hold that context, too. */
static void use(struct worker *worker, bool primary)
{
	for (unsigned i = 0; i < BLOCKS && !worker->failed; i++)
		make(worker, &worker->blocks[i]);
	for (unsigned i = 0; i < BLOCKS && !worker->failed; i++)
		if (worker->blocks[i].bytes)
			verify(worker, &worker->blocks[i]);
	for (unsigned i = 0; i < BLOCKS && !worker->failed; i++)
		if (worker->blocks[i].bytes &&
		    (primary || worker->blocks[i].ordered || below(worker, 3) == 0))
			give(worker, &worker->blocks[i]);
	memset(worker->blocks, 0, sizeof(worker->blocks));
	if (!worker->failed)
		must(worker, "synchronise", cuCtxSynchronize());
}

static void round_of_own(struct worker *worker)
{
	CUcontext context;
	CUresult result = cuCtxCreate_v2(&context, 0, 0);
	if (result == CUDA_ERROR_OUT_OF_MEMORY) {
		worker->refused++;
		return;
	}
	if (!must(worker, "create", result))
		return;
	use(worker, false);
	must(worker, "destroy", cuCtxDestroy_v2(context));
}

static void round_of_primary(struct worker *worker)
{
	CUcontext context;
	CUresult result = cuDevicePrimaryCtxRetain(&context, 0);
	if (result == CUDA_ERROR_OUT_OF_MEMORY) {
		worker->refused++;
		return;
	}
	if (!must(worker, "retain", result) || !must(worker, "set current", cuCtxSetCurrent(context)))
		return;
	use(worker, true);
	must(worker, "unset current", cuCtxSetCurrent(NULL));
	must(worker, "release", cuDevicePrimaryCtxRelease_v2(0));
}

static void *run(void *argument)
{
	struct worker *worker = argument;
	for (; worker->round < rounds && !worker->failed && !atomic_load(&over); worker->round++) {
		if (below(worker, 4) == 0)
			round_of_primary(worker);
		else
			round_of_own(worker);
	}
	return NULL;
}

int main(int count, char **arguments)
{
	static struct worker workers[THREADS];
	pthread_t threads[THREADS];
	bool failed = false;
	if (count != 4)
		return 64;
	uint64_t seed = strtoull(arguments[1], NULL, 10);
	uint64_t card = strtoull(arguments[3], NULL, 10) << 20;
	rounds = strtoull(arguments[2], NULL, 10);
	if (cuInit(0))
		return 2;
	for (unsigned i = 0; i < THREADS; i++) {
		/* Together they want about one and a half times the card. */
		workers[i] = (struct worker){.index = i, .random = seed * 1000 + i, .largest = card / 8};
		workers[i].copy = malloc(workers[i].largest > 512 * KIB ? workers[i].largest : 512 * KIB);
		pthread_create(&threads[i], NULL, run, &workers[i]);
	}
	for (unsigned i = 0; i < THREADS; i++) {
		pthread_join(threads[i], NULL);
		printf("thread %u: %llu rounds, %llu blocks, %llu without room\n", i,
		       (unsigned long long)workers[i].round, (unsigned long long)workers[i].made,
		       (unsigned long long)workers[i].refused);
		failed |= workers[i].failed;
		free(workers[i].copy);
	}
	puts(failed ? "WRONG" : "all bytes right");
	return failed;
}
