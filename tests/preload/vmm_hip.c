/*
 * HIP: physical memory of the program's own, more than there is. Prints one line a call, without addresses. 64 MiB are
 * room for two. HIP_RELEASE: the properties are in the order of that release.
 */
#include <stdint.h>
#include <stdio.h>

#include "hip_api.h"
#include "hip_later_api.h"

#define BYTES ((size_t)24 << 20)
#define COUNT 3

static int say(const char *call, int result)
{
	printf("%s %d\n", call, result);
	return result;
}

int main(void)
{
#if HIP_RELEASE < 6
	hipMemAllocationProp properties = {0};
#else
	struct hip_allocation_prop_6 properties = {0};
#endif
	hipMemAccessDesc access = {.location = {.type = hipMemLocationTypeDevice, .id = 0},
	                           .flags = hipMemAccessFlagsProtReadWrite};
	hipMemGenericAllocationHandle_t handle[COUNT], none = (hipMemGenericAllocationHandle_t)&none;
	static unsigned char copy[4096];
	int wrong = 0;
	void *base;

	properties.type = hipMemAllocationTypePinned;
	properties.location.type = hipMemLocationTypeDevice;
	say("reserve", hipMemAddressReserve(&base, COUNT * BYTES, 0, NULL, 0));
	for (int i = 0; i < COUNT; i++) {
		void *at = (char *)base + (size_t)i * BYTES;

		handle[i] = none;
		if (say("create", hipMemCreate(&handle[i], BYTES, (void *)&properties, 0))) {
			printf("handle is %s\n", handle[i] == none ? "untouched" : "written");
			say("last error", hipGetLastError());
			say("last error", hipGetLastError());
			continue;
		}
		say("map", hipMemMap(at, BYTES, 0, handle[i], 0));
		say("access", hipMemSetAccess(at, BYTES, &access, 1));
		say("set", hipMemset(at, i + 1, BYTES));
		say("copy",
		    hipMemcpy(copy, (char *)at + BYTES - sizeof(copy), sizeof(copy), hipMemcpyDeviceToHost));
		for (size_t byte = 0; byte < sizeof(copy); byte++)
			wrong += copy[byte] != i + 1;
	}
	printf("wrong bytes %d\n", wrong);
	say("unmap", hipMemUnmap(base, BYTES));
	for (int i = 0; i < COUNT; i++)
		if (handle[i] != none)
			say("release", hipMemRelease(handle[i]));
	return 0;
}
