/*
 * HIP: a block of a shared chunk is freed twice, and a request that no machine can serve. Prints one line a call,
 * without addresses. The device is full after three of 4 MiB and two of 1 MiB.
 */
#include <stdint.h>
#include <stdio.h>

#include "hip_api.h"

#define SMALL ((size_t)4096)

static int say(const char *call, int result)
{
	printf("%s %d\n", call, result);
	return result;
}

static void check(const char *name, const void *memory, int value)
{
	unsigned char copy[SMALL];
	int wrong = 0;

	say(name, hipMemcpy(copy, memory, SMALL, hipMemcpyDeviceToHost));
	for (size_t i = 0; i < SMALL; i++)
		wrong += copy[i] != value;
	printf("%s wrong bytes %d\n", name, wrong);
}

int main(void)
{
	void *large, *first, *second, *third, *huge = &huge;

	say("huge", hipMalloc(&huge, SIZE_MAX));
	printf("huge is %s\n", huge ? "untouched" : "null");
	say("last error", hipGetLastError());
	for (int i = 0; i < 5; i++)
		say("fill", hipMalloc(&large, (size_t)(i < 3 ? 4 : 1) << 20));
	say("last error", hipPeekAtLastError());
	say("first", hipMalloc(&first, SMALL));
	say("second", hipMalloc(&second, SMALL));
	say("set", hipMemset(second, 7, SMALL));
	say("free", hipFree(first));
	say("free again", hipFree(first) != hipSuccess);
	(void)hipGetLastError();
	check("second", second, 7);
	say("third", hipMalloc(&third, SMALL));
	say("set", hipMemset(third, 9, SMALL));
	check("second", second, 7);
	check("third", third, 9);
	say("free", hipFree(second));
	say("free", hipFree(third));
	return 0;
}
