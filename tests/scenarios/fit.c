/*
 * A program that fits a model to several devices by a projection of its own. On each device it
 * allocates dense weights, the projected experts, and the rest of the dense weights. Then it
 * allocates a KV cache on each. The first allocation that fails ends the program. Then it makes
 * tokens. Each token uses dense weights, KV cache and some experts.
 *
 *	fit KERNELS TOKENS DENSE:REST:EXPERTS:COUNT:KV…
 *
 *	one word for each device: bytes of dense weights, of the rest of them, of one expert; number of
 *	experts; bytes of the KV cache
 *
 * Exit status: 0; 1 data was wrong; 2 an allocation failed; 64 usage.
 */
#include "cudart_api.h"

#include <stdio.h>
#include <stdlib.h>

#include "model.h"

#define DEVICES 16
#define EXPERTS 256

static struct {
	unsigned long long dense_bytes, rest_bytes, expert_bytes, kv_bytes;
	unsigned count;
	struct memory dense, rest, experts[EXPERTS], kv;
} devices[DEVICES];
static int device_count;

static void load(int d)
{
	model_must("device", cudaSetDevice(d));
	model_get(&devices[d].dense, "dense", (unsigned)d, devices[d].dense_bytes);
	for (unsigned i = 0; i < devices[d].count; i++)
		model_get(&devices[d].experts[i], "experts", (unsigned)d, devices[d].expert_bytes);
	model_get(&devices[d].rest, "dense", (unsigned)d, devices[d].rest_bytes);
}

static void use_all(const struct memory *memory)
{
	model_use(memory, 0, memory->bytes);
}

static void token(unsigned n)
{
	for (int d = 0; d < device_count; d++) {
		model_must("device", cudaSetDevice(d));
		use_all(&devices[d].dense);
		use_all(&devices[d].rest);
		use_all(&devices[d].experts[n % devices[d].count]);
		use_all(&devices[d].kv);
		model_wait();
	}
}

static void finish(int d)
{
	model_must("device", cudaSetDevice(d));
	for (unsigned i = 0; i < devices[d].count; i++)
		use_all(&devices[d].experts[i]);
	model_wait();
	for (unsigned i = 0; i < devices[d].count; i++)
		model_free(&devices[d].experts[i]);
	model_free(&devices[d].dense);
	model_free(&devices[d].rest);
	model_free(&devices[d].kv);
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

int main(int argc, char **argv)
{
	if (argc < 4 || !parse(argv + 3))
		return 64;
	model_start(argv[1]);
	for (int d = 0; d < device_count; d++)
		load(d);
	for (int d = 0; d < device_count; d++) {
		model_must("device", cudaSetDevice(d));
		model_get(&devices[d].kv, "kv", (unsigned)d, devices[d].kv_bytes);
	}
	for (int n = 0; n < atoi(argv[2]); n++)
		token((unsigned)n);
	for (int d = 0; d < device_count; d++)
		finish(d);
	return model_result();
}
