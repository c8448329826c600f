/*
 * Arrays: device memory in a layout of the vendor's, for textures and surfaces. Host memory cannot stand in for it, so a
 * full device is trimmed and asked again; then the program sees the honest error, with its line in the log.
 */
#include "account.h"
#include "admit.h"

static bool prepare(struct spill_request *request, const struct spill_backend *backend)
{
	if (!request->out || !request->bytes || !backend->current(&request->device, &request->context))
		return false;
	request->weight = backend->footprint(request->bytes);
	return true;
}

/* Known by its handle, which the vendor's free of arrays gets. */
static void served(struct spill_request *request, const struct spill_backend *backend)
{
	struct spill_allocation allocation = spill_admit_describe(request, backend);
	allocation.ptr = (uintptr_t) * (void **)request->out;
	allocation.place = SPILL_PLACE_DEVICE;
	allocation.charged = request->charged;
	allocation.held.device = request->bytes;
	if (!spill_admit_record(request, &allocation, request->over_limit ? "limit" : "fits"))
		spill_account_device_return(request->device, request->charged);
}

bool spill_engine_array(struct spill_request *request)
{
	static const struct spill_demand array = {.prepare = prepare, .served = served};
	return spill_admit(request, &array);
}
