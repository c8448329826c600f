/*
 * What a program does that fits a model to several devices by a projection of its own: on each device it allocates dense weights,
 * the experts that it projected to be there, and the rest of the dense weights; when all are there, a KV cache on each. Whatever
 * its projection forgot, the allocation that fails is the end. Then it makes tokens, each of which uses dense weights, KV cache
 * and some experts.
 *
 *	fit KERNELS TOKENS DENSE:REST:EXPERTS:COUNT:KV…
 *
 *	one word a device: bytes of dense weights, of the rest of them, bytes of experts, how many of those, bytes of the KV cache
 *
 * Exit status: 0; 1 data was wrong; 2 an allocation failed; 64 usage.
 */
#ifdef REAL_HEADERS
#include <cuda_runtime_api.h>
#else
#include "cudart/api.h"
#endif

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "prog.h"

#define DEVICES 16
#define EXPERTS 256
#define WORD sizeof(uint64_t)

struct memory {
	uint64_t address, bytes, seed;
};

static struct {
	unsigned long long dense_bytes, rest_bytes, expert_bytes, kv_bytes;
	unsigned count;
	struct memory dense, rest, experts[EXPERTS], kv;
} devices[DEVICES];
static int device_count;
static void *fill, *verify;
static _Atomic uint64_t *mismatches; /* pinned */

static void must(const char *call, int result)
{
	if (!result)
		return;
	printf("%s %s\n", call, way.error_name(result));
	exit(1);
}

static void work(void *kernel, const struct memory *memory)
{
	uint64_t address = memory->address, words = memory->bytes / WORD, first = 0, seed = memory->seed;
	uint64_t counts = (uintptr_t)mismatches;
	void *parameters[] = {&address, &words, &seed, &first, &counts};

	must("launch", way.launch(kernel, parameters));
}

static void get(int device, struct memory *memory, const char *what, uint64_t bytes)
{
	static uint64_t seed;

	*memory = (struct memory){.bytes = bytes, .seed = ++seed};
	int result = way.alloc(&memory->address, bytes);
	printf("alloc %d %s %llu %s\n", device, what, (unsigned long long)bytes, way.error_name(result));
	if (result) {
		printf("failed on device %d\n", device);
		exit(2);
	}
	work(fill, memory);
}

static void load(int d)
{
	must("device", cudaSetDevice(d));
	get(d, &devices[d].dense, "dense", devices[d].dense_bytes);
	for (unsigned i = 0; i < devices[d].count; i++)
		get(d, &devices[d].experts[i], "experts", devices[d].expert_bytes);
	get(d, &devices[d].rest, "dense", devices[d].rest_bytes);
}

static void token(unsigned n)
{
	for (int d = 0; d < device_count; d++) {
		must("device", cudaSetDevice(d));
		work(verify, &devices[d].dense);
		work(verify, &devices[d].rest);
		work(verify, &devices[d].experts[n % devices[d].count]);
		work(verify, &devices[d].kv);
		must("synchronize", way.synchronize());
	}
}

static void finish(int d)
{
	must("device", cudaSetDevice(d));
	for (unsigned i = 0; i < devices[d].count; i++)
		work(verify, &devices[d].experts[i]);
	must("synchronize", way.synchronize());
	for (unsigned i = 0; i < devices[d].count; i++)
		must("free", way.release(devices[d].experts[i].address));
	must("free", way.release(devices[d].dense.address));
	must("free", way.release(devices[d].rest.address));
	must("free", way.release(devices[d].kv.address));
}

static int parse(char **words)
{
	for (; words[device_count]; device_count++) {
		typeof(&devices[0]) device = &devices[device_count];

		if (device_count == DEVICES ||
		    sscanf(words[device_count], "%llu:%llu:%llu:%u:%llu", &device->dense_bytes,
		           &device->rest_bytes, &device->expert_bytes, &device->count,
		           &device->kv_bytes) != 5 ||
		    device->count > EXPERTS || !device->count)
			return 0;
	}
	return device_count;
}

static void start(const char *kernels)
{
	void *pinned;

	must("start", way.start());
	must("load", way.load(kernels));
	must("kernel", way.kernel("fill_part", &fill));
	must("kernel", way.kernel("verify_part", &verify));
	must("pinned", way.alloc_host(&pinned, 2 * WORD));
	mismatches = pinned;
	atomic_store(mismatches, 0);
}

int main(int argc, char **argv)
{
	if (argc < 4 || !parse(argv + 3))
		return 64;
	setvbuf(stdout, NULL, _IOLBF, 0);
	start(argv[1]);
	for (int d = 0; d < device_count; d++)
		load(d);
	for (int d = 0; d < device_count; d++) {
		must("device", cudaSetDevice(d));
		get(d, &devices[d].kv, "kv", devices[d].kv_bytes);
	}
	printf("-- loaded\n");
	for (int n = 0; n < atoi(argv[2]); n++)
		token((unsigned)n);
	printf("-- done\n");
	for (int d = 0; d < device_count; d++)
		finish(d);
	printf(*mismatches ? "WRONG\n" : "all data right\n");
	return *mismatches != 0;
}
