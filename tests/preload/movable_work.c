/*
 * Words about work in flight:
 *
 *	hold:A go             a kernel that waits for go and then fills A; go ends all waits
 *	await wake            the stream waits for a value in memory; wake writes it
 *	callback lock unlock  a host function on the stream waits for a mutex of the program's thread
 *	flood:COUNT           a thread launches kernels behind the stream: COUNT go, one is stuck
 *	pageable:A            a thread copies pageable memory to A and back, behind the stream's work
 *	elsewhere:A           a thread launches the kernel of hold on its per-thread default stream
 *	on:KIND               the stream is a new one that is blocking, the legacy or the thread's default one
 *	drop                  destroys the stream, whatever is in it; then the stream is a new one
 *	begin:MODE end        a capture of the stream
 *	join                  waits for the threads, then for the stream
 *	peer:A                a context of device 1 may use A: its kernel waits for go and then fills A
 *	across:A              a context of device 1 copies half of A behind a kernel that waits for go, without
 *	                      peer access.
 *	unpeer                waits for that context
 */
#include "movable.h"

#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static CUcontext other;
static CUstream other_stream;

/* A thread of the program that submits work, and may be stuck in doing so. */
static struct helper {
	pthread_t thread;
	bool runs;
	atomic_int id; /* of the thread */
	_Atomic uint64_t done;
	uint64_t count;
	struct block *block;
	CUresult result;
} flood, pageable, elsewhere;

/* -- kernels --------------------------------------------------------------------------------------------- */

static CUresult hold_on(CUstream stream, CUfunction function, struct block *block)
{
	uint64_t words = block->bytes / 8, flag = (uintptr_t)&movable_shared->go;
	void *parameters[] = {&flag, &block->address, &words, &block->seed};

	block->seed = movable_seed();
	atomic_store(&movable_shared->go, 0);
	return movable_launch(function, stream, parameters);
}

/* Makes the context of device 1 current. */
static CUresult enter_other(CUfunction *function)
{
	CUmodule module;
	CUresult result;

	if (other)
		return cuCtxSetCurrent(other);
	if ((result = cuCtxCreate_v2(&other, 0, 1)) || (result = cuModuleLoad(&module, movable_kernels)) ||
	    (result = cuModuleGetFunction(function, module, "hold_fill")))
		return result;
	return cuStreamCreate(&other_stream, 1);
}

static CUresult peer(struct block *block)
{
	static CUfunction function;
	CUresult result = enter_other(&function);

	if (!result)
		result = cuCtxEnablePeerAccess(movable_context, 0);
	if (!result || result == CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED)
		result = hold_on(other_stream, function, block);
	return result ? result : cuCtxSetCurrent(movable_context);
}

static CUresult across(struct block *block)
{
	static CUfunction function;
	static struct block copy;
	CUresult result = enter_other(&function);

	copy.bytes = block->bytes / 2;
	if (result || (result = cuMemAlloc_v2(&copy.address, copy.bytes)) ||
	    (result = hold_on(other_stream, function, &copy)) ||
	    (result = cuMemcpyPeerAsync(copy.address, other, block->address, movable_context, copy.bytes,
	                                other_stream)))
		return result;
	return cuCtxSetCurrent(movable_context);
}

static void wants_mutex(void *data)
{
	pthread_mutex_lock(&mutex);
	pthread_mutex_unlock(&mutex);
}

/* -- threads --------------------------------------------------------------------------------------------- */

static void begins(struct helper *helper)
{
	cuCtxSetCurrent(movable_context);
	atomic_store(&helper->id, (int)syscall(SYS_gettid));
}

static void *flood_run(void *data)
{
	uint64_t words = 1, address = (uintptr_t)&movable_shared->sum, seed = 1;
	void *parameters[] = {&address, &words, &seed};

	begins(&flood);
	for (uint64_t i = 0; i < 2 * flood.count && !flood.result; i++) {
		flood.result = movable_launch(movable_fill, movable_stream, parameters);
		atomic_fetch_add(&flood.done, 1);
	}
	return NULL;
}

static void *pageable_run(void *data)
{
	struct block *block = pageable.block;
	uint64_t words = block->bytes / 8, *from = malloc(block->bytes), *to = calloc(words, 8), wrong = 0;

	begins(&pageable);
	for (uint64_t i = 0; i < words; i++)
		from[i] = pattern(i, block->seed);
	pageable.result = cuMemcpyHtoDAsync_v2(block->address, from, block->bytes, movable_stream);
	if (!pageable.result)
		pageable.result = cuMemcpyDtoHAsync_v2(to, block->address, block->bytes, movable_stream);
	if (!pageable.result)
		pageable.result = cuStreamSynchronize(movable_stream);
	for (uint64_t i = 0; i < words; i++)
		wrong += to[i] != from[i];
	if (wrong) {
		printf("wrong words: %llu\n", (unsigned long long)wrong);
		movable_wrong = true;
	}
	free(from);
	free(to);
	return NULL;
}

static void *elsewhere_run(void *data)
{
	begins(&elsewhere);
	elsewhere.result = hold_on(CU_STREAM_PER_THREAD, movable_hold_fill, elsewhere.block);
	if (!elsewhere.result)
		elsewhere.result = cuStreamSynchronize(CU_STREAM_PER_THREAD);
	return NULL;
}

static char state_of(int thread)
{
	char path[64], text[256] = "", *end;

	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", thread);
	FILE *file = fopen(path, "re");
	if (!file)
		return '?';
	if (!fgets(text, sizeof(text), file))
		text[0] = 0;
	fclose(file);
	end = strrchr(text, ')');
	return end ? end[2] : '?';
}

/* Returns when the thread has made `done` calls and sleeps in the next. */
static CUresult start(struct helper *helper, void *(*run)(void *), uint64_t done)
{
	if (pthread_create(&helper->thread, NULL, run, NULL))
		return CUDA_ERROR_UNKNOWN;
	helper->runs = true;
	while (!atomic_load(&helper->id) || atomic_load(&helper->done) < done ||
	       state_of(atomic_load(&helper->id)) != 'S')
		sched_yield();
	return CUDA_SUCCESS;
}

static CUresult join(void)
{
	struct helper *helpers[] = {&flood, &pageable, &elsewhere};
	CUresult result = CUDA_SUCCESS;

	for (unsigned i = 0; i < 3; i++) {
		if (!helpers[i]->runs)
			continue;
		pthread_join(helpers[i]->thread, NULL);
		helpers[i]->runs = false;
		result = result ? result : helpers[i]->result;
	}
	return result ? result : cuStreamSynchronize(movable_stream);
}

/* -- other streams --------------------------------------------------------------------------------------- */

static CUresult use_stream(const char *kind)
{
	if (!strcmp(kind, "legacy"))
		movable_stream = CU_STREAM_LEGACY;
	else if (!strcmp(kind, "thread"))
		movable_stream = CU_STREAM_PER_THREAD;
	else
		return cuStreamCreate(&movable_stream, 0);
	return CUDA_SUCCESS;
}

static CUresult drop_stream(void)
{
	CUresult result = cuStreamDestroy_v2(movable_stream);
	return result ? result : cuStreamCreate(&movable_stream, 1);
}

/* -- words ----------------------------------------------------------------------------------------------- */

static CUresult plain_word(const char *word, const char *first)
{
	CUgraph graph;

	if (!strcmp(word, "go")) {
		atomic_store(&movable_shared->go, 1);
		return CUDA_SUCCESS;
	}
	if (!strcmp(word, "on") && first)
		return use_stream(first);
	if (!strcmp(word, "drop"))
		return drop_stream();
	if (!strcmp(word, "await")) {
		atomic_store(&movable_shared->value, 0);
		return cuStreamWaitValue32_v2(movable_stream, (uintptr_t)&movable_shared->value, 1,
		                              1 /* EQ */);
	}
	if (!strcmp(word, "wake")) {
		atomic_store(&movable_shared->value, 1);
		return CUDA_SUCCESS;
	}
	if (!strcmp(word, "callback"))
		return cuLaunchHostFunc(movable_stream, wants_mutex, NULL);
	if (!strcmp(word, "lock") || !strcmp(word, "unlock"))
		return (word[0] == 'l' ? pthread_mutex_lock : pthread_mutex_unlock)(&mutex)
		           ? CUDA_ERROR_UNKNOWN
		           : CUDA_SUCCESS;
	if (!strcmp(word, "begin") && first)
		return cuStreamBeginCapture_v2(movable_stream, (CUstreamCaptureMode)atoi(first));
	if (!strcmp(word, "end"))
		return cuStreamEndCapture(movable_stream, &graph);
	if (!strcmp(word, "join"))
		return join();
	cuCtxSetCurrent(other);
	CUresult result = cuStreamSynchronize(other_stream);
	cuCtxSetCurrent(movable_context);
	return result;
}

bool movable_work_word(const char *word, const char *first, const char *second, CUresult *result)
{
	static const char *const plain[] = {"go",    "await", "wake", "callback", "lock", "unlock",
	                                    "begin", "end",   "join", "unpeer",   "on",   "drop"};
	struct block *block = &movable_blocks[first && first[0] >= 'a' ? (first[0] - 'a') % 26u : 0];

	for (unsigned i = 0; i < sizeof(plain) / sizeof(*plain); i++) {
		if (strcmp(word, plain[i]))
			continue;
		*result = plain_word(word, first);
		return true;
	}
	if (!strcmp(word, "hold")) {
		*result = hold_on(movable_stream, movable_hold_fill, block);
	} else if (!strcmp(word, "peer")) {
		*result = peer(block);
	} else if (!strcmp(word, "across")) {
		*result = across(block);
	} else if (!strcmp(word, "flood") && first) {
		flood.count = strtoull(first, NULL, 10);
		*result = start(&flood, flood_run, flood.count);
	} else if (!strcmp(word, "pageable")) {
		block->seed = movable_seed();
		pageable.block = block;
		*result = start(&pageable, pageable_run, 0);
	} else if (!strcmp(word, "elsewhere")) {
		elsewhere.block = block;
		*result = start(&elsewhere, elsewhere_run, 0);
	} else {
		return false;
	}
	return true;
}
