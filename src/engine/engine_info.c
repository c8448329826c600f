/*
 * Queries of free and total memory.
 *
 * The vendor is asked first, so that arguments and errors are its own. Then its answer is changed
 * as meminfo.report says (policy/decide/meminfo.c). A query takes no memory, gives none back and
 * opens no log.
 *
 * The rows are those of the CUDA driver, HIP and NVML. A CUDA runtime, shared or static, asks the
 * driver. So its own calls (FRAME) come through here once.
 *
 * Programs that use no GPU ask NVML, too, and NVML numbers the devices itself. Its answer is
 * changed only if libspill already uses the CUDA driver and this process sees the device.
 */
#include <pthread.h>

#include "abi/nvml.h"
#include "account.h"
#include "capture.h"
#include "engine.h"
#include "meminfo.h"
#include "minmax.h"
#include "vendor_pool.h"
#include "registry.h"
#include "place.h"

/* Bytes charged to the device, with its pools and graphs settled as before a request (admit.c). */
static uint64_t settled_bytes(const struct spill_backend *backend, int device)
{
	spill_vendor_pool_settle_graphs(backend, device);
	if (!spill_capture_any())
		spill_vendor_pool_settle_device(backend, device);
	return spill_account_device_held(device);
}

/*
 * The host's memory in equal parts for the devices that the program sees. A program that plans by
 * these figures fills all devices, and what each is told has to be there for all.
 */
static void share_host(struct spill_meminfo_view *view, const struct spill_backend *backend)
{
	uint64_t devices = spill_max(backend->devices->count(), 1);
	view->host_room /= devices;
	view->host_most /= devices;
}

/* `total`: the answer of a query for the total alone; else NULL. */
static struct spill_meminfo_view view_of(const struct spill_policy *policy,
                                         const struct spill_backend *backend, int device, const size_t *total)
{
	struct spill_meminfo_view view = {0};
	/*
	 * A share of the device needs its size. A query for the total alone has the size, and must
	 * not wake a device that is not current.
	 */
	if (!total)
		view.limit = spill_device_limit(backend, device);
	else
		view.limit = spill_policy_device_limit(policy, device, *total);
	if (!total && view.limit != SPILL_UNLIMITED)
		view.held = settled_bytes(backend, device);
	if (policy->meminfo_report == SPILL_MEMINFO_SPILL &&
	    spill_meminfo_can_spill(policy, backend->devices->capabilities(device))) {
		view.host_room = spill_host_room(policy, &view.host_most);
		share_host(&view, backend);
	}
	return view;
}

static void change_answer(const struct spill_request *request, const struct spill_policy *policy,
                          const struct spill_backend *backend)
{
	enum spill_meminfo_report report = policy->meminfo_report;
	int device = request->device;
	void *context;
	if (!request->info.out_free && !request->info.out_total)
		return;
	if (device == SPILL_CURRENT_DEVICE && !backend->devices->current(&device, &context))
		return;
	struct spill_meminfo_view view =
	    view_of(policy, backend, device, request->info.out_free ? NULL : request->info.out_total);
	if (request->info.out_free)
		*request->info.out_free = spill_meminfo_free(report, *request->info.out_free, &view);
	if (request->info.out_total)
		*request->info.out_total = spill_meminfo_total(report, *request->info.out_total, &view);
}

/* Returns without a change if the structure has an unknown version. */
static void change_nvml_answer(const struct spill_request *request, const struct spill_policy *policy,
                               const struct spill_backend *backend)
{
	bool first_form = request->info.nvml_form == 1;
	nvmlMemory_t *first = request->out;
	nvmlMemory_v2_t *second = request->out;
	struct spill_meminfo_parts parts;
	if (!first_form && second->version != nvmlMemory_v2)
		return;
	int device = spill_nvml_device(backend, request->real, request->handle);
	if (device < 0)
		return;
	if (first_form)
		parts = (struct spill_meminfo_parts){first->total, first->free, first->used, 0};
	else
		parts =
		    (struct spill_meminfo_parts){second->total, second->free, second->used, second->reserved};
	struct spill_meminfo_view view = view_of(policy, backend, device, NULL);
	spill_meminfo_parts(policy->meminfo_report, &parts, &view);
	if (first_form)
		*first = (nvmlMemory_t){parts.total, parts.free, parts.used};
	else
		*second =
		    (nvmlMemory_v2_t){second->version, parts.total, parts.reserved, parts.free, parts.used};
}

/*
 * Files are read here, and the vendor's call is no cancellation point. Our own calls must not leave
 * a last error.
 */
static void change(const struct spill_request *request, const struct spill_policy *policy)
{
	bool nvml = request->domain == SPILL_NVML;
	const struct spill_backend *backend =
	    nvml ? spill_backend_in_use(SPILL_CUDA_DRIVER) : spill_backend_for(request->domain);
	int cancel;
	if (!backend)
		return;
	int last_error = backend->last_error ? backend->last_error->peek() : 0;
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	(nvml ? change_nvml_answer : change_answer)(request, policy, backend);
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
		change(request, policy);
	return false;
}
