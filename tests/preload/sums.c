/*
 * Small memory in stream order that fits, and large plain memory between it, for the log's sums.
 *
 *	sums THREADS ROUNDS [WORD]
 *
 * Each thread holds HELD allocations and replaces one in each round. Every STEP rounds it takes and
 * gives large memory. In the end it frees all but KEPT. Words: `oom` then asks for more than there is;
 * `fork` does all of it in a child, too, and after the fork in the parent again; `kill` is killed.
 * Prints `PID ALLOCS FREES BYTES` of each process: all that its threads did, and the bytes that are
 * left. Exit status: 0; 1 a call failed.
 */
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cuda_api.h"

#define HELD 8
#define KEPT 3
#define STEP 2000
#define LARGE ((size_t)3 << 20)
#define TOO_MUCH ((size_t)1 << 40)

static const size_t sizes[] = {1024, 512, 70000, 4096, 2 << 20, 100, 8192};
#define SIZES (sizeof(sizes) / sizeof(sizes[0]))

static CUcontext context;
static unsigned rounds;

struct done {
	uint64_t allocs, frees, bytes;
};

static void must(CUresult result)
{
	if (result)
		exit(1);
}

static void take(struct done *done, CUdeviceptr *address, size_t bytes)
{
	must(cuMemAllocAsync(address, bytes, NULL));
	done->allocs++;
	done->bytes += bytes;
}

static void give(struct done *done, CUdeviceptr address, size_t bytes)
{
	must(cuMemFreeAsync(address, NULL));
	done->frees++;
	done->bytes -= bytes;
}

static void take_and_give_large(struct done *done)
{
	CUdeviceptr address;

	must(cuMemAlloc_v2(&address, LARGE));
	must(cuMemFree_v2(address));
	done->allocs++;
	done->frees++;
}

static void *run(void *data)
{
	struct done *done = data;
	CUdeviceptr held[HELD];
	size_t bytes[HELD] = {0};

	must(cuCtxSetCurrent(context));
	for (unsigned i = 0; i < rounds; i++) {
		unsigned slot = i % HELD;

		if (bytes[slot])
			give(done, held[slot], bytes[slot]);
		bytes[slot] = sizes[i % SIZES];
		take(done, &held[slot], bytes[slot]);
		if (i % STEP == STEP - 1)
			take_and_give_large(done);
	}
	for (unsigned slot = KEPT; slot < HELD; slot++)
		if (bytes[slot])
			give(done, held[slot], bytes[slot]);
	return NULL;
}

static void start(void)
{
	must(cuInit(0));
	must(cuDevicePrimaryCtxRetain(&context, 0));
	must(cuCtxSetCurrent(context));
}

static void run_threads(unsigned count, struct done *sum)
{
	pthread_t threads[64];
	struct done done[64] = {0};

	for (unsigned i = 0; i < count; i++)
		if (pthread_create(&threads[i], NULL, run, &done[i]))
			exit(1);
	for (unsigned i = 0; i < count; i++) {
		pthread_join(threads[i], NULL);
		sum->allocs += done[i].allocs;
		sum->frees += done[i].frees;
		sum->bytes += done[i].bytes;
	}
}

static void print(const struct done *sum)
{
	printf("%d %llu %llu %llu\n", (int)getpid(), (unsigned long long)sum->allocs,
	       (unsigned long long)sum->frees, (unsigned long long)sum->bytes);
	fflush(stdout);
}

static int wait_for(pid_t child)
{
	int status;

	return child < 0 || waitpid(child, &status, 0) < 0 || status;
}

int main(int count, char **arguments)
{
	unsigned threads = count > 2 ? (unsigned)atoi(arguments[1]) : 0;
	const char *word = count > 3 ? arguments[3] : "";
	struct done sum = {0};
	CUdeviceptr address;
	int failed = 0;

	if (!threads || threads > 64)
		return 64;
	rounds = (unsigned)atoi(arguments[2]);
	if (!strcmp(word, "fork")) {
		/* Its driver is not started yet, so that the child may have one. */
		pid_t child = fork();

		start();
		run_threads(threads, &sum);
		print(&sum);
		if (child == 0)
			exit(0);
		failed = wait_for(child);
		child = fork();
		if (child == 0)
			exit(cuMemAllocAsync(&address, 1024, NULL) == 0);
		failed |= wait_for(child);
		sum = (struct done){.bytes = 0};
		run_threads(threads, &sum);
		print(&sum);
		return failed;
	}
	start();
	run_threads(threads, &sum);
	print(&sum);
	if (!strcmp(word, "oom"))
		return cuMemAlloc_v2(&address, TOO_MUCH) != CUDA_ERROR_OUT_OF_MEMORY;
	if (!strcmp(word, "kill"))
		raise(SIGKILL);
	return 0;
}
