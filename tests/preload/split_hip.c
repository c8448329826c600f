/*
 * HIP on two devices: an allocation of the first that spills is used by the second, which has access to it `before` it
 * is made, or `later`. It is freed while the second is current. Prints one line a call, without addresses.
 */
#include <stdio.h>
#include <string.h>

#include "hip_api.h"

#define BYTES ((size_t)12 << 20)

static int failed;

static void say(const char *call, int result)
{
	printf("%s %d\n", call, result);
	failed |= result;
}

/* The current device is the user. */
static void enable_access(void)
{
	say("device 1", hipSetDevice(1));
	say("peer", hipDeviceEnablePeerAccess(0, 0));
	say("device 0", hipSetDevice(0));
}

static void check(const unsigned char *memory)
{
	static unsigned char copy[BYTES];
	size_t wrong = 0;

	say("copy", hipMemcpy(copy, memory, BYTES, hipMemcpyDeviceToHost));
	for (size_t i = 0; i < BYTES; i++)
		wrong += copy[i] != 7;
	printf("wrong bytes %zu\n", wrong);
	failed |= wrong != 0;
}

int main(int argc, char **argv)
{
	int before = argc > 1 && !strcmp(argv[1], "before");
	size_t free_before, free_after, total;
	hipIpcMemHandle_t handle;
	void *large, *split, *again;

	if (before)
		enable_access();
	say("info", hipMemGetInfo(&free_before, &total));
	say("large", hipMalloc(&large, BYTES));
	say("split", hipMalloc(&split, BYTES));
	if (!before)
		enable_access();
	printf("export %s\n", hipIpcGetMemHandle(&handle, split) ? "refused" : "served");
	(void)hipGetLastError();
	say("device 1", hipSetDevice(1));
	say("set", hipMemset(split, 7, BYTES));
	say("wait", hipDeviceSynchronize());
	check(split);
	say("free", hipFree(split));
	say("device 0", hipSetDevice(0));
	hipFree(large);
	hipMemGetInfo(&free_after, &total);
	printf("back %d\n", free_after == free_before);
	say("again", hipMalloc(&again, BYTES));
	return failed;
}
