/* A driver in place of CUDA's. It says which calls are made, and refuses one of them by its word. */
#ifndef SPILL_TEST_CUDA_DRIVER_H
#define SPILL_TEST_CUDA_DRIVER_H

#include <string.h>

#include "abi/cuda.h"
#include "backend.h"
#include "backend_cuda.h"
#include "ended.h"
#include "said.h"
#include "unit.h"

enum { REFUSED = 700, DEVICE = 3, OTHER = 4 };

static char contexts[3]; /* those of DEVICE and OTHER, and a green one of DEVICE */
#define OWN ((CUcontext)&contexts[0])
#define ELSEWHERE ((CUcontext)&contexts[1])
#define GREEN ((CUcontext)&contexts[2])

static struct {
	CUcontext stack[4];
	unsigned depth;
	const char *refused; /* the call with this word */
	bool keeps;          /* a refused pop, or free, has no effect */
	CUresult alloc;      /* of a small allocation */
	bool active;         /* the primary context of DEVICE, as the driver tells it */
	int count;
	const char *name;
	CUcontext owner; /* of any stream */
	CUstreamCaptureStatus status;
} world;

static CUresult answer(const char *word, uint64_t number)
{
	say(word, number);
	return world.refused && !strcmp(world.refused, word) ? (CUresult)REFUSED : CUDA_SUCCESS;
}

static uint64_t number_of(CUcontext context)
{
	return context == OWN || context == GREEN ? DEVICE : context == ELSEWHERE ? OTHER : 0;
}

/* -- in place of the driver -------------------------------------------------------------------- */

static CUresult current_context(CUcontext *context)
{
	*context = world.depth ? world.stack[world.depth - 1] : NULL;
	return CUDA_SUCCESS;
}

static CUresult current_device(CUdevice *device)
{
	*device = world.depth ? (int)number_of(world.stack[world.depth - 1]) : 0;
	return !world.depth                                        ? CUDA_ERROR_INVALID_CONTEXT
	       : world.refused && !strcmp(world.refused, "device") ? REFUSED
	                                                           : CUDA_SUCCESS;
}

static CUresult push(CUcontext context)
{
	CUresult result = answer("push", number_of(context));
	if (!result)
		world.stack[world.depth++] = context;
	return result;
}

static CUresult pop(CUcontext *context)
{
	CUresult result = answer("pop", number_of(world.stack[world.depth - 1]));
	if (!result || !world.keeps)
		*context = world.stack[--world.depth];
	if (result)
		world.refused = NULL; /* once */
	return result;
}

static CUresult memory(size_t *free, size_t *total)
{
	*free = 10;
	*total = 20;
	return answer("memory", 0);
}

static CUresult total_memory(size_t *total, CUdevice device)
{
	*total = 1000 + (size_t)device;
	return answer("total", (uint64_t)device);
}

static CUresult primary_state(CUdevice device, unsigned int *flags, int *active)
{
	*active = world.active && device == DEVICE;
	return CUDA_SUCCESS;
}

static CUresult context_id(CUcontext context, unsigned long long *id)
{
	*id = 77;
	return answer("id", number_of(context));
}

static CUresult stream_context(CUstream stream, CUcontext *context)
{
	*context = world.owner;
	return answer("stream", 0);
}

static CUresult is_capturing(CUstream stream, CUstreamCaptureStatus *status)
{
	*status = world.status;
	return world.refused ? REFUSED : CUDA_SUCCESS;
}

static CUresult small_alloc(CUdeviceptr *ptr, size_t bytes)
{
	*ptr = 55;
	say("alloc", bytes);
	return world.alloc;
}

static CUresult small_free(CUdeviceptr ptr)
{
	return answer("free", ptr);
}

static CUresult page_alloc(void **page, size_t bytes, unsigned int flags)
{
	*page = &world;
	return answer("page", bytes);
}

static CUresult page_free(void *page)
{
	assert_ptr_equal(page, &world);
	return answer("unpage", 0);
}

static CUresult exchange(CUstreamCaptureMode *mode)
{
	CUstreamCaptureMode wanted = *mode;
	*mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
	say("mode", wanted);
	return CUDA_SUCCESS;
}

static CUresult device_handle(CUdevice *handle, int ordinal)
{
	*handle = ordinal + 10;
	return answer("handle", (uint64_t)ordinal);
}

static CUresult device_name(char *name, int size, CUdevice handle)
{
	snprintf(name, (size_t)size, "device %d", handle);
	return CUDA_SUCCESS;
}

static CUresult uuid(CUuuid *out, CUdevice handle)
{
	for (int i = 0; i < 16; i++)
		out->bytes[i] = (char)(0x12 + 0x11 * i);
	return answer("uuid", (uint64_t)handle);
}

static CUresult uuid_of_instance(CUuuid *out, CUdevice handle)
{
	memset(out->bytes, 0xab, sizeof(out->bytes));
	return answer("instance", (uint64_t)handle);
}

static CUresult bus(char *text, int size, CUdevice handle)
{
	snprintf(text, (size_t)size, "0000:%02d:00.0", handle);
	return CUDA_SUCCESS;
}

static CUresult device_count(int *count)
{
	*count = world.count;
	return answer("count", 0);
}

static CUresult version(int *version)
{
	*version = 12040;
	return CUDA_SUCCESS;
}

static CUresult error_text(CUresult error, const char **name)
{
	*name = world.name;
	return answer("name", (uint64_t)error);
}

static CUresult kernel_name(const char **name, CUkernel kernel)
{
	*name = "of a kernel";
	return answer("kernel", 0);
}

static CUresult function_name(const char **name, CUfunction function)
{
	*name = "of a function";
	return answer("function", 0);
}

/* ---------------------------------------------------------------------------------------------- */

static const struct spill_vendor_devices *devices;

static int setup(void **state)
{
	spill_cuda_contexts.ended(ENDED(&spill_backend_cuda, DEVICE, OWN));
	memset(&world, 0, sizeof(world));
	world.count = 2;
	spill_cuda = (struct spill_cuda){.cuCtxGetCurrent = current_context,
	                                 .cuCtxGetDevice = current_device,
	                                 .cuCtxPushCurrent_v2 = push,
	                                 .cuCtxPopCurrent_v2 = pop,
	                                 .cuMemGetInfo_v2 = memory,
	                                 .cuDeviceTotalMem_v2 = total_memory,
	                                 .cuDevicePrimaryCtxGetState = primary_state,
	                                 .cuCtxGetId = context_id,
	                                 .cuStreamGetCtx = stream_context,
	                                 .cuStreamIsCapturing = is_capturing,
	                                 .cuMemAlloc_v2 = small_alloc,
	                                 .cuMemFree_v2 = small_free,
	                                 .cuMemHostAlloc = page_alloc,
	                                 .cuMemFreeHost = page_free,
	                                 .cuThreadExchangeStreamCaptureMode = exchange,
	                                 .cuDeviceGet = device_handle,
	                                 .cuDeviceGetName = device_name,
	                                 .cuDeviceGetUuid = uuid,
	                                 .cuDeviceGetUuid_v2 = uuid_of_instance,
	                                 .cuDeviceGetPCIBusId = bus,
	                                 .cuDeviceGetCount = device_count,
	                                 .cuDriverGetVersion = version,
	                                 .cuGetErrorName = error_text,
	                                 .cuKernelGetName = kernel_name,
	                                 .cuFuncGetName = function_name};
	devices = spill_backend_cuda.devices;
	what_was_said();
	return 0;
}

static void be_current(CUcontext context)
{
	world.stack[0] = context;
	world.depth = context ? 1 : 0;
}

/* The primary context of DEVICE is there, and libspill saw the program make it. */
static void be_active(void)
{
	world.active = true;
	spill_cuda_contexts.primary_retained(DEVICE, OWN);
}

#endif
