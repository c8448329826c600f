/*
 * A program on the CUDA driver that makes its calls on the smallest possible stacks.
 *
 *	small_stack thread   makes all calls in a thread of PTHREAD_STACK_MIN; prints the unused bytes
 *	small_stack handler  takes 4 MiB six times; then a signal handler on its own stack ends the process
 *
 * Memory behind a stack is inaccessible. So a stack that overflows ends the process by a signal.
 */
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "cuda_api.h"

#define COUNT 6
#define BYTES ((size_t)4 << 20)
#define HANDLER_STACK ((size_t)8 << 10) /* SIGSTKSZ, as it was a constant */

static CUcontext context;
static CUresult results[COUNT];

static void take(void)
{
	CUdeviceptr address;

	if (cuInit(0) || cuDevicePrimaryCtxRetain(&context, 0) || cuCtxSetCurrent(context))
		return;
	for (int i = 0; i < COUNT; i++)
		results[i] = cuMemAlloc_v2(&address, BYTES);
}

static void show(void)
{
	for (int i = 0; i < COUNT; i++)
		printf("alloc %d\n", (int)results[i]);
	fflush(stdout);
}

/* Memory of the stack that nobody has written to since is the thread's rest. */
#define PAINT 0x5a

static void *take_on_paint(void *rest)
{
	pthread_attr_t attributes;
	char *low;
	size_t size, left = 0;

	if (pthread_getattr_np(pthread_self(), &attributes) ||
	    pthread_attr_getstack(&attributes, (void **)&low, &size))
		return NULL;
	/* Below this frame and those of the loop and memset. */
	for (char *at = low; at < (char *)__builtin_frame_address(0) - 512; at++)
		*(volatile char *)at = PAINT;
	take();
	while (low[left] == PAINT)
		left++;
	*(size_t *)rest = left;
	return NULL;
}

static int in_thread(void)
{
	pthread_attr_t attributes;
	pthread_t thread;
	size_t left = 0;

	pthread_attr_init(&attributes);
	if (pthread_attr_setstacksize(&attributes, (size_t)sysconf(_SC_THREAD_STACK_MIN)) ||
	    pthread_create(&thread, &attributes, take_on_paint, &left))
		return 1;
	pthread_join(thread, NULL);
	show();
	fprintf(stderr, "left %zu\n", left);
	return 0;
}

static void leave(int number)
{
	_exit(7);
}

static int in_handler(void)
{
	struct sigaction action = {.sa_handler = leave, .sa_flags = SA_ONSTACK};
	char *pages =
	    mmap(NULL, 2 * HANDLER_STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	stack_t stack = {.ss_sp = pages + HANDLER_STACK, .ss_size = HANDLER_STACK};

	if (pages == MAP_FAILED || mprotect(pages, HANDLER_STACK, PROT_NONE) || sigaltstack(&stack, NULL) ||
	    sigaction(SIGUSR1, &action, NULL))
		return 1;
	take();
	show();
	raise(SIGUSR1);
	return 1;
}

int main(int argc, char **argv)
{
	if (argc != 2)
		return 64;
	return strcmp(argv[1], "thread") ? in_handler() : in_thread();
}
