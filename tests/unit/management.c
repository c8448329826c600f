/* A management library of NVIDIA's that tells what a test has set. */
#include "management.h"

#pragma GCC visibility push(default)

struct management management;

nvmlReturn_t nvmlInit_v2(void);
nvmlReturn_t nvmlDeviceGetHandleByUUID(const char *uuid, nvmlDevice_t *device);
nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t device, nvmlMemory_t *memory);
nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v3(nvmlDevice_t device, unsigned *count,
                                                     nvmlProcessInfo_t *list);
nvmlReturn_t nvmlDeviceGetGraphicsRunningProcesses_v3(nvmlDevice_t device, unsigned *count,
                                                      nvmlProcessInfo_t *list);

nvmlReturn_t nvmlInit_v2(void)
{
	management.begun++;
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetHandleByUUID(const char *uuid, nvmlDevice_t *device)
{
	management.asked++;
	*device = (nvmlDevice_t)&management;
	return uuid[4] == '1' ? NVML_SUCCESS : NVML_ERROR_NOT_FOUND;
}

nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t device, nvmlMemory_t *memory)
{
	memory->free = management.free;
	return device == (nvmlDevice_t)&management ? management.memory : NVML_ERROR_INVALID_ARGUMENT;
}

static nvmlReturn_t list_users(nvmlDevice_t device, unsigned kind, unsigned *count, nvmlProcessInfo_t *list)
{
	if (device != (nvmlDevice_t)&management || *count < management.count[kind])
		return NVML_ERROR_INSUFFICIENT_SIZE;
	*count = management.count[kind];
	for (unsigned i = 0; i < *count; i++)
		list[i] = management.list[kind][i];
	return management.users[kind];
}

nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v3(nvmlDevice_t device, unsigned *count,
                                                     nvmlProcessInfo_t *list)
{
	return list_users(device, 0, count, list);
}

nvmlReturn_t nvmlDeviceGetGraphicsRunningProcesses_v3(nvmlDevice_t device, unsigned *count,
                                                      nvmlProcessInfo_t *list)
{
	return list_users(device, 1, count, list);
}
