/*
 * spill_malloc and spill_free for torch.cuda.memory.CUDAPluggableAllocator("libspill.so",
 * "spill_malloc", "spill_free"). The library may be preloaded, or loaded by that call alone
 * (docs/pytorch.md).
 *
 * How PyTorch calls them (torch/csrc/cuda/CUDAPluggableAllocator.h):
 * - The device is an ordinal of the runtime. Its context may not be current in an autograd thread.
 * - The stream is the current one. NULL is the legacy default stream.
 * - PyTorch caches nothing in front of us, so every tensor comes here.
 * - The free passes the bytes, device and stream of the allocation. Any thread may call it, even at
 *   exit.
 * - PyTorch does not check for a NULL.
 *
 * Memory comes in stream order from a pool of ours, which keeps freed memory and is as fast as a
 * cache. Without pools it is plain memory. Everything else works as for any request.
 */
#include <stdatomic.h>

#include "hooks.h"
#include "vendor_pool.h"
#include "real.h"
#include "process.h"
#include "registry.h"

#define EXPORTED __attribute__((visibility("default")))

EXPORTED void *spill_malloc(size_t bytes, int device, void *stream);
EXPORTED void spill_free(void *pointer, size_t bytes, int device, void *stream);

/* The vendor whose library is loaded, or NULL. No driver is ever unloaded. */
static const struct spill_backend *loaded_vendor(bool ready, enum spill_domain *domain)
{
	static const struct {
		const struct spill_backend *backend;
		const char *symbol;
	} vendors[SPILL_DOMAINS] = {
	    [SPILL_CUDA_DRIVER] = {&spill_backend_cuda, "cuInit"},
	    [SPILL_HIP] = {&spill_backend_hip, "hipInit"},
	};
	static _Atomic int known = SPILL_DOMAINS;
	int found = atomic_load_explicit(&known, memory_order_acquire);
	for (int i = 0; i < SPILL_DOMAINS && found == SPILL_DOMAINS; i++)
		if (vendors[i].symbol && spill_real_resolve((enum spill_domain)i, vendors[i].symbol) &&
		    vendors[i].backend->start(spill_real_resolve))
			found = i;
	if (found == SPILL_DOMAINS)
		return NULL;
	atomic_store_explicit(&known, found, memory_order_release);
	*domain = (enum spill_domain)found;
	return ready ? spill_backend_for(*domain) : vendors[found].backend;
}

struct torch_call {
	const struct spill_backend *backend;
	struct spill_vendor_pool *pool; /* our own pool on the device; NULL: plain memory */
	void *before;
	bool captured;
	struct spill_request request;
};

/*
 * Makes the device's context current, as the runtime would. A captured call passes through, and the
 * vendor makes a graph node of it. This asks for captures, because a library that is not preloaded
 * sees none begin.
 */
static bool enter_device(struct torch_call *call, int device)
{
	const char *error;
	bool ready = spill_shim_ready() && !spill_thread.depth;
	call->backend = loaded_vendor(ready, &call->request.domain);
	if (!call->backend || call->backend->devices->enter(device, &call->before))
		return false;
	call->captured = call->backend->streams->capturing(call->request.stream);
	call->pool =
	    spill_vendor_pool_ours(call->backend, device, SPILL_PLACE_DEVICE, SPILL_LOCATION_NONE, &error);
	call->request.pool = call->pool ? spill_vendor_pool_handle(call->pool) : NULL;
	call->request.pass = !ready || call->captured;
	return true;
}

void *spill_malloc(size_t bytes, int device, void *stream)
{
	uint64_t address = 0;
	struct torch_call call = {
	    .request = {.api = "spill_malloc",
	                .caller = __builtin_return_address(0),
	                .out = &address,
	                .bytes = bytes,
	                .stream = stream},
	};
	struct spill_request *request = &call.request;
	if (!bytes || !enter_device(&call, device))
		return NULL;
	request->op = call.pool ? SPILL_OP_ALLOC_ASYNC : SPILL_OP_ALLOC;
	while (spill_request_next(request))
		request->result =
		    call.pool ? call.backend->pools->alloc(request->pool, bytes, stream, false, &address)
		              : call.backend->memory->device_alloc(bytes, &address);
	call.backend->devices->leave(call.before);
	return request->result ? NULL : (void *)(uintptr_t)address;
}

static int give_back(const struct torch_call *call, enum spill_op op)
{
	struct spill_request request = call->request;
	request.op = op;
	while (spill_request_next(&request))
		request.result = op == SPILL_OP_FREE_ASYNC
		                     ? call->backend->pools->free(request.ptr, request.stream, false)
		                     : call->backend->memory->device_free(request.ptr);
	return request.result;
}

/*
 * PyTorch learns of no failure and never frees again. So a call that failed is made once more, and a
 * free in stream order then as one that waits.
 */
void spill_free(void *pointer, size_t bytes, int device, void *stream)
{
	struct torch_call call = {
	    .request = {.api = "spill_free",
	                .caller = __builtin_return_address(0),
	                .ptr = (uintptr_t)pointer,
	                .stream = stream},
	};
	bool entered = pointer && enter_device(&call, device);
	if (pointer && !entered)
		entered = enter_device(&call, device);
	if (!entered)
		return;
	if (give_back(&call, call.pool ? SPILL_OP_FREE_ASYNC : SPILL_OP_FREE) && !call.captured)
		(void)give_back(&call, SPILL_OP_FREE);
	call.backend->devices->leave(call.before);
}
