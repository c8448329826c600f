/* HIP's results without a device, and error names; same_without_gpu.sh compares two runtimes. */
#include <stdio.h>

#include <hip/hip_runtime_api.h>

#define SAY(call) printf("%s %d\n", #call, (int)(call))

int main(void)
{
	hipDeviceProp_t properties;
	hipPointerAttribute_t about;
	void *pointer = NULL;
	hipStream_t stream;
	hipModule_t module;
	int value = 7;

	for (int i = 0; i < 1100; i++)
		printf("%d %s: %s\n", i, hipGetErrorName((hipError_t)i), hipGetErrorString((hipError_t)i));
	SAY(hipGetDeviceCount(&value));
	SAY(hipGetLastError());
	SAY(hipGetDeviceCount(NULL));
	SAY(hipInit(0));
	SAY(hipMalloc(&pointer, 16));
	SAY(hipMalloc(NULL, 16));
	SAY(hipMalloc(&pointer, 0));
	SAY(hipFree(NULL));
	SAY(hipFree(&value));
	SAY(hipHostMalloc(&pointer, 16, 0));
	SAY(hipHostFree(NULL));
	SAY(hipMallocManaged(&pointer, 16, hipMemAttachGlobal));
	SAY(hipMemGetInfo(NULL, NULL));
	SAY(hipMemcpy(&value, &value, 4, hipMemcpyHostToHost));
	SAY(hipPointerGetAttributes(&about, &value));
	SAY(hipSetDevice(0));
	SAY(hipGetDevice(&value));
	SAY(hipGetDeviceProperties(&properties, 0));
	SAY(hipDeviceGetAttribute(&value, hipDeviceAttributeManagedMemory, 0));
	SAY(hipDriverGetVersion(&value));
	SAY(value);
	SAY(hipRuntimeGetVersion(&value));
	SAY(value);
	SAY(hipStreamCreate(&stream));
	SAY(hipStreamSynchronize(NULL));
	SAY(hipModuleLoad(&module, "/nonexistent"));
	SAY(hipDeviceSynchronize());
	SAY(hipDeviceReset());
	SAY(hipPeekAtLastError());
	return 0;
}
