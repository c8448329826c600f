/*
 * Reads the words of a launch's parameters that can be addresses, from an array of pointers or from
 * one buffer. Used for launches (hints.c) and for kernel nodes (graph_hints.c). Inline, because
 * every launch pays for it.
 */
#ifndef SPILL_PARAMS_H
#define SPILL_PARAMS_H

#include <stdint.h>
#include <string.h>

#include "abi/cuda_work.h"
#include "layouts.h"
#include "hash.h"

/* No launch has a larger buffer of parameters (layouts.c). */
#define SPILL_PARAMS_MOST_BYTES 32768

typedef void spill_word_fn(void *closure, uint64_t word);

/* The program's values may be unaligned. */
static inline void spill_params_of_value(const void *at, size_t words, spill_word_fn *each, void *closure)
{
	uint64_t word;
	for (size_t i = 0; i < words; i++) {
		memcpy(&word, (const char *)at + i * sizeof(word), sizeof(word));
		each(closure, word);
	}
}

/* The buffer with all parameters (CUDA Driver API, cuLaunchKernel). NULL: an option is not known, or it is too large. */
static inline const void *spill_params_buffer(void **extra, size_t *bytes)
{
	const void *buffer = NULL;
	const size_t *size = NULL;
	for (; extra[0] != CU_LAUNCH_PARAM_END; extra += 2) {
		if (extra[0] == CU_LAUNCH_PARAM_BUFFER_POINTER)
			buffer = extra[1];
		else if (extra[0] == CU_LAUNCH_PARAM_BUFFER_SIZE)
			size = extra[1];
		else
			return NULL;
	}
	*bytes = size ? *size : 0;
	return size && *size <= SPILL_PARAMS_MOST_BYTES ? buffer : NULL;
}

static inline bool spill_params_of_buffer(void **extra, spill_word_fn *each, void *closure)
{
	size_t bytes;
	const void *buffer = spill_params_buffer(extra, &bytes);
	if (buffer)
		spill_params_of_value(buffer, bytes / sizeof(uint64_t), each, closure);
	return buffer;
}

/* False: nobody knows the parameters. The driver refuses a launch with both an array and a buffer. */
static inline bool spill_params_words(const void *function, void **params, void **extra, spill_word_fn *each,
                                      void *closure)
{
	if (extra && !params)
		return spill_params_of_buffer(extra, each, closure);
	const struct spill_layout *layout = params && !extra ? spill_layout_of(function) : NULL;
	for (uint32_t i = 0; layout && i < layout->count; i++) {
		const void *value = params[layout->parts[i].index];
		if (value)
			spill_params_of_value(value, layout->parts[i].words, each, closure);
	}
	return layout || (!params && !extra);
}

/* A hash of the function, grid and block. Never 0. */
static inline uint64_t spill_params_site(const void *function, const unsigned size[6])
{
	uint64_t hash = (uintptr_t)function;
	for (unsigned i = 0; i < 3; i++)
		hash = spill_hash(hash, (uint64_t)size[i] << 32 | size[i + 3]);
	return hash ? hash : 1;
}

#endif
