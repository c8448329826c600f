/*
 * What a program does with a mixture of experts: for each layer it allocates dense weights and the routed experts, then a KV cache,
 * and makes tokens, each of which uses all dense weights and a part of the experts of each layer. It stops at the first
 * allocation that fails.
 *
 *	experts KERNELS LAYERS DENSE EXPERTS KV TOKENS [AGAIN]
 *
 *	DENSE, EXPERTS   bytes a layer
 *	KV               bytes of the KV cache
 *	AGAIN            experts of so many layers, from the first on, are freed and loaded anew behind the tokens
 *
 * Exit status: 0; 1 data was wrong; 2 it could not be loaded; 64 usage.
 */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "prog.h"

#define LAYERS 128
#define WORD sizeof(uint64_t)
#define ROUTED 8 /* one in so many parts of a layer's experts is used by a token */

struct memory {
	uint64_t address, bytes, seed;
};

static struct memory dense[LAYERS], experts[LAYERS], kv;
static void *fill, *verify;
static _Atomic uint64_t *mismatches; /* pinned */

static void must(const char *call, int result)
{
	if (!result)
		return;
	printf("%s %s\n", call, way.error_name(result));
	exit(1);
}

static void work(void *kernel, const struct memory *memory, uint64_t from, uint64_t bytes)
{
	uint64_t address = memory->address + from, words = bytes / WORD, first = from / WORD;
	uint64_t seed = memory->seed, counts = (uintptr_t)mismatches;
	void *parameters[] = {&address, &words, &seed, &first, &counts};

	must("launch", way.launch(kernel, parameters));
}

static void get(struct memory *memory, const char *what, unsigned layer, uint64_t bytes)
{
	static uint64_t seed;

	*memory = (struct memory){.bytes = bytes, .seed = ++seed};
	int result = way.alloc(&memory->address, bytes);
	printf("alloc %s %u %llu %s\n", what, layer, (unsigned long long)bytes, way.error_name(result));
	if (result) {
		printf("failed to load\n");
		exit(2);
	}
	work(fill, memory, 0, bytes);
}

static void token(unsigned layers, unsigned n)
{
	for (unsigned i = 0; i < layers; i++) {
		uint64_t part = experts[i].bytes / ROUTED / WORD * WORD;

		work(verify, &dense[i], 0, dense[i].bytes);
		work(verify, &experts[i], (n + i) % ROUTED * part, part);
	}
	work(verify, &kv, 0, kv.bytes);
}

static void start(const char *kernels)
{
	void *pinned;

	must("start", way.start());
	must("load", way.load(kernels));
	must("kernel", way.kernel("fill_part", &fill));
	must("kernel", way.kernel("verify_part", &verify));
	must("pinned", way.alloc_host(&pinned, 2 * WORD));
	mismatches = pinned;
	atomic_store(mismatches, 0);
}

int main(int argc, char **argv)
{
	if (argc < 7 || atoi(argv[2]) > LAYERS)
		return 64;
	unsigned layers = (unsigned)atoi(argv[2]);
	size_t free = 0, total = 0;

	setvbuf(stdout, NULL, _IOLBF, 0);
	start(argv[1]);
	for (unsigned i = 0; i < layers; i++) {
		get(&dense[i], "dense", i, strtoull(argv[3], NULL, 10));
		get(&experts[i], "experts", i, strtoull(argv[4], NULL, 10));
	}
	get(&kv, "kv", 0, strtoull(argv[5], NULL, 10));
	for (int n = 0; n < atoi(argv[6]); n++)
		token(layers, (unsigned)n);
	must("synchronize", way.synchronize());
	must("info", way.info(&free, &total));
	for (int i = 0; argc > 7 && i < atoi(argv[7]); i++) {
		must("free", way.release(experts[i].address));
		get(&experts[i], "experts", (unsigned)i, experts[i].bytes);
	}
	printf("free %zu\n", free);
	for (unsigned i = 0; i < layers; i++) {
		work(verify, &experts[i], 0, experts[i].bytes);
		must("synchronize", way.synchronize());
		must("free", way.release(experts[i].address));
		must("free", way.release(dense[i].address));
	}
	must("free", way.release(kv.address));
	printf(*mismatches ? "WRONG\n" : "all data right\n");
	return *mismatches != 0;
}
