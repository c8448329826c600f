/*
 * Questions about memory as such: how much there is, how much is free. The vendor is asked first, so that arguments and errors
 * are its own; then what it stored is replaced by what meminfo.report makes of it (policy/decide/meminfo.c). A question takes
 * nothing, gives nothing back and opens no log.
 *
 * These rows are the driver's, HIP's and NVML's. A CUDA runtime, shared or static, asks the driver for what it tells, so that
 * its own calls (FRAME) come through here once.
 *
 * NVML is asked by programs that use no GPU, too, and numbers devices by itself: what it says stays as it is unless libspill
 * works with the CUDA driver already, and the device is one that this process sees.
 */
#include <pthread.h>

#include "abi/nvml.h"
#include "account.h"
#include "capture.h"
#include "engine.h"
#include "meminfo.h"
#include "vendor_pool.h"
#include "registry.h"
#include "place.h"

/* What is charged to the device, after the same look at pools and graphs as before a request is admitted (admit.c). */
static uint64_t held(const struct spill_backend *backend, int device)
{
	spill_vendor_pool_settle_graphs(backend, device);
	if (!spill_capture_any())
		spill_vendor_pool_settle_device(backend, device);
	return spill_account_device_held(device);
}

/* `total`: NULL, or that the question is about it alone. */
static struct spill_meminfo_view look(const struct spill_policy *policy, const struct spill_backend *backend,
                                      int device, const size_t *total)
{
	struct spill_meminfo_view view = {0};
	/* A question about the total alone has the size that a share is of, and its device is left alone if it is not current. */
	if (!total)
		view.limit = spill_device_limit(backend, device);
	else
		view.limit = spill_policy_device_limit(policy, device, *total);
	if (!total && view.limit != SPILL_UNLIMITED)
		view.held = held(backend, device);
	if (policy->meminfo_report == SPILL_MEMINFO_SPILL &&
	    spill_meminfo_can_spill(policy, backend->devices->capabilities(device)))
		view.host_room = spill_host_room(policy, &view.host_most);
	return view;
}

static void replace(const struct spill_request *request, const struct spill_policy *policy,
                    const struct spill_backend *backend)
{
	enum spill_meminfo_report report = policy->meminfo_report;
	int device = request->device;
	void *context;
	if (!request->out_free && !request->out_total)
		return;
	if (device == SPILL_CURRENT_DEVICE && !backend->devices->current(&device, &context))
		return;
	struct spill_meminfo_view view =
	    look(policy, backend, device, request->out_free ? NULL : request->out_total);
	if (request->out_free)
		*request->out_free = spill_meminfo_free(report, *request->out_free, &view);
	if (request->out_total)
		*request->out_total = spill_meminfo_total(report, *request->out_total, &view);
}

/* A later form of the second structure would have another version: nothing is known of it. */
static void replace_nvml(const struct spill_request *request, const struct spill_policy *policy,
                         const struct spill_backend *backend)
{
	bool first_form = request->count == 1;
	nvmlMemory_t *first = request->out;
	nvmlMemory_v2_t *second = request->out;
	struct spill_meminfo_parts told;
	if (!first_form && second->version != nvmlMemory_v2)
		return;
	int device = spill_nvml_device(backend, request->real, request->handle);
	if (device < 0)
		return;
	if (first_form)
		told = (struct spill_meminfo_parts){first->total, first->free, first->used, 0};
	else
		told =
		    (struct spill_meminfo_parts){second->total, second->free, second->used, second->reserved};
	struct spill_meminfo_view view = look(policy, backend, device, NULL);
	spill_meminfo_parts(policy->meminfo_report, &told, &view);
	if (first_form)
		*first = (nvmlMemory_t){told.total, told.free, told.used};
	else
		*second = (nvmlMemory_v2_t){second->version, told.total, told.reserved, told.free, told.used};
}

/* Files are read, and that call is no cancellation point; what our own calls leave as the last error is not its own. */
static void tell(const struct spill_request *request, const struct spill_policy *policy)
{
	bool nvml = request->domain == SPILL_NVML;
	const struct spill_backend *backend =
	    nvml ? spill_backend_in_use(SPILL_CUDA_DRIVER) : spill_backend_for(request->domain);
	int cancel;
	if (!backend)
		return;
	int last_error = backend->last_error ? backend->last_error->peek() : 0;
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	(nvml ? replace_nvml : replace)(request, policy, backend);
	pthread_setcancelstate(cancel, NULL);
	if (backend->last_error && last_error == 0)
		backend->last_error->forget();
}

bool spill_engine_info(struct spill_request *request)
{
	const struct spill_policy *policy = spill_process_policy();
	if (request->step++ == 0)
		return true;
	if (request->result == 0 && policy->meminfo_report != SPILL_MEMINFO_HONEST &&
	    !spill_process_observes())
		tell(request, policy);
	return false;
}
