#include "model.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "prog.h"

#define WORD sizeof(uint64_t)

static void *fill, *verify;
static _Atomic uint64_t *mismatches; /* pinned */

void model_must(const char *call, int result)
{
	if (!result)
		return;
	printf("%s %s\n", call, way.error_name(result));
	exit(1);
}

void model_start(const char *kernels)
{
	void *pinned;

	setvbuf(stdout, NULL, _IOLBF, 0);
	model_must("start", way.start());
	model_must("load", way.load(kernels));
	model_must("kernel", way.kernel("fill_part", &fill));
	model_must("kernel", way.kernel("verify_quietly", &verify));
	model_must("pinned", way.alloc_host(&pinned, 2 * WORD));
	mismatches = pinned;
	atomic_store(mismatches, 0);
}

static void work(void *kernel, const struct memory *memory, uint64_t from, uint64_t bytes)
{
	uint64_t address = memory->address + from, words = bytes / WORD, first = from / WORD;
	uint64_t seed = memory->seed, wrong = (uintptr_t)mismatches;
	void *parameters[] = {&address, &words, &seed, &first, &wrong};

	model_must("launch", way.launch(kernel, parameters));
}

void model_get(struct memory *memory, const char *what, unsigned number, uint64_t bytes)
{
	static uint64_t seed;

	seed++;
	*memory = (struct memory){.bytes = bytes, .seed = seed};
	int result = way.alloc(&memory->address, bytes);
	printf("alloc %s %u %llu %s\n", what, number, (unsigned long long)bytes, way.error_name(result));
	if (result) {
		printf("failed to load\n");
		exit(2);
	}
	work(fill, memory, 0, bytes);
}

void model_free(const struct memory *memory)
{
	model_must("free", way.release(memory->address));
}

void model_use(const struct memory *memory, uint64_t from, uint64_t bytes)
{
	work(verify, memory, from, bytes);
}

void model_wait(void)
{
	model_must("synchronize", way.synchronize());
}

int model_result(void)
{
	printf(*mismatches ? "WRONG\n" : "all data right\n");
	return *mismatches != 0;
}
