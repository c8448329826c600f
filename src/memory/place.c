#include "place.h"

#include <stdlib.h>

#include "account.h"
#include "context_end.h"
#include "minmax.h"
#include "shared_chunks.h"

const struct spill_place_ops *spill_place_of(enum spill_place place)
{
	static const struct spill_place_ops *const table[SPILL_PLACES] = {
	    [SPILL_PLACE_MOVABLE] = &spill_place_movable,
	    [SPILL_PLACE_SPLIT] = &spill_place_split,
	    [SPILL_PLACE_MANAGED] = &spill_place_managed,
	    [SPILL_PLACE_HOST] = &spill_place_host,
	};
	return table[place];
}

struct spill_placement *spill_place_make(const struct spill_place_ops *ops,
                                         const struct spill_place_request *want, const char **error)
{
	struct spill_placement *placement = want->bytes <= SPILL_SHARED_CHUNKS_LARGEST
	                                        ? spill_shared_chunks_make(ops, want, error)
	                                        : ops->make(want, error);
	if (placement)
		placement->generation = spill_context_generation();
	return placement;
}

struct spill_placement spill_placement_of(const struct spill_place_ops *ops,
                                          const struct spill_place_request *want, uint64_t ptr)
{
	return (struct spill_placement){
	    .ops = ops,
	    .backend = want->backend,
	    .device = want->device,
	    .context = want->context,
	    .ptr = ptr,
	    .bytes = want->bytes,
	};
}

uint64_t spill_device_charge(const struct spill_place_request *want, uint64_t bytes, uint64_t unit)
{
	uint64_t wanted = (bytes < want->device_room ? bytes : want->device_room) / unit * unit;
	uint64_t held = spill_account_device_held(want->device), charge;
	do {
		uint64_t left = want->device_limit > held ? (want->device_limit - held) / unit * unit : 0;
		charge = spill_min(wanted, left);
	} while (!spill_account_device_charge(want->device, &held, charge));
	return charge;
}
