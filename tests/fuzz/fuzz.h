/* What the fuzz targets share. */
#ifndef FUZZ_H
#define FUZZ_H

#include <stddef.h>
#include <stdint.h>

/* The target: libFuzzer's name for it. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* libFuzzer's name for changes that know the form of an input. Targets without it link none. */
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most, unsigned seed);

/* Says what does not hold, and aborts. */
_Noreturn void fuzz_fail(const char *what);

static inline void fuzz_require(int truth, const char *what)
{
	if (!truth)
		fuzz_fail(what);
}

#endif
