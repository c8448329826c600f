/*
 * Movable: all chunks on the device. Some can leave later (demote.h) and come back (promote.h). It
 * is as fast as the driver's plain memory (docs/measurements.md). If not all fits, this place
 * fails, and oom.chain goes on.
 */
#include "account.h"
#include "chunked.h"

static struct spill_placement *make(const struct spill_place_request *want, const char **error)
{
	const struct spill_backend *backend = want->backend;
	uint64_t unit = spill_chunked_granularity(backend, want->device);
	if (!unit || want->bytes > UINT64_MAX - unit) {
		*error = "not supported by the device";
		return NULL;
	}
	struct spill_chunked *mine = spill_chunked_reserve(&spill_place_movable, want, unit, error);
	if (!mine)
		return NULL;
	if (!spill_device_charge_all(want->device, want->device_limit, mine->range)) {
		*error = spill_refused_by_name(SPILL_REFUSED_BY_DEVICE_LIMIT);
		goto fail;
	}
	mine->base.held.device = mine->range;
	int result = spill_chunked_extend(mine, false, mine->range);
	if (!result)
		result = backend->vmm->allow(mine->base.ptr, mine->range, want->device);
	if (!result)
		return &mine->base;
	/* The chain knows an out of memory by its name. */
	*error = backend->error_name(result);
fail:
	spill_chunked_release(&mine->base, false);
	return NULL;
}

const struct spill_place_ops spill_place_movable = {SPILL_PLACE_MOVABLE, make, spill_chunked_release,
                                                    spill_chunked_range};
