/* In place of PyTorch's libc10.so: the function that its allocator tells of each block. Counts what arrives. */
#include <stddef.h>
#include <stdint.h>

#define EXPORTED __attribute__((visibility("default")))

struct device {
	int8_t type, index;
};

EXPORTED void _ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE(void *ptr, int64_t bytes,
                                                                    size_t allocated, size_t reserved,
                                                                    struct device device);
EXPORTED uint64_t c10_reports(void);

static uint64_t reports;

void _ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE(void *ptr, int64_t bytes, size_t allocated,
                                                           size_t reserved, struct device device)
{
	reports += ptr && bytes && allocated == 7 && reserved == 8 && device.index == 3;
}

uint64_t c10_reports(void)
{
	return reports;
}
