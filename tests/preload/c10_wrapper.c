/* Another preload that stands before the function of c10.c, and goes on to the next definition, as libspill does. */
#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

struct device {
	int8_t type, index;
};

typedef void report_fn(void *ptr, int64_t bytes, size_t allocated, size_t reserved, struct device device);

static unsigned long wrapped;

__attribute__((visibility("default"))) report_fn _ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE;

void _ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE(void *ptr, int64_t bytes, size_t allocated,
                                                           size_t reserved, struct device device)
{
	report_fn *next =
	    (report_fn *)dlsym(RTLD_NEXT, "_ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE");

	if (!next)
		abort();
	wrapped++;
	next(ptr, bytes, allocated, reserved, device);
}

__attribute__((destructor)) static void tell(void)
{
	printf("wrapped %lu\n", wrapped);
}
