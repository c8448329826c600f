/* Physical memory and its mappings: contract tests as test_driver.c. */
#include "driver_test.h"

#define PART (4 * MIB)

DRIVER_TEST(vmm_mixed)
{
	static const CUmemLocationType types[] = {CU_MEM_LOCATION_TYPE_DEVICE, CU_MEM_LOCATION_TYPE_HOST_NUMA,
	                                          CU_MEM_LOCATION_TYPE_DEVICE};
	CUmemGenericAllocationHandle handle[3];
	CUmemAllocationProp prop;
	CUdeviceptr va;
	unsigned long long flags;
	size_t granularity;

	start();
	need(CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED);
	need(CU_DEVICE_ATTRIBUTE_HOST_NUMA_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED);
	prop = (CUmemAllocationProp){.type = CU_MEM_ALLOCATION_TYPE_PINNED,
	                             .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
	OK(d.cuMemGetAllocationGranularity(&granularity, &prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
	CHECK(granularity == GRANULE);
	size_t before = free_memory();
	OK(d.cuMemAddressReserve(&va, 3 * PART, 0, 0, 0));
	for (int i = 0; i < 3; i++) {
		handle[i] = chunk(types[i], PART);
		OK(d.cuMemMap(va + (size_t)i * PART, PART, 0, handle[i], 0));
	}
	CHECK(before - free_memory() == 2 * PART);
	GIVES(CUDA_ERROR_INVALID_VALUE, d.cuMemMap(va, PART, 0, handle[0], 0));
	OK(allow(va, 3 * PART, CU_MEM_ACCESS_FLAGS_PROT_READWRITE));
	CUmemLocation here = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
	OK(d.cuMemGetAccess(&flags, &here, va + PART));
	CHECK(flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE);

	fill(va, 3 * PART, 5);
	CHECK(mismatches(va, 3 * PART, 5) == 0);
	char *host = malloc(3 * PART), *again = malloc(3 * PART);
	OK(d.cuMemcpyDtoH_v2(host, va, 3 * PART));
	OK(d.cuMemsetD8_v2(va, 0, 3 * PART));
	OK(d.cuMemcpyHtoD_v2(va, host, 3 * PART));
	CHECK(mismatches(va, 3 * PART, 5) == 0);
	OK(d.cuMemcpyDtoH_v2(again, va + PART - 4096, 8192));
	CHECK(!memcmp(again, host + PART - 4096, 8192));

	CHECK(type_of(va) == CU_MEMORYTYPE_DEVICE);
	CHECK(type_of(va + PART) == CU_MEMORYTYPE_HOST);
	CHECK(type_of(va + 2 * PART) == CU_MEMORYTYPE_DEVICE);
	GIVES(CUDA_ERROR_INVALID_VALUE, d.cuMemFree_v2(va));
	GIVES(CUDA_ERROR_INVALID_VALUE, d.cuMemUnmap(va, PART / 2));
	GIVES(CUDA_ERROR_INVALID_VALUE, d.cuMemAddressFree(va, PART));

	/* The memory stays until handle and mapping are both gone. */
	for (int i = 0; i < 3; i++)
		OK(d.cuMemRelease(handle[i]));
	CHECK(before - free_memory() == 2 * PART);
	CHECK(mismatches(va, 3 * PART, 5) == 0);
	OK(d.cuMemRetainAllocationHandle(&handle[0], (void *)va));
	OK(d.cuMemGetAllocationPropertiesFromHandle(&prop, handle[0]));
	CHECK(prop.location.type == CU_MEM_LOCATION_TYPE_DEVICE);
	for (int i = 0; i < 3; i++)
		OK(d.cuMemUnmap(va + (size_t)i * PART, PART));
	CHECK(before - free_memory() == PART);
	OK(d.cuMemRelease(handle[0]));
	CHECK(free_memory() == before);
	OK(d.cuMemAddressFree(va, 3 * PART));
}

DRIVER_TEST(vmm_data_follows_handle)
{
	CUdeviceptr va;

	start();
	need(CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED);
	OK(d.cuMemAddressReserve(&va, 2 * PART, 0, 0, 0));
	CUmemGenericAllocationHandle handle = chunk(CU_MEM_LOCATION_TYPE_DEVICE, PART);
	OK(d.cuMemMap(va, PART, 0, handle, 0));
	OK(allow(va, PART, CU_MEM_ACCESS_FLAGS_PROT_READWRITE));
	fill(va, PART, 6);
	OK(d.cuCtxSynchronize());
	OK(d.cuMemUnmap(va, PART));
	OK(d.cuMemMap(va + PART, PART, 0, handle, 0));
	OK(allow(va + PART, PART, CU_MEM_ACCESS_FLAGS_PROT_READWRITE));
	CHECK(mismatches(va + PART, PART, 6) == 0);
}

static CUdeviceptr mapped(CUmemAccess_flags flags)
{
	CUdeviceptr va;

	need(CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED);
	OK(d.cuMemAddressReserve(&va, PART, 0, 0, 0));
	OK(d.cuMemMap(va, PART, 0, chunk(CU_MEM_LOCATION_TYPE_DEVICE, PART), 0));
	if (flags)
		OK(allow(va, PART, flags));
	return va;
}

DRIVER_TEST(vmm_without_access)
{
	start();
	fill(mapped(CU_MEM_ACCESS_FLAGS_PROT_NONE), PART, 1);
	GIVES(CUDA_ERROR_ILLEGAL_ADDRESS, d.cuCtxSynchronize());
}

DRIVER_TEST(vmm_unreachable_copy)
{
	CUdeviceptr va;
	char byte = 1;

	start();
	need(CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED);
	OK(d.cuMemAddressReserve(&va, PART, 0, 0, 0));
	GIVES(CUDA_ERROR_INVALID_VALUE, d.cuMemcpyHtoD_v2(va, &byte, 1));
}

DRIVER_TEST(vmm_out_of_memory)
{
	CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
	                            .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
	CUmemGenericAllocationHandle handle, other;

	start();
	need(CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED);
	size_t half = free_memory() / 2 / GRANULE * GRANULE;
	OK(d.cuMemCreate(&handle, half, &prop, 0));
	GIVES(CUDA_ERROR_OUT_OF_MEMORY, d.cuMemCreate(&other, half + 4 * GRANULE, &prop, 0));
	GIVES(CUDA_ERROR_INVALID_VALUE, d.cuMemCreate(&other, GRANULE / 2, &prop, 0));
	OK(d.cuMemRelease(handle));
	OK(d.cuMemCreate(&other, half + 2 * GRANULE, &prop, 0));
}

DRIVER_TEST(vmm_off)
{
	CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
	                            .location = {CU_MEM_LOCATION_TYPE_HOST_NUMA, 0}};
	CUmemGenericAllocationHandle handle;

	start();
	if (has(CU_DEVICE_ATTRIBUTE_HOST_NUMA_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED))
		_exit(SKIP);
	GIVES(CUDA_ERROR_NOT_SUPPORTED, d.cuMemCreate(&handle, GRANULE, &prop, 0));
}

DRIVER_TEST(unmap_does_not_wait)
{
	CUstream stream;

	start();
	CUdeviceptr va = mapped(CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
	uint64_t *flag = pinned();
	OK(d.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	OK(RUN(stream, "hold_fill", (uint64_t)flag, va, PART / 8, 1));
	OK(d.cuMemUnmap(va, PART)); /* a wait would hang for ever */
	*word_at(flag) = 1;
	GIVES(CUDA_ERROR_ILLEGAL_ADDRESS, d.cuStreamSynchronize(stream));
}
