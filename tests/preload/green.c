/*
 * Green contexts: memory of each kind that is allocated while one is current, used by its streams, and freed after its
 * end; and memory that one stream frees while its kernel is still held, which no other stream may get. Some rounds, so
 * that each finds what the one before left. The first one ends while it is current.
 *
 * usage: green KERNELS COUNT MIB      COUNT buffers of MIB each, every other one in stream order
 *
 * Exit status: 0; 1 data wrong, or a call failed; 64 usage; 77 the device cannot be divided.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "cuda_api.h"

#define MIB_SHIFT 20
#define BUFFERS 64
#define ROUNDS 3
#define SMS 16
#define HELD_US 50000
#define SEED 77ull

static int failed;

/* A failure ends the program, unless it is what is tested (`go_on`). */
static void check(const char *what, CUresult result, int go_on)
{
	const char *name = "?";

	if (!result)
		return;
	cuGetErrorName(result, &name);
	printf("%s: %s\n", what, name);
	failed++;
	if (!go_on)
		exit(1);
}

static CUcontext primary;
static CUfunction fill, verify, hold_fill;
static CUdeviceptr wrong; /* counts words */
static _Atomic uint64_t *flag;

struct green {
	CUgreenCtx handle;
	CUcontext context;
	CUstream stream;
};

/* A part of the device, and its context, which is current from now on. */
static struct green divide(CUdevice device)
{
	CUdevResource all, part;
	CUdevResourceDesc description;
	unsigned parts = 1;
	struct green made;

	check("resource", cuDeviceGetDevResource(device, &all, CU_DEV_RESOURCE_TYPE_SM), 0);
	if (all.sm.smCount < SMS)
		exit(77);
	check("split", cuDevSmResourceSplitByCount(&part, &parts, &all, NULL, 0, SMS), 0);
	check("describe", cuDevResourceGenerateDesc(&description, &part, 1), 0);
	check("create", cuGreenCtxCreate(&made.handle, description, device, CU_GREEN_CTX_DEFAULT_STREAM), 0);
	check("convert", cuCtxFromGreenCtx(&made.context, made.handle), 0);
	check("set", cuCtxSetCurrent(made.context), 0);
	check("stream", cuGreenCtxStreamCreate(&made.stream, made.handle, CU_STREAM_NON_BLOCKING, 0), 0);
	return made;
}

static void end(struct green *green)
{
	check("destroy stream", cuStreamDestroy_v2(green->stream), 1);
	check("set", cuCtxSetCurrent(primary), 0);
	check("destroy", cuGreenCtxDestroy(green->handle), 0);
}

static void launch(CUfunction function, CUstream stream, void **parameters)
{
	check("launch", cuLaunchKernel(function, 64, 1, 1, 256, 1, 1, 0, stream, parameters, NULL), 0);
}

static void verify_in(CUstream stream, CUdeviceptr buffer, uint64_t words, uint64_t seed)
{
	launch(verify, stream, (void *[]){&buffer, &words, &seed, &wrong});
}

static int in_stream_order(int buffer)
{
	return buffer % 2;
}

/* Half of what is in stream order is freed so, in the green context's stream; the rest after its end. */
static int freed_in_it(int buffer)
{
	return buffer % 4 == 3;
}

static void use(struct green *green, CUdeviceptr *buffers, int count, size_t bytes)
{
	uint64_t words = bytes / sizeof(uint64_t);

	for (uint64_t i = 0; i < (uint64_t)count; i++) {
		if (in_stream_order((int)i))
			check("allocate", cuMemAllocAsync(&buffers[i], bytes, green->stream), 0);
		else
			check("allocate", cuMemAlloc_v2(&buffers[i], bytes), 0);
		launch(fill, green->stream, (void *[]){&buffers[i], &words, &i});
	}
	for (uint64_t i = 0; i < (uint64_t)count; i++) {
		verify_in(green->stream, buffers[i], words, i);
		if (freed_in_it((int)i))
			check("free in order", cuMemFreeAsync(buffers[i], green->stream), 1);
	}
	check("work", cuStreamSynchronize(green->stream), 0);
}

static void round_of(CUdevice device, int count, size_t bytes)
{
	CUdeviceptr buffers[BUFFERS];
	struct green green = divide(device);

	use(&green, buffers, count, bytes);
	end(&green);
	for (int i = 0; i < count; i++)
		if (!freed_in_it(i))
			verify_in(NULL, buffers[i], bytes / sizeof(uint64_t), (uint64_t)i);
	check("work", cuCtxSynchronize(), 0);
	for (int i = 0; i < count; i++)
		if (!freed_in_it(i))
			check(in_stream_order(i) ? "free of what is in stream order" : "free",
			      cuMemFree_v2(buffers[i]), 1);
}

static void *release(void *ignored)
{
	usleep(HELD_US);
	atomic_store(flag, 1);
	return ignored;
}

/* Memory of `stream` that is freed in order behind a kernel which is still held. */
static CUdeviceptr freed_while_held(CUstream stream, size_t bytes)
{
	CUdeviceptr memory;
	uint64_t words = bytes / sizeof(uint64_t), seed = SEED + 1;

	atomic_store(flag, 0);
	check("allocate", cuMemAllocAsync(&memory, bytes, stream), 0);
	launch(hold_fill, stream, (void *[]){&flag, &memory, &words, &seed});
	check("free in order", cuMemFreeAsync(memory, stream), 1);
	return memory;
}

/* Memory that `stream` gets meanwhile keeps what it writes there. */
static void use_while_held(CUstream stream, size_t bytes)
{
	CUdeviceptr memory;
	uint64_t words = bytes / sizeof(uint64_t), seed = SEED;
	pthread_t releaser;

	check("allocate", cuMemAllocAsync(&memory, bytes, stream), 0);
	pthread_create(&releaser, NULL, release, NULL);
	launch(fill, stream, (void *[]){&memory, &words, &seed});
	check("work", cuStreamSynchronize(stream), 0);
	pthread_join(releaser, NULL);
	check("set", cuCtxPushCurrent_v2(primary), 0);
	check("work", cuCtxSynchronize(), 0);
	check("set", cuCtxPopCurrent_v2(NULL), 0);
	verify_in(stream, memory, words, seed);
	check("work", cuStreamSynchronize(stream), 0);
	check("free in order", cuMemFreeAsync(memory, stream), 1);
}

/*
 * The default stream of a green context is not the primary one's, and a wait in it is none for the primary context's
 * work. So many buffers beside it let it be in each place.
 */
static void orders(CUdevice device, int beside, size_t bytes)
{
	CUdeviceptr buffers[BUFFERS];
	struct green green = divide(device);

	for (int i = 0; i < beside; i++)
		check("allocate", cuMemAlloc_v2(&buffers[i], bytes), 0);
	freed_while_held(NULL, bytes);
	check("set", cuCtxSetCurrent(primary), 0);
	use_while_held(NULL, bytes);
	freed_while_held(NULL, bytes);
	check("set", cuCtxSetCurrent(green.context), 0);
	use_while_held(NULL, bytes);
	check("set", cuCtxSetCurrent(primary), 0);
	freed_while_held(NULL, bytes);
	check("set", cuCtxSetCurrent(green.context), 0);
	pthread_t releaser;
	pthread_create(&releaser, NULL, release, NULL);
	check("work", cuCtxSynchronize(), 0);
	use_while_held(green.stream, bytes);
	pthread_join(releaser, NULL);
	end(&green);
	for (int i = 0; i < beside; i++)
		check("free", cuMemFree_v2(buffers[i]), 1);
}

/* A green context that ends while it is current serves nothing any more, and nothing waits for it later. */
static void end_while_current(CUdevice device, size_t bytes)
{
	struct green green = divide(device);
	CUdeviceptr memory;

	check("destroy stream", cuStreamDestroy_v2(green.stream), 0);
	check("destroy", cuGreenCtxDestroy(green.handle), 0);
	if (cuMemAlloc_v2(&memory, bytes) != CUDA_ERROR_CONTEXT_IS_DESTROYED)
		failed++;
	check("set", cuCtxSetCurrent(primary), 0);
}

static void start(const char *kernels, CUdevice *device)
{
	CUmodule module;
	void *page;

	check("init", cuInit(0), 0);
	check("device", cuDeviceGet(device, 0), 0);
	check("context", cuDevicePrimaryCtxRetain(&primary, *device), 0);
	check("set", cuCtxSetCurrent(primary), 0);
	check("module", cuModuleLoad(&module, kernels), 0);
	check("fill", cuModuleGetFunction(&fill, module, "fill"), 0);
	check("verify", cuModuleGetFunction(&verify, module, "verify"), 0);
	check("hold_fill", cuModuleGetFunction(&hold_fill, module, "hold_fill"), 0);
	check("counter", cuMemAlloc_v2(&wrong, sizeof(uint64_t)), 0);
	check("clear", cuMemsetD8_v2(wrong, 0, sizeof(uint64_t)), 0);
	check("flag", cuMemHostAlloc(&page, 4096, 0), 0);
	flag = page;
}

int main(int count, char **arguments)
{
	uint64_t words_wrong = 0;
	CUdevice device;
	int buffers = count == 4 ? atoi(arguments[2]) : 0;

	if (buffers < 1 || buffers > BUFFERS)
		return 64;
	size_t bytes = strtoull(arguments[3], NULL, 10) << MIB_SHIFT;
	start(arguments[1], &device);
	end_while_current(device, bytes);
	for (int i = 0; i < ROUNDS; i++) {
		round_of(device, buffers, bytes);
		orders(device, i * buffers / 2, bytes);
	}
	check("work", cuCtxSynchronize(), 0);
	check("copy out", cuMemcpyDtoH_v2(&words_wrong, wrong, sizeof(words_wrong)), 0);
	check("free counter", cuMemFree_v2(wrong), 1);
	check("free flag", cuMemFreeHost((void *)flag), 1);
	printf("%d buffers of %s MiB in green contexts: %llu words wrong, %d calls failed\n", buffers,
	       arguments[3], (unsigned long long)words_wrong, failed);
	return words_wrong || failed;
}
