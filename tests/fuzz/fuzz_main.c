/*
 * A fuzz target as a plain program: NAME COUNT FILE… tries the files and COUNT changes of each, the same ones at every run.
 * With -fsanitize=fuzzer and -DSPILL_LIBFUZZER libFuzzer is in the place of its `main`.
 */
#include "fuzz.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

_Noreturn void fuzz_fail(const char *what)
{
	dprintf(STDERR_FILENO, "fuzz: %s\n", what); /* stderr may be kept (fuzz_printed.h) */
	abort();
}

#ifndef SPILL_LIBFUZZER

#define INPUT_MAX 65536

static uint64_t next_random(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

/* One change: a byte, a special byte, a range taken out or doubled. Returns the new size. */
static size_t change(uint8_t *data, size_t size, uint64_t *state)
{
	static const char special[] = "\n\r[]{}\"\\=:;# \t,%.-\0\xff\xef"
	                              "0123456789";
	size_t at = size ? next_random(state) % size : 0, count = next_random(state) % 16;

	if (count > size - at)
		count = size - at;
	switch (next_random(state) % 4) {
	case 0:
		if (size)
			data[at] = (uint8_t)next_random(state);
		return size;
	case 1:
		if (size)
			data[at] = (uint8_t)special[next_random(state) % (sizeof(special) - 1)];
		return size;
	case 2:
		memmove(data + at, data + at + count, size - at - count);
		return size - count;
	default:
		if (size + count > INPUT_MAX)
			return size;
		memmove(data + at + count, data + at, size - at);
		return size + count;
	}
}

#pragma weak LLVMFuzzerCustomMutator

/* A few changes, or one of those that know the form of the input. */
static size_t change_input(uint8_t *data, size_t size, uint64_t *state)
{
	if (LLVMFuzzerCustomMutator && next_random(state) % 2)
		return LLVMFuzzerCustomMutator(data, size, INPUT_MAX, (unsigned)next_random(state));
	for (uint64_t changes = 1 + next_random(state) % 4; changes; changes--)
		size = change(data, size, state);
	return size;
}

static void try_file(const char *path, unsigned long count)
{
	static uint8_t original[INPUT_MAX], data[INPUT_MAX];
	FILE *file = fopen(path, "rb");
	uint64_t state = 0x9e3779b97f4a7c15;
	size_t length;

	fuzz_require(file != NULL, path);
	length = fread(original, 1, sizeof(original), file);
	fclose(file);
	LLVMFuzzerTestOneInput(original, length);
	for (unsigned long i = 0; i < count; i++) {
		memcpy(data, original, length);
		LLVMFuzzerTestOneInput(data, change_input(data, length, &state));
	}
}

int main(int argc, char **argv)
{
	fuzz_require(argc > 2, "usage: fuzz_NAME COUNT FILE…");
	for (int i = 2; i < argc; i++)
		try_file(argv[i], strtoul(argv[1], NULL, 10));
	printf("%d files, %s changes of each\n", argc - 2, argv[1]);
	return 0;
}

#endif
