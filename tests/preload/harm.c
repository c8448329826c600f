/*
 * A program that does harm while its memory moves. It carries out its arguments, one call for each
 * word, and prints `WORD RESULT` for each. harm_front.c is between it and the driver.
 *
 *	alloc:A:SIZE free:A  block A, a letter, of SIZE MiB
 *	small:COUNT          COUNT blocks of 1 MiB that stay
 *	fill:A verify:A
 *	work:COUNT:US        COUNT submissions, with US microseconds after each
 *	event:COUNT:US       the same with events
 *	busy calm            the device has work that does not end before calm
 *	refuse:CALL accept   every such call is refused from now on (device, host: cuMemCreate)
 *	count:CALL           prints the number of such calls since the last count (copy, mark …)
 *	waited               prints the milliseconds since the last such question
 *	inside:CALL:WHAT     once, inside such a call:
 *	                     nested: submits work by the exported name; fork: a signal handler forks;
 *	                     capture, global: another thread begins a capture (relaxed, global);
 *	                     set_node, copy_node, any_node: another thread makes
 *	                     a node that uses the end of block A
 *	captured             the end of that capture; the result of the node
 *	cancelled:COUNT      a thread with a pending cancellation makes COUNT small blocks
 *
 * Time passes by words alone, and while a thread sleeps. A look at the clock costs a microsecond. A
 * signal ends an endless wait. Exit status: 0; 1 data wrong; 64 usage.
 */
#include "harm.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define MIB ((size_t)1 << 20)
#define PATIENCE_S 20

CUcontext harm_context;
CUdeviceptr harm_dot;

static CUstream stream;
static struct harm_block blocks[26];
static bool wrong;

struct harm_block harm_block_a(void)
{
	return blocks[0];
}

/* -- time ------------------------------------------------------------------------------------------------ */

static _Atomic uint64_t now_ns = 1000000000;

/* In place of libc's, for the library, too. */
int clock_gettime(clockid_t clock, struct timespec *time)
{
	if (clock != CLOCK_MONOTONIC)
		return (int)syscall(SYS_clock_gettime, clock, time);
	uint64_t ns = atomic_fetch_add(&now_ns, 1000);
	*time = (struct timespec){.tv_sec = (time_t)(ns / 1000000000), .tv_nsec = (long)(ns % 1000000000)};
	return 0;
}

int nanosleep(const struct timespec *span, struct timespec *left)
{
	atomic_fetch_add(&now_ns, (uint64_t)span->tv_sec * 1000000000 + (uint64_t)span->tv_nsec);
	return (int)syscall(SYS_nanosleep, span, left);
}

static void waited(void)
{
	static uint64_t before = 1000000000;
	uint64_t now = atomic_load(&now_ns);

	printf("waited %llu\n", (unsigned long long)(now - before) / 1000000);
	before = now;
}

/* -- a thread that is to be cancelled ---------------------------------------------------------------------- */

static CUresult small(uint64_t count)
{
	CUresult result = CUDA_SUCCESS;
	CUdeviceptr address;

	for (uint64_t i = 0; i < count && !result; i++)
		result = cuMemAlloc_v2(&address, MIB);
	return result;
}

static CUresult small_result;

static void *cancelled_run(void *data)
{
	cuCtxSetCurrent(harm_context);
	pthread_cancel(
	    pthread_self()); /* taken at a cancellation point, which none of the driver's calls is */
	small_result = small(*(uint64_t *)data);
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
	return data;
}

static CUresult cancelled(uint64_t count)
{
	pthread_t thread;
	void *end;

	if (pthread_create(&thread, NULL, cancelled_run, &count) || pthread_join(thread, &end))
		return CUDA_ERROR_UNKNOWN;
	return end == PTHREAD_CANCELED ? CUDA_ERROR_NOT_READY : small_result;
}

/* -- words ----------------------------------------------------------------------------------------------- */

static pthread_mutex_t endless = PTHREAD_MUTEX_INITIALIZER;

static void wants_mutex(void *data)
{
	pthread_mutex_lock(&endless);
	pthread_mutex_unlock(&endless);
}

static CUresult submit(CUdeviceptr address, unsigned char value, size_t bytes)
{
	CUresult result = cuMemsetD8_v2(address, value, bytes);

	return result ? result : cuCtxSynchronize();
}

static CUresult repeat(bool work, uint64_t count, uint64_t us)
{
	CUresult result = CUDA_SUCCESS;
	CUevent event;

	for (uint64_t i = 0; i < count && !result; i++) {
		if (work)
			result = submit(harm_dot, 1, 64);
		else if (!(result = cuEventCreate(&event, 2)))
			result = cuEventDestroy_v2(event);
		atomic_fetch_add(&now_ns, us * 1000);
	}
	return result;
}

static CUresult verify(const struct harm_block *block)
{
	unsigned char *copy = malloc(block->bytes), value = (unsigned char)(block - blocks + 1);
	CUresult result = cuMemcpyDtoH_v2(copy, block->address, block->bytes);

	for (size_t i = 0; i < block->bytes && !result; i++)
		wrong = wrong || copy[i] != value;
	free(copy);
	return result;
}

static CUresult block_word(const char *word, struct harm_block *block, uint64_t number)
{
	if (!strcmp(word, "alloc")) {
		block->bytes = number * MIB;
		return cuMemAlloc_v2(&block->address, block->bytes);
	}
	if (!strcmp(word, "free"))
		return cuMemFree_v2(block->address);
	if (!strcmp(word, "fill"))
		return submit(block->address, (unsigned char)(block - blocks + 1), block->bytes);
	if (!strcmp(word, "verify"))
		return verify(block);
	exit(64);
}

static enum harm_call call_of(const char *name)
{
	for (unsigned i = 0; name && i < HARM_CALLS; i++)
		if (!strcmp(name, harm_names[i]))
			return (enum harm_call)i;
	exit(64);
}

static CUresult call_word(const char *word, enum harm_call call, const char *second)
{
	if (!strcmp(word, "inside") && second)
		return harm_arm(call, second);
	if (!strcmp(word, "refuse"))
		harm_refuse(call);
	else if (!strcmp(word, "count"))
		printf("count %s %u\n", harm_names[call], harm_count(call));
	else
		exit(64);
	return CUDA_SUCCESS;
}

static CUresult plain_word(const char *word)
{
	if (!strcmp(word, "busy")) {
		pthread_mutex_lock(&endless);
		return cuLaunchHostFunc(stream, wants_mutex, NULL);
	}
	if (!strcmp(word, "calm")) {
		pthread_mutex_unlock(&endless);
		return cuStreamSynchronize(stream);
	}
	if (!strcmp(word, "accept"))
		harm_accept();
	else if (!strcmp(word, "waited"))
		waited();
	else if (!strcmp(word, "captured"))
		return harm_ended();
	else
		exit(64);
	return CUDA_SUCCESS;
}

static CUresult do_word(const char *word, const char *first, const char *second)
{
	uint64_t one = first ? strtoull(first, NULL, 10) : 0, two = second ? strtoull(second, NULL, 10) : 0;

	if (!first)
		return plain_word(word);
	if (!strcmp(word, "work") || !strcmp(word, "event"))
		return repeat(word[0] == 'w', one, two);
	if (!strcmp(word, "small"))
		return small(one);
	if (!strcmp(word, "cancelled"))
		return cancelled(one);
	if (!first[1])
		return block_word(word, &blocks[(first[0] - 'a') % 26u], two);
	return call_word(word, call_of(first), second);
}

int main(int argc, char **argv)
{
	alarm(PATIENCE_S);
	if (cuInit(0) || cuDevicePrimaryCtxRetain(&harm_context, 0) || cuCtxSetCurrent(harm_context) ||
	    cuStreamCreate(&stream, 1) || cuMemAlloc_v2(&harm_dot, 4096))
		return 64;
	for (int i = 1; i < argc; i++) {
		char copy[256], *place = NULL;
		const char *name = "?";

		snprintf(copy, sizeof(copy), "%s", argv[i]);
		const char *word = strtok_r(copy, ":", &place), *first = strtok_r(NULL, ":", &place);
		cuGetErrorName(do_word(word, first, strtok_r(NULL, ":", &place)), &name);
		printf("%s %s\n", argv[i], name);
		fflush(stdout);
	}
	return wrong;
}
