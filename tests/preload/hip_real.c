/*
 * Every function of the table's HIP rows, linked with Debian's own runtime and so to its versioned symbols
 * (hipMalloc@hip_4.2). Prints each result and the last error after it, without addresses.
 */
#include <hip/hip_runtime_api.h>
#include <stdint.h>
#include <stdio.h>

#define BYTES ((size_t)1 << 20)

static void say(const char *call, hipError_t result)
{
	printf("%s %s", call, hipGetErrorName(result));
	printf(" last %s", hipGetErrorName(hipPeekAtLastError()));
	printf(" cleared %s\n", hipGetErrorName(hipGetLastError()));
}

static void say_left(const void *pointer)
{
	printf("pointer %s\n", !pointer ? "NULL" : pointer == (void *)(uintptr_t)1 ? "untouched" : "set");
}

int main(void)
{
	void *pointer = (void *)(uintptr_t)1;
	size_t free_bytes = 1, total = 1;
	int count = -1;

	say("hipGetDeviceCount", hipGetDeviceCount(&count));
	say("hipMalloc", hipMalloc(&pointer, BYTES));
	say_left(pointer);
	say("hipFree", hipFree(count > 0 ? pointer : NULL));
	say("hipMalloc nothing", hipMalloc(&pointer, 0));
	say_left(pointer);
	say("hipMalloc to nowhere", hipMalloc(NULL, BYTES));
	say("hipMemGetInfo", hipMemGetInfo(&free_bytes, &total));
	printf("free %s total %s\n", free_bytes == 1 ? "untouched" : "set", total == 1 ? "untouched" : "set");
	pointer = (void *)(uintptr_t)1;
	say("hipMallocManaged", hipMallocManaged(&pointer, BYTES, hipMemAttachGlobal));
	say_left(pointer);
	say("hipFree managed", hipFree(count > 0 ? pointer : NULL));
	pointer = (void *)(uintptr_t)1;
	say("hipHostMalloc", hipHostMalloc(&pointer, BYTES, hipHostMallocMapped));
	say_left(pointer);
	say("hipHostFree", hipHostFree(count > 0 ? pointer : NULL));
	say("hipFree garbage", hipFree((void *)(uintptr_t)0x1000));
	say("hipHostFree garbage", hipHostFree((void *)(uintptr_t)0x1000));
	say("hipDeviceReset", hipDeviceReset());
	return 0;
}
