/*
 * Memory in stream order on the CUDA driver API. The program carries out its arguments and prints
 * `WORD RESULT` for each, without addresses.
 *
 *	ordered KERNELS WORD…
 *
 *	stream:default|thread|own|other  the stream of the next words: the legacy default one; the
 *	                           thread's, by the _ptsz functions; one of its own (own at first)
 *	stream:peer                the same on device 1, whose context is then current
 *	renew                      ends the stream `other`, and makes it again
 *	pool:P:KIND[:SIZE]         makes pool P, a letter: device, exportable, bounded, host or managed. It keeps
 *	                           SIZE (all).
 *	find:P:KIND                the driver's own pool P: host or managed
 *	keep                       the device's pool keeps everything
 *	trim:P reserved:P used:P most:P restart:P endpool:P  of pool P; d: the device's
 *	share:P                    gives device 1 access to pool P
 *	alloc:A:SIZE[:COUNT[:P]]   allocations A, a letter, in stream order; from pool P
 *	plain:A:SIZE[:COUNT]       by cuMemAlloc
 *	fill:A verify:A            by kernels on the stream. sync prints the result of verify.
 *	hold:A go                  a kernel that waits for go and then writes A; go ends all waits
 *	free:A sfree:A             in stream order; by cuMemFree
 *	where:A                    the side of each 2 MiB of the first of A, asked past libspill
 *	same:A:B                   has the first of A the address that the first of B has or had?
 *	about:A                    the driver's answers about the first of A, without addresses and ids
 *	sync info                  info: free device bytes
 *	graphtrim                  gives back the memory that graphs keep
 *	begin:MODE end             a capture of the stream; MODE is the driver's number
 *	upload run                 puts the graph's memory in place; launches the graph, each time
 *	create destroy:C           another context becomes current; the last one made is destroyed
 *
 * Exit status: 0; 1 data wrong; 64 usage. A call that fails is printed, and the program goes on.
 */
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cuda_api.h"

/* movable_ask.c */
char movable_side(CUdeviceptr address); /* d: on the device, h, or ? */
CUcontext movable_context;

#define ROOM 4096
#define PER_THREAD ((CUstream)2)

static struct group {
	CUdeviceptr address[ROOM];
	CUmemoryPool pool;
	uint64_t bytes, count, seed;
} groups[26];

/* Pinned words that kernels and host share. */
static struct shared {
	_Atomic uint64_t go;
	uint64_t mismatches;
} * shared;

static CUmemoryPool pools[26];
static CUcontext primary, made;
static struct code {
	CUfunction fill, verify, hold;
} codes[2]; /* of device 0; of device 1 */
static const char *kernels;
static CUstream own, other, peer, stream;
static bool per_thread;
static uint64_t seeds;
static int wrong;

static void must(CUresult result)
{
	if (result)
		exit(64);
}

/* The kernels for the stream. */
static const struct code *code(void)
{
	return &codes[peer && stream == peer];
}

static uint64_t size_of(const char *text)
{
	char *end;
	uint64_t value = strtoull(text, &end, 10);

	return value << (*end == 'm' ? 20 : *end == 'k' ? 10 : 0);
}

static CUresult launch(CUfunction function, void **parameters)
{
	return cuLaunchKernel(function, 4, 1, 1, 64, 1, 1, 0, per_thread ? PER_THREAD : stream, parameters,
	                      NULL);
}

static CUresult each_kernel(struct group *group, CUfunction function, uint64_t extra)
{
	CUresult result = CUDA_SUCCESS;

	for (uint64_t i = 0; !result && i < group->count; i++) {
		uint64_t words = group->bytes / 8, seed = group->seed + i;
		void *behind[] = {&group->address[i], &words, &seed, &extra};
		void *before[] = {&extra, &group->address[i], &words, &seed};

		result = launch(function, function == code()->hold ? before : behind);
	}
	return result;
}

static CUresult fill(struct group *group, CUfunction function, uint64_t extra)
{
	group->seed = seeds;
	seeds += group->count;
	return each_kernel(group, function, extra);
}

static CUresult alloc_one(CUdeviceptr *address, uint64_t bytes, CUmemoryPool pool)
{
	if (pool)
		return cuMemAllocFromPoolAsync(address, bytes, pool, stream);
	return per_thread ? cuMemAllocAsync_ptsz(address, bytes, NULL)
	                  : cuMemAllocAsync(address, bytes, stream);
}

static CUresult alloc(struct group *group, const char *size, const char *count, const char *pool, bool plain)
{
	uint64_t wanted = count ? size_of(count) : 1;

	group->bytes = size_of(size);
	group->pool = pool ? pools[pool[0] - 'a'] : NULL;
	for (group->count = 0; group->count < wanted; group->count++) {
		CUdeviceptr *address = &group->address[group->count];

		*address = 1;
		CUresult result = plain ? cuMemAlloc_v2(address, group->bytes)
		                        : alloc_one(address, group->bytes, group->pool);
		if (result) {
			printf("failed after %llu, pointer %llu\n", (unsigned long long)group->count,
			       *address);
			return result;
		}
	}
	return CUDA_SUCCESS;
}

static CUresult free_all(struct group *group, bool ordered)
{
	CUresult first = CUDA_SUCCESS;

	for (uint64_t i = 0; i < group->count; i++) {
		CUdeviceptr address = group->address[i];
		CUresult result = !ordered     ? cuMemFree_v2(address)
		                  : per_thread ? cuMemFreeAsync_ptsz(address, NULL)
		                               : cuMemFreeAsync(address, stream);
		first = first ? first : result;
	}
	return first;
}

static CUresult make_pool(CUmemoryPool *pool, const char *kind, const char *keeps)
{
	bool on_device = strcmp(kind, "host") && strcmp(kind, "managed");
	uint64_t threshold = keeps ? size_of(keeps) : UINT64_MAX;
	CUmemPoolProps wanted = {
	    .maxSize = strcmp(kind, "bounded") ? 0 : (size_t)64 << 20,
	    .handleTypes = strcmp(kind, "exportable") ? CU_MEM_HANDLE_TYPE_NONE
	                                              : CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
	    .allocType =
	        strcmp(kind, "managed") ? CU_MEM_ALLOCATION_TYPE_PINNED : CU_MEM_ALLOCATION_TYPE_MANAGED,
	    .location = {strcmp(kind, "host") ? CU_MEM_LOCATION_TYPE_DEVICE : CU_MEM_LOCATION_TYPE_HOST_NUMA,
	                 0},
	};
	CUmemAccessDesc access = {{CU_MEM_LOCATION_TYPE_DEVICE, 0}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
	CUresult result = cuMemPoolCreate(pool, &wanted);

	if (!result)
		result = cuMemPoolSetAttribute(*pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &threshold);
	return result || on_device ? result : cuMemPoolSetAccess(*pool, &access, 1);
}

/* The driver's own pool of a place: on the host, or managed. */
static CUresult find_pool(CUmemoryPool *pool, const char *kind)
{
	bool managed = !strcmp(kind, "managed");
	CUmemLocation location = {managed ? CU_MEM_LOCATION_TYPE_DEVICE : CU_MEM_LOCATION_TYPE_HOST_NUMA, 0};
	CUmemAccessDesc access = {{CU_MEM_LOCATION_TYPE_DEVICE, 0}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
	CUresult result = cuMemGetDefaultMemPool(
	    pool, &location, managed ? CU_MEM_ALLOCATION_TYPE_MANAGED : CU_MEM_ALLOCATION_TYPE_PINNED);

	return result ? result : cuMemPoolSetAccess(*pool, &access, 1);
}

static CUresult figure(CUmemoryPool pool, const char *word, CUmemPool_attribute attribute)
{
	cuuint64_t bytes = 0;
	CUresult result = cuMemPoolGetAttribute(pool, attribute, &bytes);

	printf("%s %llu\n", word, (unsigned long long)bytes);
	return result;
}

static CUresult share(CUmemoryPool pool)
{
	CUmemAccessDesc access = {{CU_MEM_LOCATION_TYPE_DEVICE, 1}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};

	return cuMemPoolSetAccess(pool, &access, 1);
}

static CUresult restart(CUmemoryPool pool)
{
	uint64_t zero = 0;

	return cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH, &zero);
}

static bool pool_word(const char *word, CUmemoryPool pool, CUresult *result)
{
	if (!strcmp(word, "trim"))
		*result = cuMemPoolTrimTo(pool, 0);
	else if (!strcmp(word, "reserved"))
		*result = figure(pool, word, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT);
	else if (!strcmp(word, "used"))
		*result = figure(pool, word, CU_MEMPOOL_ATTR_USED_MEM_CURRENT);
	else if (!strcmp(word, "most"))
		*result = figure(pool, word, CU_MEMPOOL_ATTR_USED_MEM_HIGH);
	else if (!strcmp(word, "restart"))
		*result = restart(pool);
	else if (!strcmp(word, "share"))
		*result = share(pool);
	else if (!strcmp(word, "endpool"))
		*result = cuMemPoolDestroy(pool);
	else
		return false;
	return true;
}

static CUresult where(const char *letter, const struct group *group)
{
	printf("where %s ", letter);
	for (uint64_t at = 0; at < group->bytes; at += 2 << 20)
		putchar(movable_side(group->address[0] + at));
	putchar('\n');
	return CUDA_SUCCESS;
}

static CUresult same(const struct group *group, const char *letter)
{
	printf("same %d\n", group->address[0] == groups[letter[0] - 'a'].address[0]);
	return CUDA_SUCCESS;
}

static CUresult renew(void)
{
	CUresult result = cuStreamDestroy_v2(other);

	return result ? result : cuStreamCreate(&other, 1);
}

static CUresult keep(void)
{
	uint64_t everything = UINT64_MAX;
	return cuMemPoolSetAttribute(pools['d' - 'a'], CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &everything);
}

/* The driver's words for one pointer, as an address relative to it where it is one. */
static CUresult about(const struct group *group)
{
	static const struct {
		CUpointer_attribute which;
		const char *name;
		enum { VALUE, ADDRESS, POOL } kind;
	} asked[] = {
	    {CU_POINTER_ATTRIBUTE_CONTEXT, "context", VALUE},
	    {CU_POINTER_ATTRIBUTE_MEMORY_TYPE, "type", VALUE},
	    {CU_POINTER_ATTRIBUTE_DEVICE_POINTER, "device pointer", ADDRESS},
	    {CU_POINTER_ATTRIBUTE_HOST_POINTER, "host pointer", ADDRESS},
	    {CU_POINTER_ATTRIBUTE_IS_MANAGED, "managed", VALUE},
	    {CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, "device", VALUE},
	    {CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, "range start", ADDRESS},
	    {CU_POINTER_ATTRIBUTE_RANGE_SIZE, "range size", VALUE},
	    {CU_POINTER_ATTRIBUTE_MAPPED, "mapped", VALUE},
	    {CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, "synchronous", VALUE},
	    {CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE, "ipc", VALUE},
	    {CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, "pool", POOL},
	};
	CUdeviceptr base = 0, address = group->address[0];
	size_t bytes = 0;

	for (size_t i = 0; i < sizeof(asked) / sizeof(*asked); i++) {
		unsigned long long value = 0;
		CUresult result = cuPointerGetAttribute(&value, asked[i].which, address);
		CUmemoryPool pool = group->pool ? group->pool : pools['d' - 'a'];

		if (asked[i].kind == ADDRESS && !result)
			value -= address;
		if (asked[i].kind == POOL && !result)
			value = value == (unsigned long long)(uintptr_t)pool;
		printf("about %s %llu %d\n", asked[i].name, result ? 0 : value, result);
	}
	CUresult result = cuMemGetAddressRange_v2(&base, &bytes, address + group->bytes / 2);
	printf("about range %llu %zu\n", base - address, bytes);
	return result;
}

static CUresult synchronise(void)
{
	CUresult result = cuStreamSynchronize(per_thread ? PER_THREAD : stream);

	if (shared->mismatches) {
		printf("wrong words: %llu\n", (unsigned long long)shared->mismatches);
		wrong = 1;
	}
	shared->mismatches = 0;
	return result;
}

static CUresult info(void)
{
	size_t free = 0, total = 0;
	CUresult result = cuMemGetInfo_v2(&free, &total);

	printf("free %zu\n", free);
	return result;
}

static void load(struct code *code)
{
	CUmodule module;

	must(cuModuleLoad(&module, kernels));
	must(cuModuleGetFunction(&code->fill, module, "fill"));
	must(cuModuleGetFunction(&code->verify, module, "verify"));
	must(cuModuleGetFunction(&code->hold, module, "hold_fill"));
}

static CUresult choose_peer(void)
{
	CUcontext context;

	per_thread = false;
	must(cuDevicePrimaryCtxRetain(&context, 1));
	must(cuCtxSetCurrent(context));
	if (!peer) {
		must(cuStreamCreate(&peer, 1));
		load(&codes[1]);
	}
	stream = peer;
	return CUDA_SUCCESS;
}

static CUresult choose(const char *name)
{
	if (!strcmp(name, "peer"))
		return choose_peer();
	if (peer && stream == peer)
		must(cuCtxSetCurrent(primary));
	per_thread = !strcmp(name, "thread");
	stream = !strcmp(name, "own") ? own : !strcmp(name, "other") ? other : NULL;
	return CUDA_SUCCESS;
}

static CUgraph graph;    /* the last that was captured */
static CUgraphExec exec; /* of it */

static CUresult make_exec(void)
{
	return exec ? CUDA_SUCCESS : cuGraphInstantiateWithFlags(&exec, graph, 0);
}

static bool graph_word(const char *word, CUresult *result)
{
	if (!strcmp(word, "end")) {
		exec = NULL;
		*result = cuStreamEndCapture(stream, &graph);
	} else if (!strcmp(word, "upload")) {
		*result = make_exec();
		*result = *result ? *result : cuGraphUpload(exec, stream);
	} else if (!strcmp(word, "run")) {
		*result = make_exec();
		*result = *result ? *result : cuGraphLaunch(exec, stream);
	} else {
		return false;
	}
	return true;
}

static CUresult run_word(const char *word, const char *first, const char *second, const char *third,
                         const char *fourth)
{
	if (!first)
		first = "a"; /* a word without arguments uses none */
	struct group *group = &groups[first[0] - 'a'];
	CUmemoryPool *pool = &pools[first[0] - 'a'];
	CUresult result;

	if (!strcmp(word, "stream"))
		return choose(first);
	if (!strcmp(word, "pool"))
		return make_pool(pool, second, third);
	if (!strcmp(word, "find"))
		return find_pool(pool, second);
	if (!strcmp(word, "keep"))
		return keep();
	if (pool_word(word, *pool, &result))
		return result;
	if (!strcmp(word, "alloc") || !strcmp(word, "plain"))
		return alloc(group, second, third, fourth, word[0] == 'p');
	if (!strcmp(word, "fill"))
		return fill(group, code()->fill, 0);
	if (!strcmp(word, "verify"))
		return each_kernel(group, code()->verify, (uint64_t)&shared->mismatches);
	if (!strcmp(word, "hold")) {
		atomic_store(&shared->go, 0);
		return fill(group, code()->hold, (uint64_t)&shared->go);
	}
	if (!strcmp(word, "go")) {
		atomic_store(&shared->go, 1);
		return CUDA_SUCCESS;
	}
	if (!strcmp(word, "free") || !strcmp(word, "sfree"))
		return free_all(group, word[0] == 'f');
	if (!strcmp(word, "where"))
		return where(first, group);
	if (!strcmp(word, "same"))
		return same(group, second);
	if (!strcmp(word, "renew"))
		return renew();
	if (!strcmp(word, "about"))
		return about(group);
	if (!strcmp(word, "sync"))
		return synchronise();
	if (!strcmp(word, "info"))
		return info();
	if (!strcmp(word, "begin"))
		return cuStreamBeginCapture_v2(stream, (CUstreamCaptureMode)atoi(first));
	if (!strcmp(word, "graphtrim"))
		return cuDeviceGraphMemTrim(0);
	if (graph_word(word, &result))
		return result;
	if (!strcmp(word, "create"))
		return cuCtxCreate_v2(&made, 0, 0);
	if (!strcmp(word, "destroy")) {
		result = cuCtxDestroy_v2(made);
		must(cuCtxSetCurrent(primary));
		return result;
	}
	exit(64);
}

static void run(const char *text)
{
	char copy[256], *place = NULL;
	const char *name = "?";

	snprintf(copy, sizeof(copy), "%s", text);
	char *word = strtok_r(copy, ":", &place), *first = strtok_r(NULL, ":", &place);
	char *second = strtok_r(NULL, ":", &place), *third = strtok_r(NULL, ":", &place);
	CUresult result = run_word(word, first, second, third, strtok_r(NULL, ":", &place));

	cuGetErrorName(result, &name);
	printf("%s %s\n", text, name);
	fflush(stdout);
}

int main(int argc, char **argv)
{
	void *pinned;

	if (argc < 2)
		return 64;
	kernels = argv[1];
	must(cuInit(0));
	must(cuDevicePrimaryCtxRetain(&primary, 0));
	must(cuCtxSetCurrent(primary));
	load(&codes[0]);
	must(cuMemHostAlloc(&pinned, sizeof(*shared), CU_MEMHOSTALLOC_DEVICEMAP));
	must(cuStreamCreate(&own, 1));
	must(cuStreamCreate(&other, 1));
	must(cuDeviceGetDefaultMemPool(&pools['d' - 'a'], 0));
	shared = pinned;
	stream = own;
	for (int i = 2; i < argc; i++)
		run(argv[i]);
	return wrong;
}
