/*
 * More ways to get memory, as test_runtime.c. The results are the driver's: test_driver_*.c. Usage:
 * test_runtime_memory MODULE
 */
#include <dlfcn.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cudart_api.h"
#include "check.h"

static void test_pitched(void)
{
	static unsigned char in[50][700], out[50][700];
	struct cudaPitchedPtr box = {GARBAGE, 9, 9, 9};
	size_t pitch = 9;
	void *memory = GARBAGE;

	CHECK(cudaMallocPitch(&memory, &pitch, 0, 10), cudaSuccess);
	CHECK_TRUE(memory == NULL && pitch == 0);
	CHECK(cudaMallocPitch(NULL, &pitch, 10, 10), cudaErrorInvalidValue);
	CHECK(cudaMallocPitch(&memory, &pitch, 700, 50), cudaSuccess);
	CHECK(pitch, 1024);
	for (int row = 0; row < 50; row++)
		for (int x = 0; x < 700; x++)
			in[row][x] = (unsigned char)(x * 13 + row);
	CHECK(cudaMemcpy2D(memory, pitch, in, 700, 700, 50, cudaMemcpyHostToDevice), cudaSuccess);
	CHECK(cudaMemcpy2D(out, 700, memory, pitch, 700, 50, cudaMemcpyDeviceToHost), cudaSuccess);
	CHECK(memcmp(in, out, sizeof(in)), 0);
	CHECK(cudaMemcpy2DAsync(out, 700, memory, pitch, 700, 50, cudaMemcpyDefault, NULL), cudaSuccess);
	CHECK(cudaDeviceSynchronize(), cudaSuccess);
	CHECK(cudaFree(memory), cudaSuccess);
	CHECK(cudaMallocPitch(&memory, &pitch, MIB, (size_t)1 << 40), cudaErrorMemoryAllocation);
	CHECK_TRUE(memory == NULL);
	CHECK(cudaMalloc3D(&box, (struct cudaExtent){100, 10, 4}), cudaSuccess);
	CHECK_TRUE(box.ptr && box.pitch == 512 && box.xsize == 100 && box.ysize == 10);
	CHECK(cudaMemset(box.ptr, 1, 512 * 40), cudaSuccess);
	CHECK(cudaMemset(box.ptr, 1, 512 * 40 + 1), cudaErrorInvalidValue);
	CHECK(cudaFree(box.ptr), cudaSuccess);
	cudaGetLastError();
}

static void test_arrays(void)
{
	struct cudaChannelFormatDesc floats = {32, 0, 0, 0, cudaChannelFormatKindFloat}, told;
	struct cudaChannelFormatDesc shorts = {16, 16, 0, 0, cudaChannelFormatKindSigned},
	                             odd = {8, 16, 0, 0};
	struct cudaExtent extent;
	cudaMipmappedArray_t mipmap;
	cudaArray_t array, level;
	size_t before, after, total;
	unsigned flags = 9;

	CHECK(cudaMemGetInfo(&before, &total), cudaSuccess);
	CHECK(cudaMallocArray(&array, &floats, 2048, 1024, cudaArrayDefault), cudaSuccess);
	CHECK(cudaMemGetInfo(&after, &total), cudaSuccess);
	CHECK_TRUE(before - after >= 8 * MIB);
	CHECK(cudaArrayGetInfo(&told, &extent, &flags, array), cudaSuccess);
	CHECK_TRUE(extent.width == 2048 && extent.height == 1024 && extent.depth == 0 && flags == 0);
	CHECK(memcmp(&told, &floats, sizeof(told)), 0);
	CHECK(cudaFreeArray(array), cudaSuccess);
	CHECK(cudaFreeArray(NULL), cudaSuccess);
	CHECK(cudaMalloc3DArray(&array, &shorts, (struct cudaExtent){64, 64, 8}, cudaArrayDefault),
	      cudaSuccess);
	CHECK(cudaArrayGetInfo(&told, &extent, NULL, array), cudaSuccess);
	CHECK_TRUE(extent.depth == 8 && told.x == 16 && told.y == 16 &&
	           told.f == cudaChannelFormatKindSigned);
	CHECK(cudaFreeArray(array), cudaSuccess);
	CHECK(
	    cudaMallocMipmappedArray(&mipmap, &floats, (struct cudaExtent){256, 256, 0}, 3, cudaArrayDefault),
	    cudaSuccess);
	CHECK(cudaGetMipmappedArrayLevel(&level, mipmap, 2), cudaSuccess);
	CHECK(cudaArrayGetInfo(NULL, &extent, NULL, level), cudaSuccess);
	CHECK(extent.width, 64);
	CHECK(cudaFreeMipmappedArray(mipmap), cudaSuccess);
	CHECK_TRUE(cudaMallocArray(&array, &odd, 64, 64, 0) != cudaSuccess);
	CHECK_TRUE(cudaMallocArray(&array, &floats, 0, 0, 0) != cudaSuccess);
	cudaGetLastError();
}

static void test_pools(void)
{
	struct cudaMemPoolProps props = {.allocType = cudaMemAllocationTypePinned,
	                                 .location = {cudaMemLocationTypeDevice, 0}};
	struct cudaMemLocation device = {cudaMemLocationTypeDevice, 0};
	struct cudaMemAccessDesc access = {device, cudaMemAccessFlagsProtReadWrite};
	enum cudaMemAccessFlags flags = cudaMemAccessFlagsProtNone;
	cudaMemPool_t pool, fallback, current;
	uint64_t value = UINT64_MAX;
	cudaStream_t stream;
	void *memory = GARBAGE;

	CHECK(cudaStreamCreate(&stream), cudaSuccess);
	CHECK(cudaMemPoolCreate(&pool, &props), cudaSuccess);
	CHECK(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &value), cudaSuccess);
	CHECK(cudaMallocFromPoolAsync(&memory, 0, pool, stream), cudaSuccess);
	CHECK_TRUE(memory == NULL);
	CHECK(cudaMallocFromPoolAsync(&memory, 8 * MIB, pool, stream), cudaSuccess);
	CHECK(cudaMemGetInfo(NULL, NULL), cudaSuccess);
	CHECK(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrUsedMemCurrent, &value), cudaSuccess);
	CHECK(value, 8 * MIB);
	CHECK(cudaMemsetAsync(memory, 1, 8 * MIB, stream), cudaSuccess);
	CHECK(cudaFreeAsync(memory, stream), cudaSuccess);
	CHECK(cudaStreamSynchronize(stream), cudaSuccess);
	CHECK(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrReservedMemCurrent, &value), cudaSuccess);
	CHECK(value, 32 * MIB);
	CHECK(cudaMemPoolTrimTo(pool, 0), cudaSuccess);
	CHECK(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrReservedMemCurrent, &value), cudaSuccess);
	CHECK(value, 0);
	CHECK(cudaMemPoolSetAccess(pool, &access, 1), cudaSuccess);
	CHECK(cudaMemPoolGetAccess(&flags, pool, &device), cudaSuccess);
	CHECK(flags, cudaMemAccessFlagsProtReadWrite);
	CHECK(cudaDeviceGetDefaultMemPool(&fallback, 0), cudaSuccess);
	CHECK(cudaDeviceSetMemPool(0, pool), cudaSuccess);
	CHECK(cudaDeviceGetMemPool(&current, 0), cudaSuccess);
	CHECK_TRUE(current == pool && fallback != pool);
	CHECK(cudaDeviceSetMemPool(0, fallback), cudaSuccess);
	CHECK(cudaMallocFromPoolAsync(&memory, (size_t)1 << 60, pool, stream), cudaErrorMemoryAllocation);
	CHECK_TRUE(memory == NULL);
	CHECK(cudaMemPoolDestroy(pool), cudaSuccess);
	CHECK(cudaMemPoolCreate(&pool, NULL), cudaErrorInvalidValue);
	CHECK(cudaStreamDestroy(stream), cudaSuccess);
	cudaGetLastError();
}

static void test_share(void)
{
	cudaIpcMemHandle_t handle;
	void *memory, *managed, *opened = NULL;

	CHECK(cudaMalloc(&memory, MIB), cudaSuccess);
	CHECK(cudaIpcGetMemHandle(&handle, memory), cudaSuccess);
	CHECK(cudaIpcOpenMemHandle(&opened, handle, cudaIpcMemLazyEnablePeerAccess),
	      cudaErrorDeviceUninitialized);
	CHECK(cudaMallocManaged(&managed, MIB, cudaMemAttachGlobal), cudaSuccess);
	CHECK(cudaIpcGetMemHandle(&handle, managed), cudaErrorInvalidValue);
	CHECK(cudaGetLastError(), cudaErrorInvalidValue);
	CHECK(cudaFree(managed), cudaSuccess);
	CHECK(cudaFree(memory), cudaSuccess);
}

static void test_peers(void)
{
	int count = 0, can = 0;
	void *there, *here;

	CHECK(cudaDeviceEnablePeerAccess(0, 0), cudaErrorInvalidDevice); /* the device itself */
	CHECK(cudaGetLastError(), cudaErrorInvalidDevice);
	CHECK(cudaGetDeviceCount(&count), cudaSuccess);
	if (count < 2)
		return;
	CHECK(cudaDeviceGetP2PAttribute(&can, cudaDevP2PAttrAccessSupported, 0, 1), cudaSuccess);
	if (!can)
		return;
	CHECK(cudaSetDevice(1), cudaSuccess);
	CHECK(cudaMalloc(&there, MIB), cudaSuccess);
	CHECK(cudaSetDevice(0), cudaSuccess);
	CHECK(cudaMalloc(&here, MIB), cudaSuccess);
	CHECK(cudaDeviceDisablePeerAccess(1), cudaErrorPeerAccessNotEnabled);
	CHECK(cudaDeviceEnablePeerAccess(1, 0), cudaSuccess);
	CHECK(cudaDeviceEnablePeerAccess(1, 0), cudaErrorPeerAccessAlreadyEnabled);
	CHECK(cudaMemcpy(there, here, MIB, cudaMemcpyDefault), cudaSuccess);
	CHECK(cudaDeviceDisablePeerAccess(1), cudaSuccess);
	CHECK(cudaFree(here), cudaSuccess);
	CHECK(cudaFree(there), cudaSuccess);
	cudaGetLastError();
}

typedef cudaError_t (*entry_point)(const char *, void **, unsigned long long,
                                   enum cudaDriverEntryPointQueryResult *);
typedef cudaError_t (*entry_point_by_version)(const char *, void **, unsigned int, unsigned long long,
                                              enum cudaDriverEntryPointQueryResult *);

cudaError_t cudaGetDriverEntryPoint_ptsz(const char *symbol, void **funcPtr, unsigned long long flags,
                                         enum cudaDriverEntryPointQueryResult *driverStatus);
cudaError_t cudaGetDriverEntryPointByVersion_ptsz(const char *symbol, void **funcPtr,
                                                  unsigned int cudaVersion, unsigned long long flags,
                                                  enum cudaDriverEntryPointQueryResult *driverStatus);

/* Deprecated names are hooked, too. */
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

/* Each form returns the address that the driver exports. */
static void test_entry_points(void)
{
	void *driver = dlopen("libcuda.so.1", RTLD_NOW), *found = NULL;
	entry_point plain = cudaGetDriverEntryPoint, per_thread = cudaGetDriverEntryPoint_ptsz;
	entry_point_by_version versioned = cudaGetDriverEntryPointByVersion_ptsz;
	enum cudaDriverEntryPointQueryResult status;

	CHECK(plain("cuMemAlloc", &found, cudaEnableDefault, &status), cudaSuccess);
	CHECK_TRUE(found && found == dlsym(driver, "cuMemAlloc_v2"));
	CHECK(plain("cuMemFreeAsync", &found, cudaEnableDefault, &status), cudaSuccess);
	CHECK_TRUE(found && found == dlsym(driver, "cuMemFreeAsync"));
	CHECK(plain("cuMemFreeAsync", &found, cudaEnablePerThreadDefaultStream, &status), cudaSuccess);
	CHECK_TRUE(found && found == dlsym(driver, "cuMemFreeAsync_ptsz"));
	CHECK(per_thread("cuMemFreeAsync", &found, cudaEnableDefault, &status), cudaSuccess);
	CHECK_TRUE(found && found == dlsym(driver, "cuMemFreeAsync_ptsz"));
	CHECK(per_thread("cuMemFreeAsync", &found, cudaEnableLegacyStream, &status), cudaSuccess);
	CHECK_TRUE(found && found == dlsym(driver, "cuMemFreeAsync"));
	CHECK(versioned("cuMemAllocAsync", &found, 11020, cudaEnableDefault, &status), cudaSuccess);
	CHECK_TRUE(found && found == dlsym(driver, "cuMemAllocAsync_ptsz"));
	CHECK(versioned("cuMemAllocAsync", &found, 11010, cudaEnableDefault, &status), cudaSuccess);
	CHECK(status, cudaDriverEntryPointVersionNotSufficent);
	CHECK(versioned("cuMemAlloc", &found, 2000, cudaEnableDefault, &status), cudaSuccess);
	CHECK_TRUE(found && found == dlsym(driver, "cuMemAlloc"));
	dlclose(driver);
}

/* Memory of a pool outlives a reset of the device, as in its driver. */
static void test_reset(void)
{
	void *memory;

	CHECK(cudaMallocAsync(&memory, MIB, NULL), cudaSuccess);
	CHECK(cudaDeviceSynchronize(), cudaSuccess);
	CHECK(cudaDeviceReset(), cudaSuccess);
	CHECK(cudaMemset(memory, 1, MIB), cudaSuccess);
	CHECK(cudaDeviceSynchronize(), cudaSuccess); /* the free does not wait */
	CHECK(cudaFree(memory), cudaSuccess);
	CHECK(cudaFree(memory), cudaErrorInvalidValue);
}

int main(void)
{
	test_pitched();
	test_arrays();
	test_pools();
	test_share();
	test_peers();
	test_entry_points();
	test_reset();
	return check_result();
}
