#include "memory_limit.h"

#include <stdatomic.h>

#include "account.h"
#include "host_share.h"
#include "host_available.h"
#include "minmax.h"
#include "process.h"
#include "record.h"

uint64_t spill_device_limit(const struct spill_backend *backend, int device)
{
	static _Atomic uint64_t sizes[SPILL_DEVICES]; /* 0: not asked yet */
	const struct spill_policy *policy = spill_process_policy();
	/* A limit in % needs the size of the device, and is 0 without it. */
	uint64_t limit = spill_policy_device_limit(policy, device, 0);
	if (limit || device < 0 || device >= SPILL_DEVICES)
		return limit;
	uint64_t free, total = atomic_load_explicit(&sizes[device], memory_order_relaxed);
	if (!total && backend->devices->memory(device, &free, &total) == 0)
		atomic_store_explicit(&sizes[device], total, memory_order_relaxed);
	/* A share of an unknown size limits nothing. */
	return total ? spill_policy_device_limit(policy, device, total) : SPILL_UNLIMITED;
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

/*
 * The memory that this process and the others that it counts had at its start: what was available
 * then, and what the others held. A share in % is of this.
 */
static uint64_t memory_of_all(void)
{
	struct spill_host_others others = spill_host_share_at_start();
	uint64_t start = spill_host_memory_least(spill_host_memory_at_start(), others.physical);
	return start < SPILL_UNLIMITED - others.held ? start + others.held : start;
}

static uint64_t host_limit(const struct spill_policy *policy, uint64_t start)
{
	return spill_amount_resolve(policy->host_limit, start, SPILL_UNLIMITED);
}

/*
 * The kernel still counts managed memory as free if it was granted and not yet touched. So the
 * memory at the start less the memory that is held since (`held`) is a second bound. pre:
 * view->limit is set, and view->held
 */
static uint64_t host_room(const struct spill_policy *policy, struct spill_host_view *view, uint64_t start,
                          uint64_t available, uint64_t held)
{
	uint64_t left = spill_minus(start, held);
	view->available = spill_min(available, left);
	return spill_policy_host_room(policy, view);
}

static __thread struct spill_refusal last_refusal __attribute__((tls_model("initial-exec")));

const struct spill_refusal *spill_host_refusal(void)
{
	return &last_refusal;
}

/* Stores the figures of the refusal, and returns the option that refuses. */
static const char *record_refusal(const struct spill_policy *policy, const struct spill_host_view *view,
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
	return spill_refused_by_name(by_limit ? SPILL_REFUSED_BY_HOST_LIMIT : SPILL_REFUSED_BY_HOST_RESERVE);
}

static const char *charge(const struct spill_policy *policy, uint64_t bytes, bool physical)
{
	struct spill_host_memory now = spill_host_memory();
	uint64_t start = memory_of_all();
	struct spill_host_view view = {.limit = host_limit(policy, start)};
	const char *refused = NULL;
	/* Pressure may have other reasons, so it counts only if memory is short. */
	if (spill_host_memory_least(now, 0) / 2 < spill_amount_resolve(policy->host_reserve, 0, 0) &&
	    spill_host_pressed()) {
		last_refusal = (struct spill_refusal){0};
		return spill_refused_by_name(SPILL_REFUSED_BY_HOST_PRESSURE);
	}
	struct spill_host_others others = spill_host_share_begin();
	uint64_t available = spill_host_memory_least(now, others.physical);
	uint64_t held = spill_account_host_held();
	do {
		view.held = held + others.held;
		if (bytes > host_room(policy, &view, start, available, view.held))
			refused = record_refusal(policy, &view, bytes);
	} while (!refused && !spill_account_host_charge(&held, bytes));
	if (!refused && physical)
		spill_account_physical_charged(bytes);
	spill_host_share_end();
	return refused;
}

const char *spill_host_charge(const struct spill_policy *policy, uint64_t bytes)
{
	return charge(policy, bytes, false);
}

const char *spill_physical_charge(const struct spill_policy *policy, uint64_t bytes)
{
	return charge(policy, bytes, true);
}

uint64_t spill_host_room(const struct spill_policy *policy, uint64_t *most)
{
	uint64_t start = spill_host_available_at_start(), held = spill_account_host_held();
	struct spill_host_view view = {.limit = host_limit(policy, memory_of_all())};
	*most = 0;
	if (start == SPILL_UNLIMITED)
		return 0;
	*most = host_room(policy, &view, start, start, 0);
	view.held = held; /* without the other processes: this is only a question (host_share.h) */
	return host_room(policy, &view, start, spill_host_available(), held);
}
