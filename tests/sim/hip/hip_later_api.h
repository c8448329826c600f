/*
 * Declarations of later ROCm releases, which no header here proves. Sources: ROCm's published
 * headers (hip/hip_runtime_api.h, hip/driver_types.h) and "HIP API 7.0 changes"
 * (rocm.docs.amd.com/projects/HIP).
 */
#ifndef SIM_HIP_LATER_H
#define SIM_HIP_LATER_H

#include <stdint.h>

#include "hip_api.h"

/* ROCm 6's values of enum hipMemoryType; the field is called `type` there. */
enum hip_memory_type_6 {
	HIP_MEMORY_6_UNREGISTERED = 0,
	HIP_MEMORY_6_HOST = 1,
	HIP_MEMORY_6_DEVICE = 2,
	HIP_MEMORY_6_MANAGED = 3,
	HIP_MEMORY_6_ARRAY = 10,
	HIP_MEMORY_6_UNIFIED = 11,
};

/* More of enum hipMemLocationType. hipMemCreate accepts HOST from ROCm 7.2 on; `id` is a device. */
enum hip_location_7 {
	HIP_LOCATION_7_HOST = 2,
	HIP_LOCATION_7_HOST_NUMA = 3,
	HIP_LOCATION_7_HOST_CURRENT = 4
};

/* hipMemAllocationProp since ROCm 6. */
struct hip_allocation_prop_6 {
	hipMemAllocationType type;
	hipMemAllocationHandleType requestedHandleType;
	hipMemLocation location;
	void *win32HandleMetaData;
	struct {
		unsigned char compressionType;
		unsigned char gpuDirectRDMACapable;
		unsigned short usage;
	} allocFlags;
};

/* hipMemAllocNodeParams, ROCm 5.5. */
struct hip_alloc_node_params {
	hipMemPoolProps poolProps;
	const hipMemAccessDesc *accessDescs;
	size_t accessDescCount;
	size_t bytesize;
	void *dptr;
};

typedef enum {
	HIP_GET_PROC_ADDRESS_SUCCESS = 0,
	HIP_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND = 1,
	HIP_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT = 2,
} hipDriverProcAddressQueryResult;

enum hip_proc_address_flags {
	HIP_PROC_ADDRESS_DEFAULT,
	HIP_PROC_ADDRESS_LEGACY,
	HIP_PROC_ADDRESS_PER_THREAD
};

/* hipDeviceProp_tR0600, ROCm 6's hipDeviceProp_t. */
struct hip_device_prop_6 {
	char name[256];
	char uuid[16];
	char luid[8];
	unsigned int luidDeviceNodeMask;
	size_t totalGlobalMem, sharedMemPerBlock;
	int regsPerBlock, warpSize;
	size_t memPitch;
	int maxThreadsPerBlock, maxThreadsDim[3], maxGridSize[3], clockRate;
	size_t totalConstMem;
	int major, minor;
	size_t textureAlignment, texturePitchAlignment;
	int deviceOverlap, multiProcessorCount, kernelExecTimeoutEnabled, integrated, canMapHostMemory;
	int computeMode;
	int maxTexture1D, maxTexture1DMipmap, maxTexture1DLinear, maxTexture2D[2], maxTexture2DMipmap[2];
	int maxTexture2DLinear[3], maxTexture2DGather[2], maxTexture3D[3], maxTexture3DAlt[3];
	int maxTextureCubemap, maxTexture1DLayered[2], maxTexture2DLayered[3], maxTextureCubemapLayered[2];
	int maxSurface1D, maxSurface2D[2], maxSurface3D[3], maxSurface1DLayered[2], maxSurface2DLayered[3];
	int maxSurfaceCubemap, maxSurfaceCubemapLayered[2];
	size_t surfaceAlignment;
	int concurrentKernels, ECCEnabled, pciBusID, pciDeviceID, pciDomainID, tccDriver, asyncEngineCount;
	int unifiedAddressing, memoryClockRate, memoryBusWidth, l2CacheSize, persistingL2CacheMaxSize;
	int maxThreadsPerMultiProcessor, streamPrioritiesSupported, globalL1CacheSupported;
	int localL1CacheSupported;
	size_t sharedMemPerMultiprocessor;
	int regsPerMultiprocessor, managedMemory, isMultiGpuBoard, multiGpuBoardGroupID;
	int hostNativeAtomicSupported, singleToDoublePrecisionPerfRatio, pageableMemoryAccess;
	int concurrentManagedAccess, computePreemptionSupported, canUseHostPointerForRegisteredMem;
	int cooperativeLaunch, cooperativeMultiDeviceLaunch;
	size_t sharedMemPerBlockOptin;
	int pageableMemoryAccessUsesHostPageTables, directManagedMemAccessFromHost;
	int maxBlocksPerMultiProcessor, accessPolicyMaxWindowSize;
	size_t reservedSharedMemPerBlock;
	int hostRegisterSupported, sparseHipArraySupported, hostRegisterReadOnlySupported;
	int timelineSemaphoreInteropSupported, memoryPoolsSupported, gpuDirectRDMASupported;
	unsigned int gpuDirectRDMAFlushWritesOptions;
	int gpuDirectRDMAWritesOrdering;
	unsigned int memoryPoolSupportedHandleTypes;
	int deferredMappingHipArraySupported, ipcEventSupported, clusterLaunch, unifiedFunctionPointers;
	int reserved[63], hipReserved[32];
	char gcnArchName[256];
	size_t maxSharedMemoryPerMultiProcessor;
	int clockInstructionRate;
	hipDeviceArch_t arch;
	unsigned int *hdpMemFlushCntl, *hdpRegFlushCntl;
	int cooperativeMultiDeviceUnmatchedFunc, cooperativeMultiDeviceUnmatchedGridDim;
	int cooperativeMultiDeviceUnmatchedBlockDim, cooperativeMultiDeviceUnmatchedSharedMem;
	int isLargeBar, asicRevision;
};

/* Functions of later releases, for programs of libamdhip64.so.6 or .7. */
#pragma GCC visibility push(default)
#define API(node, ret, name, params) ret name params;
#include "hip_later_api.def"
#pragma GCC visibility pop

#endif
