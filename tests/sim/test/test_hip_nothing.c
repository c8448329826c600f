/*
 * Each function with arguments of 0 returns the vendor's result, and never crashes. Twelve zeros
 * serve every prototype: they are in registers and on the stack for any function.
 */
#include <dlfcn.h>

#include "hip_test.h"

typedef long (*any)(long, long, long, long, long, long, long, long, long, long, long, long);

static long call(const char *name)
{
	void *found = dlsym(RTLD_DEFAULT, name);

	CHECK_TRUE(found);
	return found ? (int)((any)found)(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0) : -1;
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
