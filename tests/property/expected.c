/* Written from the words of policy/options/rule.h and docs/options.md alone; slow, and with numbers that cannot wrap. */
#include <string.h>

#include "property.h"

__extension__ typedef unsigned __int128 wide;

static bool says(const struct spill_rule *rule, enum spill_rule_key key)
{
	return rule != NULL && (rule->set & (unsigned)key) != 0;
}

/* -- which rule ------------------------------------------------------------------------------------------- */

static bool matches(const char *glob, const char *text)
{
	if (*glob == '*')
		return matches(glob + 1, text) || (*text && matches(glob, text + 1));
	if (!*glob || !*text)
		return *glob == *text;
	return (*glob == '?' || *glob == *text) && matches(glob + 1, text + 1);
}

static bool api_matches(const char *glob, const char *called)
{
	/* The names that apis[] has, bare. */
	static const char *const bare[] = {"cuMemAlloc", "cuMemAllocAsync", "cuMemCreate", "hipMalloc"};

	for (unsigned i = 0; i < sizeof(bare) / sizeof(bare[0]); i++) {
		size_t length = strlen(bare[i]);

		if (strncmp(called, bare[i], length) == 0 &&
		    (called[length] == '_' || called[length] == '\0'))
			return matches(glob, called) || matches(glob, bare[i]);
	}
	return false;
}

static bool caller_matches(const char *glob, const char *path)
{
	if (!*path)
		return false;
	if (!strchr(glob, '/') && strrchr(path, '/'))
		path = strrchr(path, '/') + 1;
	return matches(glob, path);
}

int expected_rule(const struct spill_policy *policy, const struct event *event)
{
	for (unsigned i = 0; policy->rules && i < policy->rules->count; i++) {
		const struct spill_rule *rule = &policy->rules->rule[i];
		bool fits = true;

		if (says(rule, SPILL_RULE_HAS_SIZE))
			fits &= rule->least <= event->bytes && event->bytes <= rule->most;
		if (says(rule, SPILL_RULE_HAS_DEVICE))
			fits &= (rule->devices & 1u << event->device) != 0;
		if (says(rule, SPILL_RULE_HAS_GROWTH))
			fits &= rule->growth == event->grows;
		if (says(rule, SPILL_RULE_HAS_API))
			fits &= api_matches(rule->api, apis[event->api]);
		if (says(rule, SPILL_RULE_HAS_CALLER))
			fits &= caller_matches(rule->caller, callers[event->caller]);
		if (fits)
			return (int)i;
	}
	return -1;
}

struct spill_managed_advice expected_advice(const struct spill_policy *policy, const struct spill_rule *rule)
{
	const struct spill_managed_advice *of[] = {&policy->advice, rule ? &rule->advice : NULL};
	struct spill_managed_advice advice = {
	    .preferred = of[says(rule, SPILL_RULE_HAS_PREFERRED)]->preferred,
	    .accessed_by_device = of[says(rule, SPILL_RULE_HAS_ACCESSED_BY)]->accessed_by_device,
	    .accessed_by_host = of[says(rule, SPILL_RULE_HAS_ACCESSED_BY)]->accessed_by_host,
	    .read_mostly = of[says(rule, SPILL_RULE_HAS_READ_MOSTLY)]->read_mostly,
	    .prefetch_below = of[says(rule, SPILL_RULE_HAS_PREFETCH_BELOW)]->prefetch_below,
	};

	if (says(rule, SPILL_RULE_HAS_PREFETCH))
		advice.prefetch_below =
		    (struct spill_amount){SPILL_AMOUNT_BYTES, rule->prefetch ? UINT64_MAX : 0};
	return advice;
}

/* -- before the driver is asked --------------------------------------------------------------------------- */

static bool passes(uint64_t held, uint64_t more, uint64_t most)
{
	return most != SPILL_UNLIMITED && (wide)held + more > most;
}

struct spill_decision expected_decision(const struct spill_policy *policy, const struct spill_rule *rule,
                                        const struct spill_ask *ask, const struct spill_view *view)
{
	static const enum spill_place places[] = {
	    [SPILL_RULE_SPLIT] = SPILL_PLACE_SPLIT,
	    [SPILL_RULE_MANAGED] = SPILL_PLACE_MANAGED,
	    [SPILL_RULE_HOST] = SPILL_PLACE_HOST,
	    [SPILL_RULE_REFUSE] = SPILL_PLACE_DEVICE,
	};
	bool placed = says(rule, SPILL_RULE_HAS_PLACE);
	struct spill_decision decision = {.rule = rule ? rule->name : "default"};

	if (placed && places[rule->place] && ask->placeable && !ask->place_failed) {
		decision.would = SPILL_VERDICT_PLACE;
		decision.place = places[rule->place];
	} else if (says(rule, SPILL_RULE_HAS_CAP) && passes(view->rule_used, ask->bytes, rule->cap) &&
	           (ask->bytes || view->rule_used <= rule->cap)) {
		decision.would = SPILL_VERDICT_FULL;
		decision.refused_by = SPILL_REFUSED_BY_RULE_CAP;
	} else if (passes(view->device_used, ask->weight, view->device_limit)) {
		decision.would = SPILL_VERDICT_FULL;
		decision.refused_by = SPILL_REFUSED_BY_DEVICE_LIMIT;
	}
	if (placed && rule->place == SPILL_RULE_REFUSE) {
		decision.would = SPILL_VERDICT_REFUSE;
		decision.refused_by = SPILL_REFUSED_BY_RULE_PLACE;
	}
	if (placed && rule->place == SPILL_RULE_MOVABLE)
		decision.chunks = SPILL_SWITCH_ON;
	if (placed && rule->place == SPILL_RULE_DEVICE)
		decision.chunks = SPILL_SWITCH_OFF;
	decision.verdict = decision.would;
	if (policy->mode == SPILL_MODE_OBSERVE) {
		decision.verdict = SPILL_VERDICT_DRIVER;
		decision.chunks = SPILL_SWITCH_OFF;
	}
	return decision;
}

/* -- when the device is full ------------------------------------------------------------------------------ */

static bool can(const struct spill_policy *policy, unsigned capabilities, enum spill_step step)
{
	switch (step) {
	case SPILL_STEP_DEMOTE:
		return policy->movable_enable != SPILL_SWITCH_OFF && capabilities & SPILL_CAN_MOVE;
	case SPILL_STEP_SPLIT:
		return capabilities & SPILL_CAN_SPLIT;
	case SPILL_STEP_MANAGED:
		return capabilities & SPILL_CAN_MANAGED;
	case SPILL_STEP_HOST:
		return capabilities & SPILL_CAN_HOST;
	default:
		return true;
	}
}

static void add(struct spill_fallback *remedy, enum spill_step step, bool capped)
{
	if (!capped || (step != SPILL_STEP_TRIM && step != SPILL_STEP_DEMOTE))
		remedy->step[remedy->count++] = step;
}

static void add_chain(struct spill_fallback *remedy, const struct spill_policy *policy,
                      const struct spill_full_view *view)
{
	const struct spill_fallback_chain *chain = &policy->chain;

	if (chain->by_capability) {
		for (enum spill_step step = SPILL_STEP_TRIM; step < SPILL_STEPS; step++)
			if (can(policy, view->capabilities, step))
				add(remedy, step, view->capped);
	} else {
		for (unsigned i = 0; i < chain->count; i++)
			add(remedy, chain->step[i], view->capped);
	}
}

static bool wants_to_know(const struct spill_policy *policy, const struct spill_rule *rule,
                          const struct spill_full_view *view)
{
	if (says(rule, SPILL_RULE_HAS_HONEST))
		return rule->honest;
	if (view->capped || policy->honest_first == SPILL_HONEST_OFF)
		return false;
	return policy->honest_first == SPILL_HONEST_ON || view->asks_again;
}

struct spill_fallback expected_remedy(const struct spill_policy *policy, const struct spill_rule *rule,
                                      const struct spill_ask *ask, const struct spill_full_view *view)
{
	struct spill_fallback remedy = {0};
	bool spills = false;

	if (view->capturing)
		remedy.refused_by = SPILL_REFUSED_BY_CAPTURE;
	if (view->capturing || policy->mode == SPILL_MODE_OBSERVE)
		return remedy;
	if (!says(rule, SPILL_RULE_HAS_OVER)) {
		add_chain(&remedy, policy, view);
	} else if (add(&remedy, SPILL_STEP_TRIM, view->capped), rule->over == SPILL_RULE_REFUSE) {
		remedy.refused_by = SPILL_REFUSED_BY_RULE_OVER;
	} else {
		add(&remedy,
		    rule->over == SPILL_RULE_SPLIT     ? SPILL_STEP_SPLIT
		    : rule->over == SPILL_RULE_MANAGED ? SPILL_STEP_MANAGED
		                                       : SPILL_STEP_HOST,
		    view->capped);
	}
	for (unsigned i = 0; i < remedy.count; i++)
		spills |= remedy.step[i] != SPILL_STEP_TRIM;
	remedy.surfaces = spills && ask->placeable && !view->any_capture && !view->repeats &&
	                  wants_to_know(policy, rule, view);
	return remedy;
}

unsigned expected_kind(const struct event *event)
{
	unsigned operation = event->operation == SPILL_RETRY_PLAIN      ? 0
	                     : event->operation == SPILL_RETRY_PHYSICAL ? 1
	                                                                : 2;

	return (event->caller * DEVICES + (unsigned)event->device) * 3 + operation;
}

void expected_surfaced(struct expected_failure failures[KINDS], const struct event *event, uint64_t time_us)
{
	struct expected_failure *oldest = NULL;
	unsigned remembered = 0;

	failures[expected_kind(event)] = (struct expected_failure){true, *event, time_us};
	for (unsigned i = 0; i < KINDS; i++) {
		if (!failures[i].is)
			continue;
		remembered++;
		if (!oldest || failures[i].time_us < oldest->time_us)
			oldest = &failures[i];
	}
	if (remembered > SPILL_FAILURES)
		oldest->is = false;
}

void expected_mapped(struct expected_failure failures[KINDS], unsigned caller)
{
	for (unsigned i = 0; i < KINDS; i++)
		if (failures[i].event.operation == SPILL_RETRY_PHYSICAL && failures[i].event.caller == caller)
			failures[i].is = false;
}

bool expected_repeat(const struct expected_failure *failure, const struct event *event, uint64_t time_us,
                     uint64_t window_us)
{
	const struct event *failed = &failure->event;

	if (!failure->is || time_us > failure->time_us + window_us)
		return false;
	return failed->caller == event->caller && failed->device == event->device &&
	       failed->operation == event->operation && failed->bytes <= event->bytes;
}
