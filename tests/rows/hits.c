/*
 * Threads submit work by every way in. Some end, and some still live when the program ends. The
 * program prints the calls of each function by each way, `SYMBOL WAY COUNT`. The exit line must
 * have the same counts.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "cuda_api.h"
#include "rows.h"

#define THREADS 8
#define GENERATIONS 3 /* the last one lives on */
#define CALLS 1000

static __typeof__(&cuMemcpyAsync) copy;
static __typeof__(&cuMemsetD8_v2) set;
static sem_t done;

static void *submit(void *argument)
{
	unsigned thread = (unsigned)(uintptr_t)argument;
	for (unsigned i = 0; i < CALLS + thread; i++) {
		cuLaunchKernel(NULL, 0, 0, 0, 0, 0, 0, 0, NULL, NULL, NULL);
		copy(0, 0, 0, NULL);
		if (i % 2)
			set(0, 0, 0);
	}
	sem_post(&done);
	bool stays = thread >= THREADS * (GENERATIONS - 1);
	while (stays) // NOLINT(bugprone-infinite-loop): until the process ends
		pause();
	return NULL;
}

static int run_threads(void)
{
	pthread_t threads[THREADS];
	for (unsigned generation = 0; generation < GENERATIONS; generation++) {
		for (unsigned i = 0; i < THREADS; i++)
			if (pthread_create(&threads[i], NULL, submit,
			                   (void *)(uintptr_t)(generation * THREADS + i)))
				return 1;
		for (unsigned i = 0; i < THREADS; i++)
			sem_wait(&done);
		for (unsigned i = 0; i < THREADS && generation < GENERATIONS - 1; i++)
			pthread_join(threads[i], NULL);
	}
	return 0;
}

int main(void)
{
	unsigned calls = 0, sets = 0;
	void *found = NULL;
	*(void **)&copy = dlsym(dlopen("libcuda.so.1", RTLD_LAZY), "cuMemcpyAsync");
	if (cuGetProcAddress_v2("cuMemsetD8", &found, 3020, 0, NULL) || rows_begin())
		return 1;
	*(void **)&set = found;
	sem_init(&done, 0, 0);
	if (run_threads())
		return 1;
	for (unsigned thread = 0; thread < THREADS * GENERATIONS; thread++) {
		calls += CALLS + thread;
		sets += (CALLS + thread) / 2;
	}
	printf("cuLaunchKernel link %u\ncuMemcpyAsync dlsym %u\ncuMemsetD8_v2 proc %u\n", calls, calls, sets);
	return 0;
}
