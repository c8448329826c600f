/*
 * Asks NVML how much memory a device has: linked with it, or (-DWAY_DLSYM) by dlopen and dlsym, as most programs do. It works with
 * CUDA beside that, with HIP (-DHIP), or with neither (-DNOTHING). Prints one line a word; nvml_job.py has the same words.
 *
 *	init       the driver alone             look       asks it for a function
 *	device:N   makes it current
 *	alloc:MIB  takes a buffer               cuda       what the driver says is free and in all
 *	first:N    NVML's first form, of its device N: total, free, used
 *	second:N   its second: version, total, reserved, free, used
 *	later:N    the same with a version that it does not have
 *	odd        nowhere to put the answer, and no device
 *	child:N    first:N in a child
 */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "nvml_api.h"

#define MIB ((size_t)1 << 20)

static struct {
#define NVML(ret, symbol, parameters) __typeof__(symbol) *symbol;
#include "nvml_api.def"
} n;

static void find(void)
{
#ifdef WAY_DLSYM
	void *library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
#define NVML(ret, symbol, parameters) n.symbol = (__typeof__(n.symbol))dlsym(library, #symbol);
#else
#define NVML(ret, symbol, parameters) n.symbol = symbol;
#endif
#include "nvml_api.def"
}

#if defined(NOTHING)

static int start(int device)
{
	return -1;
}

static int look(void)
{
	return -1;
}

static int take(size_t bytes)
{
	return -1;
}

static int ask(size_t *free_bytes, size_t *total)
{
	return -1;
}

#elif defined(HIP)
#include "hip_api.h"

static int start(int device)
{
	return hipSetDevice(device < 0 ? 0 : device);
}

static int look(void)
{
	return -1;
}

static int take(size_t bytes)
{
	void *pointer;
	return hipMalloc(&pointer, bytes);
}

static int ask(size_t *free_bytes, size_t *total)
{
	return hipMemGetInfo(free_bytes, total);
}

#else
#include "cuda_api.h"

static int start(int device)
{
	CUcontext context;
	CUresult result = cuInit(0);
	if (!result && device >= 0)
		result = cuDevicePrimaryCtxRetain(&context, device);
	return result || device < 0 ? result : cuCtxSetCurrent(context);
}

static int look(void)
{
	void *found;
	return cuGetProcAddress_v2("cuMemAlloc", &found, 3020, 0, NULL);
}

static int take(size_t bytes)
{
	CUdeviceptr pointer;
	return cuMemAlloc_v2(&pointer, bytes);
}

static int ask(size_t *free_bytes, size_t *total)
{
	return cuMemGetInfo_v2(free_bytes, total);
}

#endif

static nvmlDevice_t handle_of(int index)
{
	nvmlDevice_t handle = NULL;
	if (n.nvmlDeviceGetHandleByIndex_v2((unsigned)index, &handle))
		exit(1);
	return handle;
}

static void first(const char *word, int index)
{
	nvmlMemory_t m = {77, 77, 77};
	int result = n.nvmlDeviceGetMemoryInfo(handle_of(index), &m);
	printf("%s %d %llu %llu %llu\n", word, result, m.total, m.free, m.used);
	fflush(stdout);
}

static void second(const char *word, int index, unsigned version)
{
	nvmlMemory_v2_t m = {version, 77, 77, 77, 77};
	int result = n.nvmlDeviceGetMemoryInfo_v2(handle_of(index), &m);
	printf("%s %d %u %llu %llu %llu %llu\n", word, result, m.version, m.total, m.reserved, m.free,
	       m.used);
}

static void odd(void)
{
	nvmlMemory_t m = {77, 77, 77};
	int nowhere = n.nvmlDeviceGetMemoryInfo(handle_of(0), NULL);
	int nothing = n.nvmlDeviceGetMemoryInfo(NULL, &m);
	printf("odd %d %d %d %llu\n", nowhere, n.nvmlDeviceGetMemoryInfo_v2(handle_of(0), NULL), nothing,
	       m.total);
}

static void run(const char *word)
{
	const char *colon = strchr(word, ':');
	int number = colon ? atoi(colon + 1) : 0;
	size_t free_bytes = 77, total = 77;
	if (strcmp(word, "init") == 0 || strncmp(word, "device", 6) == 0) {
		printf("%s %d\n", word, start(colon ? number : -1));
	} else if (strcmp(word, "look") == 0) {
		printf("%s %d\n", word, look());
	} else if (strncmp(word, "alloc", 5) == 0) {
		printf("%s %d\n", word, take((size_t)number * MIB));
	} else if (strcmp(word, "cuda") == 0) {
		int result = ask(&free_bytes, &total);
		printf("%s %d %zu %zu\n", word, result, free_bytes, total);
	} else if (strncmp(word, "first", 5) == 0) {
		first(word, number);
	} else if (strncmp(word, "second", 6) == 0) {
		second(word, number, nvmlMemory_v2);
	} else if (strncmp(word, "later", 5) == 0) {
		second(word, number, nvmlMemory_v2 + 1);
	} else if (strcmp(word, "odd") == 0) {
		odd();
	} else if (strncmp(word, "child", 5) == 0) {
		fflush(stdout);
		pid_t child = fork();
		if (child == 0) {
			first(word, number);
			_exit(0);
		}
		(void)waitpid(child, NULL, 0);
	}
}

int main(int argc, char **argv)
{
	find();
	if (n.nvmlInit_v2())
		return 1;
	for (int i = 1; i < argc; i++)
		run(argv[i]);
	return 0;
}
