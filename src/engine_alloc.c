/*
 * Plain device memory. What fits costs one decision
 * without lock or system call; nothing is spilled that the driver can serve within the limits.
 */
#include "account.h"
#include "admit.h"
#include "peer.h"

static uint64_t *out(struct spill_request *request)
{
	return request->out;
}

/* Rows padded by the vendor: what they take in all; no rows, or more than there are addresses for, are its own matter. */
static bool prepare_rows(struct spill_request *request, const struct spill_backend *backend)
{
	uint64_t pitch = backend->pitch ? backend->pitch(request->width) : 0;
	return pitch >= request->width && !__builtin_mul_overflow(pitch, request->height, &request->bytes) &&
	       !__builtin_mul_overflow(request->bytes, request->depth, &request->bytes);
}

static bool prepare(struct spill_request *request, const struct spill_backend *backend)
{
	if (!request->out || (request->out_pitch && !prepare_rows(request, backend)) || !request->bytes ||
	    !backend->current(&request->device, &request->context))
		return false;
	request->weight = backend->footprint(request->bytes);
	return true;
}

/* The driver served it. */
static void served(struct spill_request *request, const struct spill_backend *backend)
{
	struct spill_allocation allocation = spill_admit_describe(request, backend);
	allocation.ptr = *out(request);
	allocation.place = SPILL_PLACE_DEVICE;
	allocation.charged = request->charged;
	allocation.held.device = request->bytes;
	if (!spill_admit_record(request, &allocation, request->over_limit ? "limit" : "fits"))
		spill_account_device_return(request->device, request->charged);
}

static void deliver(struct spill_request *request, const struct spill_backend *backend, uint64_t ptr)
{
	*out(request) = ptr;
	if (request->out_pitch)
		*request->out_pitch = backend->pitch(request->width);
	if (request->out_width)
		*request->out_width = request->width;
	if (request->out_height)
		*request->out_height = request->height;
}

static bool place(struct spill_request *request, enum spill_step step, const struct spill_want *want,
                  const char **error)
{
	struct spill_placement *placement =
	    spill_place_make(spill_place_of(spill_step_place(step)), want, error);
	if (!placement)
		return false;
	struct spill_allocation allocation = spill_admit_describe(request, want->backend);
	allocation.ptr = placement->ptr;
	allocation.place = spill_step_place(step);
	allocation.held = placement->held;
	allocation.placement = placement;
	if (!spill_admit_record(request, &allocation, spill_admit_reason(request))) {
		spill_place_release(placement, false);
		*error = "no memory for bookkeeping";
		return false;
	}
	spill_peer_placed(placement);
	deliver(request, want->backend, placement->ptr);
	return true;
}

/* As the vendor leaves it: the pitch is the one that it would have had (docs/measurements.md; hipamd writes it, too). */
static void refused(struct spill_request *request)
{
	const struct spill_backend *backend = spill_runtime_backend(request->domain);
	if (backend->clears_pointer)
		*out(request) = 0;
	if (request->out_pitch)
		*request->out_pitch = backend->pitch(request->width);
}

/*
 * Arrays: in a layout of the vendor's, for textures and surfaces, which host memory cannot stand in for. A full device is
 * trimmed and asked again; then the program sees the honest error. Known by their handle, which the vendor's free gets.
 */
bool spill_engine_array(struct spill_request *request)
{
	static const struct spill_demand array = {.prepare = prepare, .served = served};
	return spill_admit(request, &array);
}

bool spill_engine_alloc(struct spill_request *request)
{
	static const struct spill_demand plain = {
	    .prepare = prepare, .served = served, .place = place, .refused = refused};
	return spill_admit(request, &plain);
}
