#include "place.h"

#include <stdlib.h>

#include "account.h"
#include "hostmem.h"
#include "pool.h"

const struct spill_place_ops *spill_place_of(enum spill_place place)
{
	static const struct spill_place_ops *const table[SPILL_PLACES] = {
	    [SPILL_PLACE_SPLIT] = &spill_place_split,
	    [SPILL_PLACE_MANAGED] = &spill_place_managed,
	    [SPILL_PLACE_HOST] = &spill_place_host,
	};
	return table[place];
}

struct spill_placement *spill_place_make(const struct spill_place_ops *ops, const struct spill_want *want,
                                         const char **error)
{
	if (want->bytes <= SPILL_POOL_LARGEST)
		return spill_pool_make(ops, want, error);
	return ops->make(want, error);
}

void spill_place_release(struct spill_placement *placement, bool context_ended)
{
	if (placement)
		placement->ops->release(placement, context_ended);
}

uint64_t spill_device_charge(const struct spill_want *want, uint64_t bytes, uint64_t unit)
{
	uint64_t wanted = (bytes < want->device_room ? bytes : want->device_room) / unit * unit;
	uint64_t held = spill_account_device(want->device, wanted);
	uint64_t left = want->device_limit > held ? (want->device_limit - held) / unit * unit : 0;
	if (wanted <= left)
		return wanted;
	spill_account_device_return(want->device, wanted - left);
	return left;
}

const char *spill_host_charge(const struct spill_policy *policy, uint64_t bytes)
{
	uint64_t held = spill_account_host(bytes);
	struct spill_host_view view = {
	    .limit = spill_amount_resolve(policy->host_limit, spill_hostmem_at_start(), SPILL_UNLIMITED),
	    .held = held,
	    .available = spill_hostmem_available(),
	};
	if (bytes <= spill_policy_host_room(policy, &view))
		return NULL;
	spill_account_host_return(bytes);
	return view.held + bytes > view.limit ? "host.limit" : "host.reserve";
}
