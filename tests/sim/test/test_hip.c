/* The contract of ROCm 5's HIP, on the simulated HIP. Usage: test_hip MODULE */
#include <pthread.h>

#include "hip_test.h"

#define WORDS (MIB / sizeof(uint64_t))

static hipModule_t module;

static hipFunction_t kernel(const char *name)
{
	hipFunction_t found = NULL;

	CHECK(hipModuleGetFunction(&found, module, name), hipSuccess);
	return found;
}

static hipError_t launch(const char *name, void **parameters, void **extra, hipStream_t stream)
{
	return hipModuleLaunchKernel(kernel(name), 8, 1, 1, 64, 1, 1, 0, stream, parameters, extra);
}

static hipError_t fill(void *memory, uint64_t words, uint64_t seed, hipStream_t stream)
{
	uint64_t address = (uint64_t)(uintptr_t)memory;
	void *parameters[] = {&address, &words, &seed};

	return launch("fill", parameters, NULL, stream);
}

static int attribute(hipDeviceAttribute_t which)
{
	int value = -1;

	CHECK(hipDeviceGetAttribute(&value, which, 0), hipSuccess);
	return value;
}

static void *last_error_elsewhere(void *unused)
{
	return (void *)(intptr_t)hipPeekAtLastError();
}

/* Each call overwrites the last error, even a success. CUDA's rule differs. */
static void test_errors(void)
{
	pthread_t thread;
	void *elsewhere = GARBAGE, *memory;
	int device;

	CHECK(hipSetDevice(99), hipErrorInvalidDevice);
	CHECK(hipPeekAtLastError(), hipErrorInvalidDevice);
	CHECK(hipPeekAtLastError(), hipErrorInvalidDevice);
	pthread_create(&thread, NULL, last_error_elsewhere, NULL);
	pthread_join(thread, &elsewhere);
	CHECK((intptr_t)elsewhere, hipSuccess);
	CHECK(hipGetLastError(), hipErrorInvalidDevice);
	CHECK(hipGetLastError(), hipSuccess);
	CHECK(hipMalloc(&memory, (size_t)1 << 60), hipErrorOutOfMemory);
	CHECK(hipGetDevice(&device), hipSuccess);
	CHECK(hipGetLastError(), hipSuccess);
	CHECK(strcmp(hipGetErrorName(hipErrorOutOfMemory), "hipErrorOutOfMemory"), 0);
	CHECK(strcmp(hipGetErrorString(hipErrorOutOfMemory), "hipErrorOutOfMemory"), 0);
	CHECK(strcmp(hipGetErrorName((hipError_t)12345), "hipErrorUnknown"), 0);
}

static void test_device(void)
{
	hipDeviceProp_t properties;
	int count = 0, version = 0;
	size_t free, total, all;

	CHECK(hipInit(0), hipSuccess);
	CHECK(hipGetDeviceCount(&count), hipSuccess);
	CHECK_TRUE(count >= 1);
	CHECK(hipGetDeviceCount(NULL), hipErrorInvalidValue);
	CHECK(hipGetDeviceProperties(&properties, 0), hipSuccess);
	CHECK(hipGetDeviceProperties(&properties, count), hipErrorInvalidDevice);
	CHECK(hipMemGetInfo(&free, &total), hipSuccess);
	CHECK(hipMemGetInfo(NULL, &total), hipErrorInvalidValue);
	CHECK(hipDeviceTotalMem(&all, 0), hipSuccess);
	CHECK_TRUE(free <= total && total == all && total == properties.totalGlobalMem);
	CHECK(attribute(hipDeviceAttributeIntegrated), properties.integrated);
	CHECK(attribute(hipDeviceAttributeManagedMemory), properties.managedMemory);
	CHECK(attribute(hipDeviceAttributeConcurrentManagedAccess), properties.concurrentManagedAccess);
	CHECK(attribute(hipDeviceAttributePageableMemoryAccess), properties.pageableMemoryAccess);
	CHECK(hipRuntimeGetVersion(&version), hipSuccess);
	CHECK(version / 10000000, 5);
}

static void test_alloc(void)
{
	size_t before, after, total;
	void *memory = GARBAGE, *host;

	CHECK(hipMalloc(&memory, 0), hipSuccess);
	CHECK_TRUE(memory == NULL);
	CHECK(hipMalloc(NULL, 16), hipErrorInvalidValue);
	memory = GARBAGE;
	CHECK(hipMalloc(&memory, (size_t)1 << 60), hipErrorOutOfMemory);
	CHECK_TRUE(memory == GARBAGE);
	CHECK(hipFree(NULL), hipSuccess);
	CHECK(hipFree(GARBAGE), hipErrorInvalidValue);
	CHECK(hipMemGetInfo(&before, &total), hipSuccess);
	CHECK(hipMalloc(&memory, 64 * MIB), hipSuccess);
	CHECK((uintptr_t)memory % 256, 0);
	CHECK(hipMemGetInfo(&after, &total), hipSuccess);
	CHECK(before - after, 64 * MIB);
	CHECK(hipFree((char *)memory + 256), hipErrorInvalidValue);
	CHECK(hipFree(memory), hipSuccess);
	CHECK(hipFree(memory), hipErrorInvalidValue);
	CHECK(hipMemGetInfo(&after, &total), hipSuccess);
	CHECK(before - after, 0);
	memory = GARBAGE;
	CHECK(hipMalloc(&memory, after), hipSuccess); /* all memory */
	CHECK(hipFree(memory), hipSuccess);
	CHECK(hipMalloc(&host, 4096), hipSuccess);
	memory = GARBAGE;
	CHECK(hipMalloc(&memory, after), hipErrorOutOfMemory);
	CHECK_TRUE(memory == NULL);
	CHECK(hipFree(host), hipSuccess);
	/* hipFree also accepts pinned memory. */
	CHECK(hipHostMalloc(&host, MIB, hipHostMallocMapped), hipSuccess);
	CHECK(hipFree(host), hipSuccess);
}

static void test_copy(void)
{
	unsigned char *host = malloc(MIB), *back = malloc(MIB);
	void *a, *b;

	for (size_t i = 0; i < MIB; i++)
		host[i] = (unsigned char)(i * 7 + i / 4096);
	CHECK(hipMalloc(&a, MIB), hipSuccess);
	CHECK(hipMalloc(&b, MIB), hipSuccess);
	CHECK(hipMemcpyHtoD(a, host, MIB), hipSuccess);
	CHECK(hipMemcpyDtoD(b, a, MIB), hipSuccess);
	CHECK(hipMemcpy(back, b, MIB, hipMemcpyDeviceToHost), hipSuccess);
	CHECK(memcmp(host, back, MIB), 0);
	CHECK(hipMemset((char *)b + 4096, 0x5a, 4096), hipSuccess);
	CHECK(hipMemsetD32((char *)b + 8192, 0x01020304, 2), hipSuccess);
	CHECK(hipMemcpyDtoH(back, b, MIB), hipSuccess);
	CHECK(back[4095], host[4095]);
	CHECK(back[4096], 0x5a);
	CHECK(back[8191], 0x5a);
	CHECK(back[8192], 4);
	CHECK(back[8199], 1);
	CHECK(back[8200], host[8200]);
	CHECK(hipMemcpy(back, host, 16, hipMemcpyHostToHost), hipSuccess);
	CHECK(hipMemcpy(back, host, 16, hipMemcpyHostToDevice), hipErrorInvalidValue);
	CHECK(hipMemcpy(a, host, MIB + 4096, hipMemcpyHostToDevice), hipErrorInvalidValue);
	CHECK(hipMemcpy(NULL, host, 16, hipMemcpyHostToDevice), hipErrorInvalidValue);
	CHECK(hipMemcpy(NULL, host, 0, hipMemcpyHostToDevice), hipSuccess);
	CHECK(hipFree(a), hipSuccess);
	CHECK(hipFree(b), hipSuccess);
	free(host);
	free(back);
}

static void test_pointer(void)
{
	hipPointerAttribute_t about;
	hipDeviceptr_t base;
	void *device, *host, *same;
	unsigned flags = 0;
	size_t size;
	int local;

	CHECK(hipMalloc(&device, MIB), hipSuccess);
	CHECK(hipPointerGetAttributes(&about, (char *)device + 100), hipSuccess);
	CHECK(about.memoryType, hipMemoryTypeDevice);
	CHECK(about.device, 0);
	CHECK_TRUE(about.devicePointer == (char *)device + 100 && !about.hostPointer && !about.isManaged);
	CHECK(hipMemGetAddressRange(&base, &size, (char *)device + MIB - 1), hipSuccess);
	CHECK_TRUE(base == device && size == MIB);
	CHECK(hipMemGetAddressRange(&base, &size, &local), hipErrorInvalidDevicePointer);
	CHECK(hipPointerGetAttributes(&about, &local), hipErrorInvalidValue);

	CHECK(hipHostMalloc(&host, MIB, hipHostMallocMapped | hipHostMallocNonCoherent), hipSuccess);
	CHECK(hipHostMalloc(&same, MIB, hipHostMallocCoherent | hipHostMallocNonCoherent),
	      hipErrorInvalidValue);
	CHECK(hipPointerGetAttributes(&about, host), hipSuccess);
	CHECK(about.memoryType, hipMemoryTypeHost);
	CHECK_TRUE(about.hostPointer == host && !about.isManaged);
	CHECK(hipHostGetDevicePointer(&same, host, 0), hipSuccess);
	CHECK_TRUE(same == host);
	CHECK(hipHostGetFlags(&flags, host), hipSuccess);
	CHECK(flags, hipHostMallocMapped | hipHostMallocNonCoherent);
	CHECK(hipHostFree(host), hipSuccess);
	CHECK(hipFree(device), hipSuccess);
}

/* Migrates with XNACK or on an APU. Elsewhere it is pinned memory that is reported as managed. */
static void test_managed(void)
{
	hipPointerAttribute_t about;
	void *memory, *plain;

	if (!attribute(hipDeviceAttributeManagedMemory)) {
		CHECK(hipMallocManaged(&memory, MIB, hipMemAttachGlobal), hipErrorNotSupported);
		return;
	}
	CHECK(hipMallocManaged(&memory, MIB, 0), hipErrorInvalidValue);
	CHECK(hipMallocManaged(&memory, MIB, hipMemAttachGlobal), hipSuccess);
	CHECK(hipPointerGetAttributes(&about, memory), hipSuccess);
	CHECK(about.memoryType, hipMemoryTypeHost);
	CHECK_TRUE(about.isManaged);
	CHECK(hipMemAdvise(memory, MIB, hipMemAdviseSetPreferredLocation, hipCpuDeviceId), hipSuccess);
	CHECK(hipMemAdvise(memory, MIB, hipMemAdviseSetAccessedBy, 0), hipSuccess);
	CHECK(hipMemAdvise(memory, MIB, (hipMemoryAdvise)77, 0), hipErrorInvalidValue);
	CHECK(hipMemPrefetchAsync(memory, MIB, 0, NULL), hipSuccess);
	CHECK(fill(memory, WORDS, 5, NULL), hipSuccess);
	CHECK(hipDeviceSynchronize(), hipSuccess);
	CHECK_TRUE(((uint64_t *)memory)[WORDS - 1] != 0);
	CHECK(hipFree(memory), hipSuccess);
	CHECK(hipMalloc(&plain, MIB), hipSuccess);
	CHECK(hipMemPrefetchAsync(plain, MIB, 0, NULL), hipErrorInvalidValue);
	CHECK(hipFree(plain), hipSuccess);
}

static void test_stream(void)
{
	uint64_t flag, *go;
	void *pinned, *parameters[] = {&flag};
	hipStream_t stream;
	hipEvent_t start, end;
	float milliseconds = -1;

	CHECK(hipHostMalloc(&pinned, 4096, hipHostMallocMapped), hipSuccess);
	go = pinned;
	*go = 0;
	flag = (uint64_t)(uintptr_t)pinned;
	CHECK(hipStreamCreateWithFlags(&stream, hipStreamNonBlocking), hipSuccess);
	CHECK(hipEventCreate(&start), hipSuccess);
	CHECK(hipEventCreate(&end), hipSuccess);
	CHECK(hipEventRecord(start, stream), hipSuccess);
	CHECK(launch("hold", parameters, NULL, stream), hipSuccess);
	CHECK(hipEventRecord(end, stream), hipSuccess);
	CHECK(hipStreamQuery(stream), hipErrorNotReady);
	CHECK(hipEventQuery(end), hipErrorNotReady);
	CHECK(hipStreamWaitEvent(NULL, end, 0), hipSuccess);
	__atomic_store_n(go, 1, __ATOMIC_SEQ_CST);
	CHECK(hipStreamSynchronize(NULL), hipSuccess);
	CHECK(hipStreamQuery(stream), hipSuccess);
	CHECK(hipEventElapsedTime(&milliseconds, start, end), hipSuccess);
	CHECK_TRUE(milliseconds >= 0);
	CHECK(hipEventDestroy(start), hipSuccess);
	CHECK(hipEventDestroy(end), hipSuccess);
	CHECK(hipStreamDestroy(stream), hipSuccess);
	CHECK(hipStreamSynchronize(stream), hipErrorInvalidHandle);
	CHECK(hipHostFree(pinned), hipSuccess);
}

static void test_module(void)
{
	static const char garbage[4096] = "this is no module";
	uint64_t packed[3] = {0, WORDS, 9}, word = 0;
	size_t size = sizeof(packed);
	void *extra[] = {(void *)1, packed, (void *)2, &size, (void *)3}, *memory;
	hipModule_t other;
	hipFunction_t found;

	CHECK(hipModuleLoad(&other, "/nonexistent"), hipErrorFileNotFound);
	CHECK(hipModuleLoadData(&other, garbage), hipErrorInvalidImage);
	CHECK(hipModuleGetFunction(&found, module, "no_such_kernel"), hipErrorNotFound);
	CHECK(hipMalloc(&memory, MIB), hipSuccess);
	packed[0] = (uint64_t)(uintptr_t)memory;
	CHECK(launch("fill", NULL, extra, NULL), hipSuccess);
	CHECK(hipMemcpy(&word, memory, sizeof(word), hipMemcpyDeviceToHost), hipSuccess);
	CHECK_TRUE(word != 0);
	CHECK(hipModuleLaunchKernel(kernel("fill"), 0, 1, 1, 1, 1, 1, 0, NULL, NULL, extra),
	      hipErrorInvalidValue);
	CHECK(hipFree(memory), hipSuccess);
	CHECK(hipModuleUnload(module), hipSuccess);
	CHECK(hipModuleUnload(module), hipErrorInvalidHandle);
}

static void test_reset(void)
{
	void *memory;

	CHECK(hipMalloc(&memory, MIB), hipSuccess);
	CHECK(hipDeviceReset(), hipSuccess);
	CHECK(hipFree(memory), hipErrorInvalidValue);
	CHECK(hipMalloc(&memory, MIB), hipSuccess);
	CHECK(hipFree(memory), hipSuccess);
	CHECK(hipDeviceReset(), hipSuccess);
	CHECK(hipDeviceReset(), hipSuccess);
}

int main(int argc, char **argv)
{
	if (argc < 2)
		return 64;
	CHECK(hipModuleLoad(&module, argv[1]), hipSuccess);
	if (check_failures)
		return check_result();
	test_errors();
	test_device();
	test_alloc();
	test_copy();
	test_pointer();
	test_managed();
	test_stream();
	test_module();
	test_reset();
	return check_result();
}
