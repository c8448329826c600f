/*
 * Green contexts, after the CUDA Driver API and an H200 with driver 580.159 (tests/sim/test/test_driver_green.c). A
 * handle of an ended one stays current and can be pushed, and all other calls refuse it; the real driver may crash.
 */
#include "green.h"

#include <pthread.h>
#include <string.h>

#define GREENS 64 /* in a process; none is used twice */
#define STREAMS 1024
#define SMS 132u
#define LEAST_SMS 8u
#define FIRST_ID 1000

struct CUdevResourceDesc_st {
	unsigned count;
};

struct sim_green {
	struct sim_context *primary; /* NULL: it has ended */
	struct sim_stream *stream;
	CUdevice device;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct sim_green greens[GREENS];
static unsigned used_greens;
static struct CUdevResourceDesc_st descriptions[GREENS];
static unsigned used_descriptions;
static struct {
	struct sim_green *green;
	struct sim_stream *stream;
} streams[STREAMS];
static unsigned used_streams;

struct sim_green *driver_green(CUcontext handle)
{
	struct sim_green *green = (struct sim_green *)handle;
	return green >= greens && green < greens + GREENS ? green : NULL;
}

struct sim_context *driver_green_primary(struct sim_green *green)
{
	pthread_mutex_lock(&lock);
	struct sim_context *primary = green->primary;
	pthread_mutex_unlock(&lock);
	return primary;
}

struct sim_stream *driver_green_default(struct sim_green *green)
{
	return green->stream;
}

CUdevice driver_green_device(const struct sim_green *green)
{
	return green->device;
}

bool driver_green_any(CUdevice device)
{
	bool any = false;
	pthread_mutex_lock(&lock);
	for (unsigned i = 0; i < used_greens; i++)
		any = any || (greens[i].primary && greens[i].device == device);
	pthread_mutex_unlock(&lock);
	return any;
}

unsigned long long driver_green_id(const struct sim_green *green)
{
	return FIRST_ID + (unsigned long long)(green - greens);
}

struct sim_green *driver_green_of_stream(struct sim_stream *stream)
{
	struct sim_green *found = NULL;
	pthread_mutex_lock(&lock);
	for (unsigned i = 0; i < used_streams; i++)
		if (streams[i].stream == stream)
			found = streams[i].green;
	pthread_mutex_unlock(&lock);
	return found;
}

/* A handle of a stream that ended comes back: the last one counts. */
void driver_green_made_stream(struct sim_green *green, struct sim_stream *stream)
{
	unsigned i = 0;
	pthread_mutex_lock(&lock);
	while (i < used_streams && streams[i].stream != stream)
		i++;
	if (i < STREAMS && (green || i < used_streams)) {
		streams[i].stream = stream;
		streams[i].green = green;
		if (i == used_streams)
			used_streams++;
	}
	pthread_mutex_unlock(&lock);
}

CUresult driver_green_synchronize(struct sim_green *green)
{
	CUresult result = driver_result(sim_stream_synchronize(green->stream));
	for (unsigned i = 0; i < used_streams && !result; i++)
		if (streams[i].green == green && sim_stream_alive(streams[i].stream))
			result = driver_result(sim_stream_synchronize(streams[i].stream));
	return result;
}

CUresult cuDeviceGetDevResource(CUdevice device, CUdevResource *resource, CUdevResourceType type)
{
	ENTER(cuDeviceGetDevResource, INIT);
	if (!resource)
		return CUDA_ERROR_INVALID_VALUE;
	if (!driver_device(device))
		return CUDA_ERROR_INVALID_DEVICE;
	if (type != CU_DEV_RESOURCE_TYPE_SM)
		return CUDA_ERROR_INVALID_RESOURCE_TYPE;
	memset(resource, 0, sizeof(*resource));
	resource->type = type;
	resource->sm.smCount = SMS;
	resource->sm.minSmPartitionSize = resource->sm.smCoscheduledAlignment = LEAST_SMS;
	return CUDA_SUCCESS;
}

CUresult cuDevSmResourceSplitByCount(CUdevResource *result, unsigned int *nbGroups,
                                     const CUdevResource *input, CUdevResource *remaining, unsigned int flags,
                                     unsigned int minCount)
{
	ENTER(cuDevSmResourceSplitByCount, INIT);
	if (!nbGroups || !input || input->type != CU_DEV_RESOURCE_TYPE_SM)
		return CUDA_ERROR_INVALID_VALUE;
	unsigned size = (minCount + LEAST_SMS - 1) / LEAST_SMS * LEAST_SMS;
	size = size ? size : LEAST_SMS;
	unsigned most = input->sm.smCount / size;
	if (!result) {
		*nbGroups = most;
		return CUDA_SUCCESS;
	}
	if (!most)
		return CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION;
	*nbGroups = *nbGroups < most ? *nbGroups : most;
	for (unsigned i = 0; i < *nbGroups; i++) {
		result[i] = *input;
		result[i].sm.smCount = size;
	}
	if (remaining) {
		*remaining = *input;
		remaining->sm.smCount = input->sm.smCount - *nbGroups * size;
	}
	return CUDA_SUCCESS;
}

CUresult cuDevResourceGenerateDesc(CUdevResourceDesc *phDesc, CUdevResource *resources,
                                   unsigned int nbResources)
{
	ENTER(cuDevResourceGenerateDesc, INIT);
	if (!phDesc || !resources || !nbResources)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&lock);
	struct CUdevResourceDesc_st *made = &descriptions[used_descriptions++ % GREENS];
	made->count = resources[0].sm.smCount;
	pthread_mutex_unlock(&lock);
	*phDesc = made;
	return CUDA_SUCCESS;
}

/* Holds a reference to the primary context until it ends. */
CUresult cuGreenCtxCreate(CUgreenCtx *phCtx, CUdevResourceDesc desc, CUdevice dev, unsigned int flags)
{
	CUcontext primary;
	struct sim_stream *stream;

	ENTER(cuGreenCtxCreate, INIT);
	if (!phCtx || !desc || flags != CU_GREEN_CTX_DEFAULT_STREAM)
		return CUDA_ERROR_INVALID_VALUE;
	if (!driver_device(dev))
		return CUDA_ERROR_INVALID_DEVICE;
	CUresult result = cuDevicePrimaryCtxRetain(&primary, dev);
	if (result)
		return result;
	result = driver_result(sim_stream_create((struct sim_context *)primary, true, 0, &stream));
	pthread_mutex_lock(&lock);
	struct sim_green *green = used_greens < GREENS && !result ? &greens[used_greens++] : NULL;
	if (green)
		*green = (struct sim_green){(struct sim_context *)primary, stream, dev};
	pthread_mutex_unlock(&lock);
	if (!green) {
		cuDevicePrimaryCtxRelease_v2(dev);
		return result ? result : CUDA_ERROR_OUT_OF_MEMORY;
	}
	*phCtx = (CUgreenCtx)green;
	return CUDA_SUCCESS;
}

/* NULL: the handle is none's, or it has ended. */
static struct sim_green *alive(CUgreenCtx handle)
{
	struct sim_green *green = driver_green((CUcontext)handle);
	return green && driver_green_primary(green) ? green : NULL;
}

CUresult cuGreenCtxDestroy(CUgreenCtx hCtx)
{
	ENTER(cuGreenCtxDestroy, INIT);
	struct sim_green *green = alive(hCtx);
	if (!green)
		return hCtx ? CUDA_ERROR_CONTEXT_IS_DESTROYED : CUDA_ERROR_INVALID_CONTEXT;
	sim_stream_destroy(green->stream);
	pthread_mutex_lock(&lock);
	green->primary = NULL;
	pthread_mutex_unlock(&lock);
	return cuDevicePrimaryCtxRelease_v2(green->device);
}

CUresult cuCtxFromGreenCtx(CUcontext *pContext, CUgreenCtx hCtx)
{
	ENTER(cuCtxFromGreenCtx, INIT);
	if (!pContext)
		return CUDA_ERROR_INVALID_VALUE;
	if (!alive(hCtx))
		return CUDA_ERROR_INVALID_CONTEXT;
	*pContext = (CUcontext)hCtx;
	return CUDA_SUCCESS;
}

CUresult cuGreenCtxStreamCreate(CUstream *phStream, CUgreenCtx greenCtx, unsigned int flags, int priority)
{
	struct sim_stream *stream;

	ENTER(cuGreenCtxStreamCreate, INIT);
	if (!phStream || flags != CU_STREAM_NON_BLOCKING)
		return CUDA_ERROR_INVALID_VALUE;
	struct sim_green *green = alive(greenCtx);
	if (!green)
		return CUDA_ERROR_INVALID_HANDLE;
	CUresult result = driver_result(sim_stream_create(green->primary, true, priority, &stream));
	if (result)
		return result;
	driver_green_made_stream(green, stream);
	*phStream = (CUstream)stream;
	return CUDA_SUCCESS;
}
