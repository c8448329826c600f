/* hipExtMallocWithFlags: plain memory by its default flag, and kinds that only the device can give. Prints results. */
#include <stdio.h>

#include "hip_api.h"

#define BYTES ((size_t)4 << 20)

int main(void)
{
	static const unsigned kinds[] = {hipDeviceMallocDefault, hipDeviceMallocFinegrained};
	void *pointer = NULL;

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		hipError_t error = hipExtMallocWithFlags(&pointer, BYTES, kinds[i]);
		printf("%u %d", kinds[i], (int)error);
		printf(" %d\n", error ? -1 : (int)hipFree(pointer));
	}
	return 0;
}
