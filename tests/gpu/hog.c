/*
 * Makes real memory pressure: holds all but so many MiB of the device by plain allocations, says "ready", and keeps
 * them until its standard input closes. Never managed memory: asking for more of that than there is can hang a GPU.
 *
 * usage: hog MIB_TO_LEAVE
 */
#include <cuda_runtime_api.h>
#include <stdio.h>
#include <stdlib.h>

int main(int count, char **arguments)
{
	size_t leave = (count > 1 ? strtoull(arguments[1], NULL, 10) : 1024) << 20;
	size_t free_bytes, total, piece = (size_t)1 << 30;
	void *pointer;
	if (cudaFree(NULL) != cudaSuccess)
		return 1;
	/* Ever smaller pieces, the driver's own figure deciding when it is enough. */
	while (piece >= (size_t)2 << 20) {
		if (cudaMemGetInfo(&free_bytes, &total) != cudaSuccess)
			return 1;
		if (free_bytes < leave + piece || cudaMalloc(&pointer, piece) != cudaSuccess)
			piece /= 2;
	}
	cudaMemGetInfo(&free_bytes, &total);
	printf("ready: %zu MiB of %zu left\n", free_bytes >> 20, total >> 20);
	fflush(stdout);
	while (getchar() != EOF)
		;
	return 0;
}
