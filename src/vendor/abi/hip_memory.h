/*
 * Types of AMD's HIP API for arrays, pools, virtual memory, capture and export. hip.h includes this
 * file, and its rules hold.
 */
#ifndef SPILL_ABI_HIP_MEMORY_H
#define SPILL_ABI_HIP_MEMORY_H

#include <stdbool.h>
#include <stddef.h>

typedef struct ihipCtx_t *hipCtx_t;
typedef struct ihipMemPoolHandle_t *hipMemPool_t;
typedef struct ihipMemGenericAllocationHandle *hipMemGenericAllocationHandle_t;
typedef struct ihipGraph *hipGraph_t;
typedef struct hipGraphNode *hipGraphNode_t;
typedef struct hipGraphExec *hipGraphExec_t;

#define hipDeviceMallocDefault 0x0
#define hipDeviceMallocFinegrained 0x1
#define hipMallocSignalMemory 0x2
#define hipArrayDefault 0x00
#define hipArrayLayered 0x01
#define hipArraySurfaceLoadStore 0x02
#define hipArrayCubemap 0x04
#define hipArrayTextureGather 0x08

/* -- arrays ----------------------------------------------------------------------------------- */

typedef enum hipChannelFormatKind {
	hipChannelFormatKindSigned = 0,
	hipChannelFormatKindUnsigned = 1,
	hipChannelFormatKindFloat = 2,
	hipChannelFormatKindNone = 3,
} hipChannelFormatKind;

typedef struct hipChannelFormatDesc {
	int x, y, z, w; /* bits of each channel */
	enum hipChannelFormatKind f;
} hipChannelFormatDesc;

typedef enum hipArray_Format {
	HIP_AD_FORMAT_UNSIGNED_INT8 = 0x01,
	HIP_AD_FORMAT_UNSIGNED_INT16 = 0x02,
	HIP_AD_FORMAT_UNSIGNED_INT32 = 0x03,
	HIP_AD_FORMAT_SIGNED_INT8 = 0x08,
	HIP_AD_FORMAT_SIGNED_INT16 = 0x09,
	HIP_AD_FORMAT_SIGNED_INT32 = 0x0a,
	HIP_AD_FORMAT_HALF = 0x10,
	HIP_AD_FORMAT_FLOAT = 0x20,
} hipArray_Format;

typedef struct HIP_ARRAY_DESCRIPTOR {
	size_t Width, Height;
	enum hipArray_Format Format;
	unsigned int NumChannels;
} HIP_ARRAY_DESCRIPTOR;

typedef struct HIP_ARRAY3D_DESCRIPTOR {
	size_t Width, Height, Depth;
	enum hipArray_Format Format;
	unsigned int NumChannels, Flags;
} HIP_ARRAY3D_DESCRIPTOR;

/* Public in ROCm 5; opaque from ROCm 6 on. */
typedef struct hipArray {
	void *data;
	struct hipChannelFormatDesc desc;
	unsigned int type, width, height, depth;
	enum hipArray_Format Format;
	unsigned int NumChannels;
	bool isDrv;
	unsigned int textureType;
} hipArray;

typedef struct hipArray *hipArray_t;
typedef const struct hipArray *hipArray_const_t;

typedef struct hipMipmappedArray {
	void *data;
	struct hipChannelFormatDesc desc;
	unsigned int type, width, height, depth, min_mipmap_level, max_mipmap_level, flags;
	enum hipArray_Format format;
} hipMipmappedArray;

typedef struct hipMipmappedArray *hipMipmappedArray_t;
typedef const struct hipMipmappedArray *hipMipmappedArray_const_t;

typedef struct hipPitchedPtr {
	void *ptr;
	size_t pitch, xsize, ysize;
} hipPitchedPtr;

typedef struct hipExtent {
	size_t width, height, depth;
} hipExtent;

/* -- pools and virtual memory ----------------------------------------------------------------- */

typedef enum hipMemPoolAttr {
	hipMemPoolReuseFollowEventDependencies = 1,
	hipMemPoolReuseAllowOpportunistic = 2,
	hipMemPoolReuseAllowInternalDependencies = 3,
	hipMemPoolAttrReleaseThreshold = 4,
	hipMemPoolAttrReservedMemCurrent = 5,
	hipMemPoolAttrReservedMemHigh = 6,
	hipMemPoolAttrUsedMemCurrent = 7,
	hipMemPoolAttrUsedMemHigh = 8,
} hipMemPoolAttr;

/* ROCm 7 has more: Host 2, HostNuma 3, HostNumaCurrent 4. */
typedef enum hipMemLocationType {
	hipMemLocationTypeInvalid = 0,
	hipMemLocationTypeDevice = 1,
} hipMemLocationType;

typedef struct hipMemLocation {
	hipMemLocationType type;
	int id;
} hipMemLocation;

typedef enum hipMemAccessFlags {
	hipMemAccessFlagsProtNone = 0,
	hipMemAccessFlagsProtRead = 1,
	hipMemAccessFlagsProtReadWrite = 3,
} hipMemAccessFlags;

typedef struct hipMemAccessDesc {
	hipMemLocation location;
	hipMemAccessFlags flags;
} hipMemAccessDesc;

typedef enum hipMemAllocationType {
	hipMemAllocationTypeInvalid = 0,
	hipMemAllocationTypePinned = 1,
	hipMemAllocationTypeMax = 0x7fffffff,
} hipMemAllocationType;

typedef enum hipMemAllocationHandleType {
	hipMemHandleTypeNone = 0,
	hipMemHandleTypePosixFileDescriptor = 1,
	hipMemHandleTypeWin32 = 2,
	hipMemHandleTypeWin32Kmt = 4,
} hipMemAllocationHandleType;

/* From ROCm 6.1 on the first 8 of `reserved` are `size_t maxSize`. */
typedef struct hipMemPoolProps {
	hipMemAllocationType allocType;
	hipMemAllocationHandleType handleTypes;
	hipMemLocation location;
	void *win32SecurityAttributes;
	unsigned char reserved[64];
} hipMemPoolProps;

typedef struct hipMemPoolPtrExportData {
	unsigned char reserved[64];
} hipMemPoolPtrExportData;

/*
 * ROCm 6 has CUDA's order of fields: struct hip_allocation_prop_6, tests/sim/hip/hip_later_api.h.
 */
typedef struct hipMemAllocationProp {
	unsigned char compressionType;
	hipMemLocation location;
	hipMemAllocationHandleType requestedHandleType;
	hipMemAllocationType type;
	unsigned short usage;
	void *win32HandleMetaData;
} hipMemAllocationProp;

typedef enum hipMemAllocationGranularity_flags {
	hipMemAllocationGranularityMinimum = 0,
	hipMemAllocationGranularityRecommended = 1,
} hipMemAllocationGranularity_flags;

/* -- queries, export, capture ----------------------------------------------------------------- */

typedef enum hipPointer_attribute {
	HIP_POINTER_ATTRIBUTE_CONTEXT = 1,
	HIP_POINTER_ATTRIBUTE_MEMORY_TYPE = 2,
	HIP_POINTER_ATTRIBUTE_DEVICE_POINTER = 3,
	HIP_POINTER_ATTRIBUTE_HOST_POINTER = 4,
	HIP_POINTER_ATTRIBUTE_P2P_TOKENS = 5,
	HIP_POINTER_ATTRIBUTE_SYNC_MEMOPS = 6,
	HIP_POINTER_ATTRIBUTE_BUFFER_ID = 7,
	HIP_POINTER_ATTRIBUTE_IS_MANAGED = 8,
	HIP_POINTER_ATTRIBUTE_DEVICE_ORDINAL = 9,
	HIP_POINTER_ATTRIBUTE_IS_LEGACY_HIP_IPC_CAPABLE = 10,
	HIP_POINTER_ATTRIBUTE_RANGE_START_ADDR = 11,
	HIP_POINTER_ATTRIBUTE_RANGE_SIZE = 12,
	HIP_POINTER_ATTRIBUTE_MAPPED = 13,
	HIP_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES = 14,
	HIP_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE = 15,
	HIP_POINTER_ATTRIBUTE_ACCESS_FLAGS = 16,
	HIP_POINTER_ATTRIBUTE_MEMPOOL_HANDLE = 17,
} hipPointer_attribute;

typedef struct hipIpcMemHandle_st {
	char reserved[64];
} hipIpcMemHandle_t;

typedef enum hipStreamCaptureMode {
	hipStreamCaptureModeGlobal = 0,
	hipStreamCaptureModeThreadLocal = 1,
	hipStreamCaptureModeRelaxed = 2,
} hipStreamCaptureMode;

typedef enum hipStreamCaptureStatus {
	hipStreamCaptureStatusNone = 0,
	hipStreamCaptureStatusActive = 1,
	hipStreamCaptureStatusInvalidated = 2,
} hipStreamCaptureStatus;

typedef enum hipStreamUpdateCaptureDependenciesFlags {
	hipStreamAddCaptureDependencies = 0,
	hipStreamSetCaptureDependencies = 1,
} hipStreamUpdateCaptureDependenciesFlags;

typedef enum hipGraphInstantiateFlags {
	hipGraphInstantiateFlagAutoFreeOnLaunch = 1,
} hipGraphInstantiateFlags;

#endif
