/* Devices and their attributes. */
#include <stdio.h>
#include <string.h>

#include "cuda_entry.h"

bool driver_device(CUdevice device)
{
	return device >= 0 && device < sim_config()->devices;
}

CUresult cuDeviceGetCount(int *count)
{
	ENTER(cuDeviceGetCount, INIT);
	if (!count)
		return CUDA_ERROR_INVALID_VALUE;
	*count = sim_config()->devices;
	return CUDA_SUCCESS;
}

CUresult cuDeviceGet(CUdevice *device, int ordinal)
{
	ENTER(cuDeviceGet, INIT);
	if (!device)
		return CUDA_ERROR_INVALID_VALUE;
	if (!driver_device(ordinal))
		return CUDA_ERROR_INVALID_DEVICE;
	*device = ordinal;
	return CUDA_SUCCESS;
}

CUresult cuDeviceGetName(char *name, int len, CUdevice dev)
{
	ENTER(cuDeviceGetName, INIT);
	if (!name || len <= 0)
		return CUDA_ERROR_INVALID_VALUE;
	if (!driver_device(dev))
		return CUDA_ERROR_INVALID_DEVICE;
	snprintf(name, (size_t)len, "Simulated GPU");
	return CUDA_SUCCESS;
}

static CUresult uuid_of(CUuuid *uuid, CUdevice dev)
{
	static const char start[15] = "spill-simulator";

	if (!uuid)
		return CUDA_ERROR_INVALID_VALUE;
	if (!driver_device(dev))
		return CUDA_ERROR_INVALID_DEVICE;
	memcpy(uuid->bytes, start, sizeof(start));
	uuid->bytes[15] = (char)sim_config()->which[dev];
	return CUDA_SUCCESS;
}

CUresult cuDeviceGetUuid(CUuuid *uuid, CUdevice dev)
{
	ENTER(cuDeviceGetUuid, INIT);
	return uuid_of(uuid, dev);
}

CUresult cuDeviceGetUuid_v2(CUuuid *uuid, CUdevice dev)
{
	ENTER(cuDeviceGetUuid_v2, INIT);
	return uuid_of(uuid, dev);
}

CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice dev)
{
	ENTER(cuDeviceTotalMem_v2, INIT);
	if (!bytes)
		return CUDA_ERROR_INVALID_VALUE;
	if (!driver_device(dev))
		return CUDA_ERROR_INVALID_DEVICE;
	*bytes = sim_config()->vram[sim_config()->which[dev]];
	return CUDA_SUCCESS;
}

CUresult cuDeviceGetPCIBusId(char *pciBusId, int len, CUdevice dev)
{
	ENTER(cuDeviceGetPCIBusId, INIT);
	if (!pciBusId || len <= 0)
		return CUDA_ERROR_INVALID_VALUE;
	if (!driver_device(dev))
		return CUDA_ERROR_INVALID_DEVICE;
	int bus = sim_config()->which[dev] + 1;
	return snprintf(pciBusId, (size_t)len, "0000:%02X:00.0", bus) < len ? CUDA_SUCCESS
	                                                                    : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuDeviceGetByPCIBusId(CUdevice *dev, const char *pciBusId)
{
	unsigned domain, bus, slot;

	ENTER(cuDeviceGetByPCIBusId, INIT);
	if (!dev || !pciBusId)
		return CUDA_ERROR_INVALID_VALUE;
	if (sscanf(pciBusId, "%x:%x:%x", &domain, &bus, &slot) != 3 || domain || slot)
		return CUDA_ERROR_INVALID_DEVICE;
	for (int i = 0; i < sim_config()->devices; i++)
		if (sim_config()->which[i] == (int)bus - 1) {
			*dev = i;
			return CUDA_SUCCESS;
		}
	return CUDA_ERROR_INVALID_DEVICE;
}

CUresult cuDeviceComputeCapability(int *major, int *minor, CUdevice dev)
{
	ENTER(cuDeviceComputeCapability, INIT);
	if (!major || !minor)
		return CUDA_ERROR_INVALID_VALUE;
	if (!driver_device(dev))
		return CUDA_ERROR_INVALID_DEVICE;
	*major = 9;
	*minor = 0;
	return CUDA_SUCCESS;
}

CUresult cuDeviceCanAccessPeer(int *canAccessPeer, CUdevice dev, CUdevice peerDev)
{
	ENTER(cuDeviceCanAccessPeer, INIT);
	if (!canAccessPeer)
		return CUDA_ERROR_INVALID_VALUE;
	if (!driver_device(dev) || !driver_device(peerDev))
		return CUDA_ERROR_INVALID_DEVICE;
	*canAccessPeer = dev != peerDev;
	return CUDA_SUCCESS;
}

CUresult cuDeviceGetP2PAttribute(int *value, CUdevice_P2PAttribute attrib, CUdevice srcDevice,
                                 CUdevice dstDevice)
{
	ENTER(cuDeviceGetP2PAttribute, INIT);
	if (!value || attrib < 1 || attrib > 4)
		return CUDA_ERROR_INVALID_VALUE;
	if (!driver_device(srcDevice) || !driver_device(dstDevice) || srcDevice == dstDevice)
		return CUDA_ERROR_INVALID_DEVICE;
	*value = attrib != 1; /* a link has every ability, and rank 0 */
	return CUDA_SUCCESS;
}

/* A large data-centre card, by the vendor's numbers. An attribute that is not listed is 0. */
static const int attributes[] =
    {
        [1] = 1024,        [2] = 1024,    [3] = 1024,      [4] = 64, /* threads: a block, x, y, z. */
        [5] = 2147483647,  [6] = 65535,   [7] = 65535,               /* grid x, y, z. */
        [8] = 49152,       [9] = 65536,   [10] = 32,                 /* shared, constant memory; warp. */
        [11] = 2147483647, [12] = 65536,  [13] = 1980000,            /* pitch, registers, clock. */
        [14] = 512,        [15] = 1,      [16] = 132, /* texture alignment, overlap, multiprocessors. */
        [19] = 1,                                     /* host memory can be mapped. */
        [21] = 131072,     [22] = 131072, [23] = 65536,    [24] = 16384,
        [25] = 16384,      [26] = 16384,  [30] = 512,      [31] = 1,
        [32] = 1,                                          /* surface alignment, concurrent kernels, ECC. */
        [36] = 3201000,    [37] = 6144,   [38] = 62914560, /* memory clock, bus, L2. */
        [39] = 2048,       [40] = 3,      [41] = 1,        /* threads per multiprocessor, engines, unified */
        [51] = 32,         [75] = 9,      [76] = 0,        /* texture pitch; compute capability. */
        [78] = 1,          [79] = 1,      [80] = 1,        [81] = 233472,
        [82] = 65536, /* priorities, caches, shared. */
        [87] = 2,          [90] = 1,      [91] = 1,        [92] = 0,
        [95] = 1,          [97] = 232448, [98] = 1,        [99] = 1,
        [103] = 1,         [106] = 32,    [110] = 1,       [111] = 1024,
        [115] = 1,         [119] = 1,     [120] = 1,       [124] = 1,
        [142] = 1,         [147] = 0, /* 103, 110, 119, 124: handle types of exports. */
};

static int attribute_of_device(CUdevice_attribute attrib, CUdevice dev)
{
	const struct sim_config *config = sim_config();

	switch ((int)attrib) {
	case CU_DEVICE_ATTRIBUTE_INTEGRATED:
		return config->integrated;
	case CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS_USES_HOST_PAGE_TABLES:
		return config->coherent;
	case 33: /* PCI bus */
		return dev + 1;
	case CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY:
		return config->managed;
	case CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS:
		return config->managed && config->concurrent;
	case CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED:
		return config->vmm;
	case CU_DEVICE_ATTRIBUTE_HOST_NUMA_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED:
	case 145: /* VMM on host without a node */
		return config->vmm && config->host_vmm;
	case CU_DEVICE_ATTRIBUTE_HOST_NUMA_ID:
		return config->node;
	}
	return attributes[attrib];
}

/* The attributes before this number exist. By the enumerations of the vendor's headers. */
static int attributes_end(void)
{
	static const struct {
		int version, end;
	} known[] = {{12090, 144}, {12080, 141}, {12050, 136}, {12020, 135}, {12010, 133},
	             {12000, 130}, {11070, 125}, {11060, 122}, {0, 120}};
	const int listed = sizeof(attributes) / sizeof(*attributes);
	unsigned i = 0;

	if (driver_version >= 13000)
		return listed;
	while (driver_version < known[i].version)
		i++;
	return known[i].end < listed ? known[i].end : listed;
}

CUresult cuDeviceGetAttribute(int *pi, CUdevice_attribute attrib, CUdevice dev)
{
	ENTER(cuDeviceGetAttribute, INIT);
	if (!pi || (int)attrib < 1 || (int)attrib >= attributes_end())
		return CUDA_ERROR_INVALID_VALUE;
	if (!driver_device(dev))
		return CUDA_ERROR_INVALID_DEVICE;
	*pi = attribute_of_device(attrib, dev);
	return CUDA_SUCCESS;
}
