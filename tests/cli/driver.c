/*
 * A libcuda.so.1 that fails as BROKEN_DRIVER says. At its start: hang, crash, exit, refuse. Or it
 * is old and has no device. Or it has a device, and does not tell its attributes (hang-ask), fails
 * when it is first used (hang-touch, crash-touch), or copies slowly (slow) or never (hang-copy). It
 * has all functions that libspill needs; they succeed and do nothing.
 */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "abi/cuda.h"

#define EXPORT __attribute__((visibility("default")))

EXPORT int succeed(void);
EXPORT int cuInit(unsigned flags);
EXPORT int cuDriverGetVersion(int *version);
EXPORT int cuDeviceGetCount(int *count);
EXPORT int cuGetErrorName(int error, const char **name);
EXPORT int cuDeviceGetAttribute(int *value, int which, int device);
EXPORT int cuDeviceGetName(char *name, int length, int device);
EXPORT int cuMemGetInfo_v2(size_t *free, size_t *total);
EXPORT int cuMemHostAlloc(void **host, size_t bytes, unsigned flags);
EXPORT int cuDeviceTotalMem_v2(size_t *bytes, int device);
EXPORT int cuCtxGetCurrent(void **context);
EXPORT int cuCtxGetDevice(int *device);
EXPORT int cuDevicePrimaryCtxGetState(int device, unsigned *flags, int *active);
EXPORT int cuDevicePrimaryCtxRetain(void **context, int device);
EXPORT int cuMemcpy(unsigned long long to, unsigned long long from, size_t bytes);

int succeed(void)
{
	return 0;
}

/* These are below. */
#define cuDriverGetVersion listed_version
#define cuDeviceGetCount listed_count
#define cuGetErrorName listed_name
#define cuDeviceGetAttribute listed_attribute
#define cuDeviceGetName listed_device
#define cuMemGetInfo_v2 listed_info
#define cuMemHostAlloc listed_host
#define cuDeviceTotalMem_v2 listed_total
#define cuCtxGetCurrent listed_current
#define cuCtxGetDevice listed_ordinal
#define cuDevicePrimaryCtxGetState listed_state
#define cuDevicePrimaryCtxRetain listed_retain
#define NAMED_REQUIRED(symbol) EXPORT int symbol(void) __attribute__((alias("succeed")));
#define NAMED_OPTIONAL(symbol)
#define FUNCTION(needed, ret, symbol, params) NAMED_##needed(symbol)
#include "backend_cuda.def"
#undef cuDriverGetVersion
#undef cuDeviceGetCount
#undef cuGetErrorName
#undef cuDeviceGetAttribute
#undef cuDeviceGetName
#undef cuMemGetInfo_v2
#undef cuMemHostAlloc
#undef cuDeviceTotalMem_v2
#undef cuCtxGetCurrent
#undef cuCtxGetDevice
#undef cuDevicePrimaryCtxGetState
#undef cuDevicePrimaryCtxRetain

static int is(const char *word)
{
	const char *how = getenv("BROKEN_DRIVER");

	return how && !strcmp(how, word);
}

static void wait_for_ever(void)
{
	for (;;)
		pause();
}

static void crash(void)
{
	signal(SIGSEGV, SIG_DFL); /* a sanitizer has its own idea of it */
	raise(SIGSEGV);
}

int cuInit(unsigned flags)
{
	if (is("hang"))
		wait_for_ever();
	if (is("crash"))
		crash();
	if (is("exit"))
		exit(0);
	return is("refuse") ? 803 : 0;
}

int cuDriverGetVersion(int *version)
{
	*version = 11080;
	return 0;
}

int cuDeviceGetCount(int *count)
{
	*count = is("slow") || is("hang-copy") || is("hang-touch") || is("crash-touch") || is("hang-ask");
	return 0;
}

/* The device is counted by then. */
int cuDeviceGetAttribute(int *value, int which, int device)
{
	if (is("hang-ask") && which == CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS)
		wait_for_ever();
	*value = 0;
	return 0;
}

int cuDeviceGetName(char *name, int length, int device)
{
	strncpy(name, "Slow", (size_t)length);
	return 0;
}

int cuMemGetInfo_v2(size_t *free, size_t *total)
{
	*free = *total = (size_t)1 << 30;
	return 0;
}

int cuDeviceTotalMem_v2(size_t *bytes, int device)
{
	*bytes = (size_t)1 << 30;
	return 0;
}

int cuCtxGetCurrent(void **context)
{
	*context = NULL;
	return 0;
}

int cuCtxGetDevice(int *device)
{
	*device = 0;
	return 0;
}

int cuDevicePrimaryCtxGetState(int device, unsigned *flags, int *active)
{
	*flags = 0;
	*active = 0;
	return 0;
}

int cuDevicePrimaryCtxRetain(void **context, int device)
{
	static int one;

	if (is("hang-touch"))
		wait_for_ever();
	if (is("crash-touch"))
		crash();
	*context = &one;
	return 0;
}

int cuMemHostAlloc(void **host, size_t bytes, unsigned flags)
{
	*host = malloc(bytes);
	return *host ? 0 : 2;
}

/* 64 MiB in at least 20 ms are at most 3.4 GB/s. */
int cuMemcpy(unsigned long long to, unsigned long long from, size_t bytes)
{
	if (is("hang-copy"))
		wait_for_ever();
	return nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
}

int cuGetErrorName(int error, const char **name)
{
	*name = "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH";
	return 0;
}
