/*
 * Legacy handles of other processes. Those of memory that libspill has exported there (ipc.h) are
 * opened and closed here, the others by the vendor.
 */
#include "abi/cuda.h"
#include "capture.h"
#include "deferred.h"
#include "engine.h"
#include "ipc.h"

/* The vendor refuses arguments and threads without a context itself. */
static bool is_ours(const struct spill_request *request, int *device, void **context)
{
	return spill_ipc_is(request->properties) && request->out &&
	       request->mode == CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS &&
	       spill_backend_for(request->domain)->devices->current(device, context);
}

/* Unmaps what nobody uses any more, after the work that may use it. A capture forbids to wait. */
static void unmap_unused(const struct spill_backend *backend)
{
	struct spill_ipc_range range;
	struct spill_ipc_import *import;
	while (!spill_capture_any() && (import = spill_ipc_take_unused(&range)) != NULL) {
		spill_deferred_wait(backend, range.device, range.context);
		spill_ipc_unmap(import);
	}
}

bool spill_engine_import(struct spill_request *request)
{
	const struct spill_backend *backend = spill_backend_for(request->domain);
	int device;
	void *context;
	uint64_t ptr;
	if (request->step++)
		return false;
	if (!backend || !is_ours(request, &device, &context))
		return true;
	/* As the vendor answers its own (reported by users of the driver). */
	request->result = CUDA_ERROR_INVALID_CONTEXT;
	if (spill_ipc_is_own(request->properties))
		return false;
	int cancel = spill_ours_begin();
	unmap_unused(backend);
	request->result = spill_ipc_open(backend, device, context, request->properties, &ptr);
	spill_ours_end(cancel);
	if (!request->result)
		*(CUdeviceptr *)request->out = ptr;
	return false;
}

bool spill_engine_import_end(struct spill_request *request)
{
	if (request->step++)
		return false;
	if (!spill_ipc_close(request->ptr))
		return true;
	int cancel = spill_ours_begin();
	unmap_unused(spill_backend_for(request->domain));
	request->result = 0;
	spill_ours_end(cancel);
	return false;
}
