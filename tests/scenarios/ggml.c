#include "ggml.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "prog.h"

#define CACHED 256
#define WORD sizeof(uint64_t)

/* Pinned words that kernels and host share. */
struct shared {
	_Atomic uint64_t go; /* hold_fill waits for it */
	_Atomic uint64_t mismatches;
};

static struct block cache[CACHED];
static void *kernel_fill, *kernel_verify, *kernel_hold_fill;
static struct shared *shared;

/* A call that cannot fail where there is memory: the program ends. */
static void must(const char *call, int result)
{
	if (!result)
		return;
	printf("%s %s\n", call, way.error_name(result));
	abort();
}

/* Prints the call's line. With ADDRESSES where it is, from the first on: the same calls of the simulator give the same ones. */
static int say(const char *call, size_t bytes, uint64_t address, int result)
{
	static uint64_t first;

	first = first ? first : address;
	printf("%s %zu %s", call, bytes, way.error_name(result));
	if (getenv("ADDRESSES") && !result)
		printf(" at %lld", (long long)(address - first));
	if (way.last_error)
		printf(" last %s", way.error_name(way.last_error()));
	printf("\n");
	return result;
}

void ggml_start(const char *kernels)
{
	void *pinned;

	must("start", way.start());
	must("load", way.load(kernels));
	must("kernel", way.kernel("fill_part", &kernel_fill));
	must("kernel", way.kernel("verify_quietly", &kernel_verify));
	must("kernel", way.kernel("hold_fill", &kernel_hold_fill));
	must("pinned", way.alloc_host(&pinned, 3 * WORD));
	shared = pinned;
	atomic_store(&shared->mismatches, 0);
}

/* Buffers and pool alike. */
static int take(struct block *block, size_t bytes)
{
	*block = (struct block){.bytes = bytes};
	int result = way.alloc(&block->address, bytes);

	return say("alloc", bytes, block->address, result);
}

static void give(const struct block *block)
{
	must("free", say("free", block->bytes, block->address, way.release(block->address)));
}

/* -- buffers --------------------------------------------------------------------------------------------- */

bool ggml_buffer(struct block *block, size_t bytes)
{
	return take(block, bytes) == 0;
}

void ggml_buffer_free(const struct block *block)
{
	give(block);
}

/* -- the pool -------------------------------------------------------------------------------------------- */

static struct block *best_fit(size_t bytes)
{
	struct block *best = NULL;

	for (unsigned i = 0; i < CACHED; i++) {
		if (cache[i].bytes >= bytes && (!best || cache[i].bytes < best->bytes))
			best = &cache[i];
	}
	return best;
}

static void flush(void)
{
	must("synchronize", way.synchronize());
	for (unsigned i = 0; i < CACHED; i++) {
		if (cache[i].bytes)
			give(&cache[i]);
		cache[i] = (struct block){0};
	}
}

struct block ggml_pool_take(size_t bytes, bool flushes)
{
	size_t ahead = (bytes + bytes / 20 + 255) / 256 * 256;
	struct block *cached = best_fit(bytes), block;

	if (cached) {
		block = *cached;
		*cached = (struct block){0};
		return block;
	}
	int result = take(&block, ahead);
	if (result && flushes) {
		flush();
		result = take(&block, ahead);
	}
	must("pool", result);
	return block;
}

void ggml_pool_give(struct block block)
{
	for (unsigned i = 0; i < CACHED; i++) {
		if (cache[i].bytes == 0) {
			cache[i] = block;
			return;
		}
	}
	give(&block);
}

/* -- work ------------------------------------------------------------------------------------------------ */

void ggml_fill(const struct block *block, size_t from, size_t bytes, uint64_t seed)
{
	uint64_t address = block->address + from, words = bytes / WORD, first = from / WORD;
	void *parameters[] = {&address, &words, &seed, &first};

	must("fill", way.launch(kernel_fill, parameters));
}

void ggml_verify(const struct block *block, size_t from, size_t bytes, uint64_t seed)
{
	uint64_t address = block->address + from, words = bytes / WORD, first = from / WORD;
	uint64_t wrong = (uintptr_t)&shared->mismatches;
	void *parameters[] = {&address, &words, &seed, &first, &wrong};

	must("verify", way.launch(kernel_verify, parameters));
}

void ggml_hold_fill(const struct block *block, uint64_t seed)
{
	uint64_t flag = (uintptr_t)&shared->go, words = block->bytes / WORD, address = block->address;
	void *parameters[] = {&flag, &address, &words, &seed};

	atomic_store(&shared->go, 0);
	must("hold", way.launch(kernel_hold_fill, parameters));
}

void ggml_let_go(void)
{
	atomic_store(&shared->go, 1);
}

uint64_t ggml_wait(void)
{
	must("synchronize", way.synchronize());
	return atomic_load(&shared->mismatches);
}

void ggml_print_used(const char *when)
{
	size_t free = 0, total = 0;

	must("info", way.info(&free, &total));
	printf("used %s %zu\n", when, total - free);
}
