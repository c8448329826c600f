/*
 * Stands in for llama.cpp's GPU backend, in a library of its name (libggml-cuda.so, libggml-hip.so).
 * It has buffers, and the pool of scratch memory for devices without virtual memory management. The
 * pool follows ggml/src/ggml-cuda/ggml-cuda.cu (ggml_cuda_pool_leg):
 *
 * - A request gets the smallest cached block that holds it, else a new one that is 5 % larger.
 * - At most 256 blocks are kept.
 * - A returned block stays cached, and is never freed.
 *
 * All of the memory comes from one call site, as there. Each call that takes or gives back memory
 * prints a line with its result.
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

/*
 * Scratch memory. A pool that cannot grow ends the program (abort). `flushes`: before that it frees
 * its cached blocks and asks again.
 */
struct block ggml_pool_take(size_t bytes, bool flushes);
void ggml_pool_give(struct block block);

/* Work, without a wait. Words of the block, from `from` on, as in a buffer of seed `seed`. */
void ggml_fill(const struct block *block, size_t from, size_t bytes, uint64_t seed);
void ggml_verify(const struct block *block, size_t from, size_t bytes, uint64_t seed);

/* ggml_fill for the whole block. It begins after ggml_let_go, and so does all later work. */
void ggml_hold_fill(const struct block *block, uint64_t seed);
void ggml_let_go(void);

/* Waits for all work. Returns the number of wrong words. */
uint64_t ggml_wait(void);

/* Prints the bytes in use on the device, as the vendor reports them. */
void ggml_print_used(const char *when);

#pragma GCC visibility pop

#endif
