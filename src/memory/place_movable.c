/*
 * Movable: all chunks on the device. Some can leave later (demote.h) and come back (promote.h). It
 * is as fast as the driver's plain memory (docs/measurements.md). If not all fits, this place
 * fails, and oom.chain goes on.
 */
#include "account.h"
#include "chunk_set.h"
#include "chunked.h"

static struct spill_placement *make_as(const struct spill_place_ops *ops, spill_chunked_new_fn *begin,
                                       const struct spill_place_request *want, const char **error)
{
	uint64_t unit = spill_chunked_unit(want, error);
	struct spill_chunked *mine = unit ? begin(ops, want, unit, error) : NULL;
	if (!mine)
		return NULL;
	if (!spill_device_charge_all(want->device, want->device_limit, mine->range)) {
		*error = spill_refused_by_name(SPILL_REFUSED_BY_DEVICE_LIMIT);
		goto fail;
	}
	mine->base.held.device = mine->range;
	int result = spill_chunked_extend(mine, false, mine->range);
	if (!result)
		result = spill_chunked_allow(mine);
	if (!result)
		return &mine->base;
	/* The chain knows an out of memory by its name. */
	*error = want->backend->error_name(result);
fail:
	spill_chunked_release(&mine->base, false);
	return NULL;
}

static struct spill_placement *make(const struct spill_place_request *want, const char **error)
{
	return make_as(&spill_place_movable, spill_chunked_reserve, want, error);
}

static struct spill_placement *make_set(const struct spill_place_request *want, const char **error)
{
	return make_as(&spill_place_movable_set, spill_chunk_set_new, want, error);
}

const struct spill_place_ops spill_place_movable = {SPILL_PLACE_MOVABLE, make, spill_chunked_release,
                                                    spill_chunked_range};
const struct spill_place_ops spill_place_movable_set = {SPILL_PLACE_MOVABLE, make_set, spill_chunked_release,
                                                        NULL};
