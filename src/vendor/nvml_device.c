#include "nvml_device.h"

#include <string.h>

#include "abi/nvml.h"
#include "registry.h"

struct spill_nvml {
#define FUNCTION(needed, ret, symbol, params) ret(*symbol) params;
#include "backend_nvml.def"
};

/* NVML never starts for it: who has a handle has started it. */
static bool uuid_of(const void *real, uint64_t handle, char *uuid, unsigned room)
{
	struct spill_nvml nvml;
#define FUNCTION(needed, ret, symbol, params) *(void **)&nvml.symbol = spill_vendor_beside(real, #symbol);
#include "backend_nvml.def"
	return nvml.nvmlDeviceGetUUID &&
	       nvml.nvmlDeviceGetUUID((nvmlDevice_t)(uintptr_t)handle, uuid, room) == NVML_SUCCESS;
}

/* A part of a device is "MIG-…" to NVML, and its own UUID to the driver: neither is taken for the whole. */
int spill_nvml_device(const struct spill_backend *backend, const void *real, uint64_t handle)
{
	struct spill_log_device devices[SPILL_DEVICES];
	char uuid[NVML_DEVICE_UUID_V2_BUFFER_SIZE];
	if (!uuid_of(real, handle, uuid, sizeof(uuid)))
		return -1;
	unsigned count = backend->devices->list(devices, SPILL_DEVICES);
	for (unsigned i = 0; i < count; i++)
		if (devices[i].uuid[0] && strcmp(devices[i].uuid, uuid) == 0)
			return (int)i;
	return -1;
}
