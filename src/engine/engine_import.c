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

bool spill_engine_import(struct spill_request *request)
{
	int device;
	void *context;
	uint64_t ptr;
	if (request->step++ || !spill_backend_for(request->domain))
		return request->step == 1;
	if (!is_ours(request, &device, &context))
		return true;
	/* As the vendor answers its own (reported by users of the driver). */
	request->result = CUDA_ERROR_INVALID_CONTEXT;
	if (spill_ipc_is_own(request->properties))
		return false;
	int cancel = spill_ours_begin();
	request->result =
	    spill_ipc_open(spill_backend_for(request->domain), device, context, request->properties, &ptr);
	spill_ours_end(cancel);
	if (!request->result)
		*(CUdeviceptr *)request->out = ptr;
	return false;
}

bool spill_engine_import_end(struct spill_request *request)
{
	struct spill_ipc_range range;
	struct spill_ipc_import *last;
	if (request->step++)
		return false;
	bool ours = spill_ipc_at(request->ptr, &range);
	if (!ours || !spill_ipc_close(request->ptr, !spill_capture_any(), &last))
		return true;
	int cancel = spill_ours_begin();
	request->result = 0;
	if (last) {
		request->result =
		    spill_deferred_wait(spill_backend_for(request->domain), range.device, range.context);
		spill_ipc_unmap(last);
	}
	spill_ours_end(cancel);
	return false;
}
