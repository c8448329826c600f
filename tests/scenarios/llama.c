/*
 * The device memory of one run of llama.cpp. Weights are one buffer, the KV cache is another. The
 * prompt is processed in micro-batches. Each takes scratch memory for its whole context from the
 * pool. Decoding then takes little, and always the same. The program waits for the device only at
 * the end of the prompt and of the run. It knows nothing of libspill.
 *
 *	llama KERNELS WEIGHTS KV TOKENS UBATCH SCRATCH DECODE [flush] [hold]
 *
 *	WEIGHTS, KV      bytes of the two buffers
 *	TOKENS, UBATCH   tokens of the prompt, and of a micro-batch
 *	SCRATCH          bytes of scratch memory for each token so far
 *	DECODE           number of tokens decoded. Each takes as much scratch memory as a prompt of
 *	                 UBATCH tokens.
 *	flush            a pool that cannot grow frees its cached blocks, and asks again
 *	hold             a micro-batch asks for its block while the last one's is still written
 *
 * Exit status: 0; 1 a buffer could not be had, or data was wrong; aborts where llama.cpp does.
 */
#include "ggml.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FAILED = 1, USAGE = 64 };

static struct {
	const char *kernels;
	size_t weights, kv, tokens, ubatch, scratch, decode;
	bool flushes, holds;
} options;

/* The KV cache is filled in step with the prompt; what the prompt does not reach is filled behind it. */
static void fill_kv(const struct block *kv, size_t from, size_t to)
{
	size_t token = options.kv / options.tokens / 8 * 8;

	if (to >= options.tokens)
		ggml_fill(kv, from * token, options.kv - from * token, 2);
	else
		ggml_fill(kv, from * token, (to - from) * token, 2);
}

/* The block that is being written while the next one is asked for: its work goes on, and its words are looked at behind it. */
static void settle(struct block *held, uint64_t seed)
{
	if (held->bytes == 0)
		return;
	ggml_let_go();
	ggml_verify(held, 0, held->bytes, seed);
	held->bytes = 0;
}

static void prompt(const struct block *kv)
{
	struct block held = {0};
	uint64_t seed = 100;

	for (size_t from = 0; from < options.tokens; from += options.ubatch, seed++) {
		size_t to = from + options.ubatch < options.tokens ? from + options.ubatch : options.tokens;
		size_t bytes = (from + options.ubatch) * options.scratch;
		struct block block = ggml_pool_take(bytes, options.flushes);

		settle(&held, seed - 1);
		if (options.holds) {
			ggml_hold_fill(&block, seed);
			held = block;
		} else {
			ggml_fill(&block, 0, bytes, seed);
			ggml_verify(&block, 0, bytes, seed);
		}
		fill_kv(kv, from, to);
		ggml_pool_give(block);
		printf("prompt %zu\n", to);
	}
	settle(&held, seed - 1);
}

static void decode(void)
{
	for (size_t n = 0; n < options.decode; n++) {
		size_t bytes = options.ubatch * options.scratch;
		struct block block = ggml_pool_take(bytes, options.flushes);

		ggml_fill(&block, 0, bytes, 1000 + n);
		ggml_verify(&block, 0, bytes, 1000 + n);
		ggml_pool_give(block);
	}
	printf("decode %zu\n", options.decode);
}

static bool parse(int argc, char **argv)
{
	size_t *numbers[] = {&options.weights, &options.kv,      &options.tokens,
	                     &options.ubatch,  &options.scratch, &options.decode};

	if (argc < 8)
		return false;
	options.kernels = argv[1];
	for (unsigned i = 0; i < 6; i++)
		*numbers[i] = strtoull(argv[2 + i], NULL, 10);
	for (int i = 8; i < argc; i++) {
		options.flushes |= !strcmp(argv[i], "flush");
		options.holds |= !strcmp(argv[i], "hold");
	}
	return options.tokens && options.ubatch;
}

/* As llama.cpp: it says so and gives up. */
static void buffer(struct block *block, const char *name, size_t bytes)
{
	if (ggml_buffer(block, bytes))
		return;
	printf("failed to allocate the %s\n", name);
	exit(FAILED);
}

int main(int argc, char **argv)
{
	struct block weights, kv;

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (!parse(argc, argv)) {
		fprintf(stderr,
		        "usage: llama KERNELS WEIGHTS KV TOKENS UBATCH SCRATCH DECODE [flush] [hold]\n");
		return USAGE;
	}
	ggml_start(options.kernels);
	buffer(&weights, "weights", options.weights);
	ggml_fill(&weights, 0, options.weights, 1);
	buffer(&kv, "KV cache", options.kv);
	prompt(&kv);
	ggml_wait();
	ggml_print_used("behind the prompt");
	printf("-- decode\n");
	decode();
	ggml_verify(&weights, 0, options.weights, 1);
	ggml_verify(&kv, 0, options.kv, 2);
	uint64_t wrong = ggml_wait();
	ggml_buffer_free(&kv);
	ggml_buffer_free(&weights);
	printf(wrong ? "WRONG\n" : "all data right\n");
	return wrong ? FAILED : 0;
}
