/* A program without HIP or CUDA that asks whether they are there, as libraries with optional support do. */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>

extern int hipMalloc(void **pointer, size_t bytes) __attribute__((weak));
extern int cudaMalloc(void **pointer, size_t bytes) __attribute__((weak));
extern int nvmlDeviceGetMemoryInfo(void *device, void *memory) __attribute__((weak));
extern int cuMemAlloc_v2(unsigned long long *pointer, size_t bytes) __attribute__((weak));

typedef int allocate(void **pointer, size_t bytes);

static void ask(const char *name, allocate *weak)
{
	allocate *found;
	void *pointer = (void *)(uintptr_t)1;

	*(void **)&found = dlsym(RTLD_DEFAULT, name);
	printf("%s weak %s dlsym %s", name, weak ? "there" : "absent", found ? "there" : "absent");
	printf(" handle %s\n", dlsym(dlopen(NULL, RTLD_LAZY), name) ? "there" : "absent");
	if (weak)
		printf("weak call %d", weak(&pointer, 4096));
	if (found)
		printf(" dlsym call %d", found(&pointer, 4096));
	printf(" pointer %s\n", pointer == (void *)(uintptr_t)1 ? "untouched" : "changed");
}

int main(void)
{
	ask("hipMalloc", hipMalloc);
	ask("cudaMalloc", cudaMalloc);
	ask("cuMemAlloc_v2", (allocate *)(void *)cuMemAlloc_v2);
	ask("nvmlDeviceGetMemoryInfo", (allocate *)(void *)nvmlDeviceGetMemoryInfo);
	printf("unknown %s %s\n", dlsym(RTLD_DEFAULT, "hipNoSuch") ? "there" : "absent",
	       dlerror() ? "error" : "no error");
	return 0;
}
