/*
 * Allocations while streams capture. The program carries out its arguments and prints the driver's
 * answer to each.
 *
 *	begin:S:MODE end:S   stream S, a letter; MODE is the driver's: 0 global, 1 thread, 2 relaxed
 *	destroy:S
 *	status:S             prints cuStreamIsCapturing's answer: 0 no, 1 yes, 2 invalidated
 *	blocking             later streams wait for the default stream, and it waits for them
 *	join:S:T             stream T joins the capture of S by an event
 *	mode:MODE            exchanges this thread's mode
 *	alloc:MIB look free  plain memory; look (reads it) and free are of the last one
 *	reset                ends the device's primary context, and begins another
 *	foreign              another context's stream begins a relaxed capture; that context ends
 *	thread:WORD          carries out the word on another thread, always the same one
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <semaphore.h>

#include "cuda_api.h"

static CUcontext context;
static CUstream streams[26];
static unsigned stream_flags = 1; /* CU_STREAM_NON_BLOCKING */
static CUdeviceptr last;
static size_t last_bytes;

static CUstream *stream_of(const char *letter)
{
	CUstream *stream = &streams[letter[0] - 'a'];

	if (!*stream && cuStreamCreate(stream, stream_flags))
		exit(64);
	return stream;
}

static CUresult join(CUstream from, CUstream to)
{
	CUevent event;
	CUresult result = cuEventCreate(&event, 0);

	if (!result)
		result = cuEventRecord(event, from);
	return result ? result : cuStreamWaitEvent(to, event, 0);
}

static CUresult stream_word(const char *word, const char *letter, const char *more)
{
	CUstream *stream = stream_of(letter);
	CUstreamCaptureStatus status;
	CUgraph graph;
	CUresult result;

	if (!strcmp(word, "begin"))
		return cuStreamBeginCapture_v2(*stream, (CUstreamCaptureMode)atoi(more));
	if (!strcmp(word, "end"))
		return cuStreamEndCapture(*stream, &graph);
	if (!strcmp(word, "join"))
		return join(*stream, *stream_of(more));
	if (!strcmp(word, "destroy")) {
		result = cuStreamDestroy_v2(*stream);
		*stream = NULL;
		return result;
	}
	if (strcmp(word, "status"))
		exit(64);
	result = cuStreamIsCapturing(*stream, &status);
	printf("status %d\n", status);
	return result;
}

/* The memory is there: its bytes can be read. */
static CUresult foreign(void)
{
	CUcontext other;
	CUstream stream;
	CUresult result = cuCtxCreate_v2(&other, 0, 0);

	if (result || (result = cuStreamCreate(&stream, 1)) || (result = cuCtxSetCurrent(context)) ||
	    (result = cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_RELAXED)))
		return result;
	return cuCtxDestroy_v2(other);
}

static CUresult look(void)
{
	void *copy = malloc(last_bytes);
	CUresult result = cuMemcpyDtoH_v2(copy, last, last_bytes);

	free(copy);
	return result;
}

static CUresult do_word(const char *word, const char *first, const char *second)
{
	if (!strcmp(word, "alloc")) {
		last_bytes = (size_t)atoi(first) << 20;
		return cuMemAlloc_v2(&last, last_bytes);
	}
	if (!strcmp(word, "look"))
		return look();
	if (!strcmp(word, "foreign"))
		return foreign();
	if (!strcmp(word, "reset")) {
		memset(streams, 0, sizeof(streams));
		return cuDevicePrimaryCtxReset_v2(0) || cuDevicePrimaryCtxRetain(&context, 0) ||
		               cuCtxSetCurrent(context)
		           ? CUDA_ERROR_UNKNOWN
		           : CUDA_SUCCESS;
	}
	if (!strcmp(word, "blocking")) {
		stream_flags = 0;
		return CUDA_SUCCESS;
	}
	if (!strcmp(word, "free"))
		return cuMemFree_v2(last);
	if (!strcmp(word, "mode")) {
		CUstreamCaptureMode mode = (CUstreamCaptureMode)atoi(first);
		return cuThreadExchangeStreamCaptureMode(&mode);
	}
	return stream_word(word, first, second);
}

static void run(const char *text)
{
	char copy[256], *place = NULL;
	const char *name = "?";

	snprintf(copy, sizeof(copy), "%s", text);
	char *word = strtok_r(copy, ":", &place), *first = strtok_r(NULL, ":", &place);
	cuGetErrorName(do_word(word, first, strtok_r(NULL, ":", &place)), &name);
	printf("%s %s\n", text, name);
	fflush(stdout);
}

static sem_t asked, answered;
static const char *question;

static void *other(void *unused)
{
	cuCtxSetCurrent(context);
	for (;;) {
		sem_wait(&asked);
		if (!question)
			return NULL;
		run(question);
		sem_post(&answered);
	}
}

int main(int argc, char **argv)
{
	pthread_t thread;

	sem_init(&asked, 0, 0);
	sem_init(&answered, 0, 0);
	if (cuInit(0) || cuDevicePrimaryCtxRetain(&context, 0) || cuCtxSetCurrent(context) ||
	    pthread_create(&thread, NULL, other, NULL))
		return 64;
	for (int i = 1; i < argc; i++) {
		if (strncmp(argv[i], "thread:", 7)) {
			run(argv[i]);
			continue;
		}
		question = argv[i] + 7;
		sem_post(&asked);
		sem_wait(&answered);
	}
	question = NULL;
	sem_post(&asked);
	pthread_join(thread, NULL);
	return 0;
}
