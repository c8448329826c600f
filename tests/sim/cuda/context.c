/* Contexts: a stack per thread, and one primary context per device. */
#include <pthread.h>

#include "green.h"

#define DEPTH 64

static __thread struct {
	unsigned depth;
	CUcontext context[DEPTH];
} stack;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
	struct sim_context *context;
	unsigned references, flags;
} primary[SIM_DEVICES];

struct face { /* in sim_context_face */
	unsigned flags;
	unsigned version;
	int cache;
	size_t limit[7];
};

static const size_t limits[7] = {1024, 1 << 20, 8 << 20, 2, 2048, 128, 0};

static struct face *face_of(struct sim_context *context)
{
	_Static_assert(sizeof(struct face) <= SIM_FACE, "the core keeps that much");
	return sim_context_face(context);
}

static CUcontext handle_of(struct sim_context *context)
{
	return (CUcontext)context;
}

/* Of a green one: the primary context; NULL if it has ended. */
static struct sim_context *context_of(CUcontext context)
{
	struct sim_green *green = driver_green(context);
	return green ? driver_green_primary(green) : (struct sim_context *)context;
}

static CUcontext current_handle(void)
{
	return stack.depth ? stack.context[stack.depth - 1] : NULL;
}

struct sim_context *driver_current(void)
{
	return context_of(current_handle());
}

struct sim_green *driver_current_green(void)
{
	return driver_green(current_handle());
}

static CUresult push_context(CUcontext context)
{
	if (stack.depth == DEPTH)
		return CUDA_ERROR_INVALID_VALUE;
	stack.context[stack.depth++] = context;
	return CUDA_SUCCESS;
}

static CUresult create_context(CUdevice device, unsigned flags, unsigned version, struct sim_context **out)
{
	CUresult result = driver_result(sim_context_create(device, out));

	if (!result) {
		struct face *face = face_of(*out);

		face->flags = flags;
		face->version = version;
		for (unsigned i = 0; i < 7; i++)
			face->limit[i] = limits[i];
	}
	return result;
}

static CUresult destroy_context(struct sim_context *context)
{
	return driver_result(sim_context_destroy(context));
}

/* -- primary contexts -------------------------------------------------------------------------- */

CUresult cuDevicePrimaryCtxRetain(CUcontext *pctx, CUdevice dev)
{
	CUresult result = CUDA_SUCCESS;

	ENTER(cuDevicePrimaryCtxRetain, INIT);
	if (!pctx)
		return CUDA_ERROR_INVALID_VALUE;
	if (!driver_device(dev))
		return CUDA_ERROR_INVALID_DEVICE;
	pthread_mutex_lock(&lock);
	if (!primary[dev].context)
		result = create_context(dev, primary[dev].flags, 3020, &primary[dev].context);
	if (!result) {
		primary[dev].references++;
		*pctx = handle_of(primary[dev].context);
	}
	pthread_mutex_unlock(&lock);
	return result;
}

/* Takes out the primary context if it must end. */
static CUresult give_up(CUdevice dev, bool all)
{
	struct sim_context *gone = NULL;
	CUresult result = CUDA_SUCCESS;

	if (!driver_device(dev))
		return CUDA_ERROR_INVALID_DEVICE;
	pthread_mutex_lock(&lock);
	if (!primary[dev].context) {
		result = all ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
	} else if (all || --primary[dev].references == 0) {
		gone = primary[dev].context;
		primary[dev].context = NULL;
		primary[dev].references = 0;
	}
	pthread_mutex_unlock(&lock);
	return gone ? destroy_context(gone) : result;
}

CUresult cuDevicePrimaryCtxRelease_v2(CUdevice dev)
{
	ENTER(cuDevicePrimaryCtxRelease_v2, INIT);
	return give_up(dev, false);
}

CUresult cuDevicePrimaryCtxRelease(CUdevice dev)
{
	ENTER(cuDevicePrimaryCtxRelease, INIT);
	return give_up(dev, false);
}

CUresult cuDevicePrimaryCtxReset_v2(CUdevice dev)
{
	ENTER(cuDevicePrimaryCtxReset_v2, INIT);
	return driver_green_any(dev) ? CUDA_ERROR_NOT_PERMITTED : give_up(dev, true);
}

CUresult cuDevicePrimaryCtxReset(CUdevice dev)
{
	ENTER(cuDevicePrimaryCtxReset, INIT);
	return driver_green_any(dev) ? CUDA_ERROR_NOT_PERMITTED : give_up(dev, true);
}

CUresult cuDevicePrimaryCtxGetState(CUdevice dev, unsigned int *flags, int *active)
{
	ENTER(cuDevicePrimaryCtxGetState, INIT);
	if (!flags || !active)
		return CUDA_ERROR_INVALID_VALUE;
	if (!driver_device(dev))
		return CUDA_ERROR_INVALID_DEVICE;
	pthread_mutex_lock(&lock);
	*flags = primary[dev].flags;
	*active = primary[dev].context != NULL;
	pthread_mutex_unlock(&lock);
	return CUDA_SUCCESS;
}

static CUresult set_flags(CUdevice dev, unsigned flags)
{
	if (!driver_device(dev))
		return CUDA_ERROR_INVALID_DEVICE;
	if (flags & ~0xffu)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&lock);
	primary[dev].flags = flags;
	if (primary[dev].context)
		face_of(primary[dev].context)->flags = flags;
	pthread_mutex_unlock(&lock);
	return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxSetFlags_v2(CUdevice dev, unsigned int flags)
{
	ENTER(cuDevicePrimaryCtxSetFlags_v2, INIT);
	return set_flags(dev, flags);
}

CUresult cuDevicePrimaryCtxSetFlags(CUdevice dev, unsigned int flags)
{
	ENTER(cuDevicePrimaryCtxSetFlags, INIT);
	return set_flags(dev, flags);
}

/* -- others ------------------------------------------------------------------------------------ */

static CUresult create_current(CUcontext *pctx, unsigned flags, unsigned version, CUdevice dev)
{
	struct sim_context *context;

	if (!pctx || flags & ~0xffu)
		return CUDA_ERROR_INVALID_VALUE;
	if (!driver_device(dev))
		return CUDA_ERROR_INVALID_DEVICE;
	CUresult result = create_context(dev, flags, version, &context);
	if (!result) {
		result = push_context(handle_of(context));
		*pctx = handle_of(context);
	}
	return result;
}

CUresult cuCtxCreate(CUcontext *pctx, unsigned int flags, CUdevice dev)
{
	ENTER(cuCtxCreate, INIT);
	return create_current(pctx, flags, 3010, dev);
}

CUresult cuCtxCreate_v2(CUcontext *pctx, unsigned int flags, CUdevice dev)
{
	ENTER(cuCtxCreate_v2, INIT);
	return create_current(pctx, flags, 3020, dev);
}

CUresult cuCtxCreate_v3(CUcontext *pctx, CUexecAffinityParam *paramsArray, int numParams, unsigned int flags,
                        CUdevice dev)
{
	ENTER(cuCtxCreate_v3, INIT);
	return numParams ? CUDA_ERROR_NOT_SUPPORTED : create_current(pctx, flags, 3020, dev);
}

CUresult cuCtxCreate_v4(CUcontext *pctx, CUctxCreateParams *ctxCreateParams, unsigned int flags, CUdevice dev)
{
	ENTER(cuCtxCreate_v4, INIT);
	if (ctxCreateParams && (ctxCreateParams->numExecAffinityParams || ctxCreateParams->cigParams))
		return CUDA_ERROR_NOT_SUPPORTED;
	return create_current(pctx, flags, 3020, dev);
}

static CUresult destroy_handle(CUcontext ctx)
{
	if (!sim_context_alive(context_of(ctx)))
		return ctx ? CUDA_ERROR_CONTEXT_IS_DESTROYED : CUDA_ERROR_INVALID_CONTEXT;
	pthread_mutex_lock(&lock);
	bool is_primary = primary[sim_context_device(context_of(ctx))].context == context_of(ctx);
	pthread_mutex_unlock(&lock);
	if (is_primary) /* primary contexts are released, never destroyed */
		return CUDA_ERROR_INVALID_CONTEXT;
	if (driver_current() == context_of(ctx))
		stack.depth--;
	return destroy_context(context_of(ctx));
}

CUresult cuCtxDestroy_v2(CUcontext ctx)
{
	ENTER(cuCtxDestroy_v2, INIT);
	return destroy_handle(ctx);
}

CUresult cuCtxDestroy(CUcontext ctx)
{
	ENTER(cuCtxDestroy, INIT);
	return destroy_handle(ctx);
}

CUresult cuCtxPushCurrent_v2(CUcontext ctx)
{
	ENTER(cuCtxPushCurrent_v2, INIT);
	return driver_green(ctx) || sim_context_alive(context_of(ctx)) ? push_context(ctx)
	                                                               : CUDA_ERROR_INVALID_CONTEXT;
}

CUresult cuCtxPopCurrent_v2(CUcontext *pctx)
{
	ENTER(cuCtxPopCurrent_v2, INIT);
	if (!stack.depth)
		return CUDA_ERROR_INVALID_CONTEXT;
	if (pctx)
		*pctx = current_handle();
	stack.depth--;
	return CUDA_SUCCESS;
}

CUresult cuCtxSetCurrent(CUcontext ctx)
{
	ENTER(cuCtxSetCurrent, INIT);
	if (ctx && !sim_context_alive(context_of(ctx)))
		return CUDA_ERROR_INVALID_CONTEXT;
	if (stack.depth)
		stack.depth--;
	return ctx ? push_context(ctx) : CUDA_SUCCESS;
}

CUresult cuCtxGetCurrent(CUcontext *pctx)
{
	ENTER(cuCtxGetCurrent, INIT);
	if (!pctx)
		return CUDA_ERROR_INVALID_VALUE;
	*pctx = current_handle();
	return CUDA_SUCCESS;
}

/* The context that a query is about: `ctx`, or the current one for NULL. */
static CUresult context_or_current(CUcontext ctx, struct sim_context **out)
{
	*out = ctx ? context_of(ctx) : driver_current();
	if (!*out)
		return driver_green(ctx ? ctx : current_handle()) ? CUDA_ERROR_CONTEXT_IS_DESTROYED
		                                                  : CUDA_ERROR_INVALID_CONTEXT;
	return sim_context_alive(*out) ? CUDA_SUCCESS : CUDA_ERROR_CONTEXT_IS_DESTROYED;
}

CUresult cuCtxGetDevice_v2(CUdevice *device, CUcontext ctx)
{
	struct sim_context *context;

	ENTER(cuCtxGetDevice_v2, INIT);
	CUresult result = device ? context_or_current(ctx, &context) : CUDA_ERROR_INVALID_VALUE;
	if (!result)
		*device = sim_context_device(context);
	return result;
}

CUresult cuCtxGetDevice(CUdevice *device)
{
	struct sim_context *context;

	ENTER(cuCtxGetDevice, INIT);
	struct sim_green *green = driver_current_green();
	if (device && green) {
		*device = driver_green_device(green);
		return CUDA_SUCCESS;
	}
	CUresult result = device ? context_or_current(NULL, &context) : CUDA_ERROR_INVALID_VALUE;
	if (!result)
		*device = sim_context_device(context);
	return result;
}

CUresult cuCtxGetFlags(unsigned int *flags)
{
	ENTER(cuCtxGetFlags, CONTEXT);
	if (!flags)
		return CUDA_ERROR_INVALID_VALUE;
	*flags = face_of(driver_current())->flags;
	return CUDA_SUCCESS;
}

CUresult cuCtxSetFlags(unsigned int flags)
{
	ENTER(cuCtxSetFlags, CONTEXT);
	if (flags & ~0xffu)
		return CUDA_ERROR_INVALID_VALUE;
	face_of(driver_current())->flags = flags;
	return CUDA_SUCCESS;
}

CUresult cuCtxGetId(CUcontext ctx, unsigned long long *ctxId)
{
	struct sim_context *context;

	ENTER(cuCtxGetId, INIT);
	CUresult result = ctxId ? context_or_current(ctx, &context) : CUDA_ERROR_INVALID_VALUE;
	struct sim_green *green = driver_green(ctx ? ctx : current_handle());
	if (!result)
		*ctxId = green ? driver_green_id(green) : sim_context_id(context);
	return result;
}

CUresult cuCtxGetApiVersion(CUcontext ctx, unsigned int *version)
{
	struct sim_context *context;

	ENTER(cuCtxGetApiVersion, INIT);
	CUresult result = version ? context_or_current(ctx, &context) : CUDA_ERROR_INVALID_VALUE;
	if (!result)
		*version = face_of(context)->version;
	return result;
}

CUresult cuCtxGetLimit(size_t *pvalue, CUlimit limit)
{
	ENTER(cuCtxGetLimit, CONTEXT);
	if (!pvalue)
		return CUDA_ERROR_INVALID_VALUE;
	if ((unsigned)limit >= 7)
		return CUDA_ERROR_UNSUPPORTED_LIMIT;
	*pvalue = face_of(driver_current())->limit[limit];
	return CUDA_SUCCESS;
}

CUresult cuCtxSetLimit(CUlimit limit, size_t value)
{
	ENTER(cuCtxSetLimit, CONTEXT);
	if ((unsigned)limit >= 7)
		return CUDA_ERROR_UNSUPPORTED_LIMIT;
	/* Only the limit on stacks takes memory at once. */
	CUresult result = CUDA_SUCCESS;
	if (limit == CU_LIMIT_STACK_SIZE)
		result = driver_result(sim_context_local(driver_current(), value));
	if (!result)
		face_of(driver_current())->limit[limit] = value;
	return result;
}

CUresult cuCtxGetCacheConfig(CUfunc_cache *pconfig)
{
	ENTER(cuCtxGetCacheConfig, CONTEXT);
	if (!pconfig)
		return CUDA_ERROR_INVALID_VALUE;
	*pconfig = face_of(driver_current())->cache;
	return CUDA_SUCCESS;
}

CUresult cuCtxSetCacheConfig(CUfunc_cache config)
{
	ENTER(cuCtxSetCacheConfig, CONTEXT);
	if (config < 0 || config > 3)
		return CUDA_ERROR_INVALID_VALUE;
	face_of(driver_current())->cache = config;
	return CUDA_SUCCESS;
}

CUresult cuCtxGetStreamPriorityRange(int *leastPriority, int *greatestPriority)
{
	ENTER(cuCtxGetStreamPriorityRange, CONTEXT);
	if (leastPriority)
		*leastPriority = 0;
	if (greatestPriority)
		*greatestPriority = -5;
	return CUDA_SUCCESS;
}

CUresult cuCtxResetPersistingL2Cache(void)
{
	ENTER(cuCtxResetPersistingL2Cache, CONTEXT);
	return CUDA_SUCCESS;
}

CUresult cuCtxSynchronize(void)
{
	ENTER(cuCtxSynchronize, CONTEXT);
	enum sim_status forbidden = sim_capture_asks_context(driver_current());
	if (forbidden)
		return driver_result(forbidden);
	if (driver_current_green())
		return driver_green_synchronize(driver_current_green());
	CUresult result = driver_result(sim_context_synchronize(driver_current()));
	sim_pools_synchronized(sim_context_device(driver_current()), SIM_ALL_STREAMS);
	return result;
}

CUresult cuCtxSynchronize_v2(CUcontext ctx)
{
	struct sim_context *context;

	ENTER(cuCtxSynchronize_v2, INIT);
	CUresult result = context_or_current(ctx, &context);
	if (!result)
		result = driver_result(sim_capture_asks_context(context));
	if (!result) {
		result = driver_result(sim_context_synchronize(context));
		sim_pools_synchronized(sim_context_device(context), SIM_ALL_STREAMS);
	}
	return result;
}

CUresult cuCtxEnablePeerAccess(CUcontext peerContext, unsigned int Flags)
{
	ENTER(cuCtxEnablePeerAccess, CONTEXT);
	if (Flags)
		return CUDA_ERROR_INVALID_VALUE;
	if (!sim_context_alive(context_of(peerContext)) || context_of(peerContext) == driver_current())
		return CUDA_ERROR_INVALID_CONTEXT;
	if (sim_context_device(context_of(peerContext)) == sim_context_device(driver_current()))
		return CUDA_ERROR_PEER_ACCESS_UNSUPPORTED;
	enum sim_status status = sim_peer_enable(driver_current(), context_of(peerContext));
	return status == SIM_ALREADY       ? CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED
	       : status == SIM_BAD_CONTEXT ? CUDA_ERROR_INVALID_CONTEXT
	                                   : driver_result(status);
}

CUresult cuCtxDisablePeerAccess(CUcontext peerContext)
{
	ENTER(cuCtxDisablePeerAccess, CONTEXT);
	enum sim_status status = sim_peer_disable(driver_current(), context_of(peerContext));
	return status == SIM_NOT_REGISTERED ? CUDA_ERROR_PEER_ACCESS_NOT_ENABLED
	       : status == SIM_BAD_CONTEXT  ? CUDA_ERROR_INVALID_CONTEXT
	                                    : driver_result(status);
}
