/*
 * storm KERNELS SEED CALLS THREADS LARGEST_KIB [nomanaged] [trace FOLDER]
 *
 * Prints one line a thread: how many calls, a digest of all results. Exit status: 0; 1 data was wrong; 2 no device;
 * 64 usage. An allocation that fails is a result like any other.
 */
#include "storm.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

bool storm_managed = true;
uint64_t storm_largest;

static const char *kernels, *folder;
static uint64_t seed, calls_each;
static CUcontext primary;

uint64_t storm_random(struct storm_worker *worker, uint64_t below)
{
	uint64_t x = worker->random += 0x9e3779b97f4a7c15ull;
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
	return (x ^ (x >> 31)) % below;
}

static void mix(struct storm_worker *worker, uint64_t value)
{
	worker->digest = (worker->digest ^ value) * 0x100000001b3ull;
}

void storm_say(struct storm_worker *worker, const char *what, CUresult result, uint64_t figure)
{
	for (const char *at = what; *at; at++)
		mix(worker, (unsigned char)*at);
	mix(worker, result);
	mix(worker, figure);
	worker->calls++;
	worker->failures += result != CUDA_SUCCESS;
	if (worker->trace)
		fprintf(worker->trace, "%llu %s %d %llu\n", (unsigned long long)worker->calls, what,
		        (int)result, (unsigned long long)figure);
}

bool storm_check(struct storm_worker *worker)
{
	CUresult result = cuStreamSynchronize(worker->stream);
	worker->busy = false;
	if (!result && !*worker->mismatches)
		return true;
	fprintf(stderr, "thread %d, call %llu: error %d, %llu wrong words\n", worker->index,
	        (unsigned long long)worker->calls, (int)result, (unsigned long long)*worker->mismatches);
	return false;
}

static bool begin(struct storm_worker *worker)
{
	CUmodule module;
	CUmemPoolProps props = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
	                        .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
	return !cuCtxSetCurrent(primary) && !cuModuleLoad(&module, kernels) &&
	       !cuModuleGetFunction(&worker->fill, module, "fill") &&
	       !cuModuleGetFunction(&worker->verify, module, "verify") &&
	       !cuStreamCreate(&worker->stream, 1) && !cuMemPoolCreate(&worker->pool, &props) &&
	       !cuMemHostAlloc((void **)&worker->mismatches, 4096, CU_MEMHOSTALLOC_DEVICEMAP);
}

static void *run(void *argument)
{
	struct storm_worker *worker = argument;
	if (!begin(worker)) {
		fprintf(stderr, "thread %d cannot begin\n", worker->index);
		return (void *)2;
	}
	*worker->mismatches = 0;
	worker->context = primary;
	bool right = true;
	for (unsigned step = 1; worker->calls < calls_each && right; step++) {
		storm_step(worker);
		if (step % 64 == 0)
			right = storm_check(worker);
	}
	storm_end(worker);
	right = storm_check(worker) && right;
	storm_say(worker, "cuMemPoolDestroy", cuMemPoolDestroy(worker->pool), 0);
	storm_say(worker, "cuStreamDestroy_v2", cuStreamDestroy_v2(worker->stream), 0);
	storm_say(worker, "cuMemFreeHost", cuMemFreeHost(worker->mismatches), 0);
	return (void *)(uintptr_t)!right;
}

static FILE *trace_of(int index)
{
	char path[4096];
	if (!folder)
		return NULL;
	snprintf(path, sizeof(path), "%s/%d", folder, index);
	FILE *trace = fopen(path, "w");
	if (trace)
		setvbuf(trace, NULL, _IOLBF, 0); /* the last line counts most if the program ends early */
	return trace;
}

static int storm(unsigned threads)
{
	struct storm_worker *workers = calloc(threads, sizeof(*workers));
	pthread_t *ids = calloc(threads, sizeof(*ids));
	int status = 0;
	for (unsigned i = 0; i < threads; i++) {
		workers[i] = (struct storm_worker){.index = (int)i,
		                                   .random = seed * 1000 + i,
		                                   .digest = 0xcbf29ce484222325ull,
		                                   .trace = trace_of((int)i)};
		pthread_create(&ids[i], NULL, run, &workers[i]);
	}
	for (unsigned i = 0; i < threads; i++) {
		void *result;
		pthread_join(ids[i], &result);
		if (result)
			status = (int)(uintptr_t)result;
		printf("thread %u: %llu calls, %llu failures, digest %016llx\n", i,
		       (unsigned long long)workers[i].calls, (unsigned long long)workers[i].failures,
		       (unsigned long long)workers[i].digest);
		if (workers[i].trace)
			fclose(workers[i].trace);
	}
	free(ids);
	free(workers);
	return status;
}

int main(int count, char **arguments)
{
	if (count < 6)
		return 64;
	kernels = arguments[1];
	seed = strtoull(arguments[2], NULL, 10);
	unsigned threads = (unsigned)strtoul(arguments[4], NULL, 10);
	calls_each = strtoull(arguments[3], NULL, 10) / threads;
	storm_largest = strtoull(arguments[5], NULL, 10) << 10;
	for (int i = 6; i < count; i++)
		if (strcmp(arguments[i], "nomanaged") == 0)
			storm_managed = false;
		else if (strcmp(arguments[i], "trace") == 0 && i + 1 < count)
			folder = arguments[++i];
		else
			return 64;
	if (cuInit(0) || cuDevicePrimaryCtxRetain(&primary, 0))
		return 2;
	int status = storm(threads);
	if (cuDevicePrimaryCtxRelease_v2(0))
		status = 1;
	printf("%s\n", status ? "WRONG" : "all words right");
	return status;
}
