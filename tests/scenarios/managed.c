/*
 * A program on a machine whose host and device share one memory. It allocates weights and a large
 * KV cache. The device works on them, and the host reads them by plain loads. Then they are freed,
 * one while the device still writes to it. The memory comes from the driver, or from spill_malloc of
 * a library, as with PyTorch's pluggable allocator (dlopen, dlsym). The program prints the driver's
 * answers about each allocation.
 *
 *	managed KERNELS COUNT WEIGHTS KV [LIBRARY]
 *
 *	COUNT, WEIGHTS   number of allocations, and bytes of each
 *	KV               bytes of one more
 *
 * Exit status: 0; 1 data was wrong; 2 out of memory; 64 usage.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "pattern.h"
#include "prog.h"

#define ALLOCATIONS 16
#define WORD sizeof(uint64_t)

/* Values of cuda.h. */
enum { READ_MOSTLY = 1, PREFERRED_LOCATION, ACCESSED_BY, LAST_PREFETCH_LOCATION };
extern int cuMemRangeGetAttribute(void *data, size_t size, int attribute, unsigned long long address,
                                  size_t bytes);

typedef void *malloc_fn(size_t bytes, int device, void *stream);
typedef void free_fn(void *pointer, size_t bytes, int device, void *stream);

struct shared {
	_Atomic uint64_t go; /* hold_fill waits for it */
	_Atomic uint64_t mismatches;
};

static struct {
	uint64_t address, bytes, seed;
} allocations[ALLOCATIONS];
static unsigned count;
static void *fill, *verify, *hold_fill;
static struct shared *shared;
static malloc_fn *allocate;
static free_fn *give_back;
static bool wrong;

static void must(const char *call, int result)
{
	if (!result)
		return;
	printf("%s %s\n", call, way.error_name(result));
	exit(1);
}

static void print_used(const char *when)
{
	size_t free = 0, total = 0;

	must("info", way.info(&free, &total));
	printf("used %s %zu\n", when, total - free);
}

static void get(uint64_t bytes)
{
	uint64_t address = 0;

	if (allocate)
		address = (uintptr_t)allocate(bytes, 0, NULL);
	else if (way.alloc(&address, bytes))
		address = 0;
	printf("alloc %llu %s\n", (unsigned long long)bytes, address ? "made" : "out of memory");
	if (!address)
		exit(2);
	allocations[count].address = address;
	allocations[count].bytes = bytes;
	allocations[count].seed = count + 1;
	count++;
}

static int attribute(unsigned i, int which)
{
	int value = 0;
	int result = cuMemRangeGetAttribute(&value, sizeof(value), which, allocations[i].address,
	                                    allocations[i].bytes);

	return result ? 1000 + result : value;
}

static void say_where(unsigned i)
{
	int devices[4] = {-2, -2, -2, -2};

	cuMemRangeGetAttribute(devices, sizeof(devices), ACCESSED_BY, allocations[i].address,
	                       allocations[i].bytes);
	printf("advised %u preferred %d accessed_by %d %d read_mostly %d prefetched %d\n", i,
	       attribute(i, PREFERRED_LOCATION), devices[0], devices[1], attribute(i, READ_MOSTLY),
	       attribute(i, LAST_PREFETCH_LOCATION));
}

static void fill_one(unsigned i)
{
	uint64_t words = allocations[i].bytes / WORD;
	void *parameters[] = {&allocations[i].address, &words, &allocations[i].seed};

	must("fill", way.launch(fill, parameters));
}

static void verify_one(unsigned i)
{
	uint64_t words = allocations[i].bytes / WORD, out = (uintptr_t)&shared->mismatches;
	void *parameters[] = {&allocations[i].address, &words, &allocations[i].seed, &out};

	must("verify", way.launch(verify, parameters));
	must("synchronize", way.synchronize());
	if (atomic_load(&shared->mismatches))
		printf("%u: the device sees wrong words\n", i);
	wrong |= atomic_exchange(&shared->mismatches, 0) != 0;
}

/* By loads: not every word, but words of every page. */
static void read_on_host(unsigned i)
{
	const volatile uint64_t *words = (const volatile uint64_t *)(uintptr_t)allocations[i].address;
	uint64_t bad = 0;

	for (uint64_t n = 0; n < allocations[i].bytes / WORD; n += 509)
		bad += words[n] != pattern(n, allocations[i].seed);
	printf("read %u %llu wrong\n", i, (unsigned long long)bad);
	wrong |= bad != 0;
}

static void release(unsigned i)
{
	if (allocate)
		give_back((void *)(uintptr_t)allocations[i].address, allocations[i].bytes, 0, NULL);
	else
		must("free", way.release(allocations[i].address));
}

/* Lets the kernel go on once the free has been entered: before that the kernel cannot have finished. */
static void *let_go(void *entered)
{
	while (!atomic_load((atomic_bool *)entered))
		sched_yield();
	atomic_store(&shared->go, 1);
	return NULL;
}

static void release_in_use(unsigned i)
{
	uint64_t flag = (uintptr_t)&shared->go, words = allocations[i].bytes / WORD;
	void *parameters[] = {&flag, &allocations[i].address, &words, &allocations[i].seed};
	atomic_bool entered = false;
	pthread_t thread;

	atomic_store(&shared->go, 0);
	must("hold", way.launch(hold_fill, parameters));
	if (pthread_create(&thread, NULL, let_go, &entered))
		exit(1);
	atomic_store(&entered, true);
	release(i);
	pthread_join(thread, NULL);
	must("synchronize", way.synchronize());
	printf("free in use\n");
}

static void start(char **argv)
{
	void *pinned;

	must("start", way.start());
	must("load", way.load(argv[1]));
	must("kernel", way.kernel("fill", &fill));
	must("kernel", way.kernel("verify", &verify));
	must("kernel", way.kernel("hold_fill", &hold_fill));
	must("pinned", way.alloc_host(&pinned, sizeof(*shared)));
	shared = pinned;
	atomic_store(&shared->mismatches, 0);
	if (!argv[5])
		return;
	void *library = dlopen(argv[5], RTLD_NOW | RTLD_LOCAL);
	allocate = library ? (malloc_fn *)dlsym(library, "spill_malloc") : NULL;
	give_back = library ? (free_fn *)dlsym(library, "spill_free") : NULL;
	if (!allocate || !give_back)
		exit(64);
}

int main(int argc, char **argv)
{
	if (argc < 5 || atoi(argv[2]) >= ALLOCATIONS)
		return 64;
	setvbuf(stdout, NULL, _IOLBF, 0);
	start(argv);
	print_used("at first");
	for (int i = 0; i < atoi(argv[2]); i++)
		get(strtoull(argv[3], NULL, 10));
	get(strtoull(argv[4], NULL, 10));
	must("synchronize", way.synchronize());
	for (unsigned i = 0; i < count; i++)
		say_where(i);
	for (unsigned i = 0; i < count; i++)
		fill_one(i);
	must("synchronize", way.synchronize());
	print_used("behind the work");
	for (unsigned i = 0; i < count; i++)
		read_on_host(i);
	print_used("behind the host");
	for (unsigned i = 0; i < count; i++)
		verify_one(i);
	release_in_use(0);
	for (unsigned i = 1; i < count; i++)
		release(i);
	must("synchronize", way.synchronize());
	printf(wrong ? "WRONG\n" : "all data right\n");
	return wrong;
}
