/*
 * NVML beside the driver, as test_driver.c, on the simulator and on a real GPU that nobody else
 * uses. Both must agree on the identity of devices, on the sums of each result, and on the size of
 * an allocation. The distance of the two free sizes is a fact of the driver: 0 on the simulator,
 * printed on a GPU.
 */
#include "driver_test.h"

#include "nvml_api.h"

static struct {
#define NVML(ret, symbol, parameters) __typeof__(symbol) *symbol;
#include "nvml_api.def"
} n;

#define GOOD(call) GIVES(CUDA_SUCCESS, (CUresult)(call))
#define REFUSED(code, call) GIVES((CUresult)(code), (CUresult)(call))

static void load_nvml(void)
{
	void *nvml = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);

	if (!nvml) {
		fprintf(stderr, "%s\n", dlerror());
		_exit(SKIP);
	}
#define NVML(ret, symbol, parameters) \
	n.symbol = (__typeof__(n.symbol))dlsym(nvml, #symbol); \
	CHECK(n.symbol);
#include "nvml_api.def"
}

static void start_both(void)
{
	start();
	load_nvml();
	GOOD(n.nvmlInit_v2());
}

static void uuid_text(CUdevice device, char text[41])
{
	CUuuid uuid;
	char *at = text + sprintf(text, "GPU");

	OK(d.cuDeviceGetUuid(&uuid, device));
	for (int i = 0; i < 16; i++)
		at += sprintf(at, i == 0 || i == 4 || i == 6 || i == 8 || i == 10 ? "-%02x" : "%02x",
		              (unsigned char)uuid.bytes[i]);
}

static nvmlDevice_t handle_of(CUdevice device)
{
	char text[41];
	nvmlDevice_t handle;

	uuid_text(device, text);
	GOOD(n.nvmlDeviceGetHandleByUUID(text, &handle));
	return handle;
}

DRIVER_TEST(begin_and_end)
{
	unsigned count;
	nvmlMemory_t memory;

	load_nvml();
	REFUSED(NVML_ERROR_UNINITIALIZED, n.nvmlDeviceGetCount_v2(&count));
	REFUSED(NVML_ERROR_UNINITIALIZED, n.nvmlDeviceGetMemoryInfo(NULL, &memory));
	GOOD(n.nvmlInit_v2());
	GOOD(n.nvmlInitWithFlags(0));
	GOOD(n.nvmlShutdown());
	GOOD(n.nvmlDeviceGetCount_v2(&count));
	CHECK(count > 0);
	GOOD(n.nvmlShutdown());
	REFUSED(NVML_ERROR_UNINITIALIZED, n.nvmlDeviceGetCount_v2(&count));
	REFUSED(NVML_ERROR_UNINITIALIZED, n.nvmlShutdown());
}

DRIVER_TEST(devices)
{
	unsigned count, index;
	nvmlDevice_t handle, same;
	char uuid[96] = "", name[96], version[80];
	nvmlPciInfo_t pci;

	setenv("SPILL_SIM_DEVICES", "3", 1);
	load_nvml();
	GOOD(n.nvmlInit_v2());
	GOOD(n.nvmlSystemGetDriverVersion(version, sizeof(version)));
	GOOD(n.nvmlDeviceGetCount_v2(&count));
	for (unsigned i = 0; i < count; i++) {
		GOOD(n.nvmlDeviceGetHandleByIndex_v2(i, &handle));
		GOOD(n.nvmlDeviceGetIndex(handle, &index));
		CHECK(index == i);
		GOOD(n.nvmlDeviceGetName(handle, name, sizeof(name)));
		GOOD(n.nvmlDeviceGetUUID(handle, uuid, sizeof(uuid)));
		CHECK(strlen(uuid) == 40 && !strncmp(uuid, "GPU-", 4));
		REFUSED(NVML_ERROR_INSUFFICIENT_SIZE, n.nvmlDeviceGetUUID(handle, uuid, 8));
		GOOD(n.nvmlDeviceGetHandleByUUID(uuid, &same));
		CHECK(same == handle);
		GOOD(n.nvmlDeviceGetPciInfo_v3(handle, &pci));
		GOOD(n.nvmlDeviceGetHandleByPciBusId_v2(pci.busId, &same));
		CHECK(same == handle);
	}
	REFUSED(NVML_ERROR_INVALID_ARGUMENT, n.nvmlDeviceGetHandleByIndex_v2(count, &handle));
	uuid[39] = uuid[39] == '0' ? '9' : '0';
	uuid[38] = uuid[38] == '0' ? '9' : '0';
	CHECK(n.nvmlDeviceGetHandleByUUID(uuid, &handle) != NVML_SUCCESS);
	CHECK(n.nvmlErrorString(NVML_ERROR_UNINITIALIZED)[0]);
}

/* UUID and PCI address name the same device. */
DRIVER_TEST(the_drivers_devices)
{
	int count;
	char pci[32], name[96], theirs[96];
	nvmlDevice_t handle;

	setenv("SPILL_SIM_DEVICES", "2", 1);
	start_both();
	OK(d.cuDeviceGetCount(&count));
	for (int i = 0; i < count; i++) {
		OK(d.cuDeviceGetPCIBusId(pci, sizeof(pci), i));
		GOOD(n.nvmlDeviceGetHandleByPciBusId_v2(pci, &handle));
		CHECK(handle == handle_of(i));
		OK(d.cuDeviceGetName(theirs, sizeof(theirs), i));
		GOOD(n.nvmlDeviceGetName(handle, name, sizeof(name)));
		CHECK(!strcmp(name, theirs));
	}
}

static nvmlMemory_v2_t memory_of(nvmlDevice_t handle)
{
	nvmlMemory_v2_t second = {.version = nvmlMemory_v2};
	nvmlMemory_t first;

	GOOD(n.nvmlDeviceGetMemoryInfo(handle, &first));
	CHECK(first.total == first.free + first.used);
	GOOD(n.nvmlDeviceGetMemoryInfo_v2(handle, &second));
	CHECK(second.version == nvmlMemory_v2);
	CHECK(second.total == first.total);
	uint64_t apart = second.total - second.free - second.used;
	CHECK(apart == 0 || apart == second.reserved);
	if (!simulated)
		printf("# NVML: total %llu, reserved %llu (%s), free %llu, used %llu\n", second.total,
		       second.reserved, apart ? "apart" : "in used", second.free, second.used);
	return second;
}

DRIVER_TEST(memory)
{
	size_t free_bytes, total;
	CUdeviceptr p;

	setenv("SPILL_SIM_RESERVED", "6MiB", 1);
	start_both();
	nvmlDevice_t handle = handle_of(0);
	nvmlMemory_v2_t before = memory_of(handle);
	OK(d.cuMemGetInfo_v2(&free_bytes, &total));
	CHECK(total <= before.total);
	printf("# the driver has %zu less in all, of %llu that are reserved, and %lld less free\n",
	       (size_t)before.total - total, before.reserved, (long long)before.free - (long long)free_bytes);
	if (simulated)
		CHECK(before.total - total == before.reserved && before.free == free_bytes);
	OK(d.cuMemAlloc_v2(&p, 32 * MIB));
	nvmlMemory_v2_t after = memory_of(handle);
	CHECK(before.free - after.free == free_bytes - free_memory());
	CHECK(after.used - before.used == before.free - after.free);
	CHECK(after.total == before.total && after.reserved == before.reserved);
	OK(d.cuMemFree_v2(p));
	CHECK(memory_of(handle).free == before.free);
}

/* NVML needs no driver in the process. */
DRIVER_TEST(memory_without_the_driver)
{
	nvmlDevice_t handle;

	load_nvml();
	GOOD(n.nvmlInit_v2());
	GOOD(n.nvmlDeviceGetHandleByIndex_v2(0, &handle));
	nvmlMemory_v2_t all = memory_of(handle);
	CHECK(all.free <= all.total && all.total > 0);
}

DRIVER_TEST(odd_questions)
{
	nvmlMemory_v2_t second = {.version = nvmlMemory_v2 + 1, .total = 77, .free = 77};
	nvmlMemory_t first;

	start_both();
	REFUSED(NVML_ERROR_INVALID_ARGUMENT, n.nvmlDeviceGetMemoryInfo(handle_of(0), NULL));
	REFUSED(NVML_ERROR_INVALID_ARGUMENT, n.nvmlDeviceGetMemoryInfo(NULL, &first));
	for (unsigned version = 0; version < 2; version++) {
		nvmlReturn_t result = n.nvmlDeviceGetMemoryInfo_v2(handle_of(0), &second);
		printf("# version %#x gives %d\n", second.version, (int)result);
		CHECK(result == NVML_ERROR_FUNCTION_NOT_FOUND && second.total == 77 && second.free == 77);
		second.version = 0;
	}
}

/* NVML numbers by PCI address, whatever devices the driver shows. */
DRIVER_TEST(reversed)
{
	unsigned count;
	nvmlDevice_t handle;
	char ours[41], theirs[96];
	CUdeviceptr p;

	setenv("SPILL_SIM_DEVICES", "2", 1);
	setenv("CUDA_DEVICE_ORDER", "PCI_BUS_ID", 1);
	setenv("CUDA_VISIBLE_DEVICES", "1,0", 1);
	load_nvml();
	GOOD(n.nvmlInit_v2());
	GOOD(n.nvmlDeviceGetCount_v2(&count));
	if (count < 2)
		_exit(SKIP);
	start();
	uuid_text(0, ours);
	GOOD(n.nvmlDeviceGetHandleByIndex_v2(1, &handle));
	GOOD(n.nvmlDeviceGetUUID(handle, theirs, sizeof(theirs)));
	CHECK(!strcmp(ours, theirs));
	uint64_t before = memory_of(handle).free, other = memory_of(handle_of(1)).free;
	OK(d.cuMemAlloc_v2(&p, 32 * MIB));
	CHECK(memory_of(handle).free == before - 32 * MIB);
	CHECK(memory_of(handle_of(1)).free == other);
}

DRIVER_TEST(unseen)
{
	int visible;
	unsigned count;

	setenv("SPILL_SIM_DEVICES", "3", 1);
	setenv("CUDA_VISIBLE_DEVICES", "1,7,0", 1);
	load_nvml();
	GOOD(n.nvmlInit_v2());
	GOOD(n.nvmlDeviceGetCount_v2(&count));
	if (count < 2 || count > 7)
		_exit(SKIP);
	start();
	OK(d.cuDeviceGetCount(&visible));
	CHECK(visible == 1);
}
