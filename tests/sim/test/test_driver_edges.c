/* Sizes of 0, arguments of 0, and frees by another function: contract tests as test_driver.c. */
#include "driver_test.h"

#include <sys/mman.h>
#include <sys/wait.h>

DRIVER_TEST(pitches)
{
	static const size_t widths[][2] = {{1, 512}, {100, 512}, {512, 512}, {513, 1024}, {5000, 5120}};
	CUdeviceptr p = 1, base;
	size_t pitch = 1, bytes;

	start();
	for (size_t i = 0; i < sizeof(widths) / sizeof(*widths); i++) {
		OK(d.cuMemAllocPitch_v2(&p, &pitch, widths[i][0], 10, 4));
		CHECK(pitch == widths[i][1]);
		OK(d.cuMemGetAddressRange_v2(&base, &bytes, p));
		CHECK(base == p && bytes == pitch * 10);
		OK(d.cuMemFree_v2(p));
	}
	for (unsigned element = 0; element < 20; element++) {
		p = pitch = 1;
		CUresult result = d.cuMemAllocPitch_v2(&p, &pitch, 64, 64, element);
		bool good = element == 4 || element == 8 || element == 16;
		CHECK(result == (good ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE));
		CHECK(good ? p && pitch == 512 : !p && !pitch);
	}
	p = pitch = 1;
	GIVES(CUDA_ERROR_INVALID_VALUE, d.cuMemAllocPitch_v2(&p, &pitch, 0, 10, 4));
	CHECK(!p && !pitch);
	GIVES(CUDA_ERROR_INVALID_VALUE, d.cuMemAllocPitch_v2(&p, &pitch, 10, 0, 4));
	GIVES(CUDA_ERROR_INVALID_VALUE, d.cuMemAllocPitch_v2(&p, &pitch, SIZE_MAX, 1, 4));
	p = 1;
	GIVES(CUDA_ERROR_OUT_OF_MEMORY, d.cuMemAllocPitch_v2(&p, &pitch, 1000, (size_t)1 << 32, 4));
	CHECK(!p && pitch == 1024);
	GIVES(CUDA_ERROR_INVALID_VALUE, d.cuMemAllocPitch_v2(&p, &pitch, 1000, (size_t)1 << 60, 4));
	CHECK(!p && pitch == 1024);
	GIVES(CUDA_ERROR_INVALID_VALUE, d.cuMemAllocPitch_v2(NULL, &pitch, 64, 64, 4));
	GIVES(CUDA_ERROR_INVALID_VALUE, d.cuMemAllocPitch_v2(&p, NULL, 64, 64, 4));
}

DRIVER_TEST(nothing_asked_for)
{
	CUdeviceptr p = 1;
	void *host = (void *)1;

	start();
	GIVES(CUDA_ERROR_INVALID_VALUE, d.cuMemAlloc_v2(&p, 0));
	CHECK(p == 0);
	OK(d.cuMemHostAlloc(&host, 0, 0));
	CHECK(!host);
	host = (void *)1;
	OK(d.cuMemAllocHost_v2(&host, 0));
	CHECK(!host);
	GIVES(CUDA_ERROR_INVALID_VALUE, d.cuMemHostAlloc(&host, 4096, 0xff));
	OK(d.cuMemFreeHost(NULL));
	OK(d.cuMemFree_v2(0));
	GIVES(CUDA_ERROR_INVALID_VALUE, d.cuMemFreeHost((void *)0x1000));
	GIVES(CUDA_ERROR_INVALID_VALUE, d.cuMemFree_v2(0x1000));
	if (has(CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY)) {
		p = 1;
		GIVES(CUDA_ERROR_INVALID_VALUE, d.cuMemAllocManaged(&p, 0, CU_MEM_ATTACH_GLOBAL));
		CHECK(p == 0);
	}
}

DRIVER_TEST(freed_by_another)
{
	CUdeviceptr p;
	void *host;

	start();
	OK(d.cuMemAlloc_v2(&p, MIB));
	OK(d.cuMemHostAlloc(&host, 4096, 0));
	GIVES(CUDA_ERROR_INVALID_VALUE, d.cuMemFree_v2((CUdeviceptr)host));
	GIVES(CUDA_ERROR_INVALID_VALUE, d.cuMemFreeHost((void *)p));
	GIVES(CUDA_ERROR_INVALID_VALUE, d.cuMemFree_v2(p + 512));
	OK(d.cuMemFree_v2(p));
	GIVES(CUDA_ERROR_INVALID_VALUE, d.cuMemFree_v2(p));
	OK(d.cuMemFreeHost(host));
	GIVES(CUDA_ERROR_INVALID_VALUE, d.cuMemFreeHost(host));
}

DRIVER_TEST(registering)
{
	char *memory = mmap(NULL, 4 * MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char *gone = mmap(NULL, MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CUdeviceptr p;

	start();
	need(99); /* CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED */
	CHECK(!munmap(gone, MIB));
	OK(d.cuMemHostRegister_v2(memory, MIB, 0));
	GIVES(CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED, d.cuMemHostRegister_v2(memory, MIB, 0));
	GIVES(CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED, d.cuMemHostRegister_v2(memory + MIB / 2, MIB, 0));
	GIVES(CUDA_ERROR_INVALID_VALUE, d.cuMemHostRegister_v2(memory + 2 * MIB, 0, 0));
	GIVES(CUDA_ERROR_INVALID_VALUE, d.cuMemHostRegister_v2(NULL, MIB, 0));
	GIVES(CUDA_ERROR_INVALID_VALUE, d.cuMemHostRegister_v2(memory + 2 * MIB, MIB, 0xff));
	GIVES(CUDA_ERROR_INVALID_VALUE, d.cuMemHostRegister_v2(gone, MIB, 0));
	OK(d.cuMemAlloc_v2(&p, MIB));
	GIVES(CUDA_ERROR_INVALID_VALUE, d.cuMemHostRegister_v2((void *)p, MIB, 0));
	OK(d.cuMemHostRegister_v2(memory + 2 * MIB + 100, 5000, 0));
	OK(d.cuMemHostUnregister(memory + 2 * MIB + 100));
	GIVES(CUDA_ERROR_INVALID_VALUE, d.cuMemHostUnregister(memory + 4096));
	OK(d.cuMemHostUnregister(memory));
	GIVES(CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED, d.cuMemHostUnregister(memory));
	GIVES(CUDA_ERROR_INVALID_VALUE, d.cuMemHostUnregister(NULL));
	CHECK(d.cuMemHostRegister);
	OK(d.cuMemHostRegister(memory, MIB, 0));
	fill((CUdeviceptr)memory, MIB, 3);
	CHECK(mismatches((CUdeviceptr)memory, MIB, 3) == 0);
}

DRIVER_TEST(pointer_attributes)
{
	unsigned rdma = 9, on = 1, told = 9, decompress = 9;
	size_t mapping;
	CUdeviceptr p;

	start();
	OK(d.cuMemAlloc_v2(&p, 3 * MIB));
	OK(d.cuPointerGetAttribute(&mapping, CU_POINTER_ATTRIBUTE_MAPPING_SIZE, p));
	CHECK(mapping == 4 * MIB);
	OK(d.cuPointerGetAttribute(&told, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, p));
	CHECK(told == 0);
	OK(d.cuPointerSetAttribute(&on, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, p));
	OK(d.cuPointerGetAttribute(&told, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, p + 512));
	CHECK(told == 1);
	GIVES(CUDA_ERROR_INVALID_VALUE,
	      d.cuPointerSetAttribute(&on, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, 0x1000));
	GIVES(CUDA_ERROR_INVALID_VALUE, d.cuPointerSetAttribute(&on, CU_POINTER_ATTRIBUTE_CONTEXT, p));
	need_simulator(); /* other devices differ */
	OK(d.cuPointerGetAttribute(&rdma, CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE, p));
	OK(d.cuPointerGetAttribute(&decompress, (CUpointer_attribute)21, p));
	CHECK(rdma == 1 && decompress == 1);
}

/* The device has memory enough. */
DRIVER_TEST(few_addresses)
{
	CUdeviceptr p;

	setenv("SPILL_SIM_ADDRESSES", "128MiB", 1);
	start();
	need_simulator();
	GIVES(CUDA_ERROR_OUT_OF_MEMORY, d.cuMemAlloc_v2(&p, 160 * MIB));
	for (unsigned i = 0; i < 3; i++) {
		OK(d.cuMemAlloc_v2(&p, 96 * MIB));
		fill(p, 96 * MIB, i);
		CHECK(mismatches(p, 96 * MIB, i) == 0);
		OK(d.cuMemFree_v2(p));
	}
}

/*
 * Each function with arguments of 0 returns, and the process lives. A real driver does not promise
 * that: some of its functions read through a NULL handle.
 */
typedef uint64_t zero;
typedef CUresult (*any_function)(zero, zero, zero, zero, zero, zero, zero, zero, zero, zero, zero, zero, zero,
                                 zero, zero, zero, zero, zero, zero, zero);

static void call_with_zeros(const char *symbol)
{
	start();
	need_simulator();
	any_function function = (any_function)dlsym(library, symbol);
	CHECK(function);
	function(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
	_exit(0);
}

/* Elsewhere than on x86-64 a large struct is passed by its address, which is never 0. */
static bool takes_pointer_for_struct(const char *symbol)
{
#ifdef __x86_64__
	return false;
#else
	return !strncmp(symbol, "cuIpcOpen", strlen("cuIpcOpen"));
#endif
}

DRIVER_TEST(zero_arguments)
{
	static const char *const symbols[] = {
#define DRIVER(symbol, base, since, variant, parameters) #symbol,
#include "cuda_api.def"
	};
	unsigned wrong = 0;

	setenv("SPILL_SIM_ADDRESSES", "64MiB",
	       1); /* an emulator takes long for more, and each child starts */
	for (size_t i = 0; i < sizeof(symbols) / sizeof(*symbols); i++) {
		int status;

		if (takes_pointer_for_struct(symbols[i]))
			continue;
		alarm(60); /* anew: a process takes long to start in an emulator */
		pid_t child = fork();

		if (!child)
			call_with_zeros(symbols[i]);
		CHECK(waitpid(child, &status, 0) == child);
		if (WIFEXITED(status) && WEXITSTATUS(status) == SKIP)
			_exit(SKIP);
		if (status) {
			fprintf(stderr, "%s with zeros: status %#x\n", symbols[i], status);
			wrong++;
		}
	}
	CHECK(wrong == 0);
}
