/*
 * Asks how much memory there is, by the driver (-DWAY_DRIVER), the CUDA runtime (as it is) or HIP (-DHIP), and takes and frees some.
 * Prints one line a word.
 *
 *	device:N   makes it current             info       what is free and in all, by the current device
 *	total:N    in all, of any device        props:N    the same by the properties (rows of the driver: none)
 *	odd        the same questions with NULL and of devices that are none; the last error after each
 *	proc                                    HIP 6: the properties by each name that hipGetProcAddress knows
 *	alloc:MIB  free                         takes a buffer; gives all back
 *	pool:MIB                                the driver: takes and gives back in stream order, and waits for that
 *	cache:KEEP takes blocks of 4 MiB as long as more than KEEP MiB are said to be free
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if defined(WAY_DRIVER)
#include "cuda_api.h"
#elif defined(HIP)
#include "hip_api.h"
#include "hip_later_api.h"
#define CALL(name) hip##name
#elif defined(REAL_HEADERS)
#include <cuda_runtime_api.h>
#define CALL(name) cuda##name
#else
#include "cudart_api.h"
#define CALL(name) cuda##name
#endif

#define UNTOUCHED ((size_t)77)
#define MIB ((size_t)1 << 20)

#ifdef WAY_DRIVER

static int set_device(int device)
{
	CUcontext context;
	CUresult result = cuInit(0);
	if (!result)
		result = cuDevicePrimaryCtxRetain(&context, device);
	return result ? result : cuCtxSetCurrent(context);
}

static int info(size_t *free_bytes, size_t *total)
{
	return cuMemGetInfo_v2(free_bytes, total);
}

static int total_of(size_t *total, int device)
{
	return cuDeviceTotalMem_v2(total, device);
}

static int take(uint64_t *address, size_t bytes)
{
	return cuMemAlloc_v2((CUdeviceptr *)address, bytes);
}

static int give(uint64_t address)
{
	return cuMemFree_v2(address);
}

static int last_error(void)
{
	return 0;
}

static void pool(size_t bytes)
{
	CUdeviceptr address = 0;
	size_t during = 0, total;
	CUresult result = cuMemAllocAsync(&address, bytes, NULL);
	result = result ? result : cuMemGetInfo_v2(&during, &total);
	result = result ? result : cuMemFreeAsync(address, NULL);
	printf("pool %d %zu\n", result ? result : cuCtxSynchronize(), during);
}

#else

static int set_device(int device)
{
	return CALL(SetDevice)(device);
}

static int info(size_t *free_bytes, size_t *total)
{
	return CALL(MemGetInfo)(free_bytes, total);
}

static int take(uint64_t *address, size_t bytes)
{
	return CALL(Malloc)((void **)address, bytes);
}

static int give(uint64_t address)
{
	return CALL(Free)((void *)(uintptr_t)address);
}

static int last_error(void)
{
	return CALL(GetLastError)();
}

#endif

#if defined(HIP) && HIP_RELEASE >= 6
extern hipError_t hipGetDevicePropertiesR0600(struct hip_device_prop_6 *prop, int device);
extern hipError_t hipGetProcAddress(const char *symbol, void **pfn, int version, uint64_t flags,
                                    hipDriverProcAddressQueryResult *status);
typedef struct hip_device_prop_6 properties;
#define PROPERTIES hipGetDevicePropertiesR0600

/* The total has its old offset in ROCm 5's structure, and a later one in ROCm 6's. */
static void proc(void)
{
	static const struct {
		const char *name;
		int version;
		size_t at;
	} ways[] = {
	    {"hipGetDeviceProperties", 602, offsetof(struct hip_device_prop_6, totalGlobalMem)},
	    {"hipGetDevicePropertiesR0600", 602, offsetof(struct hip_device_prop_6, totalGlobalMem)},
	    {"hipGetDeviceProperties", 502, offsetof(hipDeviceProp_t, totalGlobalMem)},
	    {"hipGetDevicePropertiesR0000", 602, offsetof(hipDeviceProp_t, totalGlobalMem)},
	};
	for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
		_Alignas(8) unsigned char bytes[4096] = {0};
		hipError_t (*function)(void *, int);
		void *found;
		size_t total;
		if (hipGetProcAddress(ways[i].name, &found, ways[i].version, 0, NULL))
			exit(1);
		*(void **)&function = found;
		int result = function(bytes, 0);
		memcpy(&total, bytes + ways[i].at, sizeof(total));
		printf("proc %d %zu\n", result, total);
	}
}
#elif defined(HIP)
typedef hipDeviceProp_t properties;
#define PROPERTIES hipGetDeviceProperties
#elif !defined(WAY_DRIVER)
typedef struct cudaDeviceProp properties;
#define PROPERTIES cudaGetDeviceProperties
#endif

#ifdef PROPERTIES
/* All of it, so that a byte that is changed beside the total is seen. */
static int by_properties(size_t *total, int device, unsigned *others)
{
	properties all;
	unsigned sum = 0;
	memset(&all, 0x55, sizeof(all));
	int result = PROPERTIES(&all, device);
	*total = all.totalGlobalMem;
	all.totalGlobalMem = 0;
	for (size_t i = 0; i < sizeof(all); i++)
		sum = sum * 31 + ((unsigned char *)&all)[i];
	*others = sum;
	return result;
}
#endif

#ifdef HIP
static int total_of(size_t *total, int device)
{
	return hipDeviceTotalMem(total, device);
}
#endif

static uint64_t held[64];
static unsigned count;

static void say_info(const char *word, size_t *free_bytes, size_t *total)
{
	int result = info(free_bytes, total);
	printf("%s %d %zu %zu last %d\n", word, result, free_bytes ? *free_bytes : UNTOUCHED,
	       total ? *total : UNTOUCHED, last_error());
}

static void say_total(const char *word, int device)
{
	size_t total = UNTOUCHED;
#ifdef PROPERTIES
	if (strncmp(word, "props", 5) == 0) {
		unsigned others;
		int result = by_properties(&total, device, &others);
		printf("%s %d %zu others %u last %d\n", word, result, total, others, last_error());
		return;
	}
#endif
#if defined(WAY_DRIVER) || defined(HIP)
	int result = total_of(&total, device);
	printf("%s %d %zu last %d\n", word, result, total, last_error());
#endif
}

static void odd(void)
{
	size_t free_bytes = UNTOUCHED, total = UNTOUCHED;
	say_info("nothing", NULL, NULL);
	say_info("no-free", NULL, &total);
	say_info("no-total", &free_bytes, NULL);
	say_total("total:none", 99);
	say_total("total:negative", -1);
#ifdef PROPERTIES
	say_total("props:none", 99);
	printf("props:nowhere %d last %d\n", PROPERTIES(NULL, 0), last_error());
#endif
#if defined(WAY_DRIVER) || defined(HIP)
	printf("total:nowhere %d last %d\n", total_of(NULL, 0), last_error());
#endif
	(void)give(0x1000);
	say_info("behind-an-error", &free_bytes, &total);
}

static void cache(size_t keep)
{
	size_t free_bytes = 0, total;
	unsigned blocks = 0;
	while (info(&free_bytes, &total) == 0 && free_bytes >= (keep + 4) * MIB && count < 64 &&
	       take(&held[count], 4 * MIB) == 0) {
		count++;
		blocks++;
	}
	printf("cache %u\n", blocks);
}

static void run(const char *word)
{
	const char *colon = strchr(word, ':');
	int number = colon ? atoi(colon + 1) : 0;
	size_t free_bytes = UNTOUCHED, total = UNTOUCHED;
	if (strncmp(word, "device", 6) == 0) {
		printf("%s %d\n", word, set_device(number));
	} else if (strcmp(word, "info") == 0) {
		say_info(word, &free_bytes, &total);
	} else if (strncmp(word, "total", 5) == 0 || strncmp(word, "props", 5) == 0) {
		say_total(word, number);
	} else if (strcmp(word, "odd") == 0) {
		odd();
	} else if (strncmp(word, "alloc", 5) == 0) {
		int result = take(&held[count], (size_t)number * MIB);
		printf("%s %d\n", word, result);
		count += result == 0;
	} else if (strncmp(word, "cache", 5) == 0) {
		cache((size_t)number);
#ifdef WAY_DRIVER
	} else if (strncmp(word, "pool", 4) == 0) {
		pool((size_t)number * MIB);
#elif defined(HIP) && HIP_RELEASE >= 6
	} else if (strcmp(word, "proc") == 0) {
		proc();
#endif
	} else {
		while (count)
			(void)give(held[--count]);
	}
}

int main(int argc, char **argv)
{
	for (int i = 1; i < argc; i++)
		run(argv[i]);
	return 0;
}
