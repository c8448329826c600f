/* Errors, and the last error: per thread, cleared by a read, overwritten as in hip_leave. */
#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "hip_entry.h"

static _Thread_local hipError_t last_error;
static _Thread_local hipError_t last_result; /* of any call, for hipExtGetLastError (ROCm 6) */
static bool sticky;

static void read_rule(void)
{
	const char *rule = getenv("SPILL_SIM_LAST_ERROR");

	sticky = rule ? strcmp(rule, "sticky") == 0 : HIP_RELEASE >= 7;
}

static const struct {
	hipError_t error;
	const char *name;
} errors[] = {
#define ERROR(number, name) {(hipError_t)number, #name},
#include "hip_errors.def"
};

hipError_t hip_error(enum sim_status status)
{
	switch (status) {
	case SIM_OK:
		return hipSuccess;
	case SIM_INVALID:
		return hipErrorInvalidValue;
	case SIM_NO_MEMORY:
	case SIM_NO_HOST_MEMORY:
		return hipErrorOutOfMemory;
	case SIM_NO_DEVICE:
		return HIP_RELEASE < 6 ? hipErrorInvalidDevice : hipErrorNoDevice;
	case SIM_FORKED:
		return hipErrorNotInitialized;
	case SIM_NOT_READY:
		return hipErrorNotReady;
	case SIM_NOT_FOUND:
		return hipErrorNotFound;
	case SIM_BAD_IMAGE:
		return hipErrorInvalidImage;
	case SIM_NOT_SUPPORTED:
		return hipErrorNotSupported;
	case SIM_BAD_CONTEXT:
		return hipErrorInvalidContext;
	case SIM_ILLEGAL_ADDRESS: /* a real ROCm 5 prints a memory access fault and aborts the process */
		return hipErrorIllegalAddress;
	case SIM_LAUNCH_FAILED:
		return hipErrorLaunchFailure;
	case SIM_ALREADY:
		return hipErrorHostMemoryAlreadyRegistered;
	case SIM_NOT_REGISTERED:
		return hipErrorHostMemoryNotRegistered;
	case SIM_CAPTURE_UNSUPPORTED:
		return hipErrorStreamCaptureUnsupported;
	case SIM_CAPTURE_INVALIDATED:
		return hipErrorStreamCaptureInvalidated;
	case SIM_CAPTURE_MERGE:
		return hipErrorStreamCaptureMerge;
	case SIM_CAPTURE_UNMATCHED:
		return hipErrorStreamCaptureUnmatched;
	case SIM_CAPTURE_UNJOINED:
		return hipErrorStreamCaptureUnjoined;
	case SIM_CAPTURE_ISOLATION:
		return hipErrorStreamCaptureIsolation;
	case SIM_CAPTURE_IMPLICIT:
		return hipErrorStreamCaptureImplicit;
	case SIM_CAPTURE_EVENT:
		return hipErrorCapturedEvent;
	case SIM_CAPTURE_WRONG_THREAD:
		return hipErrorStreamCaptureWrongThread;
	case SIM_CAPTURE_STATE:
		return hipErrorIllegalState;
	case SIM_UNKNOWN:
		return hipErrorUnknown;
	}
	return hipErrorUnknown;
}

hipError_t hip_enter(const char *symbol, const void *caller)
{
	int code;
	enum sim_status status = sim_init();

	if (status != SIM_OK)
		return hip_error(status);
	if (!sim_fault(symbol, NULL, caller, &code))
		return hipSuccess;
	return code < 0 ? hipErrorOutOfMemory : (hipError_t)code;
}

hipError_t hip_leave(hipError_t error)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, read_rule);
	last_result = error;
	if (!sticky || (error != hipSuccess && error != hipErrorNotReady))
		last_error = error;
	return error;
}

hipError_t hip_last_result(void)
{
	hipError_t error = last_result;

	last_result = hipSuccess;
	return error;
}

hipError_t hip_missing(const char *name)
{
	hipError_t error = hip_enter(name, __builtin_return_address(0));

	if (!error)
		sim_missing(name);
	return hip_leave(error ? error : hipErrorNotSupported);
}

hipError_t hipGetLastError(void)
{
	HIP_ENTER();
	hipError_t error = last_error;
	last_error = hipSuccess;
	return error;
}

hipError_t hipPeekAtLastError(void)
{
	HIP_ENTER();
	return last_error;
}

const char *hipGetErrorName(hipError_t hip_error)
{
	for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++) {
		if (errors[i].error == hip_error)
			return errors[i].name;
	}
	return "hipErrorUnknown";
}

const char *hipGetErrorString(hipError_t hipError)
{
	return hipGetErrorName(hipError);
}
