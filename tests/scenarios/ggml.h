/*
 * What stands in for llama.cpp's backend of a GPU, in a library of its name (libggml-cuda.so, libggml-hip.so): buffers, and the
 * pool of scratch memory that it has where there is no virtual memory management. How that pool works was read in
 * ggml/src/ggml-cuda/ggml-cuda.cu (ggml_cuda_pool_leg): a request gets the smallest cached block that holds it, else a new one
 * that is 5 % larger; at most 256 blocks are kept; a block that is given back stays cached, and is never freed. All of the
 * memory comes from one call site, as there.
 *
 * Every call of the vendor's that takes or gives memory prints a line with its result.
 */
#ifndef SCENARIO_GGML_H
#define SCENARIO_GGML_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct block {
	uint64_t address;
	size_t bytes; /* of the block, which may be more than was asked for */
};

#pragma GCC visibility push(default)

void ggml_start(const char *kernels);

/* A buffer; false: out of memory, which the caller has to live with. */
bool ggml_buffer(struct block *block, size_t bytes);
void ggml_buffer_free(const struct block *block);

/* Scratch memory. A pool that cannot grow ends the program (abort). `flushes`: it frees what it has cached and asks again first. */
struct block ggml_pool_take(size_t bytes, bool flushes);
void ggml_pool_give(struct block block);

/* Work, none of which waits. Words `from` on of the block, as a buffer of seed `seed` has them. */
void ggml_fill(const struct block *block, size_t from, size_t bytes, uint64_t seed);
void ggml_verify(const struct block *block, size_t from, size_t bytes, uint64_t seed);

/* The same as ggml_fill for the whole block, but begun only after ggml_let_go, and so is all that comes behind it. */
void ggml_hold_fill(const struct block *block, uint64_t seed);
void ggml_let_go(void);

/* Waits for all work. The number of words that were not what they should be. */
uint64_t ggml_wait(void);

/* Prints what is in use on the device, by the vendor's word. */
void ggml_print_used(const char *when);

#pragma GCC visibility pop

#endif
