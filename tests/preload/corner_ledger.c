/*
 * A program on the CUDA driver API that meets libspill's bookkeeping at the worst moment. It does
 * not wait for the moment but makes it: it has functions of libc that libspill calls, and stops or
 * fails there. Prints one line a result, without addresses. The device has room for three of 4 MiB.
 *
 *	corner_ledger exit                     ends while a thread is inside the ledger
 *	corner_ledger nomem FILL BYTES         takes FILL of 4 MiB, then BYTES. The Nth allocation of
 *	                                       libspill itself fails, for every N.
 *	corner_ledger nomem-handle FILL BYTES  the same with a handle of physical memory
 */
#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <pthread.h>
#include <search.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "corner.h"

CUcontext corner_context;

/* -- libspill's allocations ------------------------------------------------------------------------------------- */

extern void *__libc_malloc(size_t bytes);
extern void *__libc_calloc(size_t count, size_t bytes);

static uintptr_t library_start, library_end;
static int failing; /* > 0: that many of libspill's until one fails */

static bool count_down(void)
{
	return failing > 0 && --failing == 0;
}

static bool is_library(const void *caller)
{
	return (uintptr_t)caller >= library_start && (uintptr_t)caller < library_end;
}

void *malloc(size_t bytes)
{
	if (failing && is_library(__builtin_return_address(0)) && count_down())
		return NULL;
	return __libc_malloc(bytes);
}

void *calloc(size_t count, size_t bytes)
{
	if (failing && is_library(__builtin_return_address(0)) && count_down())
		return NULL;
	return __libc_calloc(count, bytes);
}

static int find_library(struct dl_phdr_info *info, size_t size, void *unused)
{
	if (!strstr(info->dlpi_name, "libspill.so"))
		return 0;
	library_start = info->dlpi_addr;
	for (unsigned i = 0; i < info->dlpi_phnum; i++) {
		uintptr_t at_end = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr + info->dlpi_phdr[i].p_memsz;
		if (info->dlpi_phdr[i].p_type == PT_LOAD && at_end > library_end)
			library_end = at_end;
	}
	return 1;
}

/* -- exit: the thread stops where the ledger holds its lock, until the end has found it locked --------------------- */

enum { FREE, HELD, FOUND_LOCKED };
static atomic_int ledger;
static __thread bool stops_in_ledger;

void *tsearch(const void *key, void **root, int (*compare)(const void *, const void *))
{
	void *(*real)(const void *, void **, int (*)(const void *, const void *));
	*(void **)&real = dlsym(RTLD_NEXT, "tsearch");

	if (failing && count_down())
		return NULL;
	if (stops_in_ledger) {
		atomic_store(&ledger, HELD);
		wait_until(&ledger, FOUND_LOCKED);
	}
	return real(key, root, compare);
}

int pthread_mutex_trylock(pthread_mutex_t *mutex)
{
	int (*real)(pthread_mutex_t *);
	*(void **)&real = dlsym(RTLD_NEXT, "pthread_mutex_trylock");
	int result = real(mutex);

	if (result == EBUSY && atomic_load(&ledger) == HELD)
		atomic_store(&ledger, FOUND_LOCKED);
	return result;
}

static void *stop_in_ledger(void *unused)
{
	CUdeviceptr address;

	cuCtxSetCurrent(corner_context);
	stops_in_ledger = true;
	cuMemAlloc_v2(&address, BYTES);
	return NULL;
}

static int end(void)
{
	pthread_t thread;

	alarm(10);
	fill(4);
	if (pthread_create(&thread, NULL, stop_in_ledger, NULL))
		return 64;
	wait_until(&ledger, HELD);
	puts("a thread is in the ledger");
	exit(0);
}

/* -- nomem -------------------------------------------------------------------------------------------------------- */

/* Whole and usable, with the expected answers. */
static bool good(CUdeviceptr address, size_t bytes)
{
	size_t range = 0;
	unsigned type = 0, managed = 1;

	return !cuPointerGetAttribute(&range, CU_POINTER_ATTRIBUTE_RANGE_SIZE, address) && range == bytes &&
	       !cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, address) &&
	       type == CU_MEMORYTYPE_DEVICE &&
	       !cuPointerGetAttribute(&managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, address) && !managed &&
	       !cuMemsetD8_v2(address, 1, bytes) && !cuMemFree_v2(address);
}

/* Physical memory has no address to be right about. */
static CUresult take_handle(unsigned long long *handle, size_t bytes)
{
	const CUmemAllocationProp properties = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
	                                        .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};

	return cuMemCreate(handle, bytes, &properties, 0);
}

static int no_memory(char **words, bool handles)
{
	int filling = atoi(words[0]), refused = 0, served = 0;
	size_t bytes = strtoull(words[1], NULL, 10), before, after, total;

	dl_iterate_phdr(find_library, NULL);
	cuMemGetInfo_v2(&before, &total);
	fill(filling);
	/* Twice: things that the first round made and kept are there in the second. */
	for (int n = 1, left = 0, round = 0; n < 100 && round < 2; n = left ? 1 : n + 1, round += left > 0) {
		CUdeviceptr address = 0;

		failing = n;
		CUresult result = handles ? take_handle(&address, bytes) : cuMemAlloc_v2(&address, bytes);
		left = failing;
		failing = 0;
		if (result == CUDA_ERROR_OUT_OF_MEMORY && !address)
			refused++;
		else if (!result && (handles ? !cuMemRelease(address) : good(address, bytes)))
			served++;
		else
			say("neither served nor refused", result);
		if (left && result)
			say("nothing failed, but", result);
	}
	for (int i = 0; i < filling; i++)
		say("free", cuMemFree_v2(filled[i]));
	cuMemGetInfo_v2(&after, &total);
	printf("refused %d served %d lost %llu\n", refused, served, (unsigned long long)(before - after));
	return 0;
}

int main(int argc, char **argv)
{
	if (!start())
		return 1;
	if (argc == 2 && !strcmp(argv[1], "exit"))
		return end();
	if (argc == 4 && !strcmp(argv[1], "nomem"))
		return no_memory(&argv[2], false);
	if (argc == 4 && !strcmp(argv[1], "nomem-handle"))
		return no_memory(&argv[2], true);
	return 64;
}
