/*
 * One of two ranks. Each is a process with a device of its own. Their kernels wait for each other
 * in memory that both share, as those of a collective do (NCCL), and both need more memory than
 * their devices have.
 *
 *	collective KERNELS SHARED RANK crossed|rounds
 *
 * SHARED is a file that both ranks map. There are two collectives, each with memory and a stream of
 * its own.
 *
 *	crossed  Rank 0 launches collective 0, and rank 1 collective 1. While neither kernel can end,
 *	         both ranks allocate. Then each launches the other collective.
 *	rounds   A thread for each collective launches round after round. Meanwhile the main thread
 *	         allocates until memory has moved some times, in both ranks.
 *
 * Prints where memory is, and the number of rounds. A failed call is `ERROR` and ends the program.
 * Exit status: 0; 1 data wrong or a failed call; 64 usage.
 */
#include "movable.h"

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define MIB ((uint64_t)1 << 20)
#define RANKS 2
#define COLLECTIVES 2
#define WORDS (2 * MIB / 8)
#define MOVES 6   /* that `rounds` waits for */
#define IN_ROW 3u /* rounds in flight */

/*
 * In the file, zero at first. A rank gives its words to the other in one of two places, because the
 * other may still read those of the round before.
 */
static struct ranks {
	_Atomic uint64_t step[RANKS];                 /* of `together` */
	_Atomic uint64_t begun[COLLECTIVES][RANKS];   /* the round whose kernel runs */
	_Atomic uint64_t allowed[COLLECTIVES];        /* the leader's last round */
	_Atomic bool ended[COLLECTIVES], done[RANKS]; /* no more rounds; no more allocations */
	uint64_t words[COLLECTIVES][RANKS][2][WORDS];
} * ranks;

static struct collective {
	struct block block;
	CUstream stream;
	uint64_t rounds;
	pthread_t thread;
} collectives[COLLECTIVES];

static unsigned rank;
CUcontext movable_context;
static CUfunction fill_kernel, verify_kernel, meet_kernel;
static CUstream own_stream;
static uint64_t *mismatches; /* pinned */

static void must(const char *call, CUresult result)
{
	const char *name = "?";

	if (!result)
		return;
	cuGetErrorName(result, &name);
	printf("ERROR %s %s\n", call, name);
	exit(1);
}

static void launch(CUfunction function, CUstream stream, void **parameters)
{
	must("cuLaunchKernel", cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, stream, parameters, NULL));
}

/* -- memory ---------------------------------------------------------------------------------------------- */

static void fill(struct block *block, uint64_t seed)
{
	uint64_t words = block->bytes / 8;
	void *parameters[] = {&block->address, &words, &seed};

	block->seed = seed;
	launch(fill_kernel, own_stream, parameters);
	must("cuStreamSynchronize", cuStreamSynchronize(own_stream));
}

static void verify(const char *name, struct block *block)
{
	uint64_t words = block->bytes / 8, out = (uintptr_t)mismatches;
	void *parameters[] = {&block->address, &words, &block->seed, &out};

	*mismatches = 0;
	launch(verify_kernel, own_stream, parameters);
	must("cuStreamSynchronize", cuStreamSynchronize(own_stream));
	if (*mismatches) {
		printf("wrong words of %s: %llu\n", name, (unsigned long long)*mismatches);
		exit(1);
	}
}

/* Two call sites, so that one's requests do not look like the growth of the other's. */
static __attribute__((noinline)) void alloc_old(struct block *block, uint64_t bytes)
{
	block->bytes = bytes;
	must("cuMemAlloc", cuMemAlloc_v2(&block->address, bytes));
}

static __attribute__((noinline)) void alloc_new(struct block *block, uint64_t bytes)
{
	block->bytes = bytes;
	must("cuMemAlloc", cuMemAlloc_v2(&block->address, bytes));
}

static void give(struct block *block)
{
	must("cuMemFree", cuMemFree_v2(block->address));
}

static unsigned granules_on_host(const struct block *block)
{
	unsigned count = 0;

	for (uint64_t at = 0; at < block->bytes; at += MOVABLE_GRANULE)
		count += movable_side(block->address + at) == 'h';
	return count;
}

/* -- collectives ----------------------------------------------------------------------------------------- */

/* Launches the next round. */
static void meet(unsigned which)
{
	struct collective *collective = &collectives[which];
	uint64_t round = ++collective->rounds, words = WORDS;
	uint64_t own = (uintptr_t)&ranks->begun[which][rank], other = (uintptr_t)&ranks->begun[which][!rank];
	uint64_t mine = (uintptr_t)ranks->words[which][rank][round % 2],
	         theirs = (uintptr_t)ranks->words[which][!rank][round % 2];
	void *parameters[] = {&own, &other, &round, &collective->block.address, &words, &mine, &theirs};

	launch(meet_kernel, collective->stream, parameters);
}

/* The words after all rounds: a rank's own ones times `ours`, plus the other's times `others`. */
static void check_sums(unsigned which)
{
	static uint64_t words[WORDS];
	const struct collective *collective = &collectives[which];
	uint64_t ours = 1, others = 0, wrong = 0;

	must("cuStreamSynchronize", cuStreamSynchronize(collective->stream));
	must("cuMemcpyDtoH", cuMemcpyDtoH_v2(words, collective->block.address, sizeof(words)));
	for (uint64_t i = 0; i < collective->rounds; i++) {
		uint64_t before = ours;
		ours = 2 * ours + others;
		others = 2 * others + before;
	}
	for (uint64_t i = 0; i < WORDS; i++)
		wrong += words[i] != ours * pattern(i, 1 + rank + RANKS * which) +
		                         others * pattern(i, 1 + !rank + RANKS * which);
	printf("rounds %llu\n", (unsigned long long)collective->rounds);
	if (wrong) {
		printf("wrong words of collective %u: %llu\n", which, (unsigned long long)wrong);
		exit(1);
	}
}

/* Returns when both ranks are here. */
static void together(void)
{
	uint64_t step = atomic_fetch_add(&ranks->step[rank], 1) + 1;

	while (atomic_load(&ranks->step[!rank]) < step)
		sched_yield();
}

/* -- crossed --------------------------------------------------------------------------------------------- */

static void crossed(void)
{
	struct block old, new;

	alloc_old(&old, 36 * MIB);
	fill(&old, 11);
	together();
	meet(rank);
	while (!atomic_load(&ranks->begun[0][0]) || !atomic_load(&ranks->begun[1][1]))
		sched_yield();
	alloc_new(&new, 40 * MIB); /* a kernel that cannot end yet is in flight */
	movable_where("busy", &old);
	together();
	meet(!rank);
	check_sums(0);
	check_sums(1);
	fill(&new, 12);
	verify("new", &new);
	give(&new);
	alloc_new(&new, 40 * MIB); /* nothing is in flight */
	movable_where("idle", &old);
	fill(&new, 13);
	verify("new", &new);
	verify("old", &old);
	give(&new);
	give(&old);
}

/* -- rounds ---------------------------------------------------------------------------------------------- */

/* The rank of the collective's number leads. True: there is one more round. */
static bool one_more(unsigned which, uint64_t round)
{
	if (rank == which) {
		if (atomic_load(&ranks->done[0]) && atomic_load(&ranks->done[1])) {
			atomic_store(&ranks->ended[which], true);
			return false;
		}
		atomic_store(&ranks->allowed[which], round);
		return true;
	}
	for (;;) {
		bool ended = atomic_load(&ranks->ended[which]);
		if (atomic_load(&ranks->allowed[which]) >= round)
			return true;
		if (ended)
			return false;
		sched_yield();
	}
}

static void *run_rounds(void *data)
{
	struct collective *collective = data;
	unsigned which = (unsigned)(collective - collectives);

	must("cuCtxSetCurrent", cuCtxSetCurrent(movable_context));
	while (one_more(which, collective->rounds + 1)) {
		meet(which);
		if (collective->rounds % IN_ROW == 0)
			must("cuStreamSynchronize", cuStreamSynchronize(collective->stream));
	}
	return NULL;
}

/* True: something moved to make room for the new memory. */
static bool move_once(uint64_t seed)
{
	struct block old, new;

	alloc_old(&old, 24 * MIB);
	fill(&old, seed);
	unsigned before = granules_on_host(&old);
	alloc_new(&new, 48 * MIB);
	unsigned after = granules_on_host(&old);
	fill(&new, seed + 1);
	verify("old", &old);
	verify("new", &new);
	give(&new);
	give(&old);
	return after > before;
}

static void rounds(void)
{
	for (unsigned i = 0; i < COLLECTIVES; i++)
		if (pthread_create(&collectives[i].thread, NULL, run_rounds, &collectives[i]))
			exit(64);
	for (unsigned moves = 0, turn = 0; moves < MOVES; turn++)
		moves += move_once(100 + 2 * turn);
	atomic_store(&ranks->done[rank], true);
	for (unsigned i = 0; i < COLLECTIVES; i++)
		pthread_join(collectives[i].thread, NULL);
	check_sums(0);
	check_sums(1);
}

/* -- begin and end --------------------------------------------------------------------------------------- */

static void share(const char *path)
{
	int file = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);

	if (file < 0 || ftruncate(file, sizeof(*ranks)))
		exit(64);
	ranks = mmap(NULL, sizeof(*ranks), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
	close(file);
	if (ranks == MAP_FAILED)
		exit(64);
}

static void begin(const char *kernels)
{
	CUmodule module;
	void *pinned;

	must("cuInit", cuInit(0));
	must("cuDevicePrimaryCtxRetain", cuDevicePrimaryCtxRetain(&movable_context, (int)rank));
	must("cuCtxSetCurrent", cuCtxSetCurrent(movable_context));
	must("cuModuleLoad", cuModuleLoad(&module, kernels));
	must("fill", cuModuleGetFunction(&fill_kernel, module, "fill"));
	must("verify", cuModuleGetFunction(&verify_kernel, module, "verify"));
	must("meet", cuModuleGetFunction(&meet_kernel, module, "meet"));
	must("cuStreamCreate", cuStreamCreate(&own_stream, 1));
	must("cuMemHostAlloc", cuMemHostAlloc(&pinned, sizeof(*mismatches), CU_MEMHOSTALLOC_DEVICEMAP));
	mismatches = pinned;
	must("cuMemHostRegister", cuMemHostRegister_v2(ranks, sizeof(*ranks), CU_MEMHOSTALLOC_DEVICEMAP));
	for (unsigned i = 0; i < COLLECTIVES; i++) {
		must("cuStreamCreate", cuStreamCreate(&collectives[i].stream, 1));
		alloc_old(&collectives[i].block, WORDS * 8);
		fill(&collectives[i].block, 1 + rank + RANKS * i);
	}
}

int main(int argc, char **argv)
{
	if (argc != 5 || strlen(argv[3]) != 1 || argv[3][0] < '0' || argv[3][0] > '1')
		return 64;
	rank = (unsigned)(argv[3][0] - '0');
	share(argv[2]);
	begin(argv[1]);
	(!strcmp(argv[4], "crossed") ? crossed : rounds)();
	for (unsigned i = 0; i < COLLECTIVES; i++)
		give(&collectives[i].block);
	must("cuMemHostUnregister", cuMemHostUnregister(ranks));
	must("cuMemFreeHost", cuMemFreeHost(mismatches));
	return 0;
}
