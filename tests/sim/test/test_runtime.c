/*
 * The contract of the CUDA runtime. The same program runs on a real GPU with NVIDIA's runtime, and
 * a difference is a bug of the simulator.
 *
 *	test_runtime MODULE          all but tests that end the process's context
 *	test_runtime MODULE fault    a kernel touches unmapped memory
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "cudart_api.h"
#include "check.h"

#define WORDS (MIB / sizeof(uint64_t))

static cudaLibrary_t library;

static void *kernel(const char *name)
{
	cudaKernel_t found = NULL;

	CHECK(cudaLibraryGetKernel(&found, library, name), cudaSuccess);
	return found;
}

static cudaError_t launch(const char *name, void **parameters, cudaStream_t stream)
{
	return cudaLaunchKernel(kernel(name), (dim3){8, 1, 1}, (dim3){64, 1, 1}, parameters, 0, stream);
}

static cudaError_t fill(void *memory, uint64_t words, uint64_t seed, cudaStream_t stream)
{
	uint64_t address = (uint64_t)(uintptr_t)memory;
	void *parameters[] = {&address, &words, &seed};

	return launch("fill", parameters, stream);
}

static void *last_error_elsewhere(void *unused)
{
	return (void *)(intptr_t)cudaPeekAtLastError();
}

static void test_errors(void)
{
	pthread_t thread;
	void *elsewhere = GARBAGE, *memory;

	CHECK(cudaGetLastError(), cudaSuccess);
	CHECK(cudaSetDevice(99), cudaErrorInvalidDevice);
	CHECK(cudaPeekAtLastError(), cudaErrorInvalidDevice);
	CHECK(cudaMalloc(&memory, 256), cudaSuccess); /* a success keeps the last error */
	CHECK(cudaPeekAtLastError(), cudaErrorInvalidDevice);
	pthread_create(&thread, NULL, last_error_elsewhere, NULL);
	pthread_join(thread, &elsewhere);
	CHECK((intptr_t)elsewhere, cudaSuccess);
	CHECK(cudaGetLastError(), cudaErrorInvalidDevice);
	CHECK(cudaGetLastError(), cudaSuccess);
	CHECK(cudaFree(memory), cudaSuccess);
	CHECK(strcmp(cudaGetErrorName(cudaErrorMemoryAllocation), "cudaErrorMemoryAllocation"), 0);
	CHECK(strcmp(cudaGetErrorString(cudaErrorMemoryAllocation), "out of memory"), 0);
	CHECK(strcmp(cudaGetErrorName((cudaError_t)12345), "unrecognized error code"), 0);
}

static void test_device(void)
{
	struct cudaDeviceProp properties;
	int count = 0, device = -1, value = -1, least = 9, greatest = 9;
	size_t free, total;

	CHECK(cudaGetDeviceCount(&count), cudaSuccess);
	CHECK_TRUE(count >= 1);
	CHECK(cudaGetDevice(&device), cudaSuccess);
	CHECK(device, 0);
	CHECK(cudaSetDevice(0), cudaSuccess);
	CHECK(cudaSetDevice(-1), cudaErrorInvalidDevice);
	CHECK(cudaGetDeviceProperties(&properties, 0), cudaSuccess);
	CHECK(cudaGetDeviceProperties(&properties, count), cudaErrorInvalidDevice);
	CHECK_TRUE(properties.name[0]);
	CHECK(cudaMemGetInfo(&free, &total), cudaSuccess);
	CHECK_TRUE(free <= total && total <= properties.totalGlobalMem);
	CHECK_TRUE(properties.warpSize == 32 && properties.maxThreadsPerBlock == 1024);
	CHECK_TRUE(properties.unifiedAddressing && properties.canMapHostMemory);
	CHECK(cudaDeviceGetAttribute(&value, cudaDevAttrComputeCapabilityMajor, 0), cudaSuccess);
	CHECK(value, properties.major);
	CHECK(cudaDeviceGetAttribute(&value, cudaDevAttrManagedMemory, 0), cudaSuccess);
	CHECK(value, properties.managedMemory);
	CHECK(cudaDeviceGetAttribute(&value, (enum cudaDeviceAttr)100000, 0), cudaErrorInvalidValue);
	CHECK(cudaRuntimeGetVersion(&value), cudaSuccess);
	CHECK(value / 1000, 13);
	CHECK(cudaDriverGetVersion(&value), cudaSuccess);
	CHECK_TRUE(value >= 13000);
	CHECK(cudaDeviceGetStreamPriorityRange(&least, &greatest), cudaSuccess);
	CHECK_TRUE(greatest <= least);
}

static void test_alloc(void)
{
	size_t before, after, total;
	void *memory = GARBAGE;

	CHECK(cudaMalloc(&memory, 0), cudaSuccess);
	CHECK_TRUE(memory == NULL);
	CHECK(cudaMalloc(NULL, 16), cudaErrorInvalidValue);
	memory = GARBAGE;
	CHECK(cudaMalloc(&memory, (size_t)1 << 60), cudaErrorMemoryAllocation);
	CHECK_TRUE(memory == NULL);
	CHECK(cudaFree(NULL), cudaSuccess);
	CHECK(cudaFree(GARBAGE), cudaErrorInvalidValue);
	CHECK(cudaMemGetInfo(&before, &total), cudaSuccess);
	CHECK(cudaMalloc(&memory, 64 * MIB), cudaSuccess);
	CHECK((uintptr_t)memory % 256, 0);
	CHECK(cudaMemGetInfo(&after, &total), cudaSuccess);
	CHECK(before - after, 64 * MIB);
	CHECK(cudaFree((char *)memory + 256), cudaErrorInvalidValue);
	CHECK(cudaFree(memory), cudaSuccess);
	CHECK(cudaFree(memory), cudaErrorInvalidValue);
	CHECK(cudaMemGetInfo(&after, &total), cudaSuccess);
	CHECK(before - after, 0);
	CHECK(cudaMemGetInfo(NULL, &total), cudaSuccess);
}

static void test_copy(void)
{
	unsigned char *host = malloc(MIB), *back = malloc(MIB);
	void *a, *b;

	for (size_t i = 0; i < MIB; i++)
		host[i] = (unsigned char)(i * 7 + i / 4096);
	CHECK(cudaMalloc(&a, MIB), cudaSuccess);
	CHECK(cudaMalloc(&b, MIB), cudaSuccess);
	CHECK(cudaMemcpy(a, host, MIB, cudaMemcpyHostToDevice), cudaSuccess);
	CHECK(cudaMemcpy(b, a, MIB, cudaMemcpyDeviceToDevice), cudaSuccess);
	CHECK(cudaMemcpy(back, b, MIB, cudaMemcpyDefault), cudaSuccess);
	CHECK(memcmp(host, back, MIB), 0);
	CHECK(cudaMemset((char *)b + 4096, 0x5a, 4096), cudaSuccess);
	CHECK(cudaMemcpy(back, b, MIB, cudaMemcpyDeviceToHost), cudaSuccess);
	CHECK(back[4095], host[4095]);
	CHECK(back[4096], 0x5a);
	CHECK(back[8191], 0x5a);
	CHECK(back[8192], host[8192]);
	CHECK(cudaMemcpy(back, b, 0, cudaMemcpyDeviceToHost), cudaSuccess);
	CHECK(cudaMemcpy(back, b, 16, (enum cudaMemcpyKind)9), cudaErrorInvalidMemcpyDirection);
	CHECK(cudaMemcpy(GARBAGE, host, 16, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
	CHECK(cudaMemcpy(back, host, 16, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
	CHECK(cudaMemcpy(back, host, 16, cudaMemcpyDeviceToDevice), cudaErrorInvalidValue);
	CHECK(cudaMemcpy(back, a, 16, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
	CHECK(cudaMemcpy(back, a, 16, cudaMemcpyHostToHost), cudaSuccess);
	CHECK(cudaMemcpy((char *)a + 2 * MIB - 8, host, 64 * MIB, cudaMemcpyHostToDevice),
	      cudaErrorInvalidValue);
	CHECK(cudaMemset(host, 0, 16), cudaErrorInvalidValue);
	CHECK(cudaMemset(GARBAGE, 0, 16), cudaErrorInvalidValue);
	CHECK(cudaFree(a), cudaSuccess);
	CHECK(cudaFree(b), cudaSuccess);
	free(host);
	free(back);
}

static void test_pointer(void)
{
	struct cudaPointerAttributes about;
	void *device, *host, *managed;
	int local;

	CHECK(cudaMalloc(&device, MIB), cudaSuccess);
	CHECK(cudaPointerGetAttributes(&about, (char *)device + 100), cudaSuccess);
	CHECK(about.type, cudaMemoryTypeDevice);
	CHECK(about.device, 0);
	CHECK_TRUE(about.devicePointer == (char *)device + 100);
	CHECK_TRUE(about.hostPointer == NULL);

	CHECK(cudaHostAlloc(&host, MIB, cudaHostAllocMapped), cudaSuccess);
	CHECK(cudaPointerGetAttributes(&about, (char *)host + 8), cudaSuccess);
	CHECK(about.type, cudaMemoryTypeHost);
	CHECK(about.device, 0);
	CHECK_TRUE(about.devicePointer == (char *)host + 8);
	CHECK_TRUE(about.hostPointer == (char *)host + 8);

	CHECK(cudaMallocManaged(&managed, MIB, cudaMemAttachGlobal), cudaSuccess);
	CHECK(cudaPointerGetAttributes(&about, managed), cudaSuccess);
	CHECK(about.type, cudaMemoryTypeManaged);
	CHECK_TRUE(about.devicePointer == managed);
	CHECK_TRUE(about.hostPointer == managed);

	CHECK(cudaPointerGetAttributes(&about, &local), cudaSuccess);
	CHECK(about.type, cudaMemoryTypeUnregistered);
	CHECK(about.device, cudaInvalidDeviceId);
	CHECK_TRUE(about.devicePointer == NULL);
	CHECK_TRUE(about.hostPointer == &local);
	CHECK(cudaPointerGetAttributes(&about, NULL), cudaSuccess);
	CHECK(cudaPointerGetAttributes(NULL, device), cudaErrorInvalidValue);
	CHECK(cudaFree(device), cudaSuccess);
	CHECK(cudaFree(managed), cudaSuccess);
	CHECK(cudaFreeHost(host), cudaSuccess);
}

static void test_host(void)
{
	unsigned flags = 0;
	void *host, *device = NULL, *memory, *own = aligned_alloc(4096, MIB);

	CHECK(cudaMallocHost(&host, MIB), cudaSuccess);
	CHECK(cudaFree(host), cudaErrorInvalidValue);
	CHECK(cudaHostGetDevicePointer(&device, host, 0), cudaSuccess);
	CHECK_TRUE(device == host);
	CHECK(cudaHostGetFlags(&flags, host), cudaSuccess);
	CHECK_TRUE(flags & cudaHostAllocMapped);
	CHECK(cudaFreeHost(host), cudaSuccess);
	CHECK(cudaFreeHost(host), cudaErrorInvalidValue);
	CHECK(cudaFreeHost(NULL), cudaSuccess);
	CHECK(cudaMalloc(&memory, MIB), cudaSuccess);
	CHECK(cudaFreeHost(memory), cudaErrorInvalidValue);
	CHECK(cudaFree(memory), cudaSuccess);
	CHECK(cudaHostRegister(own, MIB, 0), cudaSuccess);
	CHECK(fill(own, WORDS, 3, NULL), cudaSuccess);
	CHECK(cudaDeviceSynchronize(), cudaSuccess);
	CHECK_TRUE(((uint64_t *)own)[WORDS - 1] != 0);
	CHECK(cudaHostUnregister(own), cudaSuccess);
	free(own);
}

static void test_managed(void)
{
	struct cudaMemLocation device = {cudaMemLocationTypeDevice, 0}, host = {cudaMemLocationTypeHost, 0};
	void *memory, *plain;

	CHECK(cudaMallocManaged(&memory, 0, cudaMemAttachGlobal), cudaSuccess);
	CHECK_TRUE(memory == NULL);
	CHECK(cudaMallocManaged(&memory, MIB, 0), cudaErrorInvalidValue);
	CHECK(cudaMallocManaged(&memory, MIB, cudaMemAttachGlobal), cudaSuccess);
	CHECK(cudaMemAdvise(memory, MIB, cudaMemAdviseSetPreferredLocation, host), cudaSuccess);
	CHECK(cudaMemAdvise(memory, MIB, cudaMemAdviseSetAccessedBy, device), cudaSuccess);
	CHECK(cudaMemPrefetchAsync(memory, MIB, device, 0, NULL), cudaSuccess);
	CHECK(fill(memory, WORDS, 5, NULL), cudaSuccess);
	CHECK(cudaMemPrefetchAsync(memory, MIB, host, 0, NULL), cudaSuccess);
	CHECK(cudaDeviceSynchronize(), cudaSuccess);
	CHECK_TRUE(((uint64_t *)memory)[WORDS - 1] != 0);
	CHECK(cudaFree(memory), cudaSuccess);
	CHECK(cudaMalloc(&plain, MIB), cudaSuccess);
	CHECK(cudaMemPrefetchAsync(plain, MIB, device, 0, NULL), cudaErrorInvalidValue);
	CHECK(cudaFree(plain), cudaSuccess);
}

static void test_stream(void)
{
	volatile uint64_t *go;
	uint64_t flag;
	void *pinned, *parameters[] = {&flag};
	cudaStream_t stream;
	cudaEvent_t start, end, bare;
	float milliseconds = -1;
	unsigned flags = 9;

	CHECK(cudaHostAlloc(&pinned, 4096, cudaHostAllocMapped), cudaSuccess);
	go = pinned;
	*go = 0;
	flag = (uint64_t)(uintptr_t)pinned;
	CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
	CHECK(cudaStreamGetFlags(stream, &flags), cudaSuccess);
	CHECK(flags, cudaStreamNonBlocking);
	CHECK(cudaEventCreate(&start), cudaSuccess);
	CHECK(cudaEventCreate(&end), cudaSuccess);
	CHECK(cudaEventCreateWithFlags(&bare, cudaEventDisableTiming), cudaSuccess);
	CHECK(cudaEventQuery(end), cudaSuccess); /* never recorded */
	CHECK(cudaEventRecord(start, stream), cudaSuccess);
	CHECK(launch("hold", parameters, stream), cudaSuccess);
	CHECK(cudaEventRecord(end, stream), cudaSuccess);
	CHECK(cudaStreamQuery(stream), cudaErrorNotReady);
	CHECK(cudaGetLastError(), cudaSuccess); /* a result, not an error */
	CHECK(cudaEventQuery(end), cudaErrorNotReady);
	CHECK(cudaStreamWaitEvent(NULL, end, 0), cudaSuccess);
	*go = 1;
	CHECK(cudaStreamSynchronize(NULL), cudaSuccess);
	CHECK(cudaEventQuery(end), cudaSuccess);
	CHECK(cudaStreamQuery(stream), cudaSuccess);
	CHECK(cudaEventElapsedTime(&milliseconds, start, end), cudaSuccess);
	CHECK_TRUE(milliseconds >= 0);
	CHECK(cudaEventElapsedTime(&milliseconds, bare, end), cudaErrorInvalidResourceHandle);
	CHECK(cudaEventDestroy(start), cudaSuccess);
	CHECK(cudaEventDestroy(end), cudaSuccess);
	CHECK(cudaEventDestroy(bare), cudaSuccess);
	CHECK(cudaStreamDestroy(stream), cudaSuccess);
	CHECK(cudaFreeHost(pinned), cudaSuccess);
	CHECK(cudaGetLastError(), cudaErrorInvalidResourceHandle);
}

static void host_function(void *data)
{
	*(int *)data = 42;
}

static void test_kernel(const char *path)
{
	struct cudaFuncAttributes about;
	cudaLibrary_t other;
	cudaKernel_t found;
	unsigned count = 0;
	int called = 0;
	void *memory;

	CHECK(cudaLibraryLoadFromFile(&other, "/nonexistent", NULL, NULL, 0, NULL, NULL, 0),
	      cudaErrorFileNotFound);
	CHECK(cudaLibraryGetKernel(&found, library, "no_such_kernel"), cudaErrorSymbolNotFound);
	CHECK(cudaLibraryGetKernelCount(&count, library), cudaSuccess);
	CHECK_TRUE(count >= 8);
	CHECK(cudaLaunchKernel(host_function, (dim3){1, 1, 1}, (dim3){1, 1, 1}, NULL, 0, NULL),
	      cudaErrorInvalidResourceHandle);
	CHECK(cudaLaunchKernel(NULL, (dim3){1, 1, 1}, (dim3){1, 1, 1}, NULL, 0, NULL),
	      cudaErrorInvalidDeviceFunction);
	CHECK(cudaLaunchKernel(kernel("fill"), (dim3){0, 1, 1}, (dim3){1, 1, 1}, NULL, 0, NULL),
	      cudaErrorInvalidValue);
	CHECK(cudaLaunchKernel(kernel("fill"), (dim3){1, 1, 1}, (dim3){2000, 1, 1}, NULL, 0, NULL),
	      cudaErrorInvalidValue);
	CHECK(cudaFuncGetAttributes(&about, kernel("fill")), cudaSuccess);
	CHECK_TRUE(about.maxThreadsPerBlock >= 64);
	CHECK(cudaMalloc(&memory, MIB), cudaSuccess);
	CHECK(fill(memory, WORDS, 1, cudaStreamPerThread), cudaSuccess);
	CHECK(cudaLaunchHostFunc(cudaStreamPerThread, host_function, &called), cudaSuccess);
	CHECK(cudaStreamSynchronize(cudaStreamPerThread), cudaSuccess);
	CHECK(called, 42);
	CHECK(cudaFree(memory), cudaSuccess);
	CHECK(cudaLibraryLoadFromFile(&other, path, NULL, NULL, 0, NULL, NULL, 0), cudaSuccess);
	CHECK(cudaLibraryUnload(other), cudaSuccess);
}

static void test_async(void)
{
	cudaStream_t stream;
	void *memory = GARBAGE;

	CHECK(cudaStreamCreate(&stream), cudaSuccess);
	CHECK(cudaMallocAsync(&memory, 0, stream), cudaSuccess);
	CHECK_TRUE(memory == NULL);
	CHECK(cudaMallocAsync(&memory, MIB, stream), cudaSuccess);
	CHECK(fill(memory, WORDS, 1, stream), cudaSuccess);
	CHECK(cudaFreeAsync(memory, stream), cudaSuccess);
	CHECK(cudaStreamSynchronize(stream), cudaSuccess);
	CHECK(cudaMallocAsync(&memory, (size_t)1 << 60, stream), cudaErrorMemoryAllocation);
	CHECK(cudaStreamDestroy(stream), cudaSuccess);
}

static void test_entry_point(void)
{
	enum cudaDriverEntryPointQueryResult status = cudaDriverEntryPointSuccess;
	void *driver = dlopen("libcuda.so.1", RTLD_NOW), *found = NULL;

	CHECK(cudaGetDriverEntryPointByVersion("cuMemAlloc", &found, 13000, cudaEnableDefault, &status),
	      cudaSuccess);
	CHECK(status, cudaDriverEntryPointSuccess);
	CHECK_TRUE(found && found == dlsym(driver, "cuMemAlloc_v2"));
	CHECK(cudaGetDriverEntryPointByVersion("cuNoSuch", &found, 13000, cudaEnableDefault, &status),
	      cudaSuccess);
	CHECK(status, cudaDriverEntryPointSymbolNotFound);
	CHECK_TRUE(found == NULL);
	CHECK(cudaGetDriverEntryPointByVersion("cuNoSuch", &found, 13000, cudaEnableDefault, NULL),
	      cudaSuccess);
	CHECK(cudaGetDriverEntryPointByVersion("cuMemCreate", &found, 9000, cudaEnableDefault, &status),
	      cudaSuccess);
	CHECK(status, cudaDriverEntryPointVersionNotSufficent);
	dlclose(driver);
}

static void test_reset(void)
{
	void *memory;

	CHECK(cudaMalloc(&memory, MIB), cudaSuccess);
	CHECK(cudaDeviceReset(), cudaSuccess);
	CHECK(cudaFree(memory), cudaErrorInvalidValue);
	CHECK(cudaMalloc(&memory, MIB), cudaSuccess);
	CHECK(cudaMemset(memory, 1, MIB), cudaSuccess);
	CHECK(cudaFree(memory), cudaSuccess);
	CHECK(cudaDeviceReset(), cudaSuccess);
	CHECK(cudaDeviceReset(), cudaSuccess);
}

/* The context is broken for good, and each call that needs it fails. */
static void test_fault(void)
{
	void *memory;

	CHECK(fill(GARBAGE, WORDS, 1, NULL), cudaSuccess);
	CHECK(cudaDeviceSynchronize(), cudaErrorIllegalAddress);
	CHECK(cudaPeekAtLastError(), cudaErrorIllegalAddress);
	CHECK(cudaGetLastError(), cudaErrorIllegalAddress);
	CHECK(cudaGetLastError(), cudaSuccess);
	CHECK(cudaMalloc(&memory, MIB), cudaErrorIllegalAddress);
	CHECK(cudaGetLastError(), cudaErrorIllegalAddress);
	CHECK(cudaFree(NULL), cudaErrorIllegalAddress);
	CHECK(cudaDeviceSynchronize(), cudaErrorIllegalAddress);
	CHECK(cudaSetDevice(0), cudaSuccess);
}

int main(int argc, char **argv)
{
	if (argc < 2)
		return 64;
	CHECK(cudaLibraryLoadFromFile(&library, argv[1], NULL, NULL, 0, NULL, NULL, 0), cudaSuccess);
	if (check_failures)
		return check_result();
	if (argc > 2) {
		test_fault();
		return check_result();
	}
	test_errors();
	test_device();
	test_alloc();
	cudaGetLastError();
	test_copy();
	test_pointer();
	test_host();
	test_managed();
	cudaGetLastError();
	test_stream();
	test_kernel(argv[1]);
	test_async();
	test_entry_point();
	test_reset();
	return check_result();
}
