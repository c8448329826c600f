/*
 * The part of AMD's HIP API that libspill calls or answers and the simulated runtime offers. The
 * rules of cuda.h hold; tests/static compares with Debian's libamdhip64-dev (ROCm 5.2).
 */
#ifndef SPILL_ABI_HIP_H
#define SPILL_ABI_HIP_H

#include <stddef.h>
#include <stdint.h>

#include "hip_memory.h"

typedef int hipDevice_t;
typedef void *hipDeviceptr_t;
typedef struct ihipStream_t *hipStream_t;
typedef struct ihipEvent_t *hipEvent_t;
typedef struct ihipModule_t *hipModule_t;
typedef struct ihipModuleSymbol_t *hipFunction_t;

typedef enum hipError_t {
	hipSuccess = 0,
	hipErrorInvalidValue = 1,
	hipErrorOutOfMemory = 2,
	hipErrorNotInitialized = 3,
	hipErrorDeinitialized = 4,
	hipErrorInvalidConfiguration = 9,
	hipErrorInvalidPitchValue = 12,
	hipErrorInvalidDevicePointer = 17,
	hipErrorInvalidMemcpyDirection = 21,
	hipErrorInvalidDeviceFunction = 98,
	hipErrorNoDevice = 100,
	hipErrorInvalidDevice = 101,
	hipErrorInvalidImage = 200,
	hipErrorInvalidContext = 201,
	hipErrorContextAlreadyInUse = 216,
	hipErrorFileNotFound = 301,
	hipErrorSharedObjectInitFailed = 303,
	hipErrorInvalidHandle = 400,
	hipErrorIllegalState = 401,
	hipErrorNotFound = 500,
	hipErrorNotReady = 600,
	hipErrorIllegalAddress = 700,
	hipErrorContextIsDestroyed = 709,
	hipErrorHostMemoryAlreadyRegistered = 712,
	hipErrorHostMemoryNotRegistered = 713,
	hipErrorPeerAccessAlreadyEnabled = 704,
	hipErrorPeerAccessNotEnabled = 705,
	hipErrorLaunchFailure = 719,
	hipErrorNotSupported = 801,
	hipErrorStreamCaptureUnsupported = 900,
	hipErrorStreamCaptureInvalidated = 901,
	hipErrorStreamCaptureMerge = 902,
	hipErrorStreamCaptureUnmatched = 903,
	hipErrorStreamCaptureUnjoined = 904,
	hipErrorStreamCaptureIsolation = 905,
	hipErrorStreamCaptureImplicit = 906,
	hipErrorCapturedEvent = 907,
	hipErrorStreamCaptureWrongThread = 908,
	hipErrorGraphExecUpdateFailure = 910,
	hipErrorUnknown = 999,
} hipError_t;

typedef enum hipMemoryType {
	hipMemoryTypeHost = 0,
	hipMemoryTypeDevice = 1,
	hipMemoryTypeArray = 2,
	hipMemoryTypeUnified = 3,
} hipMemoryType;

typedef enum hipMemcpyKind {
	hipMemcpyHostToHost = 0,
	hipMemcpyHostToDevice = 1,
	hipMemcpyDeviceToHost = 2,
	hipMemcpyDeviceToDevice = 3,
	hipMemcpyDefault = 4,
} hipMemcpyKind;

typedef enum hipMemoryAdvise {
	hipMemAdviseSetReadMostly = 1,
	hipMemAdviseUnsetReadMostly = 2,
	hipMemAdviseSetPreferredLocation = 3,
	hipMemAdviseUnsetPreferredLocation = 4,
	hipMemAdviseSetAccessedBy = 5,
	hipMemAdviseUnsetAccessedBy = 6,
	hipMemAdviseSetCoarseGrain = 100,
	hipMemAdviseUnsetCoarseGrain = 101,
} hipMemoryAdvise;

/* Numbers are ROCm 5's; ROCm 4 counted differently. */
typedef enum hipDeviceAttribute_t {
	hipDeviceAttributeCanMapHostMemory = 3,
	hipDeviceAttributeClockRate = 5,
	hipDeviceAttributeComputeMode = 6,
	hipDeviceAttributeConcurrentKernels = 8,
	hipDeviceAttributeConcurrentManagedAccess = 9,
	hipDeviceAttributeCooperativeLaunch = 10,
	hipDeviceAttributeDirectManagedMemAccessFromHost = 13,
	hipDeviceAttributeIntegrated = 16,
	hipDeviceAttributeIsMultiGpuBoard = 17,
	hipDeviceAttributeL2CacheSize = 19,
	hipDeviceAttributeComputeCapabilityMajor = 23,
	hipDeviceAttributeManagedMemory = 24,
	hipDeviceAttributeMaxBlockDimX = 26,
	hipDeviceAttributeMaxBlockDimY = 27,
	hipDeviceAttributeMaxBlockDimZ = 28,
	hipDeviceAttributeMaxGridDimX = 29,
	hipDeviceAttributeMaxGridDimY = 30,
	hipDeviceAttributeMaxGridDimZ = 31,
	hipDeviceAttributeMaxThreadsPerBlock = 56,
	hipDeviceAttributeMaxThreadsPerMultiProcessor = 57,
	hipDeviceAttributeMaxPitch = 58,
	hipDeviceAttributeMemoryBusWidth = 59,
	hipDeviceAttributeMemoryClockRate = 60,
	hipDeviceAttributeComputeCapabilityMinor = 61,
	hipDeviceAttributeMultiprocessorCount = 63,
	hipDeviceAttributePageableMemoryAccess = 65,
	hipDeviceAttributePageableMemoryAccessUsesHostPageTables = 66,
	hipDeviceAttributePciBusId = 67,
	hipDeviceAttributePciDeviceId = 68,
	hipDeviceAttributePciDomainID = 69,
	hipDeviceAttributeMaxRegistersPerBlock = 71,
	hipDeviceAttributeMaxSharedMemoryPerBlock = 74,
	hipDeviceAttributeTextureAlignment = 81,
	hipDeviceAttributeTotalConstantMemory = 83,
	hipDeviceAttributeWarpSize = 87,
	hipDeviceAttributeMemoryPoolsSupported = 88,
} hipDeviceAttribute_t;

/* Of ROCm 6 and later. */
#define hipDeviceAttributeVirtualMemoryManagementSupported ((hipDeviceAttribute_t)89)

#define hipHostMallocDefault 0x0u
#define hipHostMallocPortable 0x1u
#define hipHostMallocMapped 0x2u
#define hipHostMallocWriteCombined 0x4u
#define hipHostMallocNumaUser 0x20000000u
#define hipHostMallocCoherent 0x40000000u
#define hipHostMallocNonCoherent 0x80000000u
#define hipMemAttachGlobal 0x01u
#define hipMemAttachHost 0x02u
#define hipStreamDefault 0x0u
#define hipStreamNonBlocking 0x1u
#define hipStreamPerThread ((hipStream_t)2)
#define hipEventDefault 0x0u
#define hipEventBlockingSync 0x1u
#define hipEventDisableTiming 0x2u
#define hipCpuDeviceId (-1)
#define hipInvalidDeviceId (-2)

/* ROCm 6 renamed memoryType to type, and gave it CUDA's values. */
typedef struct hipPointerAttribute_t {
	enum hipMemoryType memoryType;
	int device;
	void *devicePointer;
	void *hostPointer;
	int isManaged;
	unsigned allocationFlags;
} hipPointerAttribute_t;

typedef struct {
	unsigned hasGlobalInt32Atomics : 1;
	unsigned hasGlobalFloatAtomicExch : 1;
	unsigned hasSharedInt32Atomics : 1;
	unsigned hasSharedFloatAtomicExch : 1;
	unsigned hasFloatAtomicAdd : 1;
	unsigned hasGlobalInt64Atomics : 1;
	unsigned hasSharedInt64Atomics : 1;
	unsigned hasDoubles : 1;
	unsigned hasWarpVote : 1;
	unsigned hasWarpBallot : 1;
	unsigned hasWarpShuffle : 1;
	unsigned hasFunnelShift : 1;
	unsigned hasThreadFenceSystem : 1;
	unsigned hasSyncThreadsExt : 1;
	unsigned hasSurfaceFuncs : 1;
	unsigned has3dGrid : 1;
	unsigned hasDynamicParallelism : 1;
} hipDeviceArch_t;

typedef struct hipDeviceProp_t {
	char name[256];
	size_t totalGlobalMem, sharedMemPerBlock;
	int regsPerBlock, warpSize, maxThreadsPerBlock, maxThreadsDim[3], maxGridSize[3], clockRate;
	int memoryClockRate, memoryBusWidth;
	size_t totalConstMem;
	int major, minor, multiProcessorCount, l2CacheSize, maxThreadsPerMultiProcessor, computeMode;
	int clockInstructionRate;
	hipDeviceArch_t arch;
	int concurrentKernels, pciDomainID, pciBusID, pciDeviceID;
	size_t maxSharedMemoryPerMultiProcessor;
	int isMultiGpuBoard, canMapHostMemory, gcnArch;
	char gcnArchName[256];
	int integrated, cooperativeLaunch, cooperativeMultiDeviceLaunch, maxTexture1DLinear;
	int maxTexture1D, maxTexture2D[2], maxTexture3D[3];
	unsigned int *hdpMemFlushCntl;
	unsigned int *hdpRegFlushCntl;
	size_t memPitch, textureAlignment, texturePitchAlignment;
	int kernelExecTimeoutEnabled, ECCEnabled, tccDriver, cooperativeMultiDeviceUnmatchedFunc;
	int cooperativeMultiDeviceUnmatchedGridDim, cooperativeMultiDeviceUnmatchedBlockDim;
	int cooperativeMultiDeviceUnmatchedSharedMem, isLargeBar, asicRevision, managedMemory;
	int directManagedMemAccessFromHost, concurrentManagedAccess, pageableMemoryAccess;
	int pageableMemoryAccessUsesHostPageTables;
} hipDeviceProp_t;

#endif
