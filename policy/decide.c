#include "policy.h"

static const char rule_default[] = "default";

/* What `[device N]` says, else what holds for all. */
static struct spill_amount of_device(struct spill_amount all, const struct spill_amount *each, int device)
{
	return device >= 0 && device < SPILL_DEVICES && each[device].kind != SPILL_AMOUNT_NONE ? each[device]
	                                                                                       : all;
}

uint64_t spill_policy_device_limit(const struct spill_policy *policy, int device, uint64_t total)
{
	return spill_amount_resolve(of_device(policy->device_limit, policy->device_limits, device), total,
	                            SPILL_UNLIMITED);
}

uint64_t spill_policy_device_reserve(const struct spill_policy *policy, int device)
{
	return spill_amount_resolve(of_device(policy->device_reserve, policy->device_reserves, device), 0, 0);
}

struct spill_decision spill_decide(const struct spill_policy *policy, const struct spill_ask *ask,
                                   const struct spill_view *view)
{
	(void)policy; /* rules will look at it; today only the limit, already resolved, decides */

	/* Subtracting keeps a request of nearly 2^64 bytes from wrapping into one that fits. */
	bool fits =
	    view->device_limit == SPILL_UNLIMITED ||
	    (view->device_used <= view->device_limit && ask->bytes <= view->device_limit - view->device_used);

	return (struct spill_decision){.fits = fits, .rule = rule_default};
}

unsigned spill_policy_chain(const struct spill_policy *policy, unsigned capabilities,
                            enum spill_step step[SPILL_STEPS])
{
	static const struct {
		enum spill_step step;
		unsigned needs; /* 0: every device can */
	} order[] = {
	    {SPILL_STEP_TRIM, 0},
	    {SPILL_STEP_DEMOTE, SPILL_CAN_MOVE},
	    {SPILL_STEP_SPLIT, SPILL_CAN_SPLIT},
	    {SPILL_STEP_MANAGED, SPILL_CAN_MANAGED},
	    {SPILL_STEP_HOST, SPILL_CAN_HOST},
	};
	unsigned count = 0;

	if (!policy->chain.by_capability) {
		for (; count < policy->chain.count; count++)
			step[count] = policy->chain.step[count];
		return count;
	}
	for (unsigned i = 0; i < sizeof(order) / sizeof(order[0]); i++) {
		bool off = order[i].step == SPILL_STEP_DEMOTE && policy->movable_enable == SPILL_SWITCH_OFF;

		if (!off && (capabilities & order[i].needs) == order[i].needs)
			step[count++] = order[i].step;
	}
	return count;
}

static uint64_t less(uint64_t from, uint64_t take)
{
	return from > take ? from - take : 0;
}

uint64_t spill_policy_host_room(const struct spill_policy *policy, const struct spill_host_view *view)
{
	uint64_t by_limit = less(view->limit, view->held);
	uint64_t by_host = less(view->available, spill_amount_resolve(policy->host_reserve, 0, 0));

	return by_limit < by_host ? by_limit : by_host;
}
