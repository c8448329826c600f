/* Types of NVIDIA's driver API for capture and graphs; rules as in driver_types.h, which includes this. */
#ifndef SIM_GRAPH_TYPES_H
#define SIM_GRAPH_TYPES_H

typedef struct CUgraphExec_st *CUgraphExec;

struct CUgraphEdgeData_st {
	unsigned char from_port, to_port, type, reserved[5];
};

/* CUresult: beyond those that libspill itself answers. */
#define CUDA_ERROR_ILLEGAL_STATE ((CUresult)401)
#define CUDA_ERROR_STREAM_CAPTURE_INVALIDATED ((CUresult)901)
#define CUDA_ERROR_STREAM_CAPTURE_MERGE ((CUresult)902)
#define CUDA_ERROR_STREAM_CAPTURE_UNMATCHED ((CUresult)903)
#define CUDA_ERROR_STREAM_CAPTURE_UNJOINED ((CUresult)904)
#define CUDA_ERROR_STREAM_CAPTURE_ISOLATION ((CUresult)905)
#define CUDA_ERROR_CAPTURED_EVENT ((CUresult)907)
#define CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD ((CUresult)908)

/* CUgraphNodeType: src/abi/ has the two that libspill looks for. */
#define CU_GRAPH_NODE_TYPE_KERNEL ((CUgraphNodeType)0)
#define CU_GRAPH_NODE_TYPE_MEMCPY ((CUgraphNodeType)1)
#define CU_GRAPH_NODE_TYPE_MEMSET ((CUgraphNodeType)2)
#define CU_GRAPH_NODE_TYPE_HOST ((CUgraphNodeType)3)
#define CU_GRAPH_NODE_TYPE_EMPTY ((CUgraphNodeType)5)
#define CU_GRAPH_NODE_TYPE_WAIT_EVENT ((CUgraphNodeType)6)
#define CU_GRAPH_NODE_TYPE_EVENT_RECORD ((CUgraphNodeType)7)

#define CU_EVENT_RECORD_EXTERNAL 1u
#define CU_EVENT_WAIT_EXTERNAL 1u
#define CU_STREAM_ADD_CAPTURE_DEPENDENCIES 0u
#define CU_STREAM_SET_CAPTURE_DEPENDENCIES 1u

typedef struct CUDA_KERNEL_NODE_PARAMS_st {
	CUfunction func;
	unsigned int gridDimX, gridDimY, gridDimZ;
	unsigned int blockDimX, blockDimY, blockDimZ;
	unsigned int sharedMemBytes;
	void **kernelParams;
	void **extra;
} CUDA_KERNEL_NODE_PARAMS_v1;

typedef struct CUDA_KERNEL_NODE_PARAMS_v2_st {
	CUfunction func;
	unsigned int gridDimX, gridDimY, gridDimZ;
	unsigned int blockDimX, blockDimY, blockDimZ;
	unsigned int sharedMemBytes;
	void **kernelParams;
	void **extra;
	CUkernel kern;
	CUcontext ctx;
} CUDA_KERNEL_NODE_PARAMS_v2;

typedef struct CUDA_MEMCPY3D_st {
	size_t srcXInBytes, srcY, srcZ, srcLOD;
	CUmemorytype srcMemoryType;
	const void *srcHost;
	CUdeviceptr srcDevice;
	CUarray srcArray;
	void *reserved0;
	size_t srcPitch, srcHeight;
	size_t dstXInBytes, dstY, dstZ, dstLOD;
	CUmemorytype dstMemoryType;
	void *dstHost;
	CUdeviceptr dstDevice;
	CUarray dstArray;
	void *reserved1;
	size_t dstPitch, dstHeight;
	size_t WidthInBytes, Height, Depth;
} CUDA_MEMCPY3D_v2;

typedef struct CUDA_MEMCPY_NODE_PARAMS_st {
	int flags, reserved;
	CUcontext copyCtx;
	CUDA_MEMCPY3D_v2 copyParams;
} CUDA_MEMCPY_NODE_PARAMS;

typedef struct CUDA_MEMSET_NODE_PARAMS_st {
	CUdeviceptr dst;
	size_t pitch;
	unsigned int value, elementSize;
	size_t width, height;
} CUDA_MEMSET_NODE_PARAMS_v1;

typedef struct CUDA_MEMSET_NODE_PARAMS_v2_st {
	CUdeviceptr dst;
	size_t pitch;
	unsigned int value, elementSize;
	size_t width, height;
	CUcontext ctx;
} CUDA_MEMSET_NODE_PARAMS_v2;

typedef struct CUDA_HOST_NODE_PARAMS_st {
	CUhostFn fn;
	void *userData;
} CUDA_HOST_NODE_PARAMS_v1;

typedef enum CUgraphInstantiate_flags_enum {
	CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH = 1,
	CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD = 2,
	CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH = 4,
	CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY = 8,
} CUgraphInstantiate_flags;

typedef enum CUgraphInstantiateResult_enum {
	CUDA_GRAPH_INSTANTIATE_SUCCESS = 0,
	CUDA_GRAPH_INSTANTIATE_ERROR = 1,
	CUDA_GRAPH_INSTANTIATE_INVALID_STRUCTURE = 2,
} CUgraphInstantiateResult;

typedef struct CUDA_GRAPH_INSTANTIATE_PARAMS_st {
	cuuint64_t flags;
	CUstream hUploadStream;
	CUgraphNode hErrNode_out;
	CUgraphInstantiateResult result_out;
} CUDA_GRAPH_INSTANTIATE_PARAMS;

#endif
