/* The runtime's results without a driver, and errors; same_without_gpu.sh compares two runtimes. */
#include <stdio.h>

#include "cudart_api.h"

#define SAY(call) printf("%s %d\n", #call, (int)(call))

int main(void)
{
	void *pointer = NULL;
	int value = 7;

	for (int i = 0; i < 1100; i++)
		printf("%d %s: %s\n", i, cudaGetErrorName((cudaError_t)i),
		       cudaGetErrorString((cudaError_t)i));
	SAY(cudaRuntimeGetVersion(&value));
	SAY(value);
	SAY(cudaPeekAtLastError());
	SAY(cudaGetDeviceCount(&value));
	SAY(value);
	SAY(cudaGetLastError());
	SAY(cudaGetLastError());
	SAY(cudaMalloc(&pointer, 16));
	SAY(cudaMalloc(NULL, 16));
	SAY(cudaMalloc(&pointer, 0));
	SAY(cudaFree(NULL));
	SAY(cudaMallocHost(&pointer, 16));
	SAY(cudaDriverGetVersion(&value));
	SAY(value);
	SAY(cudaGetDevice(&value));
	SAY(cudaSetDevice(0));
	SAY(cudaMemGetInfo(NULL, NULL));
	SAY(cudaDeviceSynchronize());
	SAY(cudaGetDeviceCount(NULL));
	SAY(cudaPeekAtLastError());
	return 0;
}
