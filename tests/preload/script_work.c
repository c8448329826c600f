/* The work of script.c's words. */
#include "pattern.h"
#include "script.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

const char *script_kernels;
bool script_wrong, script_async;

static uint64_t seeds;

/* Pinned words that kernels and host share. */
struct shared {
	_Atomic uint64_t go;
	uint64_t mismatches;
};

/* A context's kernels: loaded at its first use, lost with it. */
static struct loaded {
	CUcontext context;
	CUfunction fill, verify, hold_fill;
	struct shared *shared;
} loaded;

static CUresult load(void)
{
	CUcontext now;
	CUmodule module;
	void *pinned;
	CUresult result = cuCtxGetCurrent(&now);

	if (result || now == loaded.context)
		return result;
	loaded = (struct loaded){0};
	if ((result = cuModuleLoad(&module, script_kernels)) ||
	    (result = cuModuleGetFunction(&loaded.fill, module, "fill")) ||
	    (result = cuModuleGetFunction(&loaded.verify, module, "verify")) ||
	    (result = cuModuleGetFunction(&loaded.hold_fill, module, "hold_fill")) ||
	    (result = cuMemHostAlloc(&pinned, sizeof(*loaded.shared), CU_MEMHOSTALLOC_DEVICEMAP)))
		return result;
	loaded.shared = pinned;
	loaded.context = now;
	return CUDA_SUCCESS;
}

void script_end(void)
{
	if (loaded.context)
		cuMemFreeHost(loaded.shared);
}

void script_unload(CUcontext gone)
{
	if (loaded.context == gone)
		loaded.context = NULL;
}

static CUresult launch(CUfunction function, void **parameters)
{
	return cuLaunchKernel(function, 4, 1, 1, 64, 1, 1, 0, NULL, parameters, NULL);
}

CUresult script_fill(struct group *group)
{
	CUresult result = load();

	group->seed = seeds;
	seeds += group->count;
	for (uint64_t i = 0; !result && i < group->count; i++) {
		uint64_t words = group->bytes / 8, seed = group->seed + i;
		void *parameters[] = {&group->address[i], &words, &seed};

		result = launch(loaded.fill, parameters);
	}
	return result ? result : cuCtxSynchronize();
}

static CUresult verify_on_host(struct group *group, uint64_t i, uint64_t *copy)
{
	CUresult result = cuMemcpyDtoH_v2(copy, group->address[i], group->bytes);

	for (uint64_t word = 0; !result && word < group->bytes / 8; word++)
		loaded.shared->mismatches += copy[word] != pattern(word, group->seed + i);
	return result;
}

CUresult script_verify(struct group *group)
{
	CUresult result = load();
	uint64_t *copy = malloc(group->bytes);

	if (!result)
		loaded.shared->mismatches = 0;
	for (uint64_t i = 0; !result && i < group->count; i++) {
		uint64_t words = group->bytes / 8, seed = group->seed + i,
		         out = (uint64_t)&loaded.shared->mismatches;
		void *parameters[] = {&group->address[i], &words, &seed, &out};

		result = launch(loaded.verify, parameters);
	}
	if (!result)
		result = cuCtxSynchronize();
	for (uint64_t i = 0; !result && i < group->count; i++)
		result = verify_on_host(group, i, copy);
	free(copy);
	if (!result && loaded.shared->mismatches) {
		printf("wrong words: %llu\n", (unsigned long long)loaded.shared->mismatches);
		script_wrong = true;
	}
	return result;
}

CUresult script_alloc(struct group *group, uint64_t bytes, uint64_t count)
{
	*group = (struct group){.bytes = bytes, .address = calloc(count, sizeof(CUdeviceptr))};
	cuCtxGetCurrent(&group->context);
	for (; group->count < count; group->count++) {
		CUresult result = cuMemAlloc_v2(&group->address[group->count], bytes);

		if (result) {
			printf("failed after %llu\n", (unsigned long long)group->count);
			return result;
		}
	}
	return CUDA_SUCCESS;
}

CUresult script_free(struct group *group)
{
	CUresult first = CUDA_SUCCESS;

	for (uint64_t i = 0; i < group->count; i++) {
		CUresult result =
		    script_async ? cuMemFreeAsync(group->address[i], NULL) : cuMemFree_v2(group->address[i]);

		first = first ? first : result;
	}
	return first;
}

static CUresult thread_result;

static void *release_in_thread(void *data)
{
	struct group *group = data;

	thread_result = cuCtxSetCurrent(group->context);
	if (!thread_result)
		thread_result = script_free(group);
	return NULL;
}

CUresult script_free_in_thread(struct group *group)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, release_in_thread, group))
		return CUDA_ERROR_UNKNOWN;
	pthread_join(thread, NULL);
	return thread_result;
}

static struct shared *held;

static void *let_go(void *entered)
{
	while (!atomic_load((atomic_bool *)entered))
		sched_yield();
	/* After so many turns of other threads, a free that does not wait has surely happened. */
	for (int i = 0; i < 2000; i++)
		sched_yield();
	atomic_store(&held->go, 1);
	return NULL;
}

/* The kernel runs in the allocation's context; the free comes from the one that is current now. */
CUresult script_free_held(struct group *group)
{
	CUcontext now;
	atomic_bool entered = false;
	pthread_t thread;
	uint64_t words = group->bytes / 8, seed = 1;
	CUresult result = cuCtxGetCurrent(&now);

	if (!result)
		result = cuCtxSetCurrent(group->context);
	if (!result)
		result = load();
	if (result)
		return result;
	held = loaded.shared;
	atomic_store(&held->go, 0);
	uint64_t flag = (uint64_t)&held->go;
	void *parameters[] = {&flag, &group->address[0], &words, &seed};
	result = launch(loaded.hold_fill, parameters);
	cuCtxSetCurrent(now);
	if (result || pthread_create(&thread, NULL, let_go, &entered))
		return result ? result : CUDA_ERROR_UNKNOWN;
	atomic_store(&entered, true);
	result = script_free(group);
	printf("the kernel was %s when the free returned\n", atomic_load(&held->go) ? "done" : "held");
	pthread_join(thread, NULL);
	cuCtxSetCurrent(group->context);
	CUresult after = cuCtxSynchronize(); /* a kernel whose memory went away has broken its context */
	cuCtxSetCurrent(now);
	return result ? result : after;
}
