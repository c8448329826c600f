/*
 * The device memory of a mixture of experts. The program allocates dense weights and routed experts
 * for each layer, then a KV cache. Then it makes tokens. Each token uses all dense weights, and a
 * part of the experts of each layer. The program stops at the first allocation that fails.
 *
 *	experts KERNELS LAYERS DENSE EXPERTS KV TOKENS AGAIN
 *
 *	DENSE, EXPERTS   bytes for each layer
 *	KV               bytes of the KV cache
 *	AGAIN            the first AGAIN layers free their experts after the tokens, and load them anew
 *
 * Exit status: 0; 1 data was wrong; 2 it could not be loaded; 64 usage.
 */
#include <stdio.h>
#include <stdlib.h>

#include "model.h"
#include "prog.h"

#define LAYERS 128
#define ROUTED 8 /* a token uses 1/ROUTED of a layer's experts */

static struct memory dense[LAYERS], experts[LAYERS], kv;

static void token(unsigned layers, unsigned n)
{
	for (unsigned i = 0; i < layers; i++) {
		uint64_t part = experts[i].bytes / ROUTED / 8 * 8;

		model_use(&dense[i], 0, dense[i].bytes);
		model_use(&experts[i], (n + i) % ROUTED * part, part);
	}
	model_use(&kv, 0, kv.bytes);
}

static void load_again(unsigned layers)
{
	for (unsigned i = 0; i < layers; i++) {
		model_free(&experts[i]);
		model_get(&experts[i], "experts", i, experts[i].bytes);
	}
}

int main(int argc, char **argv)
{
	if (argc < 8 || atoi(argv[2]) > LAYERS)
		return 64;
	unsigned layers = (unsigned)atoi(argv[2]);
	size_t free = 0, total = 0;

	model_start(argv[1]);
	for (unsigned i = 0; i < layers; i++) {
		model_get(&dense[i], "dense", i, strtoull(argv[3], NULL, 10));
		model_get(&experts[i], "experts", i, strtoull(argv[4], NULL, 10));
	}
	model_get(&kv, "kv", 0, strtoull(argv[5], NULL, 10));
	for (int n = 0; n < atoi(argv[6]); n++)
		token(layers, (unsigned)n);
	model_wait();
	model_must("info", way.info(&free, &total));
	printf("free %zu\n", free);
	load_again((unsigned)atoi(argv[7]));
	for (unsigned i = 0; i < layers; i++) {
		model_use(&experts[i], 0, experts[i].bytes);
		model_wait();
		model_free(&experts[i]);
		model_free(&dense[i]);
	}
	model_free(&kv);
	return model_result();
}
