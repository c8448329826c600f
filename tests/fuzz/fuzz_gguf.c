/*
 * Any file as a model that `spill doctor -- llama-server -m FILE` looks at: alone, and with a long end, as weights are. The end is a
 * hole, which takes no memory.
 */
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fuzz.h"
#include "gguf.h"

#define WEIGHTS ((off_t)32 << 20)

/* Sums never wrap: no layer is larger than the file, and the rest is what a real model could have. */
static void check(const char *path, uint64_t bytes)
{
	struct gguf_model model, again;

	memset(&model, 0xff, sizeof(model));
	memset(&again, 0xff, sizeof(again));
	if (gguf_read(path, &model))
		return;
	fuzz_require(model.layers && model.layers <= 10000, "a model has layers, and not too many");
	fuzz_require(model.layer_bytes && model.layer_bytes <= bytes && model.output_bytes <= bytes &&
	                 model.other_bytes <= bytes - model.layer_bytes,
	             "weights are in the file");
	fuzz_require(model.cache_bytes <= (uint64_t)1 << 60,
	             "the cache has a size that can be computed with");
	fuzz_require(!gguf_read(path, &again) && !memcmp(&model, &again, sizeof(model)), "the same again");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int fd = memfd_create("gguf", MFD_CLOEXEC);
	char path[64];

	fuzz_require(fd >= 0 && write(fd, data, size) == (ssize_t)size, "a file to read");
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	check(path, size);
	fuzz_require(ftruncate(fd, (off_t)size + WEIGHTS) == 0, "a file with an end");
	check(path, size + (uint64_t)WEIGHTS);
	close(fd);
	return 0;
}
