/*
 * HIP's contexts (hipamd's hip_context.cpp) are names of devices, with a stack in each thread.
 * Creating one allocates nothing, and ending or resetting one frees nothing. Only hipDeviceReset
 * frees.
 */
#include "hip_entry.h"

#define DEPTH 64

struct ihipCtx_t {
	char unused; /* its address is the handle */
};

static struct ihipCtx_t names[SIM_DEVICES];

static _Thread_local struct {
	unsigned depth;
	int device[DEPTH];
} stack;

/* -1: not a context of ours. */
static int device_of(hipCtx_t context)
{
	return context >= names && context < names + sim_config()->devices ? (int)(context - names) : -1;
}

static hipError_t push_context(int device)
{
	if (stack.depth == DEPTH)
		return hipErrorInvalidContext;
	stack.device[stack.depth++] = device;
	return hipSuccess;
}

hipError_t hipCtxCreate(hipCtx_t *ctx, unsigned int flags, hipDevice_t device)
{
	(void)flags; /* how the host waits */
	HIP_ENTER();
	HIP_TRY(ctx && hip_is_device(device) ? push_context(device) : hipErrorInvalidValue);
	*ctx = &names[device];
	return hip_leave(hipSuccess);
}

hipError_t hipCtxDestroy(hipCtx_t ctx)
{
	HIP_ENTER();
	int device = device_of(ctx);
	HIP_TRY(device < 0 ? hipErrorInvalidValue : hipSuccess);
	if (stack.depth && stack.device[stack.depth - 1] == device)
		stack.depth--;
	return hip_leave(hipSuccess);
}

hipError_t hipCtxSetCurrent(hipCtx_t ctx)
{
	HIP_ENTER();
	HIP_TRY(ctx && device_of(ctx) < 0 ? hipErrorInvalidContext : hipSuccess);
	if (stack.depth)
		stack.depth--;
	if (!ctx)
		return hip_leave(hipSuccess);
	hip_set_device(device_of(ctx));
	return hip_leave(push_context(device_of(ctx)));
}

hipError_t hipCtxGetCurrent(hipCtx_t *ctx)
{
	HIP_ENTER();
	HIP_TRY(ctx ? hipSuccess : hipErrorInvalidValue);
	*ctx = &names[hip_device()];
	return hip_leave(hipSuccess);
}

hipError_t hipCtxPushCurrent(hipCtx_t ctx)
{
	HIP_ENTER();
	HIP_TRY(device_of(ctx) < 0 ? hipErrorInvalidContext : push_context(device_of(ctx)));
	hip_set_device(device_of(ctx));
	return hip_leave(hipSuccess);
}

hipError_t hipCtxPopCurrent(hipCtx_t *ctx)
{
	HIP_ENTER();
	HIP_TRY(stack.depth ? hipSuccess : hipErrorInvalidContext);
	stack.depth--;
	if (ctx)
		*ctx = &names[stack.device[stack.depth]];
	return hip_leave(hipSuccess);
}

hipError_t hipCtxGetDevice(hipDevice_t *device)
{
	HIP_ENTER();
	HIP_TRY(device ? hipSuccess : hipErrorInvalidValue);
	*device = hip_device();
	return hip_leave(hipSuccess);
}

hipError_t hipDevicePrimaryCtxRetain(hipCtx_t *pctx, hipDevice_t dev)
{
	HIP_ENTER();
	HIP_TRY(hip_is_device(dev) ? hipSuccess : hipErrorInvalidDevice);
	HIP_TRY(pctx ? hipSuccess : hipErrorInvalidValue);
	*pctx = &names[dev];
	return hip_leave(hipSuccess);
}

hipError_t hipDevicePrimaryCtxRelease(hipDevice_t dev)
{
	HIP_ENTER();
	return hip_leave(hip_is_device(dev) ? hipSuccess : hipErrorInvalidDevice);
}

hipError_t hipDevicePrimaryCtxReset(hipDevice_t dev)
{
	HIP_ENTER();
	return hip_leave(hip_is_device(dev) ? hipSuccess : hipErrorInvalidDevice);
}

hipError_t hipDevicePrimaryCtxSetFlags(hipDevice_t dev, unsigned int flags)
{
	(void)flags;
	HIP_ENTER();
	return hip_leave(hip_is_device(dev) ? hipErrorContextAlreadyInUse : hipErrorInvalidDevice);
}

hipError_t hipDevicePrimaryCtxGetState(hipDevice_t dev, unsigned int *flags, int *active)
{
	HIP_ENTER();
	HIP_TRY(hip_is_device(dev) ? hipSuccess : hipErrorInvalidDevice);
	if (flags)
		*flags = 0;
	if (active)
		*active = hip_is_active(dev);
	return hip_leave(hipSuccess);
}

/* A context of the other device, in the vendor's errors. */
static hipError_t peer_of(hipCtx_t context, int *device)
{
	*device = device_of(context);
	return *device < 0 ? hipErrorInvalidValue : hipSuccess;
}

hipError_t hipCtxEnablePeerAccess(hipCtx_t peerCtx, unsigned int flags)
{
	int peer;

	HIP_ENTER();
	HIP_TRY(peer_of(peerCtx, &peer));
	return hip_leave(hip_peer_enable(peer, flags));
}

hipError_t hipCtxDisablePeerAccess(hipCtx_t peerCtx)
{
	int peer;

	HIP_ENTER();
	HIP_TRY(peer_of(peerCtx, &peer));
	return hip_leave(hip_peer_disable(peer));
}
