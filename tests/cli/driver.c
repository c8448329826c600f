/*
 * A libcuda.so.1 that fails as BROKEN_DRIVER says, at its start: hang, crash, exit, refuse; or it is old and has no device. It has what
 * libspill needs, all of which succeeds and does nothing.
 */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

EXPORT int succeed(void);
EXPORT int cuInit(unsigned flags);
EXPORT int cuDriverGetVersion(int *version);
EXPORT int cuDeviceGetCount(int *count);
EXPORT int cuGetErrorName(int error, const char **name);

int succeed(void)
{
	return 0;
}

/* These three are below. */
#define cuDriverGetVersion listed_version
#define cuDeviceGetCount listed_count
#define cuGetErrorName listed_name
#define NAMED_REQUIRED(symbol) EXPORT int symbol(void) __attribute__((alias("succeed")));
#define NAMED_OPTIONAL(symbol)
#define FUNCTION(needed, ret, symbol, params) NAMED_##needed(symbol)
#include "backend_cuda.def"
#undef cuDriverGetVersion
#undef cuDeviceGetCount
#undef cuGetErrorName

int cuInit(unsigned flags)
{
	const char *said = getenv("BROKEN_DRIVER"), *how = said ? said : "";

	if (!strcmp(how, "hang")) {
		for (;;)
			pause();
	}
	if (!strcmp(how, "crash")) {
		signal(SIGSEGV, SIG_DFL); /* a sanitizer has its own idea of it */
		raise(SIGSEGV);
	}
	if (!strcmp(how, "exit"))
		exit(0);
	return !strcmp(how, "refuse") ? 803 : 0;
}

int cuDriverGetVersion(int *version)
{
	*version = 12020;
	return 0;
}

int cuDeviceGetCount(int *count)
{
	*count = 0;
	return 0;
}

int cuGetErrorName(int error, const char **name)
{
	*name = "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH";
	return 0;
}
