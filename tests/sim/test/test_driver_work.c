/* Kernels, streams and events, and what waits for them: contract tests as test_driver.c. */
#include "driver_test.h"

#include <pthread.h>
#include <sched.h>
#include <time.h>

/* -- kernels ----------------------------------------------------------------------------------- */

DRIVER_TEST(illegal_address_sticks)
{
	CUdeviceptr p;

	start();
	OK(d.cuMemAlloc_v2(&p, 4 * MIB));
	OK(d.cuMemFree_v2(p));
	fill(p, 4 * MIB, 1);
	GIVES(CUDA_ERROR_ILLEGAL_ADDRESS, d.cuCtxSynchronize());
	GIVES(CUDA_ERROR_ILLEGAL_ADDRESS, d.cuMemAlloc_v2(&p, 4096));
	GIVES(CUDA_ERROR_ILLEGAL_ADDRESS, d.cuStreamQuery(NULL));
}

DRIVER_TEST(launches)
{
	CUlibrary lib;
	CUkernel kernel;
	CUfunction function, direct;
	CUdeviceptr p;
	size_t offset, size;

	start();
	OK(d.cuMemAlloc_v2(&p, MIB));
	OK(d.cuModuleGetFunction(&direct, module, "fill"));
	for (size_t i = 0; i < 3; i++) {
		OK(d.cuFuncGetParamInfo(direct, i, &offset, &size));
		CHECK(offset == 8 * i && size == 8);
	}
	GIVES(CUDA_ERROR_INVALID_VALUE, d.cuFuncGetParamInfo(direct, 3, &offset, &size));

	uint64_t block[] = {p, MIB / 8, 11};
	size = sizeof(block);
	void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, block, CU_LAUNCH_PARAM_BUFFER_SIZE, &size,
	                 CU_LAUNCH_PARAM_END};
	OK(d.cuLaunchKernel(direct, 8, 1, 1, 128, 1, 1, 0, NULL, NULL, extra));
	memset(block, 0, sizeof(block)); /* the launch copied them */
	CHECK(mismatches(p, MIB, 11) == 0);

	OK(d.cuLibraryLoadFromFile(&lib, kernels_path, NULL, NULL, 0, NULL, NULL, 0));
	OK(d.cuLibraryGetKernel(&kernel, lib, "add"));
	OK(d.cuKernelGetFunction(&function, kernel));
	uint64_t words = MIB / 8, one = 1;
	void *parameters[] = {&p, &words, &one};
	CUlaunchConfig config = {8, 1, 1, 128, 1, 1, 0, NULL, NULL, 0};
	OK(d.cuLaunchKernelEx(&config, function, parameters, NULL));
	CHECK(mismatches(p, MIB, 11) == MIB / 8);
	one = (uint64_t)-1;
	OK(d.cuLaunchKernel((CUfunction)kernel, 8, 1, 1, 128, 1, 1, 0, NULL, parameters, NULL));
	CHECK(mismatches(p, MIB, 11) == 0);
	OK(d.cuLibraryUnload(lib));

	GIVES(CUDA_ERROR_INVALID_VALUE,
	      d.cuLaunchKernel(direct, 0, 1, 1, 128, 1, 1, 0, NULL, parameters, NULL));
	GIVES(CUDA_ERROR_INVALID_VALUE,
	      d.cuLaunchKernel(direct, 1, 1, 1, 2048, 1, 1, 0, NULL, parameters, NULL));
}

DRIVER_TEST(bad_modules)
{
	static const char junk[4096] = "\177ELF and nothing else";
	CUfunction function;
	CUmodule other;

	start();
	GIVES(CUDA_ERROR_FILE_NOT_FOUND, d.cuModuleLoad(&other, "/nonexistent/kernels.so"));
	CHECK(d.cuModuleLoadData(&other, junk) != CUDA_SUCCESS);
	GIVES(CUDA_ERROR_NOT_FOUND, d.cuModuleGetFunction(&function, module, "no_such_kernel"));
	OK(d.cuModuleLoad(&other, kernels_path));
	OK(d.cuModuleUnload(other));
}

DRIVER_TEST(asynchronous)
{
	CUstream stream;
	CUevent event;

	start();
	uint64_t *flag = pinned();
	OK(d.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	OK(d.cuEventCreate(&event, 0));
	OK(d.cuEventQuery(event));
	OK(RUN(stream, "hold", (uint64_t)flag));
	OK(d.cuEventRecord(event, stream));
	GIVES(CUDA_ERROR_NOT_READY, d.cuStreamQuery(stream));
	GIVES(CUDA_ERROR_NOT_READY, d.cuEventQuery(event));
	*word_at(flag) = 1;
	OK(d.cuEventSynchronize(event));
	OK(d.cuEventQuery(event));
	OK(d.cuStreamSynchronize(stream));
	OK(d.cuStreamDestroy_v2(stream));
}

DRIVER_TEST(default_stream)
{
	CUstream blocking, free_running;

	start();
	uint64_t *flag = pinned();
	OK(d.cuStreamCreate(&blocking, CU_STREAM_DEFAULT));
	OK(d.cuStreamCreate(&free_running, CU_STREAM_NON_BLOCKING));
	OK(RUN(NULL, "hold", (uint64_t)flag));
	OK(RUN(blocking, "add", (uint64_t)(flag + 8), 1, 5));
	OK(RUN(free_running, "add", (uint64_t)(flag + 16), 1, 6));
	OK(d.cuStreamSynchronize(free_running));
	CHECK(word_at(flag)[16] == 6);
	CHECK(word_at(flag)[8] == 0);
	GIVES(CUDA_ERROR_NOT_READY, d.cuStreamQuery(blocking));
	GIVES(CUDA_ERROR_NOT_READY, d.cuStreamQuery(NULL));
	*word_at(flag) = 1;
	OK(d.cuStreamSynchronize(blocking));
	CHECK(word_at(flag)[8] == 5);

	/* And in the other order. */
	*word_at(flag) = 0;
	OK(RUN(blocking, "hold", (uint64_t)flag));
	OK(RUN(NULL, "add", (uint64_t)(flag + 8), 1, 5));
	GIVES(CUDA_ERROR_NOT_READY, d.cuStreamQuery(NULL));
	CHECK(word_at(flag)[8] == 5);
	*word_at(flag) = 1;
	OK(d.cuStreamSynchronize(NULL));
	CHECK(word_at(flag)[8] == 10);
}

DRIVER_TEST(per_thread_stream)
{
	CUstream free_running;

	start();
	uint64_t *flag = pinned();
	OK(d.cuStreamCreate(&free_running, CU_STREAM_NON_BLOCKING));
	OK(RUN(free_running, "hold", (uint64_t)flag));
	OK(RUN(CU_STREAM_PER_THREAD, "add", (uint64_t)(flag + 8), 1, 5));
	OK(d.cuStreamSynchronize_ptsz(NULL));
	CHECK(word_at(flag)[8] == 5);
	OK(d.cuMemsetD8Async_ptsz((CUdeviceptr)(flag + 8), 0, 8, NULL));
	OK(d.cuStreamSynchronize(CU_STREAM_PER_THREAD));
	CHECK(word_at(flag)[8] == 0);
	*word_at(flag) = 1;
	OK(d.cuCtxSynchronize());
}

static double host_milliseconds(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec * 1e3 + (double)time.tv_nsec / 1e6;
}

DRIVER_TEST(events_order_streams)
{
	CUstream one, two;
	CUevent start_event, end_event;
	float milliseconds = -1;

	start();
	uint64_t *flag = pinned();
	OK(d.cuStreamCreate(&one, CU_STREAM_NON_BLOCKING));
	OK(d.cuStreamCreate(&two, CU_STREAM_NON_BLOCKING));
	OK(d.cuEventCreate(&start_event, 0));
	OK(d.cuEventCreate(&end_event, 0));
	double first = host_milliseconds();
	OK(d.cuEventRecord(start_event, one));
	OK(RUN(one, "hold", (uint64_t)flag));
	OK(RUN(one, "add", (uint64_t)(flag + 8), 1, 2));
	OK(d.cuEventRecord(end_event, one));
	OK(RUN(two, "add", (uint64_t)(flag + 10), 1, 1));
	OK(d.cuStreamWaitEvent(two, end_event, 0));
	OK(RUN(two, "copy", (uint64_t)(flag + 9), (uint64_t)(flag + 8), 1));
	/* It runs, and had time to continue. */
	while (!word_at(flag)[10] || d.cuEventQuery(start_event) == CUDA_ERROR_NOT_READY)
		sched_yield();
	double begun = host_milliseconds();
	for (int i = 0; i < 2000; i++)
		sched_yield();
	GIVES(CUDA_ERROR_NOT_READY, d.cuStreamQuery(two));
	GIVES(CUDA_ERROR_NOT_READY, d.cuEventElapsedTime(&milliseconds, start_event, end_event));
	double held = host_milliseconds() - begun;
	*word_at(flag) = 1;
	OK(d.cuStreamSynchronize(two));
	CHECK(word_at(flag)[9] == 2);
	double all = host_milliseconds() - first;
	OK(d.cuEventElapsedTime(&milliseconds, start_event, end_event));
	/* Two clocks; one counts half microseconds. */
	CHECK(milliseconds > 0.99 * held - 0.01 && milliseconds < 1.01 * all + 0.01);
	OK(d.cuStreamDestroy_v2(one));
	OK(d.cuStreamDestroy_v2(two));
	OK(d.cuEventDestroy_v2(end_event));
}

static void note(void *data)
{
	uint64_t *flag = data;

	word_at(flag)[2] = flag[1] + 1; /* the test looks at it meanwhile */
}

DRIVER_TEST(host_functions)
{
	CUstream stream;

	start();
	uint64_t *flag = pinned();
	OK(d.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	OK(RUN(stream, "hold", (uint64_t)flag));
	OK(RUN(stream, "add", (uint64_t)(flag + 1), 1, 41));
	OK(d.cuLaunchHostFunc(stream, note, flag));
	CHECK(word_at(flag)[2] == 0);
	*word_at(flag) = 1;
	OK(d.cuStreamSynchronize(stream));
	CHECK(word_at(flag)[2] == 42);
}

/* -- when memory may be freed ------------------------------------------------------------------ */

static uint64_t *release_flag;
static atomic_int entering, released;

/* Releases the kernel well after the other thread has begun to free. */
static void *release(void *unused)
{
	(void)unused;
	while (!entering)
		sched_yield();
	for (int i = 0; i < 2000; i++)
		sched_yield();
	released = 1;
	*word_at(release_flag) = 1;
	return NULL;
}

static void freeing_waits(bool host)
{
	CUstream stream;
	pthread_t thread;
	CUdeviceptr p;

	start();
	if (host)
		OK(d.cuMemHostAlloc((void **)&p, 4 * MIB, 0));
	else
		OK(d.cuMemAlloc_v2(&p, 4 * MIB));
	release_flag = pinned();
	OK(d.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	OK(RUN(stream, "hold_fill", (uint64_t)release_flag, p, 4 * MIB / 8, 1));
	CHECK(!pthread_create(&thread, NULL, release, NULL));
	entering = 1;
	OK(host ? d.cuMemFreeHost((void *)p) : d.cuMemFree_v2(p));
	CHECK(released);
	pthread_join(thread, NULL);
	OK(d.cuStreamSynchronize(stream));
}

DRIVER_TEST(free_waits)
{
	freeing_waits(false);
}

DRIVER_TEST(free_host_waits)
{
	freeing_waits(true);
}

DRIVER_TEST(contexts_own)
{
	CUcontext other, current;
	CUdeviceptr p, q;
	unsigned flags;
	int active;

	start();
	size_t before = free_memory();
	OK(d.cuCtxCreate_v2(&other, 0, 0));
	OK(d.cuMemAlloc_v2(&p, 32 * MIB));
	OK(d.cuMemAlloc_v2(&q, 4096));
	OK(d.cuCtxDestroy_v2(other));
	OK(d.cuCtxGetCurrent(&current));
	CHECK(current == context);
	if (simulated)
		CHECK(free_memory() == before);
	GIVES(CUDA_ERROR_INVALID_VALUE, d.cuMemFree_v2(p));
	OK(d.cuDevicePrimaryCtxGetState(0, &flags, &active));
	CHECK(active);
	OK(d.cuMemAlloc_v2(&p, 32 * MIB));
	OK(d.cuDevicePrimaryCtxReset_v2(0));
	OK(d.cuDevicePrimaryCtxGetState(0, &flags, &active));
	CHECK(!active);
	OK(d.cuDevicePrimaryCtxRetain(&context, 0));
	OK(d.cuCtxSetCurrent(context));
	if (simulated)
		CHECK(free_memory() == before);
}
