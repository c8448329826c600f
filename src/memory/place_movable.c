/*
 * Movable: all chunks on the device. Some can leave later (demote.h) and come back (promote.h). It
 * is as fast as the driver's plain memory (docs/measurements.md). If not all fits, this place
 * fails, and oom.chain goes on.
 */
#include "account.h"
#include "chunk_set.h"
#include "chunked.h"

/* Fills it with chunks on the device, and maps them unless it is a set. Consumes `mine`. */
static struct spill_placement *fill(struct spill_chunked *mine, const struct spill_place_request *want,
                                    const char **error)
{
	const struct spill_backend *backend = want->backend;
	if (!mine)
		return NULL;
	if (!spill_device_charge_all(want->device, want->device_limit, mine->range)) {
		*error = spill_refused_by_name(SPILL_REFUSED_BY_DEVICE_LIMIT);
		goto fail;
	}
	mine->base.held.device = mine->range;
	int result = spill_chunked_extend(mine, false, mine->range);
	if (!result && !mine->handle)
		result = backend->vmm->allow(mine->base.ptr, mine->range, want->device);
	if (!result)
		return &mine->base;
	/* The chain knows an out of memory by its name. */
	*error = backend->error_name(result);
fail:
	spill_chunked_release(&mine->base, false);
	return NULL;
}

static struct spill_placement *make(const struct spill_place_request *want, const char **error)
{
	uint64_t unit = spill_chunked_unit(want, error);
	return unit ? fill(spill_chunked_reserve(&spill_place_movable, want, unit, error), want, error)
	            : NULL;
}

static struct spill_placement *make_set(const struct spill_place_request *want, const char **error)
{
	return fill(spill_chunk_set_new(&spill_place_movable_set, want, error), want, error);
}

const struct spill_place_ops spill_place_movable = {SPILL_PLACE_MOVABLE, make, spill_chunked_release,
                                                    spill_chunked_range};
const struct spill_place_ops spill_place_movable_set = {SPILL_PLACE_MOVABLE, make_set, spill_chunked_release,
                                                        NULL};
