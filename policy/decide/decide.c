#include "decide.h"

#include "minmax.h"

static const char rule_default[] = "default";

/* The value of `[device N]`, or of [device]. */
static struct spill_amount value_for_device(struct spill_amount all, const struct spill_amount *each,
                                            int device)
{
	return device >= 0 && device < SPILL_DEVICES && each[device].kind != SPILL_AMOUNT_NONE ? each[device]
	                                                                                       : all;
}

uint64_t spill_policy_device_limit(const struct spill_policy *policy, int device, uint64_t total)
{
	return spill_amount_resolve(value_for_device(policy->device_limit, policy->device_limits, device),
	                            total, SPILL_UNLIMITED);
}

uint64_t spill_policy_device_reserve(const struct spill_policy *policy, int device)
{
	return spill_amount_resolve(value_for_device(policy->device_reserve, policy->device_reserves, device),
	                            0, 0);
}

static bool rule_has(const struct spill_rule *rule, unsigned key)
{
	return rule && (rule->set & key);
}

/* The place off the device that a rule names by `place` or `over`; DEVICE: it names none. */
static enum spill_place place_named(enum spill_rule_place named)
{
	switch (named) {
	case SPILL_RULE_SPLIT:
		return SPILL_PLACE_SPLIT;
	case SPILL_RULE_MANAGED:
		return SPILL_PLACE_MANAGED;
	case SPILL_RULE_HOST:
		return SPILL_PLACE_HOST;
	default:
		return SPILL_PLACE_DEVICE;
	}
}

/* The place that a rule gives at once. DEVICE: no rule, or the driver decides. */
static enum spill_place place_by_rule(const struct spill_rule *rule, const struct spill_ask *ask)
{
	return rule_has(rule, SPILL_RULE_HAS_PLACE) && ask->placeable && !ask->place_failed
	           ? place_named(rule->place)
	           : SPILL_PLACE_DEVICE;
}

static enum spill_switch chunks_by_rule(const struct spill_policy *policy, const struct spill_rule *rule)
{
	if (policy->mode != SPILL_MODE_SPILL)
		return SPILL_SWITCH_OFF;
	if (!rule_has(rule, SPILL_RULE_HAS_PLACE))
		return SPILL_SWITCH_AUTO;
	if (rule->place == SPILL_RULE_MOVABLE)
		return SPILL_SWITCH_ON;
	return rule->place == SPILL_RULE_DEVICE ? SPILL_SWITCH_OFF : SPILL_SWITCH_AUTO;
}

struct spill_decision spill_decide(const struct spill_policy *policy, const struct spill_rule *rule,
                                   const struct spill_ask *ask, const struct spill_view *view)
{
	struct spill_decision decision = {
	    .rule = rule ? rule->name : rule_default,
	    .chunks = chunks_by_rule(policy, rule),
	    .place = place_by_rule(rule, ask),
	};

	if (rule_has(rule, SPILL_RULE_HAS_PLACE) && rule->place == SPILL_RULE_REFUSE) {
		decision.would = SPILL_VERDICT_REFUSE;
		decision.refused_by = SPILL_REFUSED_BY_RULE_PLACE;
	} else if (decision.place != SPILL_PLACE_DEVICE) {
		decision.would = SPILL_VERDICT_PLACE;
	} else if (rule_has(rule, SPILL_RULE_HAS_CAP) &&
	           ask->bytes > spill_rule_room(rule, view->rule_used)) {
		decision.would = SPILL_VERDICT_FULL;
		decision.refused_by = SPILL_REFUSED_BY_RULE_CAP;
	} else if (!spill_fits(ask->weight, view->device_used, view->device_limit)) {
		decision.would = SPILL_VERDICT_FULL;
		decision.refused_by = SPILL_REFUSED_BY_DEVICE_LIMIT;
	}
	if (policy->mode == SPILL_MODE_SPILL)
		decision.verdict = decision.would;
	return decision;
}

enum spill_memory spill_policy_memory(const struct spill_policy *policy, unsigned capabilities)
{
	if (policy->device_memory != SPILL_MEMORY_AUTO)
		return policy->device_memory;
	/* GB10 reports both. Its memory is shared, so a coherent link makes no difference. */
	if (capabilities & SPILL_IS_INTEGRATED)
		return SPILL_MEMORY_INTEGRATED;
	return capabilities & SPILL_IS_COHERENT ? SPILL_MEMORY_COHERENT : SPILL_MEMORY_DISCRETE;
}

bool spill_policy_gains_by_moving(const struct spill_policy *policy, unsigned capabilities)
{
	return !policy->chain.by_capability ||
	       spill_policy_memory(policy, capabilities) != SPILL_MEMORY_INTEGRATED;
}

/*
 * The default steps by kind of memory (adr 25).
 * Integrated: demoted memory stays in the same chips, so there is no demote and no split. Managed
 * and host memory may exceed the share that the firmware has set aside for the device.
 * Coherent: the device reads managed memory at the link's speed, and the driver can migrate its
 * pages.
 */
static const struct {
	unsigned count;
	enum spill_step step[SPILL_STEPS];
} default_chains[] = {
    [SPILL_MEMORY_DISCRETE] = {5,
                               {SPILL_STEP_TRIM, SPILL_STEP_DEMOTE, SPILL_STEP_SPLIT, SPILL_STEP_MANAGED,
                                SPILL_STEP_HOST}},
    [SPILL_MEMORY_INTEGRATED] = {3, {SPILL_STEP_TRIM, SPILL_STEP_MANAGED, SPILL_STEP_HOST}},
    [SPILL_MEMORY_COHERENT] = {5,
                               {SPILL_STEP_TRIM, SPILL_STEP_DEMOTE, SPILL_STEP_MANAGED, SPILL_STEP_SPLIT,
                                SPILL_STEP_HOST}},
};

static bool is_possible(const struct spill_policy *policy, unsigned capabilities, enum spill_step step)
{
	switch (step) {
	case SPILL_STEP_TRIM:
		return true;
	case SPILL_STEP_DEMOTE:
		return capabilities & SPILL_CAN_MOVE && policy->movable_enable != SPILL_SWITCH_OFF;
	default:
		return capabilities & 1u << spill_step_place(step);
	}
}

unsigned spill_policy_chain(const struct spill_policy *policy, unsigned capabilities,
                            enum spill_step step[SPILL_STEPS])
{
	enum spill_memory memory = spill_policy_memory(policy, capabilities);
	unsigned count = 0;

	if (!policy->chain.by_capability) {
		for (; count < policy->chain.count; count++)
			step[count] = policy->chain.step[count];
		return count;
	}
	for (unsigned i = 0; i < default_chains[memory].count; i++) {
		if (is_possible(policy, capabilities, default_chains[memory].step[i]))
			step[count++] = default_chains[memory].step[i];
	}
	return count;
}

/* Above a cap these steps are useless: the device need not be full. */
static bool makes_device_room(enum spill_step step)
{
	return step == SPILL_STEP_TRIM || step == SPILL_STEP_DEMOTE;
}

static unsigned steps_of_chain(const struct spill_policy *policy, const struct spill_full_view *view,
                               enum spill_step step[SPILL_STEPS])
{
	unsigned all = spill_policy_chain(policy, view->capabilities, step), count = 0;

	for (unsigned i = 0; i < all; i++) {
		if (!view->capped || !makes_device_room(step[i]))
			step[count++] = step[i];
	}
	return count;
}

/* The steps of `over`, instead of the chain. Unused memory is released first: then it may fit. */
static unsigned steps_of_rule(const struct spill_rule *rule, const struct spill_full_view *view,
                              enum spill_step step[SPILL_STEPS])
{
	enum spill_place place = place_named(rule->over);
	unsigned count = 0;

	if (!view->capped)
		step[count++] = SPILL_STEP_TRIM;
	if (place != SPILL_PLACE_DEVICE)
		step[count++] = spill_step_to(place);
	return count;
}

/*
 * Is there a step to skip? Without one, out of memory is the answer anyway. Remembered as a first
 * failure, it would wait for a repeat.
 */
static bool has_step_to_skip(const struct spill_fallback *fallback)
{
	for (unsigned i = 0; i < fallback->count; i++) {
		if (fallback->step[i] != SPILL_STEP_TRIM)
			return true;
	}
	return false;
}

/*
 * Does the first failure surface? Above a cap a freed cache does not help, unless the rule sets
 * `honest`. Never in a capture: PyTorch frees no cache, and so does not ask again, while one of its
 * threads captures.
 */
static bool first_failure_surfaces(const struct spill_policy *policy, const struct spill_rule *rule,
                                   const struct spill_full_view *view)
{
	bool surfaces = !view->capped && (policy->honest_first == SPILL_HONEST_ON ||
	                                  (policy->honest_first == SPILL_HONEST_AUTO && view->asks_again));

	if (rule_has(rule, SPILL_RULE_HAS_HONEST))
		surfaces = rule->honest;
	return surfaces && !view->any_capture && !view->repeats;
}

struct spill_fallback spill_decide_full(const struct spill_policy *policy, const struct spill_rule *rule,
                                        const struct spill_ask *ask, const struct spill_full_view *view)
{
	struct spill_fallback fallback = {0};

	if (view->capturing) {
		fallback.refused_by = SPILL_REFUSED_BY_CAPTURE;
		return fallback;
	}
	if (policy->mode != SPILL_MODE_SPILL && !view->supposed)
		return fallback;
	if (!rule_has(rule, SPILL_RULE_HAS_OVER)) {
		fallback.count = steps_of_chain(policy, view, fallback.step);
	} else {
		fallback.count = steps_of_rule(rule, view, fallback.step);
		if (!has_step_to_skip(&fallback))
			fallback.refused_by = SPILL_REFUSED_BY_RULE_OVER;
	}
	fallback.surfaces =
	    ask->placeable && has_step_to_skip(&fallback) && first_failure_surfaces(policy, rule, view);
	return fallback;
}

uint64_t spill_policy_device_room(uint64_t reserve, uint64_t free, uint64_t held, uint64_t limit)
{
	uint64_t by_device = spill_minus(free, reserve);
	uint64_t by_limit = limit == SPILL_UNLIMITED ? SPILL_UNLIMITED : spill_minus(limit, held);

	return spill_min(by_device, by_limit);
}

bool spill_policy_demotes(const struct spill_policy *policy)
{
	bool found = policy->chain.by_capability;

	for (unsigned i = 0; i < policy->chain.count; i++)
		found = found || policy->chain.step[i] == SPILL_STEP_DEMOTE;
	return found;
}

struct spill_shortfall spill_policy_shortfall(uint64_t reserve, uint64_t bytes, uint64_t free, uint64_t held,
                                              uint64_t limit)
{
	uint64_t by_limit = limit != SPILL_UNLIMITED ? spill_minus(bytes, spill_minus(limit, held)) : 0;
	uint64_t by_driver = spill_minus(bytes, free);
	uint64_t with_reserve = bytes > UINT64_MAX - reserve ? bytes : spill_minus(bytes + reserve, free);

	return (struct spill_shortfall){
	    .least = spill_max(by_driver, by_limit),
	    .wanted = spill_max(with_reserve, by_limit),
	};
}

/*
 * Default chunk: 4 GiB take 2 ms in chunks of 64 MiB, and 8 ms in chunks of 16 MiB (measured,
 * H200).
 */
#define CHUNK ((uint64_t)64 << 20)
/*
 * Chunk of an allocation that is smaller than two default chunks. Most chunks then have one size,
 * and an exchange can reuse the memory of a victim (adr/0021). A training step in PyTorch, with
 * segments of 16 to 64 MiB, takes 0.40 s instead of 0.78 s.
 */
#define SMALL ((uint64_t)16 << 20)

static uint64_t round_up(uint64_t bytes, uint64_t unit)
{
	return bytes > UINT64_MAX - unit ? bytes / unit * unit : (bytes + unit - 1) / unit * unit;
}

uint64_t spill_policy_chunk(const struct spill_policy *policy, uint64_t bytes, uint64_t unit)
{
	uint64_t chunk = spill_amount_resolve(policy->movable_chunk, 0, CHUNK);

	chunk = round_up(chunk ? chunk : 1, unit);
	if (round_up(bytes, unit) / 2 < chunk && chunk > SMALL)
		chunk = round_up(SMALL, unit);
	return chunk;
}

uint64_t spill_policy_host_room(const struct spill_policy *policy, const struct spill_host_view *view)
{
	uint64_t by_limit = spill_minus(view->limit, view->held);
	uint64_t by_host = spill_minus(view->available, spill_amount_resolve(policy->host_reserve, 0, 0));

	return spill_min(by_limit, by_host);
}
