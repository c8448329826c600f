/*
 * Takes five buffers and 20 small ones, resets the device with all of them live, and repeats that.
 * It uses the CUDA runtime or, with -DHIP, HIP. A reset gives everything back. Prints one line a
 * call, without addresses.
 */
#include <stdio.h>
#include <stdlib.h>

#ifdef HIP
#include "hip_api.h"
#define CALL(name) hip##name
#else
#include "cudart_api.h"
#define CALL(name) cuda##name
#endif

#define COUNT 5
#define SMALL 20
#define BYTES ((size_t)4 << 20)

static int say(const char *call, int result)
{
	printf("%s %d\n", call, result);
	return result;
}

static int wrong;

static void check(void *buffer, int value)
{
	static unsigned char copy[BYTES];

	wrong |= say("copy", CALL(Memcpy)(copy, buffer, BYTES, CALL(MemcpyDeviceToHost)));
	for (size_t i = 0; i < BYTES; i++)
		wrong |= copy[i] != value;
}

static void round_of_calls(void)
{
	void *buffer[COUNT], *small[SMALL];
	size_t free_bytes = 0, total = 0;

	for (int i = 0; i < COUNT; i++)
		if (!say("alloc", CALL(Malloc)(&buffer[i], BYTES)))
			say("set", CALL(Memset)(buffer[i], i + 1, BYTES));
	for (int i = 0; i < SMALL; i++)
		say("small", CALL(Malloc)(&small[i], 100000));
	for (int i = 0; i < COUNT; i++)
		check(buffer[i], i + 1);
	say("reset", CALL(DeviceReset)());
	say("info", CALL(MemGetInfo)(&free_bytes, &total));
	printf("free %llu of %llu\n", (unsigned long long)free_bytes, (unsigned long long)total);
	say("free of what is gone", CALL(Free)(buffer[COUNT - 1]) != 0);
}

int main(void)
{
	round_of_calls();
	round_of_calls();
	(void)CALL(GetLastError)();
	return wrong != 0;
}
