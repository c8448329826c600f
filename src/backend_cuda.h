/*
 * The CUDA driver functions that libspill calls, looked up once from the driver that the program loaded
 * (backend_cuda.c) and shared by the files of this backend. Names and versions are those of the CUDA Driver API
 * reference; prototypes are checked in tests/static.
 */
#ifndef SPILL_BACKEND_CUDA_H
#define SPILL_BACKEND_CUDA_H

#include "abi/cuda.h"
#include "backend.h"

/* One row a function: required or not, name, parameters. */
#define SPILL_CUDA_FUNCTIONS(X) \
	X(1, cuCtxGetCurrent, (CUcontext *)) \
	X(1, cuCtxGetDevice, (CUdevice *)) \
	X(1, cuCtxPushCurrent_v2, (CUcontext)) \
	X(1, cuCtxPopCurrent_v2, (CUcontext *)) \
	X(1, cuCtxSynchronize, (void)) \
	X(1, cuDeviceGet, (CUdevice *, int)) \
	X(1, cuDeviceGetCount, (int *)) \
	X(1, cuDeviceGetName, (char *, int, CUdevice)) \
	X(0, cuDeviceGetUuid_v2, (CUuuid *, CUdevice)) \
	X(0, cuDeviceGetUuid, (CUuuid *, CUdevice)) \
	X(0, cuDeviceGetPCIBusId, (char *, int, CUdevice)) \
	X(1, cuDeviceTotalMem_v2, (size_t *, CUdevice)) \
	X(1, cuDeviceGetAttribute, (int *, CUdevice_attribute, CUdevice)) \
	X(0, cuDevicePrimaryCtxGetState, (CUdevice, unsigned int *, int *)) \
	X(0, cuDevicePrimaryCtxRetain, (CUcontext *, CUdevice)) \
	X(0, cuDevicePrimaryCtxRelease_v2, (CUdevice)) \
	X(1, cuDriverGetVersion, (int *)) \
	X(1, cuGetErrorName, (CUresult, const char **)) \
	X(1, cuMemGetInfo_v2, (size_t *, size_t *)) \
	X(1, cuMemFree_v2, (CUdeviceptr)) \
	X(1, cuMemHostAlloc, (void **, size_t, unsigned int)) \
	X(1, cuMemHostGetDevicePointer_v2, (CUdeviceptr *, void *, unsigned int)) \
	X(1, cuMemFreeHost, (void *)) \
	X(0, cuMemAllocManaged, (CUdeviceptr *, size_t, unsigned int)) \
	X(0, cuMemAdvise, (CUdeviceptr, size_t, CUmem_advise, CUdevice)) \
	X(0, cuMemAdvise_v2, (CUdeviceptr, size_t, CUmem_advise, CUmemLocation)) \
	X(0, cuMemPrefetchAsync, (CUdeviceptr, size_t, CUdevice, CUstream)) \
	X(0, cuMemPrefetchAsync_v2, (CUdeviceptr, size_t, CUmemLocation, unsigned int, CUstream)) \
	X(0, cuMemGetAllocationGranularity, \
	  (size_t *, const CUmemAllocationProp *, CUmemAllocationGranularity_flags)) \
	X(0, cuMemAddressReserve, (CUdeviceptr *, size_t, size_t, CUdeviceptr, unsigned long long)) \
	X(0, cuMemAddressFree, (CUdeviceptr, size_t)) \
	X(0, cuMemCreate, \
	  (CUmemGenericAllocationHandle *, size_t, const CUmemAllocationProp *, unsigned long long)) \
	X(0, cuMemRelease, (CUmemGenericAllocationHandle)) \
	X(0, cuMemMap, (CUdeviceptr, size_t, size_t, CUmemGenericAllocationHandle, unsigned long long)) \
	X(0, cuMemUnmap, (CUdeviceptr, size_t)) \
	X(0, cuMemSetAccess, (CUdeviceptr, size_t, const CUmemAccessDesc *, size_t))

struct spill_cuda {
#define X(required, name, params) CUresult(*name) params;
	SPILL_CUDA_FUNCTIONS(X)
#undef X
};

extern struct spill_cuda spill_cuda;

/* Memory: host, managed, virtual memory management (backend_cuda_memory.c). */
int spill_cuda_attribute(int device, CUdevice_attribute which); /* 0 if the driver does not know it */
int spill_cuda_host_alloc(uint64_t bytes, uint64_t *ptr, void **host);
int spill_cuda_host_free(void *host);
int spill_cuda_managed_alloc(uint64_t bytes, uint64_t *ptr);
int spill_cuda_managed_free(uint64_t ptr);
int spill_cuda_advise_preferred(uint64_t ptr, uint64_t bytes, enum spill_location where, int device);
int spill_cuda_advise_accessed_by(uint64_t ptr, uint64_t bytes, enum spill_location who, int device);
int spill_cuda_advise_read_mostly(uint64_t ptr, uint64_t bytes, int device);
int spill_cuda_prefetch(uint64_t ptr, uint64_t bytes, int device);
int spill_cuda_granularity(int device, bool on_host, uint64_t *bytes);
int spill_cuda_reserve(uint64_t bytes, uint64_t alignment, uint64_t *va);
int spill_cuda_unreserve(uint64_t va, uint64_t bytes);
int spill_cuda_create(int device, bool on_host, uint64_t bytes, uint64_t *handle);
int spill_cuda_release(uint64_t handle);
int spill_cuda_map(uint64_t va, uint64_t bytes, uint64_t handle);
int spill_cuda_unmap(uint64_t va, uint64_t bytes);
int spill_cuda_allow(uint64_t va, uint64_t bytes, int device);

#endif
