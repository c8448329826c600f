/*
 * A host function needs a mutex, and its thread holds that until it has launched a kernel behind it. Another thread
 * allocates in stream order and plainly on a full device, so that libspill waits for the context. Both go on.
 *
 * usage: host_function KERNELS SECONDS
 *
 * Exit status: 0; 1 a call failed; 7 nothing went on; 64 usage.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "cuda_api.h"

#define BYTES ((size_t)6 << 20)
#define BLOCKS 12
#define STANDSTILL 3 /* seconds without a turn */

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static CUcontext context;
static CUfunction fill;
static atomic_long turns;
static atomic_bool ended;

static void must(CUresult result, const char *what)
{
	if (!result)
		return;
	printf("%s: %d\n", what, (int)result);
	exit(1);
}

static CUstream stream_here(void)
{
	CUstream stream;
	must(cuCtxSetCurrent(context), "current");
	must(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), "stream");
	return stream;
}

static void locks(void *unused)
{
	pthread_mutex_lock(&mutex);
	pthread_mutex_unlock(&mutex);
}

static void called_back(CUstream stream, CUresult status, void *unused)
{
	locks(unused);
}

static void turn(CUstream stream, CUdeviceptr buffer)
{
	uint64_t words = BYTES / sizeof(uint64_t) / 16, seed = 1;

	pthread_mutex_lock(&mutex);
	if (turns % 2)
		must(cuLaunchHostFunc(stream, locks, NULL), "host function");
	else
		must(cuStreamAddCallback(stream, called_back, NULL, 0), "callback");
	must(cuLaunchKernel(fill, 4, 1, 1, 64, 1, 1, 0, stream, (void *[]){&buffer, &words, &seed}, NULL),
	     "launch");
	pthread_mutex_unlock(&mutex);
	must(cuStreamSynchronize(stream), "synchronize");
	turns++;
}

static void *work(void *unused)
{
	CUdeviceptr buffer;
	CUstream stream = stream_here();

	must(cuMemAlloc_v2(&buffer, BYTES), "buffer");
	while (!ended)
		turn(stream, buffer);
	return unused;
}

/* Until the device is full; some of it may be refused. */
static void *allocate(void *unused)
{
	CUstream stream = stream_here();

	while (!ended) {
		CUdeviceptr blocks[BLOCKS], plain;
		int count = 0;
		while (count < BLOCKS && !cuMemAllocAsync(&blocks[count], BYTES, stream))
			count++;
		while (count--)
			must(cuMemFreeAsync(blocks[count], stream), "free");
		if (!cuMemAlloc_v2(&plain, 3 * BYTES))
			must(cuMemFreeAsync(plain, stream), "free");
	}
	return unused;
}

/* False: no turn in so many seconds. */
static bool goes_on(int seconds)
{
	long last = -1;
	for (int i = 0, still = 0; i < seconds; i++) {
		sleep(1);
		still = turns == last ? still + 1 : 0;
		last = turns;
		if (still >= STANDSTILL)
			return false;
	}
	return true;
}

int main(int count, char **arguments)
{
	CUmodule module;
	pthread_t threads[2];

	if (count != 3)
		return 64;
	must(cuInit(0), "init");
	must(cuDevicePrimaryCtxRetain(&context, 0), "context");
	must(cuCtxSetCurrent(context), "current");
	must(cuModuleLoad(&module, arguments[1]), "module");
	must(cuModuleGetFunction(&fill, module, "fill"), "function");
	pthread_create(&threads[0], NULL, work, NULL);
	pthread_create(&threads[1], NULL, allocate, NULL);
	if (!goes_on(atoi(arguments[2]))) {
		printf("nothing goes on after %ld turns\n", turns);
		fflush(stdout);
		_exit(7);
	}
	ended = true;
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	printf("%s\n", turns ? "good" : "no turn");
	return !turns;
}
