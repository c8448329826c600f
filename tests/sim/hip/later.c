/* Functions of releases after ROCm 5.2. hip_later_api.h has the sources. */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "hip_later_api.h"
#include "hip_entry.h"

/* hipamd's hip_device.cpp: _spt first if the caller wants it. hipVersion is 100 * major + minor. */
static hipError_t look_up(const char *symbol, void **pfn, int version, enum hip_proc_address_flags flags,
                          hipDriverProcAddressQueryResult *status)
{
	char name[128];
	Dl_info self;

	if (!symbol || !*symbol || !pfn || strlen(symbol) > sizeof(name) - sizeof("R0600"))
		return hipErrorInvalidValue;
	bool changed = !strcmp(symbol, "hipGetDeviceProperties") || !strcmp(symbol, "hipChooseDevice");
	/* Held for ever, like any library in use. */
	void *library = dladdr((void *)(uintptr_t)&look_up, &self)
	                    ? dlopen(self.dli_fname, RTLD_LAZY | RTLD_NOLOAD)
	                    : NULL;
	if (!library)
		return hipErrorInvalidValue;
	snprintf(name, sizeof(name), "%s%s", symbol,
	         changed                                ? version >= 600 ? "R0600" : ""
	         : flags == HIP_PROC_ADDRESS_PER_THREAD ? "_spt"
	                                                : "");
	void *found = dlsym(library, name);
	if (!found && flags == HIP_PROC_ADDRESS_PER_THREAD)
		found = dlsym(library, symbol);
	dlclose(library);
	*pfn = found;
	if (status)
		*status = found ? HIP_GET_PROC_ADDRESS_SUCCESS : HIP_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
	return found ? hipSuccess : hipErrorInvalidValue;
}

hipError_t hipGetProcAddress(const char *symbol, void **pfn, int hipVersion, uint64_t flags,
                             hipDriverProcAddressQueryResult *symbolStatus)
{
	HIP_ENTER();
	return hip_leave(look_up(symbol, pfn, hipVersion, (enum hip_proc_address_flags)flags, symbolStatus));
}

hipError_t hipGetProcAddress_spt(const char *symbol, void **pfn, int hipVersion, uint64_t flags,
                                 hipDriverProcAddressQueryResult *symbolStatus)
{
	HIP_ENTER();
	if (flags == HIP_PROC_ADDRESS_DEFAULT)
		flags = HIP_PROC_ADDRESS_PER_THREAD;
	return hip_leave(look_up(symbol, pfn, hipVersion, (enum hip_proc_address_flags)flags, symbolStatus));
}

hipError_t hipExtGetLastError(void)
{
	HIP_ENTER();
	return hip_last_result();
}

hipError_t hipGetDevicePropertiesR0600(struct hip_device_prop_6 *prop, int deviceId)
{
	hipDeviceProp_t old;

	hipError_t error = hipGetDeviceProperties(&old, deviceId);
	HIP_TRY(prop ? error : hipErrorInvalidValue);
	memset(prop, 0, sizeof(*prop));
	memcpy(prop->name, old.name, sizeof(prop->name));
	memcpy(prop->gcnArchName, old.gcnArchName, sizeof(prop->gcnArchName));
	prop->totalGlobalMem = old.totalGlobalMem;
#define PROPERTY(field, name) prop->field = old.field;
#include "hip_properties.def"
	prop->memoryPoolsSupported = 1;
	prop->unifiedAddressing = 1;
	return hip_leave(hipSuccess);
}

/* hipGetDevicePropertiesR0000 is ROCm 5's function under another name. */
hipError_t hipGetDevicePropertiesR0000(hipDeviceProp_t *prop, int deviceId)
{
	return hipGetDeviceProperties(prop, deviceId);
}

/* Only one attribute can be set (HIP runtime API reference). It has no effect. */
hipError_t hipPointerSetAttribute(const void *value, hipPointer_attribute attribute, hipDeviceptr_t ptr)
{
	struct sim_pointer about;

	HIP_ENTER();
	return hip_leave(value && attribute == HIP_POINTER_ATTRIBUTE_SYNC_MEMOPS &&
	                         sim_pointer(hip_address(ptr), &about)
	                     ? hipSuccess
	                     : hipErrorInvalidValue);
}

/* ROCm 7.1: a location, not a number. Host locations have the CPU's number. */
static int device_of(hipMemLocation location)
{
	return location.type == hipMemLocationTypeDevice ? location.id : hipCpuDeviceId;
}

hipError_t hipMemAdvise_v2(const void *dev_ptr, size_t count, hipMemoryAdvise advice, hipMemLocation location)
{
	return hipMemAdvise(dev_ptr, count, advice, device_of(location));
}

hipError_t hipMemPrefetchAsync_v2(const void *dev_ptr, size_t count, hipMemLocation location,
                                  unsigned int flags, hipStream_t stream)
{
	HIP_TRY(flags ? hipErrorInvalidValue : hipSuccess);
	return hipMemPrefetchAsync(dev_ptr, count, device_of(location), stream);
}

/* ROCm 7.0: a descriptor of a dma-buf. No other device here could use one. */
hipError_t hipMemGetHandleForAddressRange(void *handle, hipDeviceptr_t dptr, size_t size, int handleType,
                                          unsigned long long flags)
{
	(void)handleType;
	HIP_ENTER();
	return hip_leave(handle && dptr && size && !flags ? hipErrorNotSupported : hipErrorInvalidValue);
}
