/*
 * The behaviour of a CUDA driver on which libspill depends. On a machine with a GPU the same
 * program asks the real driver, and a difference is a bug of the simulator.
 *
 *	LD_LIBRARY_PATH=build/tests/sim test_driver build/tests/sim/kernels.so [TEST]
 *	test_driver kernels.cubin [TEST]                                       (real)
 *
 * Each test is a process of its own: a driver starts once, and an error may break it for good.
 */
#include "driver_test.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <time.h>

/* -- start ------------------------------------------------------------------------------------- */

DRIVER_TEST(before_init)
{
	size_t bytes;
	int count, version;

	load();
	GIVES(CUDA_ERROR_NOT_INITIALIZED, d.cuDeviceGetCount(&count));
	GIVES(CUDA_ERROR_NOT_INITIALIZED, d.cuMemGetInfo_v2(&bytes, &bytes));
	OK(d.cuDriverGetVersion(&version));
	CHECK(version >= 11030);
	GIVES(CUDA_ERROR_INVALID_VALUE, d.cuInit(1));
	OK(d.cuInit(0));
	GIVES(CUDA_ERROR_INVALID_CONTEXT, d.cuMemGetInfo_v2(&bytes, &bytes));
}

DRIVER_TEST(no_device)
{
	setenv("SPILL_SIM_DEVICES", "0", 1);
	load();
	CUresult result = d.cuInit(0);
	if (!result)
		_exit(SKIP); /* a real driver with devices */
	CHECK(result == CUDA_ERROR_NO_DEVICE);
}

DRIVER_TEST(devices)
{
	int count, major, value;
	char text[64];
	size_t total, all, free_bytes;
	CUdevice device;

	start();
	OK(d.cuDeviceGetCount(&count));
	CHECK(count >= 1);
	OK(d.cuDeviceGet(&device, 0));
	GIVES(CUDA_ERROR_INVALID_DEVICE, d.cuDeviceGet(&device, count));
	OK(d.cuDeviceTotalMem_v2(&total, 0));
	OK(d.cuMemGetInfo_v2(&free_bytes, &all));
	CHECK(simulated ? total == all : total >= all);
	OK(d.cuMemGetInfo_v2(NULL, &all));
	OK(d.cuDeviceGetPCIBusId(text, sizeof(text), 0));
	OK(d.cuDeviceGetByPCIBusId(&device, text));
	CHECK(device == 0);
	OK(d.cuDeviceGetAttribute(&major, (CUdevice_attribute)75, 0));
	CHECK(major >= 7);
	GIVES(CUDA_ERROR_INVALID_VALUE, d.cuDeviceGetAttribute(&value, (CUdevice_attribute)100000, 0));
	GIVES(CUDA_ERROR_INVALID_DEVICE,
	      d.cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_INTEGRATED, 1000));
}

DRIVER_TEST(errors)
{
	const char *text;

	load();
	OK(d.cuGetErrorName(CUDA_ERROR_OUT_OF_MEMORY, &text));
	CHECK(!strcmp(text, "CUDA_ERROR_OUT_OF_MEMORY"));
	OK(d.cuGetErrorString(CUDA_ERROR_ILLEGAL_ADDRESS, &text));
	CHECK(!strcmp(text, "an illegal memory access was encountered"));
	GIVES(CUDA_ERROR_INVALID_VALUE, d.cuGetErrorName((CUresult)12345, &text));
	CHECK(!text);
}

DRIVER_TEST(resolver)
{
	static const struct {
		const char *base;
		int version;
		cuuint64_t flags;
		const char *symbol; /* NULL: no symbol */
	} rows[] = {
	    {"cuMemAlloc", 2000, 0, "cuMemAlloc"},
	    {"cuMemAlloc", 3020, 0, "cuMemAlloc_v2"},
	    {"cuMemAlloc", 13000, 0, "cuMemAlloc_v2"},
	    {"cuMemAlloc", 13000, 2, "cuMemAlloc_v2"},
	    {"cuMemFreeAsync", 13000, 1, "cuMemFreeAsync"},
	    {"cuMemFreeAsync", 13000, 2, "cuMemFreeAsync_ptsz"},
	    {"cuMemFreeAsync", 11010, 0, NULL},
	    {"cuMemAdvise", 8000, 0, "cuMemAdvise"},
	    {"cuMemAdvise", 12020, 0, "cuMemAdvise_v2"},
	    {"cuMemcpyHtoD", 13000, 2, "cuMemcpyHtoD_v2_ptds"},
	    {"cuGetProcAddress", 11030, 0, "cuGetProcAddress"},
	    {"cuGetProcAddress", 12000, 0, "cuGetProcAddress_v2"},
	    {"cuStreamSynchronize", 13000, 0, "cuStreamSynchronize"},
	    {"cuStreamSynchronize", 13000, 2, "cuStreamSynchronize_ptsz"},
	    {"cuArrayCreate", 13000, 0, "cuArrayCreate_v2"},
	};
	CUdriverProcAddressQueryResult status;
	void *address;

	load();
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		CUresult result =
		    d.cuGetProcAddress_v2(rows[i].base, &address, rows[i].version, rows[i].flags, &status);

		if (address != (rows[i].symbol ? dlsym(library, rows[i].symbol) : NULL)) {
			fprintf(stderr, "%s at %d, flags %d: %p is not %s\n", rows[i].base, rows[i].version,
			        (int)rows[i].flags, address, rows[i].symbol);
			_exit(1);
		}
		CHECK(rows[i].symbol ? !result && status == CU_GET_PROC_ADDRESS_SUCCESS
		                     : status == CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT);
	}
	d.cuGetProcAddress_v2("cuNoSuchFunction", &address, 13000, 0, &status);
	CHECK(!address && status == CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
	GIVES(CUDA_ERROR_NOT_FOUND, d.cuGetProcAddress("cuNoSuchFunction", &address, 13000, 0));
}

DRIVER_TEST(after_fork)
{
	int status, count;

	start();
	pid_t child = fork();
	if (!child) {
		GIVES(CUDA_ERROR_NOT_INITIALIZED, d.cuInit(0));
		GIVES(CUDA_ERROR_NOT_INITIALIZED, d.cuDeviceGetCount(&count));
		_exit(0);
	}
	CHECK(waitpid(child, &status, 0) == child && status == 0);
	OK(d.cuCtxSynchronize());
}

/* -- plain memory ------------------------------------------------------------------------------ */

DRIVER_TEST(plain)
{
	CUdeviceptr a, b, base;
	size_t bytes;

	start();
	size_t before = free_memory();
	OK(d.cuMemAlloc_v2(&a, 5 * MIB));
	CHECK(a % 512 == 0);
	CHECK(before - free_memory() == 6 * MIB);
	OK(d.cuMemAlloc_v2(&b, 2 * MIB));
	CHECK(before - free_memory() == 8 * MIB);
	OK(d.cuMemGetAddressRange_v2(&base, &bytes, a + 4096));
	CHECK(base == a && bytes == 5 * MIB);
	CHECK(type_of(a + 4096) == CU_MEMORYTYPE_DEVICE);
	fill(a, 5 * MIB, 1);
	fill(b, 2 * MIB, 2);
	CHECK(mismatches(a, 5 * MIB, 1) == 0);
	CHECK(mismatches(b, 2 * MIB, 2) == 0);
	CHECK(mismatches(a, 5 * MIB, 2) > 600000);
	GIVES(CUDA_ERROR_INVALID_VALUE, d.cuMemFree_v2(a + 512));
	GIVES(CUDA_ERROR_INVALID_VALUE, d.cuMemAlloc_v2(&base, 0));
	OK(d.cuMemFree_v2(a));
	OK(d.cuMemFree_v2(b));
	OK(d.cuMemFree_v2(0));
	GIVES(CUDA_ERROR_INVALID_VALUE, d.cuMemFree_v2(a));
	CHECK(free_memory() == before);
}

DRIVER_TEST(small_ones_share)
{
	CUdeviceptr p[1000];

	start();
	size_t before = free_memory();
	for (int i = 0; i < 1000; i++) {
		OK(d.cuMemAlloc_v2(&p[i], 4096));
		CHECK(p[i] % 512 == 0);
		fill(p[i], 4096, (uint64_t)i);
	}
	CHECK(before - free_memory() <= 8 * MIB);
	for (int i = 0; i < 1000; i += 2)
		OK(d.cuMemFree_v2(p[i]));
	for (int i = 1; i < 1000; i += 2)
		CHECK(mismatches(p[i], 4096, (uint64_t)i) == 0);
	for (int i = 1; i < 1000; i += 2)
		OK(d.cuMemFree_v2(p[i]));
	if (simulated)
		CHECK(free_memory() == before);
}

DRIVER_TEST(capacity)
{
	CUdeviceptr a, b, c = 77;

	start();
	size_t all = free_memory();
	GIVES(CUDA_ERROR_OUT_OF_MEMORY, d.cuMemAlloc_v2(&c, all + 4 * MIB));
	CHECK(c == 0); /* an H200 sets it to 0 */
	OK(d.cuMemAlloc_v2(&a, all / 2));
	OK(d.cuMemAlloc_v2(&b, all / 4));
	GIVES(CUDA_ERROR_OUT_OF_MEMORY, d.cuMemAlloc_v2(&c, all / 2));
	OK(d.cuMemFree_v2(b));
	if (simulated) {
		OK(d.cuMemAlloc_v2(&b, free_memory()));
		CHECK(free_memory() == 0);
		GIVES(CUDA_ERROR_OUT_OF_MEMORY, d.cuMemAlloc_v2(&c, 1));
		OK(d.cuMemFree_v2(b));
	}
	OK(d.cuMemFree_v2(a));
	CHECK(free_memory() == all);
}

/* Ended by the signal, or by a sanitizer that reports it and exits. */
static bool crashed(int status)
{
	return WIFSIGNALED(status) ? WTERMSIG(status) == SIGSEGV : WEXITSTATUS(status) != 0;
}

DRIVER_TEST(host_sees_nothing)
{
	CUdeviceptr p;
	int status;

	start();
	OK(d.cuMemAlloc_v2(&p, 4 * MIB));
	pid_t child = fork();
	if (!child) {
		signal(SIGSEGV, SIG_DFL);
		*(volatile char *)p = 1;
		_exit(0);
	}
	CHECK(waitpid(child, &status, 0) == child);
	CHECK(crashed(status));
	/* In this process, with the driver's own handler in place. */
	child = fork();
	if (!child) {
		*(volatile char *)p = 1;
		_exit(0);
	}
	CHECK(waitpid(child, &status, 0) == child);
	CHECK(crashed(status));
}

DRIVER_TEST(pinned_host)
{
	CUdeviceptr mapped;
	unsigned flags;

	start();
	size_t before = free_memory();
	uint64_t *p;
	OK(d.cuMemHostAlloc((void **)&p, 4 * MIB, CU_MEMHOSTALLOC_DEVICEMAP));
	CHECK(free_memory() == before);
	OK(d.cuMemHostGetDevicePointer_v2(&mapped, p, 0));
	CHECK(mapped == (CUdeviceptr)p);
	OK(d.cuMemHostGetFlags(&flags, p));
	CHECK(flags & CU_MEMHOSTALLOC_DEVICEMAP);
	CHECK(type_of(mapped) == CU_MEMORYTYPE_HOST);
	fill(mapped, 4 * MIB, 3);
	OK(d.cuCtxSynchronize());
	uint64_t sum = 0, *total = pinned();
	for (size_t i = 0; i < 4 * MIB / 8; i++)
		sum += p[i];
	OK(RUN(NULL, "checksum", mapped, 4 * MIB / 8, (uint64_t)total));
	OK(d.cuCtxSynchronize());
	CHECK(*total == sum && sum);
	GIVES(CUDA_ERROR_INVALID_VALUE, d.cuMemFree_v2(mapped));
	OK(d.cuMemFreeHost(p));
	GIVES(CUDA_ERROR_INVALID_VALUE, d.cuMemFreeHost(p));
}

DRIVER_TEST(registered)
{
	char *own = aligned_alloc(4096, MIB);

	start();
	memset(own, 0, MIB);
	OK(d.cuMemHostRegister_v2(own, MIB, 0));
	GIVES(CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED, d.cuMemHostRegister_v2(own, MIB, 0));
	CHECK(type_of((CUdeviceptr)own) == CU_MEMORYTYPE_HOST);
	fill((CUdeviceptr)own, MIB, 4);
	CHECK(mismatches((CUdeviceptr)own, MIB, 4) == 0);
	OK(d.cuMemHostUnregister(own));
	GIVES(CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED, d.cuMemHostUnregister(own));
}

DRIVER_TEST(pageable_is_out_of_reach)
{
	static char own[8192];

	start();
	if (has(CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS))
		_exit(SKIP);
	fill((CUdeviceptr)own / 8 * 8 + 8, 4096, 1);
	GIVES(CUDA_ERROR_ILLEGAL_ADDRESS, d.cuCtxSynchronize());
}

DRIVER_TEST(copies)
{
	enum { BYTES = 3 * 1024 * 1024 + 17 };
	CUdeviceptr a, b;
	char *one = malloc(BYTES), *two = malloc(BYTES);

	start();
	OK(d.cuMemAlloc_v2(&a, BYTES));
	OK(d.cuMemAlloc_v2(&b, BYTES));
	for (size_t i = 0; i < BYTES; i++)
		one[i] = (char)(i * 7 + i / 4096);
	OK(d.cuMemcpyHtoD_v2(a, one, BYTES));
	OK(d.cuMemcpyDtoD_v2(b, a, BYTES));
	OK(d.cuMemcpyDtoH_v2(two, b, BYTES));
	CHECK(!memcmp(one, two, BYTES));
	OK(d.cuMemsetD8_v2(b + 100, 0x5a, 1000));
	OK(d.cuMemsetD32_v2(b + 4096, 0x01020304, 256));
	OK(d.cuMemcpy((CUdeviceptr)two, b, BYTES));
	CHECK(two[99] == one[99] && two[100] == 0x5a && two[1099] == 0x5a && two[1100] == one[1100]);
	CHECK(((uint32_t *)(two + 4096))[255] == 0x01020304 && two[4096 + 1024] == one[4096 + 1024]);
	/* A pageable source may change as soon as the asynchronous call returns. */
	OK(d.cuMemcpyHtoDAsync_v2(a, one, BYTES, NULL));
	memset(one, 0, 4096);
	OK(d.cuMemcpyDtoHAsync_v2(two, a, BYTES, NULL));
	OK(d.cuStreamSynchronize(NULL));
	CHECK(two[1] == 7 && two[4095] == (char)(4095 * 7));
	GIVES(CUDA_ERROR_INVALID_VALUE, d.cuMemcpyHtoD_v2(a, one, (size_t)BYTES + 8 * MIB));
	GIVES(CUDA_ERROR_INVALID_VALUE, d.cuMemcpyHtoD_v2((CUdeviceptr)two, one, 16));
	GIVES(CUDA_ERROR_INVALID_VALUE, d.cuMemsetD32_v2(b + 2, 1, 4));
	CUDA_MEMCPY2D rows = {.srcMemoryType = CU_MEMORYTYPE_HOST,
	                      .srcHost = one,
	                      .srcPitch = 128,
	                      .dstMemoryType = CU_MEMORYTYPE_DEVICE,
	                      .dstDevice = b,
	                      .dstPitch = 512,
	                      .WidthInBytes = 100,
	                      .Height = 50};
	OK(d.cuMemcpy2D_v2(&rows));
	OK(d.cuMemcpyDtoH_v2(two, b + 49 * 512, 100));
	CHECK(!memcmp(two, one + 49 * 128, 100));
}

/* -- virtual memory management ----------------------------------------------------------------- */

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

/* -- kernels ----------------------------------------------------------------------------------- */

DRIVER_TEST(illegal_address_sticks)
{
	CUdeviceptr p;

	start();
	OK(d.cuMemAlloc_v2(&p, 4 * MIB));
	OK(d.cuMemFree_v2(p));
	fill(p, 4 * MIB, 1);
	GIVES(CUDA_ERROR_ILLEGAL_ADDRESS, d.cuCtxSynchronize());
	GIVES(CUDA_ERROR_ILLEGAL_ADDRESS, d.cuMemAlloc_v2(&p, 4096));
	GIVES(CUDA_ERROR_ILLEGAL_ADDRESS, d.cuStreamQuery(NULL));
}

DRIVER_TEST(launches)
{
	CUlibrary lib;
	CUkernel kernel;
	CUfunction function, direct;
	CUdeviceptr p;
	size_t offset, size;

	start();
	OK(d.cuMemAlloc_v2(&p, MIB));
	OK(d.cuModuleGetFunction(&direct, module, "fill"));
	for (size_t i = 0; i < 3; i++) {
		OK(d.cuFuncGetParamInfo(direct, i, &offset, &size));
		CHECK(offset == 8 * i && size == 8);
	}
	GIVES(CUDA_ERROR_INVALID_VALUE, d.cuFuncGetParamInfo(direct, 3, &offset, &size));

	uint64_t block[] = {p, MIB / 8, 11};
	size = sizeof(block);
	void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, block, CU_LAUNCH_PARAM_BUFFER_SIZE, &size,
	                 CU_LAUNCH_PARAM_END};
	OK(d.cuLaunchKernel(direct, 8, 1, 1, 128, 1, 1, 0, NULL, NULL, extra));
	memset(block, 0, sizeof(block)); /* the launch copied them */
	CHECK(mismatches(p, MIB, 11) == 0);

	OK(d.cuLibraryLoadFromFile(&lib, kernels_path, NULL, NULL, 0, NULL, NULL, 0));
	OK(d.cuLibraryGetKernel(&kernel, lib, "add"));
	OK(d.cuKernelGetFunction(&function, kernel));
	uint64_t words = MIB / 8, one = 1;
	void *parameters[] = {&p, &words, &one};
	CUlaunchConfig config = {8, 1, 1, 128, 1, 1, 0, NULL, NULL, 0};
	OK(d.cuLaunchKernelEx(&config, function, parameters, NULL));
	CHECK(mismatches(p, MIB, 11) == MIB / 8);
	one = (uint64_t)-1;
	OK(d.cuLaunchKernel((CUfunction)kernel, 8, 1, 1, 128, 1, 1, 0, NULL, parameters, NULL));
	CHECK(mismatches(p, MIB, 11) == 0);
	OK(d.cuLibraryUnload(lib));

	GIVES(CUDA_ERROR_INVALID_VALUE,
	      d.cuLaunchKernel(direct, 0, 1, 1, 128, 1, 1, 0, NULL, parameters, NULL));
	GIVES(CUDA_ERROR_INVALID_VALUE,
	      d.cuLaunchKernel(direct, 1, 1, 1, 2048, 1, 1, 0, NULL, parameters, NULL));
}

DRIVER_TEST(bad_modules)
{
	static const char junk[4096] = "\177ELF and nothing else";
	CUfunction function;
	CUmodule other;

	start();
	GIVES(CUDA_ERROR_FILE_NOT_FOUND, d.cuModuleLoad(&other, "/nonexistent/kernels.so"));
	CHECK(d.cuModuleLoadData(&other, junk) != CUDA_SUCCESS);
	GIVES(CUDA_ERROR_NOT_FOUND, d.cuModuleGetFunction(&function, module, "no_such_kernel"));
	OK(d.cuModuleLoad(&other, kernels_path));
	OK(d.cuModuleUnload(other));
}

DRIVER_TEST(asynchronous)
{
	CUstream stream;
	CUevent event;

	start();
	uint64_t *flag = pinned();
	OK(d.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	OK(d.cuEventCreate(&event, 0));
	OK(d.cuEventQuery(event));
	OK(RUN(stream, "hold", (uint64_t)flag));
	OK(d.cuEventRecord(event, stream));
	GIVES(CUDA_ERROR_NOT_READY, d.cuStreamQuery(stream));
	GIVES(CUDA_ERROR_NOT_READY, d.cuEventQuery(event));
	*word_at(flag) = 1;
	OK(d.cuEventSynchronize(event));
	OK(d.cuEventQuery(event));
	OK(d.cuStreamSynchronize(stream));
	OK(d.cuStreamDestroy_v2(stream));
}

DRIVER_TEST(default_stream)
{
	CUstream blocking, free_running;

	start();
	uint64_t *flag = pinned();
	OK(d.cuStreamCreate(&blocking, CU_STREAM_DEFAULT));
	OK(d.cuStreamCreate(&free_running, CU_STREAM_NON_BLOCKING));
	OK(RUN(NULL, "hold", (uint64_t)flag));
	OK(RUN(blocking, "add", (uint64_t)(flag + 8), 1, 5));
	OK(RUN(free_running, "add", (uint64_t)(flag + 16), 1, 6));
	OK(d.cuStreamSynchronize(free_running));
	CHECK(word_at(flag)[16] == 6);
	CHECK(word_at(flag)[8] == 0);
	GIVES(CUDA_ERROR_NOT_READY, d.cuStreamQuery(blocking));
	GIVES(CUDA_ERROR_NOT_READY, d.cuStreamQuery(NULL));
	*word_at(flag) = 1;
	OK(d.cuStreamSynchronize(blocking));
	CHECK(word_at(flag)[8] == 5);

	/* And in the other order. */
	*word_at(flag) = 0;
	OK(RUN(blocking, "hold", (uint64_t)flag));
	OK(RUN(NULL, "add", (uint64_t)(flag + 8), 1, 5));
	GIVES(CUDA_ERROR_NOT_READY, d.cuStreamQuery(NULL));
	CHECK(word_at(flag)[8] == 5);
	*word_at(flag) = 1;
	OK(d.cuStreamSynchronize(NULL));
	CHECK(word_at(flag)[8] == 10);
}

DRIVER_TEST(per_thread_stream)
{
	CUstream free_running;

	start();
	uint64_t *flag = pinned();
	OK(d.cuStreamCreate(&free_running, CU_STREAM_NON_BLOCKING));
	OK(RUN(free_running, "hold", (uint64_t)flag));
	OK(RUN(CU_STREAM_PER_THREAD, "add", (uint64_t)(flag + 8), 1, 5));
	OK(d.cuStreamSynchronize_ptsz(NULL));
	CHECK(word_at(flag)[8] == 5);
	OK(d.cuMemsetD8Async_ptsz((CUdeviceptr)(flag + 8), 0, 8, NULL));
	OK(d.cuStreamSynchronize(CU_STREAM_PER_THREAD));
	CHECK(word_at(flag)[8] == 0);
	*word_at(flag) = 1;
	OK(d.cuCtxSynchronize());
}

static double host_milliseconds(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec * 1e3 + (double)time.tv_nsec / 1e6;
}

DRIVER_TEST(events_order_streams)
{
	CUstream one, two;
	CUevent start_event, end_event;
	float milliseconds = -1;

	start();
	uint64_t *flag = pinned();
	OK(d.cuStreamCreate(&one, CU_STREAM_NON_BLOCKING));
	OK(d.cuStreamCreate(&two, CU_STREAM_NON_BLOCKING));
	OK(d.cuEventCreate(&start_event, 0));
	OK(d.cuEventCreate(&end_event, 0));
	double first = host_milliseconds();
	OK(d.cuEventRecord(start_event, one));
	OK(RUN(one, "hold", (uint64_t)flag));
	OK(RUN(one, "add", (uint64_t)(flag + 8), 1, 2));
	OK(d.cuEventRecord(end_event, one));
	OK(RUN(two, "add", (uint64_t)(flag + 10), 1, 1));
	OK(d.cuStreamWaitEvent(two, end_event, 0));
	OK(RUN(two, "copy", (uint64_t)(flag + 9), (uint64_t)(flag + 8), 1));
	/* It runs, and had time to continue. */
	while (!word_at(flag)[10] || d.cuEventQuery(start_event) == CUDA_ERROR_NOT_READY)
		sched_yield();
	double begun = host_milliseconds();
	for (int i = 0; i < 2000; i++)
		sched_yield();
	GIVES(CUDA_ERROR_NOT_READY, d.cuStreamQuery(two));
	GIVES(CUDA_ERROR_NOT_READY, d.cuEventElapsedTime(&milliseconds, start_event, end_event));
	double held = host_milliseconds() - begun;
	*word_at(flag) = 1;
	OK(d.cuStreamSynchronize(two));
	CHECK(word_at(flag)[9] == 2);
	double all = host_milliseconds() - first;
	OK(d.cuEventElapsedTime(&milliseconds, start_event, end_event));
	/* Two clocks; one counts half microseconds. */
	CHECK(milliseconds > 0.99 * held - 0.01 && milliseconds < 1.01 * all + 0.01);
	OK(d.cuStreamDestroy_v2(one));
	OK(d.cuStreamDestroy_v2(two));
	OK(d.cuEventDestroy_v2(end_event));
}

static void note(void *data)
{
	uint64_t *flag = data;

	word_at(flag)[2] = flag[1] + 1; /* the test looks at it meanwhile */
}

DRIVER_TEST(host_functions)
{
	CUstream stream;

	start();
	uint64_t *flag = pinned();
	OK(d.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	OK(RUN(stream, "hold", (uint64_t)flag));
	OK(RUN(stream, "add", (uint64_t)(flag + 1), 1, 41));
	OK(d.cuLaunchHostFunc(stream, note, flag));
	CHECK(word_at(flag)[2] == 0);
	*word_at(flag) = 1;
	OK(d.cuStreamSynchronize(stream));
	CHECK(word_at(flag)[2] == 42);
}

/* -- when memory may be freed ------------------------------------------------------------------ */

static uint64_t *release_flag;
static atomic_int entering, released;

/* Releases the kernel well after the other thread has begun to free. */
static void *release(void *unused)
{
	(void)unused;
	while (!entering)
		sched_yield();
	for (int i = 0; i < 2000; i++)
		sched_yield();
	released = 1;
	*word_at(release_flag) = 1;
	return NULL;
}

static void freeing_waits(bool host)
{
	CUstream stream;
	pthread_t thread;
	CUdeviceptr p;

	start();
	if (host)
		OK(d.cuMemHostAlloc((void **)&p, 4 * MIB, 0));
	else
		OK(d.cuMemAlloc_v2(&p, 4 * MIB));
	release_flag = pinned();
	OK(d.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	OK(RUN(stream, "hold_fill", (uint64_t)release_flag, p, 4 * MIB / 8, 1));
	CHECK(!pthread_create(&thread, NULL, release, NULL));
	entering = 1;
	OK(host ? d.cuMemFreeHost((void *)p) : d.cuMemFree_v2(p));
	CHECK(released);
	pthread_join(thread, NULL);
	OK(d.cuStreamSynchronize(stream));
}

DRIVER_TEST(free_waits)
{
	freeing_waits(false);
}

DRIVER_TEST(free_host_waits)
{
	freeing_waits(true);
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

DRIVER_TEST(contexts_own)
{
	CUcontext other, current;
	CUdeviceptr p, q;
	unsigned flags;
	int active;

	start();
	size_t before = free_memory();
	OK(d.cuCtxCreate_v2(&other, 0, 0));
	OK(d.cuMemAlloc_v2(&p, 32 * MIB));
	OK(d.cuMemAlloc_v2(&q, 4096));
	OK(d.cuCtxDestroy_v2(other));
	OK(d.cuCtxGetCurrent(&current));
	CHECK(current == context);
	if (simulated)
		CHECK(free_memory() == before);
	GIVES(CUDA_ERROR_INVALID_VALUE, d.cuMemFree_v2(p));
	OK(d.cuDevicePrimaryCtxGetState(0, &flags, &active));
	CHECK(active);
	OK(d.cuMemAlloc_v2(&p, 32 * MIB));
	OK(d.cuDevicePrimaryCtxReset_v2(0));
	OK(d.cuDevicePrimaryCtxGetState(0, &flags, &active));
	CHECK(!active);
	OK(d.cuDevicePrimaryCtxRetain(&context, 0));
	OK(d.cuCtxSetCurrent(context));
	if (simulated)
		CHECK(free_memory() == before);
}

/* -- managed memory ---------------------------------------------------------------------------- */

DRIVER_TEST(managed)
{
	CUdeviceptr p;
	unsigned is_managed = 0;
	int place;

	start();
	OK(d.cuMemAllocManaged(&p, 8 * MIB, CU_MEM_ATTACH_GLOBAL));
	OK(d.cuPointerGetAttribute(&is_managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, p));
	CHECK(is_managed);
	((uint64_t *)p)[7] = 1; /* also by the host */
	fill(p, 8 * MIB, 9);
	CHECK(mismatches(p, 8 * MIB, 9) == 0);
	CHECK(((volatile uint64_t *)p)[0] != ((volatile uint64_t *)p)[1]);
	if (has(CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS)) {
		OK(d.cuMemAdvise(p, 8 * MIB, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, CU_DEVICE_CPU));
		OK(d.cuMemAdvise_v2(p, 8 * MIB, CU_MEM_ADVISE_SET_ACCESSED_BY,
		                    (CUmemLocation){CU_MEM_LOCATION_TYPE_DEVICE, 0}));
		OK(d.cuMemRangeGetAttribute(&place, sizeof(place), CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION,
		                            p, 8 * MIB));
		CHECK(place == CU_DEVICE_CPU);
		OK(d.cuMemRangeGetAttribute(&place, sizeof(place), CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY, p,
		                            8 * MIB));
		CHECK(place == 0);
		OK(d.cuMemPrefetchAsync_v2(p, 8 * MIB, (CUmemLocation){CU_MEM_LOCATION_TYPE_DEVICE, 0}, 0,
		                           NULL));
		OK(d.cuCtxSynchronize());
		OK(d.cuMemRangeGetAttribute(&place, sizeof(place),
		                            CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION, p, 8 * MIB));
		CHECK(place == 0);
	}
	OK(d.cuMemFree_v2(p));
	GIVES(CUDA_ERROR_INVALID_VALUE, d.cuMemAllocManaged(&p, MIB, 0));
}

/* On the simulator only: a real driver would need the whole device. */
DRIVER_TEST(managed_moves)
{
	CUdeviceptr p, plain_one;
	CUmemLocation host = {CU_MEM_LOCATION_TYPE_HOST, 0}, device = {CU_MEM_LOCATION_TYPE_DEVICE, 0};

	start();
	need_simulator();
	need(CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS);
	size_t all = free_memory();
	OK(d.cuMemAllocManaged(&p, all + 32 * MIB, CU_MEM_ATTACH_GLOBAL));
	CHECK(free_memory() == all);
	OK(d.cuMemPrefetchAsync_v2(p, 16 * MIB, device, 0, NULL));
	OK(d.cuCtxSynchronize());
	CHECK(all - free_memory() == 16 * MIB);
	OK(d.cuMemPrefetchAsync_v2(p, 8 * MIB, host, 0, NULL));
	OK(d.cuCtxSynchronize());
	CHECK(all - free_memory() == 8 * MIB);
	/* A kernel's access brings pages until the device is full. */
	fill(p, all + 32 * MIB, 12);
	OK(d.cuCtxSynchronize());
	CHECK(free_memory() == 0);
	CHECK(mismatches(p, all + 32 * MIB, 12) == 0);
	/* Managed pages make room for memory that cannot move. */
	OK(d.cuMemAlloc_v2(&plain_one, all / 2));
	fill(plain_one, all / 2, 13);
	CHECK(mismatches(p, all + 32 * MIB, 12) == 0);
	CHECK(mismatches(plain_one, all / 2, 13) == 0);
	OK(d.cuMemFree_v2(p));
	CHECK(all - free_memory() == all / 2);
	/* Memory that prefers the host is read there. */
	OK(d.cuMemFree_v2(plain_one));
	OK(d.cuMemAllocManaged(&p, 32 * MIB, CU_MEM_ATTACH_GLOBAL));
	OK(d.cuMemAdvise_v2(p, 32 * MIB, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, host));
	fill(p, 32 * MIB, 14);
	CHECK(mismatches(p, 32 * MIB, 14) == 0);
	CHECK(free_memory() == all);
}

DRIVER_TEST(managed_without_faults)
{
	CUdeviceptr p;

	start();
	need_simulator();
	if (has(CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS))
		_exit(SKIP);
	size_t all = free_memory();
	GIVES(CUDA_ERROR_OUT_OF_MEMORY, d.cuMemAllocManaged(&p, all + 4 * MIB, CU_MEM_ATTACH_GLOBAL));
	CHECK(free_memory() == all);
	OK(d.cuMemAllocManaged(&p, 32 * MIB, CU_MEM_ATTACH_GLOBAL));
	CHECK(all - free_memory() == 32 * MIB);
	GIVES(CUDA_ERROR_INVALID_DEVICE, d.cuMemPrefetchAsync(p, 32 * MIB, 0, NULL));
	OK(d.cuMemFree_v2(p));
	CHECK(free_memory() == all);
}

/* -- pools ------------------------------------------------------------------------------------- */

DRIVER_TEST(stream_ordered)
{
	CUdeviceptr p, plain_one, host;
	CUmemoryPool pool, of;
	CUstream stream;

	start();
	OK(d.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	uint64_t *flag = pinned();
	OK(d.cuMemAllocAsync(&p, 8 * MIB, stream));
	OK(d.cuDeviceGetDefaultMemPool(&pool, 0));
	OK(d.cuPointerGetAttribute(&of, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, p));
	CHECK(of == pool);
	/* Freed in stream order, after its use. */
	OK(RUN(stream, "hold_fill", (uint64_t)flag, p, MIB, 1));
	OK(d.cuMemFreeAsync(p, stream));
	*word_at(flag) = 1;
	OK(d.cuStreamSynchronize(stream));
	OK(d.cuMemAlloc_v2(&plain_one, 4 * MIB));
	OK(d.cuMemFreeAsync(plain_one, stream));
	OK(d.cuMemAllocManaged(&host, 4 * MIB, CU_MEM_ATTACH_GLOBAL));
	GIVES(CUDA_ERROR_NOT_SUPPORTED, d.cuMemFreeAsync(host, stream));
	OK(d.cuMemAllocAsync(&p, 8 * MIB, stream));
	OK(d.cuMemFree_v2(p));
	OK(d.cuStreamSynchronize(stream));
}

/* -- the simulator only ------------------------------------------------------------------------ */

DRIVER_TEST(injected)
{
	CUdeviceptr p;

	setenv("SPILL_SIM_FAIL", "cuMemAlloc:2,cuMemAlloc_v2:4+:46,cuStreamCreate:1:999", 1);
	start();
	need_simulator();
	OK(d.cuMemAlloc_v2(&p, 4096));
	GIVES(CUDA_ERROR_OUT_OF_MEMORY, d.cuMemAlloc_v2(&p, 4096));
	OK(d.cuMemAlloc_v2(&p, 4096));
	GIVES(46, d.cuMemAlloc_v2(&p, 4096));
	GIVES(46, d.cuMemAlloc_v2(&p, 4096));
	CUstream stream;
	GIVES(CUDA_ERROR_UNKNOWN, d.cuStreamCreate(&stream, 0));
	OK(d.cuStreamCreate(&stream, 0));
}

DRIVER_TEST(missing_names_itself)
{
	char text[256] = "";
	int ends[2];

	start();
	need_simulator();
	CUresult (*absent)(void *, const void *) = (__typeof__(absent))dlsym(library, "cuArrayGetPlane");
	CHECK(absent && !pipe(ends) && dup2(ends[1], 2) == 2);
	GIVES(CUDA_ERROR_NOT_SUPPORTED, absent(NULL, NULL));
	GIVES(CUDA_ERROR_NOT_SUPPORTED, absent(NULL, NULL));
	CHECK(read(ends[0], text, sizeof(text) - 1) > 0);
	CHECK(!strcmp(text, "sim: cuArrayGetPlane is not implemented\n"));
}

DRIVER_TEST(context_takes_memory)
{
	size_t total, free_bytes;

	setenv("SPILL_SIM_CONTEXT", "20MiB", 1);
	start();
	need_simulator();
	OK(d.cuMemGetInfo_v2(&free_bytes, &total));
	CHECK(total - free_bytes >= 20 * MIB && total - free_bytes < 24 * MIB);
}

static void *worker(void *data)
{
	uint64_t seed = (uint64_t)data;
	CUstream stream;

	OK(d.cuCtxSetCurrent(context));
	OK(d.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	uint64_t *count = pinned();
	for (uint64_t i = 0; i < 20; i++) {
		size_t bytes = i % 2 ? 3 * MIB : 8192;
		CUdeviceptr p;

		OK(d.cuMemAlloc_v2(&p, bytes));
		OK(RUN(stream, "fill", p, bytes / 8, seed + i));
		OK(RUN(stream, "verify", p, bytes / 8, seed + i, (uint64_t)count));
		OK(d.cuMemFree_v2(p));
		CHECK(*count == 0);
	}
	OK(d.cuStreamDestroy_v2(stream));
	return NULL;
}

DRIVER_TEST(threads)
{
	pthread_t thread[6];

	start();
	size_t before = free_memory();
	for (uint64_t i = 0; i < 6; i++)
		CHECK(!pthread_create(&thread[i], NULL, worker, (void *)(i * 1000)));
	for (int i = 0; i < 6; i++)
		CHECK(!pthread_join(thread[i], NULL));
	if (simulated)
		CHECK(free_memory() == before);
}

/* -- running the tests ------------------------------------------------------------------------- */
