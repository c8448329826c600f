/* Devices, each with one context; versions and attributes. */
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "graph.h"
#include "hip_entry.h"

/* Debian 12's runtime reports the first. 6.4.43482 is of ROCm 6.4; 7.2.26015 stands for 7.2. */
#if HIP_RELEASE == 5
#define HIP_VERSION 50221153
#elif HIP_RELEASE == 6
#define HIP_VERSION 60443482
#else
#define HIP_VERSION 70226015
#endif

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct sim_context *contexts[SIM_DEVICES];

static _Thread_local int chosen;

static hipError_t check_device(int device)
{
	return hip_is_device(device) ? hipSuccess : hipErrorInvalidDevice;
}

int hip_device(void)
{
	return chosen;
}

void hip_set_device(int device)
{
	chosen = device;
}

bool hip_is_active(int device)
{
	pthread_mutex_lock(&lock);
	bool active = contexts[device];
	pthread_mutex_unlock(&lock);
	return active;
}

hipError_t hip_context(int device, struct sim_context **context)
{
	hipError_t error = check_device(device);

	if (error)
		return error;
	pthread_mutex_lock(&lock);
	if (!contexts[device])
		error = hip_error(sim_context_create(device, &contexts[device]));
	*context = contexts[device];
	pthread_mutex_unlock(&lock);
	return error ? error : hip_error(sim_context_status(*context));
}

hipError_t hipInit(unsigned int flags)
{
	HIP_ENTER();
	return hip_leave(flags ? hipErrorInvalidValue : hipSuccess);
}

/* The only call with "no device" as its error. */
hipError_t hipGetDeviceCount(int *count)
{
	if (!count)
		return hip_leave(hipErrorInvalidValue);
	if (sim_init() == SIM_NO_DEVICE) {
		*count = 0;
		return hip_leave(hipErrorNoDevice);
	}
	HIP_ENTER();
	*count = sim_config()->devices;
	return hip_leave(hipSuccess);
}

hipError_t hipGetDevice(int *deviceId)
{
	HIP_ENTER();
	if (!deviceId)
		return hip_leave(hipErrorInvalidValue);
	*deviceId = chosen;
	return hip_leave(hipSuccess);
}

hipError_t hipSetDevice(int deviceId)
{
	HIP_ENTER();
	HIP_TRY(check_device(deviceId));
	chosen = deviceId;
	return hip_leave(hipSuccess);
}

hipError_t hipSetDeviceFlags(unsigned flags)
{
	(void)flags; /* how the host waits: no visible effect here */
	HIP_ENTER();
	return hip_leave(hipSuccess);
}

hipError_t hipDeviceGet(hipDevice_t *device, int ordinal)
{
	HIP_ENTER();
	HIP_TRY(device ? check_device(ordinal) : hipErrorInvalidValue);
	*device = ordinal;
	return hip_leave(hipSuccess);
}

hipError_t hipDeviceGetName(char *name, int len, hipDevice_t device)
{
	HIP_ENTER();
	HIP_TRY(check_device(device));
	HIP_TRY(name && len > 0 ? hipSuccess : hipErrorInvalidValue);
	snprintf(name, (size_t)len, "Simulated GPU %d", device);
	return hip_leave(hipSuccess);
}

hipError_t hipDeviceTotalMem(size_t *bytes, hipDevice_t device)
{
	uint64_t free, total;

	HIP_ENTER();
	HIP_TRY(check_device(device));
	HIP_TRY(bytes ? hipSuccess : hipErrorInvalidValue);
	sim_device_memory(device, &free, &total);
	*bytes = total;
	return hip_leave(hipSuccess);
}

hipError_t hipDeviceGetPCIBusId(char *pciBusId, int len, int device)
{
	HIP_ENTER();
	HIP_TRY(check_device(device));
	HIP_TRY(pciBusId && len > 0 ? hipSuccess : hipErrorInvalidValue);
	snprintf(pciBusId, (size_t)len, "0000:%02x:00.0", device + 1);
	return hip_leave(hipSuccess);
}

/* The kernel driver provides managed memory. XNACK adds pageable access (ROCm 5). */
static int device_attribute(hipDeviceAttribute_t which, int device)
{
	const struct sim_config *config = sim_config();

	if (which == hipDeviceAttributeVirtualMemoryManagementSupported)
		return HIP_RELEASE < 6 ? -1 : config->vmm;
	switch (which) {
	case hipDeviceAttributeIntegrated:
	case hipDeviceAttributeDirectManagedMemAccessFromHost:
		return config->integrated;
	case hipDeviceAttributePageableMemoryAccessUsesHostPageTables:
		return config->integrated || config->coherent;
	case hipDeviceAttributeManagedMemory:
		return config->managed;
	case hipDeviceAttributeConcurrentManagedAccess:
		return config->managed && config->concurrent;
	case hipDeviceAttributePageableMemoryAccess:
		return config->xnack;
	case hipDeviceAttributePciBusId:
		return device + 1;
	case hipDeviceAttributeComputeCapabilityMajor:
		return 9;
	case hipDeviceAttributeWarpSize:
		return 64;
	case hipDeviceAttributeMultiprocessorCount:
		return 104;
	case hipDeviceAttributeMaxThreadsPerBlock:
	case hipDeviceAttributeMaxBlockDimX:
	case hipDeviceAttributeMaxBlockDimY:
	case hipDeviceAttributeMaxBlockDimZ:
		return 1024;
	case hipDeviceAttributeMaxThreadsPerMultiProcessor:
		return 2048;
	case hipDeviceAttributeMaxGridDimX:
	case hipDeviceAttributeMaxGridDimY:
	case hipDeviceAttributeMaxGridDimZ:
	case hipDeviceAttributeMaxPitch:
		return INT32_MAX;
	case hipDeviceAttributeMaxSharedMemoryPerBlock:
	case hipDeviceAttributeMaxRegistersPerBlock:
		return 65536;
	case hipDeviceAttributeTotalConstantMemory:
		return INT32_MAX;
	case hipDeviceAttributeL2CacheSize:
		return 8 << 20;
	case hipDeviceAttributeMemoryBusWidth:
		return 4096;
	case hipDeviceAttributeClockRate:
	case hipDeviceAttributeMemoryClockRate:
		return 1600000;
	case hipDeviceAttributeTextureAlignment:
		return 256;
	case hipDeviceAttributeCanMapHostMemory:
	case hipDeviceAttributeConcurrentKernels:
	case hipDeviceAttributeMemoryPoolsSupported:
		return 1;
	case hipDeviceAttributeComputeMode:
	case hipDeviceAttributeComputeCapabilityMinor:
	case hipDeviceAttributeCooperativeLaunch:
	case hipDeviceAttributeIsMultiGpuBoard:
	case hipDeviceAttributePciDeviceId:
	case hipDeviceAttributePciDomainID:
		return 0;
	}
	return -1;
}

hipError_t hipDeviceGetAttribute(int *pi, hipDeviceAttribute_t attr, int deviceId)
{
	HIP_ENTER();
	HIP_TRY(pi ? hipSuccess : hipErrorInvalidValue);
	HIP_TRY(check_device(deviceId));
	int value = device_attribute(attr, deviceId);
	HIP_TRY(value < 0 ? hipErrorInvalidValue : hipSuccess);
	*pi = value;
	return hip_leave(hipSuccess);
}

hipError_t hipGetDeviceProperties(hipDeviceProp_t *prop, int deviceId)
{
	uint64_t free, total;

	HIP_ENTER();
	HIP_TRY(prop ? hipSuccess : hipErrorInvalidValue);
	HIP_TRY(check_device(deviceId));
	sim_device_memory(deviceId, &free, &total);
	memset(prop, 0, sizeof(*prop));
	snprintf(prop->name, sizeof(prop->name), "Simulated GPU %d", deviceId);
	snprintf(prop->gcnArchName, sizeof(prop->gcnArchName), "gfx90a:sramecc+:xnack%c",
	         sim_config()->xnack ? '+' : '-');
	prop->gcnArch = 910;
	prop->totalGlobalMem = total;
#define PROPERTY(field, name) prop->field = device_attribute(hipDeviceAttribute##name, deviceId);
#include "hip_properties.def"
	return hip_leave(hipSuccess);
}

/* Both work without devices. */
hipError_t hipDriverGetVersion(int *driverVersion)
{
	if (!driverVersion)
		return hip_leave(hipErrorInvalidValue);
	*driverVersion = HIP_VERSION;
	return hip_leave(hipSuccess);
}

hipError_t hipRuntimeGetVersion(int *runtimeVersion)
{
	return hipDriverGetVersion(runtimeVersion);
}

hipError_t hipDeviceSynchronize(void)
{
	struct sim_context *context;

	HIP_ENTER();
	HIP_TRY(hip_context(chosen, &context));
	HIP_TRY(hip_error(sim_capture_asks_context(context)));
	enum sim_status status = sim_context_synchronize(context);
	sim_pools_synchronized(chosen, SIM_ALL_STREAMS);
	return hip_return(status);
}

/* Ends every allocation, stream and module of the device (hip_device.cpp, Device::Reset). */
hipError_t hipDeviceReset(void)
{
	HIP_ENTER();
	pthread_mutex_lock(&lock);
	struct sim_context *context = contexts[chosen];
	contexts[chosen] = NULL;
	pthread_mutex_unlock(&lock);
	hip_pools_reset(chosen);
	sim_vmm_reset(chosen);
	return hip_return(context ? sim_context_destroy(context) : SIM_OK);
}

hipError_t hipDeviceCanAccessPeer(int *canAccessPeer, int deviceId, int peerDeviceId)
{
	HIP_ENTER();
	HIP_TRY(canAccessPeer ? hipSuccess : hipErrorInvalidValue);
	HIP_TRY(check_device(deviceId));
	HIP_TRY(check_device(peerDeviceId));
	*canAccessPeer = deviceId != peerDeviceId;
	return hip_leave(hipSuccess);
}

static hipError_t peer_contexts(int peer, struct sim_context **own, struct sim_context **other)
{
	if (check_device(peer) || peer == chosen)
		return hipErrorInvalidDevice;
	hipError_t error = hip_context(chosen, own);
	return error ? error : hip_context(peer, other);
}

hipError_t hip_peer_enable(int peer, unsigned flags)
{
	struct sim_context *own, *other;
	hipError_t error = flags ? hipErrorInvalidValue : peer_contexts(peer, &own, &other);

	if (error)
		return error;
	enum sim_status status = sim_peer_enable(own, other);
	return status == SIM_ALREADY ? hipErrorPeerAccessAlreadyEnabled : hip_error(status);
}

hipError_t hip_peer_disable(int peer)
{
	struct sim_context *own, *other;
	hipError_t error = peer_contexts(peer, &own, &other);

	if (error)
		return error;
	return sim_peer_disable(own, other) == SIM_OK ? hipSuccess : hipErrorPeerAccessNotEnabled;
}

hipError_t hipDeviceEnablePeerAccess(int peerDeviceId, unsigned int flags)
{
	HIP_ENTER();
	return hip_leave(hip_peer_enable(peerDeviceId, flags));
}

hipError_t hipDeviceDisablePeerAccess(int peerDeviceId)
{
	HIP_ENTER();
	return hip_leave(hip_peer_disable(peerDeviceId));
}
