/*
 * Exports a block by a legacy handle, and ends by the end of its last thread: main ends by
 * pthread_exit while another thread lives. Prints the result of the export.
 */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "cuda_api.h"

#define BYTES ((size_t)8 << 20)

static pthread_t first;

static void *last(void *unused)
{
	pthread_join(first, NULL);
	puts("the last thread");
	fflush(stdout);
	return NULL;
}

int main(void)
{
	pthread_t thread;
	CUcontext context;
	CUdeviceptr at;
	CUipcMemHandle handle;

	if (cuInit(0) || cuDevicePrimaryCtxRetain(&context, 0) || cuCtxSetCurrent(context) ||
	    cuMemAlloc_v2(&at, BYTES))
		return 1;
	printf("export %d\n", cuIpcGetMemHandle(&handle, at));
	first = pthread_self();
	if (pthread_create(&thread, NULL, last, NULL) || pthread_detach(thread))
		return 1;
	pthread_exit(NULL);
}
