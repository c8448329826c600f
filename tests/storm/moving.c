/*
 * moving KERNELS SEED SECONDS CARD_MIB LARGEST_MIB [STEPS|input]
 *
 * CARD_MIB: memory of each device. The program wants up to twice as much. It ends after SECONDS, or
 * when each thread has made STEPS steps. With `input` it goes on until its input ends. The test that
 * watches it keeps the input open until enough has moved.
 *
 * Exit status: 0; 1 data was wrong or a call failed; 2 no device; 64 usage.
 */
#include "moving.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

uint64_t moving_card, moving_largest;
bool moving_no_holds, moving_all_named;
const char *moving_kernels;
int moving_devices = 1;
atomic_bool moving_peers = true;
bool moving_shares_defaults;

static uint64_t steps, ends;      /* the latter in nanoseconds of the monotonic clock */
static atomic_bool over, watched; /* the latter: while there is input */
static pthread_barrier_t begun; /* all threads have their own streams and buffers before the device is full */

uint64_t moving_random(struct moving_worker *worker, uint64_t below)
{
	uint64_t x = worker->random += 0x9e3779b97f4a7c15ull;
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
	return (x ^ (x >> 31)) % below;
}

static uint64_t now(void)
{
	struct timespec time;
	clock_gettime(CLOCK_MONOTONIC, &time);
	return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

bool moving_must(struct moving_worker *worker, const char *what, CUresult result)
{
	if (!result)
		return true;
	if (!worker->failed)
		fprintf(stderr, "thread %u, step %llu: %s: error %d\n", worker->index,
		        (unsigned long long)worker->step, what, (int)result);
	worker->failed = true;
	atomic_store(&over, true);
	return false;
}

bool moving_may(struct moving_worker *worker, const char *what, CUresult result)
{
	if (result != CUDA_ERROR_OUT_OF_MEMORY)
		return moving_must(worker, what, result);
	worker->refused++;
	return false;
}

void moving_let_go(struct moving_worker *worker)
{
	atomic_store(worker->hold, 1);
	worker->held = 0;
}

static void wrong(struct moving_worker *worker, const struct moving_check *check, uint64_t words)
{
	fprintf(stderr,
	        "thread %u, step %llu: %llu of %llu words wrong at %#llx since step %llu, seed %llu\n",
	        worker->index, (unsigned long long)worker->step, (unsigned long long)words,
	        (unsigned long long)check->words, (unsigned long long)check->address,
	        (unsigned long long)check->step, (unsigned long long)check->seed);
	worker->failed = true;
	atomic_store(&over, true);
}

bool moving_sync(struct moving_worker *worker)
{
	moving_let_go(worker);
	for (unsigned i = 0; i < moving_streams(); i++)
		moving_must(worker, "cuStreamSynchronize", cuStreamSynchronize(worker->streams[i]));
	for (unsigned i = 0; i < worker->checks; i++)
		if (worker->counters[i])
			wrong(worker, &worker->check[i], worker->counters[i]);
	for (unsigned i = 0; i < worker->readbacks; i++)
		if (!worker->failed && !moving_compare(worker, &worker->readback[i]))
			atomic_store(&over, worker->failed = true);
	worker->checks = worker->readbacks = worker->arrays = 0;
	return !worker->failed;
}

static bool begin(struct moving_worker *worker)
{
	void *pinned = NULL;
	const uint64_t words = MOVING_CHECKS * 8 + 4096, pieces = MOVING_PIECE * 4;
	CUresult result = cuCtxSetCurrent(moving_context[worker->device]);

	if (result ||
	    cuMemHostAlloc(&pinned, words + pieces * (1 + MOVING_READBACKS), CU_MEMHOSTALLOC_DEVICEMAP))
		return false;
	worker->counters = pinned;
	worker->hold = (_Atomic uint64_t *)(worker->counters + MOVING_CHECKS);
	worker->sum = worker->counters + MOVING_CHECKS + 8;
	worker->array = (uint64_t(*)[2])(worker->counters + MOVING_CHECKS + 16); /* 3,200 bytes */
	worker->staging = (char *)pinned + words;
	for (unsigned i = 0; i < MOVING_READBACKS; i++)
		worker->readback[i].host = worker->staging + pieces * (1 + i);
	worker->pageable = malloc(pieces);
	return worker->pageable && moving_open_streams(worker);
}

static void step(struct moving_worker *worker)
{
	if (worker->held && worker->step >= worker->held)
		moving_let_go(worker);
	/* The amount that it wants changes. Freed memory lets other blocks return to the device. */
	if (worker->step % 100 == 1)
		worker->target = moving_card * (unsigned)moving_devices / MOVING_THREADS / 8 *
		                 (4 + moving_random(worker, 13));
	struct moving_block *block = moving_some(worker);
	uint64_t dice = moving_random(worker, 100);
	if (block && worker->index == 0 && dice % 2) {
		moving_read_on(worker, block);
		return;
	}
	if (block && moving_devices > 1 && moving_random(worker, 24) == 0)
		moving_across(worker);
	else if (!block || (dice < 25 && worker->used < worker->target))
		moving_make(worker);
	else if (dice < 10 || (dice < 40 && worker->used > worker->target))
		moving_give(worker, block);
	else if (dice < 45 && block->kind == MOVING_POOL)
		moving_grow(worker, block);
	else if (dice < 48 && block->kind == MOVING_ORDERED)
		moving_again(worker, block);
	else if (dice < 49)
		moving_fleeting(worker);
	else if (dice < 51)
		moving_mempool(worker);
	else if (dice < 54)
		moving_ask(worker, block);
	else if (dice < 60)
		moving_verify(worker, block);
	else if (dice < 68)
		moving_other(worker);
	else
		moving_work(worker, block);
}

static void end(struct moving_worker *worker)
{
	moving_end_graphs(worker, NULL);
	for (unsigned i = 0; i < MOVING_BLOCKS && !worker->failed; i++)
		if (worker->blocks[i].kind)
			moving_give(worker, &worker->blocks[i]);
	moving_sync(worker);
	moving_end_mempools(worker);
	moving_end_array(worker);
	moving_close_streams(worker);
	moving_must(worker, "cuMemFreeHost", cuMemFreeHost(worker->counters));
	free(worker->pageable);
	for (unsigned i = 0; i < MOVING_BLOCKS; i++)
		free(worker->blocks[i].content);
}

static void *run(void *argument)
{
	struct moving_worker *worker = argument;
	bool ready = begin(worker);

	pthread_barrier_wait(&begun);
	if (!ready) {
		fprintf(stderr, "thread %u cannot begin\n", worker->index);
		worker->failed = true;
		return NULL;
	}
	atomic_store(worker->hold, 1);
	while (!atomic_load(&over) &&
	       (steps ? worker->step < steps : now() < ends || atomic_load(&watched))) {
		worker->step++;
		step(worker);
		if (worker->step % 50 == 0)
			moving_sync(worker);
	}
	end(worker);
	return NULL;
}

static void *watch(void *argument)
{
	char ignored[64];

	while (read(STDIN_FILENO, ignored, sizeof(ignored)) > 0)
		;
	atomic_store(&watched, false);
	return NULL;
}

/* Ends with the input, or with the program. */
static void begin_watching(void)
{
	pthread_t thread;

	atomic_store(&watched, true);
	if (pthread_create(&thread, NULL, watch, NULL))
		atomic_store(&watched, false);
	else
		pthread_detach(thread);
}

static bool storm(uint64_t seed)
{
	static struct moving_worker workers[MOVING_THREADS];
	pthread_t ids[MOVING_THREADS];
	bool failed = false;

	pthread_barrier_init(&begun, NULL, MOVING_THREADS);
	for (unsigned i = 0; i < MOVING_THREADS; i++) {
		workers[i].index = i;
		workers[i].device = (int)i % moving_devices;
		workers[i].random = seed * 1000 + i;
		pthread_create(&ids[i], NULL, run, &workers[i]);
	}
	for (unsigned i = 0; i < MOVING_THREADS; i++) {
		pthread_join(ids[i], NULL);
		printf("thread %u: %llu steps, %llu blocks, %llu without room\n", i,
		       (unsigned long long)workers[i].step, (unsigned long long)workers[i].made,
		       (unsigned long long)workers[i].refused);
		failed |= workers[i].failed;
	}
	pthread_barrier_destroy(&begun);
	return !failed;
}

static int number_of(const char *variable, int usual)
{
	const char *text = getenv(variable);
	return text ? atoi(text) : usual;
}

int main(int count, char **arguments)
{
	if (count < 6)
		return 64;
	moving_kernels = arguments[1];
	moving_no_holds = getenv("MOVING_NO_HOLDS") != NULL;
	moving_all_named = getenv("MOVING_ALL_NAMED") != NULL;
	moving_devices = number_of("MOVING_DEVICES", 1);
	if (moving_devices < 1 || moving_devices > MOVING_DEVICES)
		return 64;
	moving_shares_defaults = number_of("MOVING_SHARE", 0);
	atomic_store(&moving_peers, number_of("MOVING_PEERS", 1));
	ends = now() + strtoull(arguments[3], NULL, 10) * 1000000000;
	moving_card = strtoull(arguments[4], NULL, 10) << 20;
	moving_largest = strtoull(arguments[5], NULL, 10) << 20;
	if (count > 6 && !strcmp(arguments[6], "input"))
		begin_watching();
	else
		steps = count > 6 ? strtoull(arguments[6], NULL, 10) : 0;
	if (cuInit(0) || !moving_open_devices())
		return 2;
	bool right = storm(strtoull(arguments[2], NULL, 10));
	if (!moving_close_devices())
		right = false;
	puts(right ? "all bytes right" : "WRONG");
	return !right;
}
