/*
 * Each function with arguments of 0 returns the vendor's result, and never crashes. Twelve zeros
 * serve every prototype: they are in registers and on the stack for any function.
 */
#include <dlfcn.h>

#include "hip_test.h"

typedef long (*any)(long, long, long, long, long, long, long, long, long, long, long, long);

#define ARGUMENTS 12

#ifdef __x86_64__
static void pass_structs(const char *name, long *arguments)
{
}
#else
/* Elsewhere a large struct is passed by its address, which is never 0. */
static void pass_structs(const char *name, long *arguments)
{
	static const char zeros[64];
	static const struct {
		const char *name;
		unsigned place; /* of the struct among the arguments */
	} structs[] = {
	    {"hipMalloc3D", 1},
	    {"hipMalloc3DArray", 2},
	    {"hipMallocMipmappedArray", 2},
	    {"hipIpcOpenMemHandle", 1},
	};

	for (unsigned i = 0; i < sizeof(structs) / sizeof(structs[0]); i++)
		if (!strcmp(structs[i].name, name))
			arguments[structs[i].place] = (long)zeros;
}
#endif

static long call(const char *name)
{
	long a[ARGUMENTS] = {0};
	void *found = dlsym(RTLD_DEFAULT, name);

	CHECK_TRUE(found);
	if (!found)
		return -1;
	pass_structs(name, a);
	return (int)((any)found)(a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7], a[8], a[9], a[10], a[11]);
}

/* These functions accept arguments of 0. All others must refuse them. */
static const struct {
	const char *name;
	hipError_t answer;
} known[] = {
    {"hipInit", hipSuccess},
    {"hipSetDevice", hipSuccess},
    {"hipSetDeviceFlags", hipSuccess},
    {"hipDeviceSynchronize", hipSuccess},
    {"hipDeviceReset", hipSuccess},
    {"hipFree", hipSuccess},
    {"hipHostFree", hipSuccess},
    {"hipFreeHost", hipSuccess},
    {"hipStreamSynchronize", hipSuccess},
    {"hipStreamQuery", hipSuccess},
    {"hipDeviceGetStreamPriorityRange", hipSuccess},
    {"hipDevicePrimaryCtxRelease", hipSuccess},
    {"hipDevicePrimaryCtxReset", hipSuccess},
    {"hipDevicePrimaryCtxGetState", hipSuccess},
    {"hipCtxSetCurrent", hipSuccess},
    {"hipMemcpy", hipSuccess},
    {"hipMemcpyAsync", hipSuccess},
    {"hipMemcpyHtoD", hipSuccess},
    {"hipMemcpyDtoH", hipSuccess},
    {"hipMemcpyDtoD", hipSuccess},
    {"hipMemcpyHtoDAsync", hipSuccess},
    {"hipMemcpyDtoHAsync", hipSuccess},
    {"hipMemcpyDtoDAsync", hipSuccess},
    {"hipMemset", hipSuccess},
    {"hipMemsetAsync", hipSuccess},
    {"hipMemsetD8", hipSuccess},
    {"hipMemsetD8Async", hipSuccess},
    {"hipMemsetD32", hipSuccess},
    {"hipMemsetD32Async", hipSuccess},
    {"hipMemcpy2D", hipSuccess},
    {"hipMemcpy2DAsync", hipSuccess},
    {"hipMemset2D", hipSuccess},
    {"hipMemset2DAsync", hipSuccess},
    {"hipStreamUpdateCaptureDependencies", hipErrorIllegalState},
    {"hipMemGetAddressRange", hipErrorInvalidDevicePointer},
    {"hipHostUnregister", hipErrorHostMemoryNotRegistered},
    {"hipDeviceEnablePeerAccess", hipErrorInvalidDevice},
    {"hipDeviceDisablePeerAccess", hipErrorInvalidDevice},
    {"hipDevicePrimaryCtxSetFlags", hipErrorContextAlreadyInUse},
    {"hipCtxPushCurrent", hipErrorInvalidContext},
    {"hipCtxPopCurrent", hipErrorInvalidContext},
    {"hipStreamBeginCapture", hipErrorStreamCaptureUnsupported},
    {"hipStreamDestroy", hipErrorInvalidHandle},
    {"hipStreamWaitEvent", hipErrorInvalidHandle},
    {"hipEventDestroy", hipErrorInvalidHandle},
    {"hipEventRecord", hipErrorInvalidHandle},
    {"hipEventQuery", hipErrorInvalidHandle},
    {"hipEventSynchronize", hipErrorInvalidHandle},
    {"hipModuleUnload", hipErrorInvalidHandle},
    {"hipModuleLaunchKernel", hipErrorInvalidHandle},
};

static hipError_t answer_of(const char *name)
{
	for (unsigned i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (!strcmp(known[i].name, name))
			return known[i].answer;
	return hipErrorInvalidValue;
}

static void check_row(const char *name)
{
	if (strstr(name, "LastError")) /* has no arguments, and returns an earlier result */
		return;
	long got = call(name), wanted = answer_of(name);

	check_count++;
	if (got != wanted) {
		check_failures++;
		printf("%s of nothing is %ld, not %ld\n", name, got, wanted);
	}
}

int main(void)
{
#define API(node, ret, name, params) \
	if (strncmp(#ret, "const", 5) != 0) \
		check_row(#name);
#include "hip_api.def"
	CHECK_TRUE(hipGetErrorName(hipSuccess) && hipGetErrorString(hipSuccess));
	return check_result();
}
