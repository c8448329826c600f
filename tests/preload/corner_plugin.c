/*
 * For corner.c: a library whose constructor allocates device memory, while the loader's lock is held for it.
 */
#include <stdatomic.h>
#include <stdio.h>

#include "cuda_api.h"

extern CUcontext corner_context;
extern atomic_int
    corner_moment; /* 2: this constructor runs; a thread inside its first allocation waits for it */

__attribute__((constructor)) static void allocate(void)
{
	CUdeviceptr address;

	atomic_store(&corner_moment, 2);
	cuCtxSetCurrent(corner_context);
	printf("constructor %d\n", cuMemAlloc_v2(&address, 4096));
	fflush(stdout);
}
