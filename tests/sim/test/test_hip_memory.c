/* More ways to get memory. Usage: test_hip_memory MODULE */
#include <stdbool.h>

#include "hip_test.h"

static void test_pitch(void)
{
	hipPitchedPtr cube = {0};
	hipDeviceptr_t device = NULL;
	size_t pitch = 0, before = free_bytes();
	unsigned char host[100 * 3], back[100 * 3];
	void *memory = GARBAGE;

	CHECK(hipMallocPitch(NULL, &pitch, 100, 3), hipErrorInvalidValue);
	CHECK(hipMallocPitch(&memory, NULL, 100, 3), hipErrorInvalidValue);
	CHECK(hipMallocPitch(&memory, &pitch, 0, 3), hipSuccess);
	CHECK_TRUE(!memory);
	CHECK(hipMallocPitch(&memory, &pitch, SIZE_MAX, 3), hipErrorOutOfMemory);
	CHECK(hipMallocPitch(&memory, &pitch, SIZE_MAX / 4, 8), hipErrorOutOfMemory);
	CHECK(hipMallocPitch(&memory, &pitch, 100, 3), hipSuccess);
	CHECK(pitch, 256);
	for (unsigned i = 0; i < sizeof(host); i++)
		host[i] = (unsigned char)(i * 3);
	CHECK(hipMemset2D(memory, pitch, 7, 100, 3), hipSuccess);
	CHECK(hipMemcpy2D(back, 100, memory, pitch, 100, 3, hipMemcpyDeviceToHost), hipSuccess);
	CHECK_TRUE(back[0] == 7 && back[299] == 7);
	CHECK(hipMemcpy2DAsync(memory, pitch, host, 100, 100, 3, hipMemcpyHostToDevice, NULL), hipSuccess);
	CHECK(hipMemcpy2D(back, 100, memory, pitch, 100, 3, hipMemcpyDeviceToHost), hipSuccess);
	CHECK(memcmp(host, back, sizeof(host)), 0);
	CHECK(hipMemcpy2D(back, 99, memory, pitch, 100, 3, hipMemcpyDeviceToHost), hipErrorInvalidValue);
	CHECK(hipFree(memory), hipSuccess);

	CHECK(hipMemAllocPitch(&device, &pitch, MIB + 1, 8, 4), hipSuccess);
	CHECK(pitch, MIB + 256);
	CHECK(before - free_bytes(), 10 * MIB);
	CHECK(hipFree(device), hipSuccess);

	CHECK(hipMalloc3D(NULL, (hipExtent){1, 1, 1}), hipErrorInvalidValue);
	CHECK(hipMalloc3D(&cube, (hipExtent){100, 50, 0}), hipSuccess);
	CHECK_TRUE(!cube.ptr);
	CHECK(hipMalloc3D(&cube, (hipExtent){100, 50, 20}), hipSuccess);
	CHECK_TRUE(cube.pitch == 256 && cube.xsize == 100 && cube.ysize == 50);
	CHECK(hipFree(cube.ptr), hipSuccess);
	CHECK(before - free_bytes(), 0);
}

static void test_arrays(void)
{
	const hipChannelFormatDesc float2 = {32, 32, 0, 0, hipChannelFormatKindFloat};
	const hipChannelFormatDesc wrong = {31, 0, 0, 0, hipChannelFormatKindFloat};
	HIP_ARRAY_DESCRIPTOR flat = {1024, 1024, HIP_AD_FORMAT_UNSIGNED_INT8, 4};
	HIP_ARRAY3D_DESCRIPTOR cube = {512, 64, 32, HIP_AD_FORMAT_HALF, 4, 0};
	HIP_ARRAY_DESCRIPTOR vast = {1 << 20, 1 << 20, HIP_AD_FORMAT_UNSIGNED_INT8, 4};
	size_t before = free_bytes();
	hipArray_t array = NULL;
	hipMipmappedArray_t mipmap = NULL;

	CHECK(hipMallocArray(NULL, &float2, 512, 512, 0), hipErrorInvalidValue);
	CHECK(hipMallocArray(&array, NULL, 512, 512, 0), hipErrorInvalidValue);
	CHECK(hipMallocArray(&array, &wrong, 512, 512, 0), hipErrorInvalidValue);
	CHECK(hipMallocArray(&array, &float2, 0, 0, 0), hipErrorInvalidValue);
	CHECK(hipMallocArray(&array, &float2, 512, 512, 0), hipSuccess);
	CHECK(before - free_bytes(), 2 * MIB);
#if HIP_RELEASE == 5
	CHECK_TRUE(array->width == 512 && array->height == 512 && array->NumChannels == 2 &&
	           array->Format == HIP_AD_FORMAT_FLOAT && array->desc.y == 32);
#endif
	CHECK(hipFreeArray(array), hipSuccess);
	CHECK(hipFreeArray(array), hipErrorInvalidValue);
	CHECK(hipFreeArray(NULL), hipErrorInvalidValue);
	CHECK(before - free_bytes(), 0);

	CHECK(hipArrayCreate(&array, &flat), hipSuccess);
	CHECK(before - free_bytes(), 4 * MIB);
	CHECK(hipArrayDestroy(array), hipSuccess);
	CHECK(hipArrayDestroy(NULL), hipErrorInvalidValue);
	/* ROCm 5 does not report the reason. */
	CHECK(hipArrayCreate(&array, &vast), HIP_RELEASE < 6 ? hipErrorInvalidValue : hipErrorOutOfMemory);
	flat.NumChannels = 3;
	CHECK(hipArrayCreate(&array, &flat), hipErrorInvalidValue);
	CHECK(hipArray3DCreate(&array, NULL), hipErrorInvalidValue);
	CHECK(hipArray3DCreate(&array, &cube), hipSuccess);
	CHECK(before - free_bytes(), 8 * MIB);
	CHECK(hipArrayDestroy(array), hipSuccess);
	CHECK(hipMalloc3DArray(&array, &float2, (hipExtent){64, 64, 64}, 0), hipSuccess);
	CHECK(before - free_bytes(), 2 * MIB);
	CHECK(hipDeviceReset(), hipSuccess);
	CHECK(hipFreeArray(array), hipErrorInvalidValue);
	CHECK(before - free_bytes(), 0);
	CHECK(hipMallocMipmappedArray(&mipmap, &float2, (hipExtent){64, 64, 0}, 3, 0), hipErrorInvalidValue);
	CHECK(hipFreeMipmappedArray(mipmap), hipErrorInvalidValue);
	CHECK(hipMipmappedArrayCreate(&mipmap, &cube, 2), hipErrorInvalidValue);
	CHECK(hipMipmappedArrayDestroy(mipmap), hipErrorInvalidValue);
}

static void test_host(void)
{
	void *memory = GARBAGE, *own = aligned_alloc(4096, MIB);

	CHECK(hipMemAllocHost(&memory, 4096), hipSuccess);
	memset(memory, 1, 4096);
	CHECK(hipFreeHost(memory), hipSuccess);
	CHECK(hipFreeHost(memory), hipErrorInvalidValue);
	CHECK(hipMallocHost(&memory, 0), hipSuccess);
	CHECK_TRUE(!memory);
	CHECK(hipHostAlloc(&memory, 4096, 0), hipSuccess);
	CHECK(hipHostFree(memory), hipSuccess);
	CHECK(hipHostFree(NULL), hipSuccess);
	CHECK(hipHostRegister(NULL, 4096, 0), hipErrorInvalidValue);
	CHECK(hipHostRegister(own, MIB, 0), hipSuccess);
	CHECK(hipHostUnregister(own), hipSuccess);
	CHECK(hipHostUnregister(own), hipErrorHostMemoryNotRegistered);
	free(own);
	CHECK(hipExtMallocWithFlags(&memory, 4096, hipDeviceMallocFinegrained), hipSuccess);
	CHECK(hipFree(memory), hipSuccess);
	CHECK(hipExtMallocWithFlags(&memory, 16, hipMallocSignalMemory), hipErrorInvalidValue);
	CHECK(hipExtMallocWithFlags(&memory, 8, hipMallocSignalMemory), hipSuccess);
	*(volatile uint64_t *)memory = 1;
	CHECK(hipFree(memory), hipSuccess);
	CHECK(hipExtMallocWithFlags(&memory, 4096, 99), hipErrorInvalidValue);
}

static void test_attributes(void)
{
	const int on_host = HIP_RELEASE < 6 ? 0 : 1, on_device = HIP_RELEASE < 6 ? 1 : 2;
	hipPointer_attribute asked[] = {HIP_POINTER_ATTRIBUTE_DEVICE_ORDINAL,
	                                HIP_POINTER_ATTRIBUTE_RANGE_SIZE};
	hipPointerAttribute_t about;
	void *device, *host, *start = NULL, *values[2];
	int ordinal = 7, type = 7, local;
	uint32_t size = 7;
	bool managed = true;

	CHECK(hipMalloc(&device, MIB), hipSuccess);
	CHECK(hipHostMalloc(&host, MIB, 0), hipSuccess);
	CHECK(hipPointerGetAttributes(&about, device), hipSuccess);
	CHECK((int)about.memoryType, on_device);
	CHECK(hipPointerGetAttributes(&about, host), hipSuccess);
	CHECK((int)about.memoryType, on_host);
	CHECK(hipPointerGetAttributes(NULL, host), hipErrorInvalidValue);

	char *inside = (char *)device + 4096;
	CHECK(hipPointerGetAttribute(&type, HIP_POINTER_ATTRIBUTE_MEMORY_TYPE, inside), hipSuccess);
	CHECK(type, on_device);
	CHECK(hipPointerGetAttribute(&start, HIP_POINTER_ATTRIBUTE_RANGE_START_ADDR, inside), hipSuccess);
	CHECK_TRUE(start == device);
	CHECK(hipPointerGetAttribute(&size, HIP_POINTER_ATTRIBUTE_RANGE_SIZE, inside), hipSuccess);
	CHECK(size, MIB);
	CHECK(hipPointerGetAttribute(&managed, HIP_POINTER_ATTRIBUTE_IS_MANAGED, inside), hipSuccess);
	CHECK_TRUE(!managed);
	CHECK(hipPointerGetAttribute(&start, HIP_POINTER_ATTRIBUTE_HOST_POINTER, inside),
	      hipErrorInvalidValue);
	CHECK(hipPointerGetAttribute(&start, HIP_POINTER_ATTRIBUTE_HOST_POINTER, host), hipSuccess);
	CHECK_TRUE(start == host);
	CHECK(hipPointerGetAttribute(&ordinal, HIP_POINTER_ATTRIBUTE_DEVICE_ORDINAL, &local),
	      hipErrorInvalidValue);
	CHECK(ordinal, -2);
	CHECK(hipPointerGetAttribute(&start, HIP_POINTER_ATTRIBUTE_P2P_TOKENS, device), hipErrorNotSupported);
	CHECK(hipPointerGetAttribute(&start, (hipPointer_attribute)99, device), hipErrorInvalidValue);
	CHECK(hipPointerGetAttribute(NULL, HIP_POINTER_ATTRIBUTE_MAPPED, device), hipErrorInvalidValue);
	CHECK(hipPointerGetAttribute(&start, HIP_POINTER_ATTRIBUTE_MAPPED, NULL), hipErrorInvalidValue);

	values[0] = &ordinal;
	values[1] = &size;
	CHECK(hipDrvPointerGetAttributes(2, asked, values, inside), hipSuccess);
	CHECK_TRUE(ordinal == 0 && size == MIB);
	CHECK(hipDrvPointerGetAttributes(2, asked, values, &local), hipSuccess);
	CHECK_TRUE(ordinal == -2 && size == 0);
	CHECK(hipDrvPointerGetAttributes(0, asked, values, device), hipErrorInvalidValue);
	CHECK(hipFree(device), hipSuccess);
	CHECK(hipHostFree(host), hipSuccess);
}

/* A context is a name of a device. No call on it frees memory. */
static void test_contexts(void)
{
	hipCtx_t own = NULL, other = NULL, now = NULL;
	unsigned flags = 7;
	int device = 7, active = 7;
	void *memory;
	char byte;

	CHECK(hipMalloc(&memory, MIB), hipSuccess);
	CHECK(hipDevicePrimaryCtxRetain(&own, 0), hipSuccess);
	CHECK(hipDevicePrimaryCtxRetain(NULL, 0), hipErrorInvalidValue);
	CHECK(hipDevicePrimaryCtxRetain(&other, 99), hipErrorInvalidDevice);
	CHECK(hipDevicePrimaryCtxReset(0), hipSuccess);
	CHECK(hipDevicePrimaryCtxReset(99), hipErrorInvalidDevice);
	CHECK(hipDevicePrimaryCtxRelease(0), hipSuccess);
	CHECK(hipDevicePrimaryCtxSetFlags(0, 0), hipErrorContextAlreadyInUse);
	CHECK(hipDevicePrimaryCtxGetState(0, &flags, &active), hipSuccess);
	CHECK_TRUE(flags == 0 && active == 1);
	CHECK(hipCtxGetCurrent(&now), hipSuccess);
	CHECK_TRUE(now == own);
	CHECK(hipCtxCreate(&other, 0, 0), hipSuccess);
	CHECK_TRUE(other == own);
	CHECK(hipCtxCreate(&other, 0, 99), hipErrorInvalidValue);
	CHECK(hipCtxDestroy(other), hipSuccess);
	CHECK(hipCtxDestroy(NULL), hipErrorInvalidValue);
	CHECK(hipMemcpy(&byte, memory, 1, hipMemcpyDeviceToHost), hipSuccess);

	CHECK(hipDevicePrimaryCtxRetain(&other, 1), hipSuccess);
	CHECK(hipCtxPushCurrent(other), hipSuccess);
	CHECK(hipCtxGetDevice(&device), hipSuccess);
	CHECK(device, 1);
	CHECK(hipCtxEnablePeerAccess(own, 0), hipSuccess);
	CHECK(hipCtxEnablePeerAccess(own, 0), hipErrorPeerAccessAlreadyEnabled);
	CHECK(hipCtxDisablePeerAccess(own), hipSuccess);
	CHECK(hipDeviceDisablePeerAccess(0), hipErrorPeerAccessNotEnabled);
	CHECK(hipCtxPopCurrent(&now), hipSuccess);
	CHECK_TRUE(now == other);
	CHECK(hipCtxPopCurrent(&now), hipErrorInvalidContext);
	CHECK(hipCtxPushCurrent(NULL), hipErrorInvalidContext);
	CHECK(hipSetDevice(0), hipSuccess);
	CHECK(hipFree(memory), hipSuccess);
}

static void test_export(void)
{
	hipMemPoolPtrExportData data;
	hipIpcMemHandle_t handle;
	void *device, *host, *opened;
	hipMemPool_t pool;

	CHECK(hipMalloc(&device, MIB), hipSuccess);
	CHECK(hipHostMalloc(&host, MIB, 0), hipSuccess);
	CHECK(hipIpcGetMemHandle(&handle, device), hipSuccess);
	CHECK(hipIpcGetMemHandle(&handle, host), hipErrorInvalidDevicePointer);
	CHECK(hipIpcGetMemHandle(NULL, device), hipErrorInvalidValue);
	CHECK_TRUE(hipIpcOpenMemHandle(&opened, handle, 0) != hipSuccess);
	CHECK(hipIpcCloseMemHandle(NULL), hipErrorInvalidValue);
	CHECK(hipMemPoolExportPointer(&data, device), hipErrorNotSupported);
	CHECK(hipMemPoolExportPointer(NULL, device), hipErrorInvalidValue);
	CHECK(hipDeviceGetDefaultMemPool(&pool, 0), hipSuccess);
	CHECK(hipMemPoolExportToShareableHandle(&opened, pool, hipMemHandleTypePosixFileDescriptor, 0),
	      hipErrorNotSupported);
	CHECK(hipFree(device), hipSuccess);
	CHECK(hipHostFree(host), hipSuccess);
}

int main(void)
{
	test_pitch();
	test_arrays();
	test_host();
	test_attributes();
	test_contexts();
	test_export();
	return check_result();
}
