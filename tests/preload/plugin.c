/* A plug-in of a program that itself knows nothing of CUDA: linked with the runtime, loaded RTLD_LOCAL. */
#include <stdlib.h>

#include "cudart_api.h"

#ifndef COUNT
#define COUNT 5
#define MIB 4
#endif
#define BYTES ((size_t)MIB << 20)

__attribute__((visibility("default"))) int plugin_run(void);

/* 0, the runtime's error, or -1 for wrong data. */
int plugin_run(void)
{
	void *buffer[COUNT];
	unsigned char *copy = malloc(BYTES);
	cudaError_t error = cudaSuccess;
	size_t free_bytes, total;

	for (int i = 0; !error && i < COUNT; i++) {
		error = cudaMalloc(&buffer[i], BYTES);
		if (!error)
			error = cudaMemset(buffer[i], i + 1, BYTES);
	}
	if (!error)
		error = cudaMemGetInfo(&free_bytes, &total);
	for (int i = 0; !error && i < COUNT; i++) {
		error = cudaMemcpy(copy, buffer[i], BYTES, cudaMemcpyDeviceToHost);
		for (size_t at = 0; !error && at < BYTES; at++)
			if (copy[at] != i + 1)
				return -1;
	}
	for (int i = 0; !error && i < COUNT; i++)
		error = cudaFree(buffer[i]);
	free(copy);
	return error;
}
