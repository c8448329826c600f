/*
 * Reads the header of a model in the GGUF format (ggml's docs/gguf.md, versions 2 and 3): the sizes
 * of its weights and of its cache. No file is trusted: counts are bounded, offsets are checked.
 */
#ifndef SPILL_CLI_GGUF_H
#define SPILL_CLI_GGUF_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

struct gguf_model {
	uint64_t layers;
	uint64_t layer_bytes;  /* of all layers */
	uint64_t output_bytes; /* of the layer behind them, which may share the embedding's weights */
	uint64_t other_bytes;
	uint64_t cache_bytes; /* for a token, in 16 bits */
	bool has_experts;
};

/* Reads a model, with all its parts (NAME-00001-of-00003.gguf). NULL, or a static text: why not. */
const char *gguf_read(const char *path, struct gguf_model *model);

/*
 * NULL: this user can open the model, with all its parts. Else why not, and the path of the part. The
 * text is valid until the next call.
 */
const char *gguf_unreadable(const char *path, char part[PATH_MAX]);

#endif
