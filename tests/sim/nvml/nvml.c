/* Free memory of a device comes from the simulated driver of this process, if it has started. */
#include "nvml_api.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core.h"

/* A handle is the address of one. */
struct nvmlDevice_st {
	char nothing;
};

static struct nvmlDevice_st devices[SIM_DEVICES];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned started; /* nvmlInit_v2 without nvmlShutdown */

static nvmlReturn_t enter_call(const char *symbol, const void *caller)
{
	int code;

	if (sim_fault(symbol, NULL, caller, &code))
		return code < 0 ? NVML_ERROR_UNKNOWN : (nvmlReturn_t)code;
	pthread_mutex_lock(&lock);
	bool ready = started > 0;
	pthread_mutex_unlock(&lock);
	return ready ? NVML_SUCCESS : NVML_ERROR_UNINITIALIZED;
}

#define ENTER(symbol) \
	do { \
		nvmlReturn_t entered = enter_call(#symbol, __builtin_return_address(0)); \
		if (entered) \
			return entered; \
	} while (0)

/* Number among the machine's devices. -1: not a handle of ours. */
static int number_of(nvmlDevice_t device)
{
	for (int i = 0; i < sim_config()->installed; i++)
		if (device == &devices[i])
			return i;
	return -1;
}

static nvmlReturn_t copy_text(const char *text, char *to, unsigned length)
{
	if (!to)
		return NVML_ERROR_INVALID_ARGUMENT;
	if (strlen(text) >= length)
		return NVML_ERROR_INSUFFICIENT_SIZE;
	memcpy(to, text, strlen(text) + 1);
	return NVML_SUCCESS;
}

/* The UUID of cuDeviceGetUuid, as text. */
static void uuid_of(int number, char text[41])
{
	static const char start[15] = "spill-simulator";
	unsigned char bytes[16];
	char *at = text + sprintf(text, "GPU");

	memcpy(bytes, start, sizeof(start));
	bytes[15] = (unsigned char)number;
	for (int i = 0; i < 16; i++)
		at +=
		    sprintf(at, i == 0 || i == 4 || i == 6 || i == 8 || i == 10 ? "-%02x" : "%02x", bytes[i]);
}

nvmlReturn_t nvmlInit_v2(void)
{
	int code;

	if (sim_fault("nvmlInit_v2", NULL, __builtin_return_address(0), &code))
		return code < 0 ? NVML_ERROR_UNKNOWN : (nvmlReturn_t)code;
	pthread_mutex_lock(&lock);
	started++;
	pthread_mutex_unlock(&lock);
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlInitWithFlags(unsigned int flags)
{
	return nvmlInit_v2();
}

nvmlReturn_t nvmlShutdown(void)
{
	ENTER(nvmlShutdown);
	pthread_mutex_lock(&lock);
	started -= started > 0;
	pthread_mutex_unlock(&lock);
	return NVML_SUCCESS;
}

const char *nvmlErrorString(nvmlReturn_t result)
{
	switch (result) {
	case NVML_SUCCESS:
		return "success";
	case NVML_ERROR_UNINITIALIZED:
		return "not initialised";
	case NVML_ERROR_INVALID_ARGUMENT:
		return "invalid argument";
	case NVML_ERROR_NOT_SUPPORTED:
		return "not supported";
	case NVML_ERROR_NOT_FOUND:
		return "not found";
	case NVML_ERROR_INSUFFICIENT_SIZE:
		return "too little room";
	case NVML_ERROR_FUNCTION_NOT_FOUND:
		return "function not found";
	default:
		return "unknown error";
	}
}

nvmlReturn_t nvmlSystemGetDriverVersion(char *version, unsigned int length)
{
	ENTER(nvmlSystemGetDriverVersion);
	return copy_text("580.0", version, length);
}

nvmlReturn_t nvmlDeviceGetCount_v2(unsigned int *deviceCount)
{
	ENTER(nvmlDeviceGetCount_v2);
	if (!deviceCount)
		return NVML_ERROR_INVALID_ARGUMENT;
	*deviceCount = (unsigned)sim_config()->installed;
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned int index, nvmlDevice_t *device)
{
	ENTER(nvmlDeviceGetHandleByIndex_v2);
	if (!device || index >= (unsigned)sim_config()->installed)
		return NVML_ERROR_INVALID_ARGUMENT;
	*device = &devices[index];
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetHandleByUUID(const char *uuid, nvmlDevice_t *device)
{
	char text[41];

	ENTER(nvmlDeviceGetHandleByUUID);
	if (!uuid || !device)
		return NVML_ERROR_INVALID_ARGUMENT;
	for (int i = 0; i < sim_config()->installed; i++) {
		uuid_of(i, text);
		if (strcmp(text, uuid) == 0) {
			*device = &devices[i];
			return NVML_SUCCESS;
		}
	}
	return NVML_ERROR_NOT_FOUND;
}

nvmlReturn_t nvmlDeviceGetHandleByPciBusId_v2(const char *pciBusId, nvmlDevice_t *device)
{
	unsigned domain, bus, slot;

	ENTER(nvmlDeviceGetHandleByPciBusId_v2);
	if (!pciBusId || !device || sscanf(pciBusId, "%x:%x:%x", &domain, &bus, &slot) != 3)
		return NVML_ERROR_INVALID_ARGUMENT;
	if (domain || slot || bus < 1 || bus > (unsigned)sim_config()->installed)
		return NVML_ERROR_NOT_FOUND;
	*device = &devices[bus - 1];
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetIndex(nvmlDevice_t device, unsigned int *index)
{
	ENTER(nvmlDeviceGetIndex);
	if (!index || number_of(device) < 0)
		return NVML_ERROR_INVALID_ARGUMENT;
	*index = (unsigned)number_of(device);
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetName(nvmlDevice_t device, char *name, unsigned int length)
{
	ENTER(nvmlDeviceGetName);
	return number_of(device) < 0 ? NVML_ERROR_INVALID_ARGUMENT : copy_text("Simulated GPU", name, length);
}

nvmlReturn_t nvmlDeviceGetUUID(nvmlDevice_t device, char *uuid, unsigned int length)
{
	char text[41];

	ENTER(nvmlDeviceGetUUID);
	if (number_of(device) < 0)
		return NVML_ERROR_INVALID_ARGUMENT;
	uuid_of(number_of(device), text);
	return copy_text(text, uuid, length);
}

nvmlReturn_t nvmlDeviceGetPciInfo_v3(nvmlDevice_t device, nvmlPciInfo_t *pci)
{
	ENTER(nvmlDeviceGetPciInfo_v3);
	int number = number_of(device);
	if (!pci || number < 0)
		return NVML_ERROR_INVALID_ARGUMENT;
	*pci = (nvmlPciInfo_t){.bus = (unsigned)number + 1};
	snprintf(pci->busIdLegacy, sizeof(pci->busIdLegacy), "0000:%02X:00.0", pci->bus & 0xff);
	snprintf(pci->busId, sizeof(pci->busId), "00000000:%02X:00.0", pci->bus & 0xff);
	return NVML_SUCCESS;
}

/* Asks the process's driver. If none has started, or it does not see the device, all is free. */
static uint64_t free_of(int number)
{
	const struct sim_config *config = sim_config();
	void *driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
	void (*ask)(int, uint64_t *, uint64_t *) = NULL;
	uint64_t vram = config->vram[number], start = config->held < vram ? vram - config->held : 0;
	uint64_t free_bytes = start, total = 0;

	if (driver)
		*(void **)&ask = dlsym(driver, "sim_device_memory");
	for (int i = 0; ask && i < config->devices; i++)
		if (config->which[i] == number)
			ask(i, &free_bytes, &total);
	if (driver)
		dlclose(driver);
	return total ? free_bytes : start;
}

/* NVML says nothing of memory that is the host's (GB10: NVIDIA's forum, 358869; Jetson's is alike). */
static nvmlReturn_t check_memory_call(nvmlDevice_t device, const void *memory)
{
	if (!memory || number_of(device) < 0)
		return NVML_ERROR_INVALID_ARGUMENT;
	return sim_config()->integrated ? NVML_ERROR_NOT_SUPPORTED : NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t device, nvmlMemory_t *memory)
{
	ENTER(nvmlDeviceGetMemoryInfo);
	nvmlReturn_t result = check_memory_call(device, memory);
	if (result)
		return result;
	memory->total = sim_config()->vram[number_of(device)] + sim_config()->reserved;
	memory->free = free_of(number_of(device));
	memory->used = memory->total - memory->free;
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t device, nvmlMemory_v2_t *memory)
{
	ENTER(nvmlDeviceGetMemoryInfo_v2);
	nvmlReturn_t result = check_memory_call(device, memory);
	if (result)
		return result;
	/* SPILL_SIM_NVML_LATER=1: a newer library, which knows one more version. */
	bool later = memory->version == nvmlMemory_v2 + 1 && getenv("SPILL_SIM_NVML_LATER");
	if (memory->version != nvmlMemory_v2 && !later)
		return NVML_ERROR_FUNCTION_NOT_FOUND; /* as driver 580.159.04 */
	memory->total = sim_config()->vram[number_of(device)] + sim_config()->reserved;
	memory->reserved = sim_config()->reserved;
	memory->free = free_of(number_of(device));
	memory->used = memory->total - memory->reserved - memory->free;
	return NVML_SUCCESS;
}

/* SPILL_SIM_COMPUTES, SPILL_SIM_DRAWS: "PID:BYTES PID:" the processes of every device; no BYTES: not known. */
static nvmlReturn_t list_processes(const char *variable, nvmlDevice_t device, unsigned *count,
                                   nvmlProcessInfo_t *processes)
{
	const char *at = getenv(variable);
	unsigned found = 0, room;

	if (!count || number_of(device) < 0)
		return NVML_ERROR_INVALID_ARGUMENT;
	for (room = *count; at && *at; found++) {
		char *end;
		nvmlProcessInfo_t process = {
		    .usedGpuMemory = ~0ull, .gpuInstanceId = ~0u, .computeInstanceId = ~0u};
		process.pid = (unsigned)strtoul(at, &end, 10);
		if (*end++ != ':')
			return NVML_ERROR_UNKNOWN;
		if (*end && *end != ' ')
			process.usedGpuMemory = strtoull(end, &end, 10);
		at = end + strspn(end, " ");
		if (found < room)
			processes[found] = process;
	}
	*count = found;
	return found > room ? NVML_ERROR_INSUFFICIENT_SIZE : NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v3(nvmlDevice_t device, unsigned int *infoCount,
                                                     nvmlProcessInfo_t *infos)
{
	ENTER(nvmlDeviceGetComputeRunningProcesses_v3);
	return list_processes("SPILL_SIM_COMPUTES", device, infoCount, infos);
}

nvmlReturn_t nvmlDeviceGetGraphicsRunningProcesses_v3(nvmlDevice_t device, unsigned int *infoCount,
                                                      nvmlProcessInfo_t *infos)
{
	ENTER(nvmlDeviceGetGraphicsRunningProcesses_v3);
	return list_processes("SPILL_SIM_DRAWS", device, infoCount, infos);
}
