#include "place.h"

#include <stdlib.h>

#include "account.h"
#include "context_end.h"
#include "host_share.h"
#include "hostmem.h"
#include "minmax.h"
#include "pool.h"
#include "record.h"

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

struct spill_placement *spill_place_make(const struct spill_place_ops *ops, const struct spill_want *want,
                                         const char **error)
{
	struct spill_placement *placement =
	    want->bytes <= SPILL_POOL_LARGEST ? spill_pool_make(ops, want, error) : ops->make(want, error);
	if (placement)
		placement->generation = spill_context_generation();
	return placement;
}

void spill_place_release(struct spill_placement *placement, bool context_ended)
{
	if (placement)
		placement->ops->release(placement, context_ended);
}

uint64_t spill_device_charge(const struct spill_want *want, uint64_t bytes, uint64_t unit)
{
	uint64_t wanted = (bytes < want->device_room ? bytes : want->device_room) / unit * unit;
	uint64_t held = spill_account_device_held(want->device), charge;
	do {
		uint64_t left = want->device_limit > held ? (want->device_limit - held) / unit * unit : 0;
		charge = spill_min(wanted, left);
	} while (!spill_account_device_charge(want->device, &held, charge));
	return charge;
}

bool spill_device_charge_all(int device, uint64_t limit, uint64_t bytes)
{
	uint64_t held = spill_account_device_held(device);
	do
		if (!spill_fits(bytes, held, limit))
			return false;
	while (!spill_account_device_charge(device, &held, bytes));
	return true;
}

/* Of what was available at start, and what the user's other processes held then: they count toward it, too. */
static uint64_t host_limit(const struct spill_policy *policy, uint64_t start)
{
	uint64_t others = spill_host_share_at_start();
	uint64_t base = start < SPILL_UNLIMITED - others ? start + others : start;
	return spill_amount_resolve(policy->host_limit, base, SPILL_UNLIMITED);
}

/*
 * pre: view->held, which others may have part in, and view->limit are set. Managed memory that was granted and not yet touched is still
 * free to the kernel: what was there at start less what this process holds is the other bound.
 */
static uint64_t host_room(const struct spill_policy *policy, struct spill_host_view *view, uint64_t start,
                          uint64_t available, uint64_t own)
{
	uint64_t left = spill_minus(start, own);
	view->available = spill_min(available, left);
	return spill_policy_host_room(policy, view);
}

static __thread struct spill_refusal last_refusal __attribute__((tls_model("initial-exec")));

const struct spill_refusal *spill_host_refusal(void)
{
	return &last_refusal;
}

/* Which option it is, and by how much. */
static const char *refuse(const struct spill_policy *policy, const struct spill_host_view *view,
                          uint64_t bytes)
{
	const struct spill_host_view without_limit = {SPILL_UNLIMITED, 0, view->available};
	bool by_limit = !spill_fits(bytes, view->held, view->limit);
	last_refusal = (struct spill_refusal){
	    .limit = by_limit ? view->limit : spill_amount_resolve(policy->host_reserve, 0, 0),
	    .held = by_limit ? view->held : view->available,
	    .asked = bytes,
	    .room = spill_policy_host_room(policy, &without_limit),
	};
	return by_limit ? "host.limit" : "host.reserve";
}

const char *spill_host_charge(const struct spill_policy *policy, uint64_t bytes)
{
	uint64_t start = spill_hostmem_at_start(), available = spill_hostmem_available();
	struct spill_host_view view = {.limit = host_limit(policy, start)};
	const char *refused = NULL;
	/* Asked only where memory is short: a machine may lose time to it for another reason, and this costs two more reads. */
	if (available / 2 < spill_amount_resolve(policy->host_reserve, 0, 0) && spill_hostmem_pressed()) {
		last_refusal = (struct spill_refusal){0};
		return "host.pressure";
	}
	uint64_t others = spill_host_share_begin(), held = spill_account_host_held();
	do {
		view.held = held + others;
		if (bytes > host_room(policy, &view, start, available, held))
			refused = refuse(policy, &view, bytes);
	} while (!refused && !spill_account_host_charge(&held, bytes));
	spill_host_share_end();
	return refused;
}

const char *spill_physical_charge(const struct spill_policy *policy, uint64_t bytes)
{
	const char *refused = spill_host_charge(policy, bytes);
	if (!refused)
		spill_account_physical_charged(bytes);
	return refused;
}

uint64_t spill_host_room(const struct spill_policy *policy, uint64_t *most)
{
	uint64_t start = spill_hostmem_at_start(), held = spill_account_host_held();
	struct spill_host_view view = {.limit = host_limit(policy, start)};
	*most = 0;
	if (start == SPILL_UNLIMITED)
		return 0;
	*most = host_room(policy, &view, start, start, 0);
	view.held = held; /* a question takes no part (host_share.h) */
	return host_room(policy, &view, start, spill_hostmem_available(), held);
}
