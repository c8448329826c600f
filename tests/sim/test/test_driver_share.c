/* Exports, and handles of mappings: contract tests as test_driver.c. test_driver_processes.c has the other process. */
#include "driver_test.h"

#include <fcntl.h>

static CUmemGenericAllocationHandle exportable(CUmemLocationType type)
{
	CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
	                            .requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
	                            .location = {type, 0}};
	CUmemGenericAllocationHandle handle;

	OK(d.cuMemCreate(&handle, GRANULE, &prop, 0));
	return handle;
}

static CUdeviceptr mapped(CUmemGenericAllocationHandle handle)
{
	CUdeviceptr p;

	OK(d.cuMemAddressReserve(&p, GRANULE, 0, 0, 0));
	OK(d.cuMemMap(p, GRANULE, 0, handle, 0));
	OK(allow(p, GRANULE, CU_MEM_ACCESS_FLAGS_PROT_READWRITE));
	return p;
}

DRIVER_TEST(legacy_handles)
{
	CUipcMemHandle handle, zero = {{0}};
	CUdeviceptr p, managed;
	void *host;

	start();
	OK(d.cuMemAlloc_v2(&p, 4 * MIB));
	OK(d.cuIpcGetMemHandle(&handle, p));
	OK(d.cuIpcGetMemHandle(&handle, p + 4096));
	/* The owner cannot open it. */
	CUdeviceptr opened = 0;
	GIVES(CUDA_ERROR_INVALID_CONTEXT,
	      d.cuIpcOpenMemHandle_v2(&opened, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
	GIVES(CUDA_ERROR_INVALID_VALUE, d.cuIpcGetMemHandle(&handle, 0x1000));
	OK(d.cuMemHostAlloc(&host, 4096, 0));
	GIVES(CUDA_ERROR_INVALID_VALUE, d.cuIpcGetMemHandle(&handle, (CUdeviceptr)host));
	if (has(CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY)) {
		OK(d.cuMemAllocManaged(&managed, MIB, CU_MEM_ATTACH_GLOBAL));
		GIVES(CUDA_ERROR_INVALID_VALUE, d.cuIpcGetMemHandle(&handle, managed));
	}
	OK(d.cuMemAllocAsync(&p, MIB, NULL));
	GIVES(CUDA_ERROR_INVALID_VALUE, d.cuIpcGetMemHandle(&handle, p));
	if (has(CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED)) {
		p = mapped(chunk(CU_MEM_LOCATION_TYPE_DEVICE, GRANULE));
		GIVES(CUDA_ERROR_INVALID_VALUE, d.cuIpcGetMemHandle(&handle, p));
	}
	need_simulator();
	GIVES(CUDA_ERROR_INVALID_VALUE, d.cuIpcGetMemHandle(NULL, p));
	GIVES(CUDA_ERROR_INVALID_VALUE,
	      d.cuIpcOpenMemHandle_v2(&opened, zero, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
	GIVES(CUDA_ERROR_INVALID_VALUE, d.cuIpcCloseMemHandle(p));
}

static void vmm_export(CUmemLocationType type)
{
	CUmemGenericAllocationHandle handle = exportable(type), imported, plain = chunk(type, GRANULE);
	CUmemAllocationProp prop;
	int fd = -1;

	GIVES(CUDA_ERROR_INVALID_VALUE,
	      d.cuMemExportToShareableHandle(&fd, plain, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
	CHECK(fd == -1);
	OK(d.cuMemExportToShareableHandle(&fd, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
	CHECK(fd >= 0 && fcntl(fd, F_GETFD) >= 0);
	CUdeviceptr p = mapped(handle);
	fill(p, GRANULE, 1);
	OK(d.cuMemImportFromShareableHandle(&imported, (void *)(intptr_t)fd,
	                                    CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
	CUdeviceptr q = mapped(imported);
	CHECK(mismatches(q, GRANULE, 1) == 0); /* the same bytes */
	OK(d.cuMemGetAllocationPropertiesFromHandle(&prop, imported));
	CHECK(prop.location.type == type && prop.location.id == 0);
	OK(d.cuMemRelease(imported));
	OK(d.cuMemRelease(handle));
	CHECK(mismatches(p, GRANULE, 1) == 0);
	close(fd);
}

DRIVER_TEST(vmm_exports)
{
	start();
	need(103); /* CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED */
	need(CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED);
	vmm_export(CU_MEM_LOCATION_TYPE_DEVICE);
	if (has(CU_DEVICE_ATTRIBUTE_HOST_NUMA_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED))
		vmm_export(CU_MEM_LOCATION_TYPE_HOST_NUMA);
}

DRIVER_TEST(vmm_flags)
{
	CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
	                            .location = {CU_MEM_LOCATION_TYPE_HOST_NUMA, 0}};
	CUmemGenericAllocationHandle handle = 77;

	start();
	need(CU_DEVICE_ATTRIBUTE_HOST_NUMA_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED);
	need(CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED);
	prop.allocFlags.gpuDirectRDMACapable = 1;
	GIVES(CUDA_ERROR_INVALID_VALUE, d.cuMemCreate(&handle, GRANULE, &prop, 0));
	prop.allocFlags.gpuDirectRDMACapable = 0;
	prop.location.id = 1000;
	GIVES(CUDA_ERROR_INVALID_VALUE, d.cuMemCreate(&handle, GRANULE, &prop, 0));
	prop.location = (CUmemLocation){CU_MEM_LOCATION_TYPE_DEVICE, 1000};
	GIVES(CUDA_ERROR_INVALID_DEVICE, d.cuMemCreate(&handle, GRANULE, &prop, 0));
	prop.location.id = 0;
	GIVES(CUDA_ERROR_INVALID_VALUE, d.cuMemCreate(&handle, GRANULE + 1, &prop, 0));
	GIVES(CUDA_ERROR_INVALID_VALUE, d.cuMemCreate(&handle, 0, &prop, 0));
	GIVES(CUDA_ERROR_INVALID_VALUE, d.cuMemCreate(&handle, GRANULE, &prop, 1));
	GIVES(CUDA_ERROR_OUT_OF_MEMORY, d.cuMemCreate(&handle, (size_t)1 << 40, &prop, 0));
	CHECK(handle == 77);
}

DRIVER_TEST(vmm_handles)
{
	CUmemGenericAllocationHandle handle, again = 77;
	CUdeviceptr p, plain, base;
	size_t bytes;

	start();
	need(CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED);
	handle = chunk(CU_MEM_LOCATION_TYPE_DEVICE, 2 * GRANULE);
	OK(d.cuMemAddressReserve(&p, 4 * GRANULE, 0, 0, 0));
	GIVES(CUDA_ERROR_NOT_SUPPORTED, d.cuMemMap(p, GRANULE, 0, handle, 0));
	OK(d.cuMemMap(p + GRANULE, 2 * GRANULE, 0, handle, 0));
	OK(allow(p + GRANULE, 2 * GRANULE, CU_MEM_ACCESS_FLAGS_PROT_READWRITE));
	GIVES(CUDA_ERROR_INVALID_VALUE, d.cuMemUnmap(p + GRANULE, GRANULE));
	GIVES(CUDA_ERROR_INVALID_VALUE, d.cuMemAddressFree(p, 4 * GRANULE));
	OK(d.cuMemRetainAllocationHandle(&again, (void *)(p + GRANULE + 5)));
	CHECK(again == handle);
	OK(d.cuMemRelease(handle));
	OK(d.cuMemRelease(again));
	OK(d.cuMemRetainAllocationHandle(&again, (void *)(p + GRANULE)));
	CHECK(again == handle);
	/* The range is the reservation. The address range is the chunk. */
	OK(d.cuPointerGetAttribute(&base, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, p + GRANULE));
	OK(d.cuPointerGetAttribute(&bytes, CU_POINTER_ATTRIBUTE_RANGE_SIZE, p + GRANULE));
	CHECK(base == p && bytes == 4 * GRANULE);
	OK(d.cuPointerGetAttribute(&base, CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR, p + 2 * GRANULE));
	OK(d.cuPointerGetAttribute(&bytes, CU_POINTER_ATTRIBUTE_MAPPING_SIZE, p + 2 * GRANULE));
	CHECK(base == p + GRANULE && bytes == 2 * GRANULE);
	OK(d.cuMemGetAddressRange_v2(&base, &bytes, p + 2 * GRANULE));
	CHECK(base == p + GRANULE && bytes == 2 * GRANULE);
	again = 77;
	OK(d.cuMemAlloc_v2(&plain, MIB));
	GIVES(CUDA_ERROR_INVALID_VALUE, d.cuMemRetainAllocationHandle(&again, (void *)plain));
	CHECK(again == 77);
}

DRIVER_TEST(ranges)
{
	CUdeviceptr p;
	void *host;
	int fd = -1;

	start();
	need(124); /* CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED */
	OK(d.cuMemAlloc_v2(&p, 4 * MIB));
	OK(d.cuMemGetHandleForAddressRange(&fd, p, 4 * MIB, CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 0));
	CHECK(fd >= 0 && !close(fd));
	GIVES(CUDA_ERROR_INVALID_VALUE,
	      d.cuMemGetHandleForAddressRange(&fd, p + 512, 4096, CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 0));
	OK(d.cuMemHostAlloc(&host, 4096, 0));
	GIVES(CUDA_ERROR_INVALID_VALUE,
	      d.cuMemGetHandleForAddressRange(&fd, (CUdeviceptr)host, 4096,
	                                      CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 0));
}

/* In any number of mappings, but without host memory. */
DRIVER_TEST(ranges_of_chunks)
{
	CUmemLocationType types[] = {CU_MEM_LOCATION_TYPE_DEVICE, CU_MEM_LOCATION_TYPE_DEVICE,
	                             CU_MEM_LOCATION_TYPE_HOST_NUMA};
	CUdeviceptr p;
	int fd = -1;

	start();
	need(124); /* CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED */
	need(CU_DEVICE_ATTRIBUTE_HOST_NUMA_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED);
	OK(d.cuMemAddressReserve(&p, 3 * GRANULE, 0, 0, 0));
	for (unsigned i = 0; i < 3; i++)
		OK(d.cuMemMap(p + i * GRANULE, GRANULE, 0, chunk(types[i], GRANULE), 0));
	OK(allow(p, 3 * GRANULE, CU_MEM_ACCESS_FLAGS_PROT_READWRITE));
	OK(d.cuMemGetHandleForAddressRange(&fd, p, 2 * GRANULE, CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 0));
	CHECK(fd >= 0 && !close(fd));
	GIVES(CUDA_ERROR_INVALID_VALUE,
	      d.cuMemGetHandleForAddressRange(&fd, p, 3 * GRANULE, CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 0));
}

DRIVER_TEST(pools)
{
	CUmemPoolProps props = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
	                        .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
	CUmemPoolPtrExportData data;
	CUmemoryPool pool, shared;
	CUdeviceptr p;
	int fd = -1;

	start();
	need(119); /* CU_DEVICE_ATTRIBUTE_MEMPOOL_SUPPORTED_HANDLE_TYPES */
	OK(d.cuDeviceGetDefaultMemPool(&pool, 0));
	GIVES(CUDA_ERROR_INVALID_VALUE,
	      d.cuMemPoolExportToShareableHandle(&fd, pool, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
	OK(d.cuMemAllocFromPoolAsync(&p, MIB, pool, NULL));
	GIVES(CUDA_ERROR_INVALID_VALUE, d.cuMemPoolExportPointer(&data, p));
	props.handleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
	OK(d.cuMemPoolCreate(&shared, &props));
	OK(d.cuMemPoolExportToShareableHandle(&fd, shared, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
	CHECK(fd >= 0 && !close(fd));
	OK(d.cuMemAllocFromPoolAsync(&p, MIB, shared, NULL));
	OK(d.cuMemPoolExportPointer(&data, p));
}
