/*
 * Shared by the two programs of the corners: a context on device 0, a device that is filled by
 * pieces of 4 MiB, one line for each result.
 */
#ifndef CORNER_H
#define CORNER_H

#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "cuda_api.h"

#define BYTES ((size_t)4 << 20)

extern CUcontext corner_context; /* of the program, and for the plug-in */
static CUdeviceptr filled[16];

static CUresult say(const char *call, CUresult result)
{
	const char *name = "?";

	cuGetErrorName(result, &name);
	printf("%s %s\n", call, name);
	fflush(stdout);
	return result;
}

static bool start(void)
{
	return !cuInit(0) && !cuDevicePrimaryCtxRetain(&corner_context, 0) &&
	       !cuCtxSetCurrent(corner_context);
}

static void fill(int count)
{
	for (int i = 0; i < count; i++)
		say("fill", cuMemAlloc_v2(&filled[i], BYTES));
}

static void wait_until(atomic_int *state, int wanted)
{
	while (atomic_load(state) < wanted)
		sched_yield();
}

#endif
