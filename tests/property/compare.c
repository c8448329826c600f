#include <string.h>

#include "property.h"

static bool same_text(const char *a, const char *b)
{
	return a && b ? strcmp(a, b) == 0 : a == b;
}

static const struct spill_rule *twin_of(const struct property_case *this, const struct spill_rule *rule)
{
	return rule ? &this->twin_rules.rule[spill_rule_index(&this->policy, rule)] : NULL;
}

/* -- which rule ------------------------------------------------------------------------------------------- */

/* What no rule looks at need not be found out: then it is said wrongly here, and may not matter. */
static struct spill_ask ask_of(const struct spill_rules *rules, const struct event *event)
{
	struct spill_ask ask;

	memset(&ask, 0xa5, sizeof(ask));
	ask.bytes = event->bytes;
	ask.weight = event->weight;
	ask.device = event->device;
	ask.placeable = !event->fixed;
	ask.place_failed = false;
	ask.grows = event->grows;
	ask.rules = 0;
	if (!rules)
		return ask;
	ask.rules = rules->by_site ? spill_rules_of(rules, apis[event->api], callers[event->caller])
	                           : spill_rules_all(rules);
	if (!(ask.rules & rules->by_growth))
		ask.grows = !event->grows;
	return ask;
}

static bool same_advice(struct spill_managed_advice a, struct spill_managed_advice b)
{
	return a.preferred == b.preferred && a.accessed_by_device == b.accessed_by_device &&
	       a.accessed_by_host == b.accessed_by_host && a.read_mostly == b.read_mostly &&
	       a.prefetch_below.kind == b.prefetch_below.kind &&
	       a.prefetch_below.value == b.prefetch_below.value;
}

static void compare_what_it_says(const struct property_case *this, const struct spill_rule *rule)
{
	const struct spill_rule *twin = twin_of(this, rule);
	struct spill_managed_advice advice = spill_rule_advice(&this->policy, rule);

	must(this, same_advice(advice, expected_advice(&this->policy, rule)),
	     "not the advice that the words say");
	must(this, same_advice(advice, spill_rule_advice(&this->twin, twin)),
	     "advice by what the rule does not set");
	must(this, spill_rule_priority(rule) == spill_rule_priority(twin),
	     "a priority that the rule does not set");
}

const struct spill_rule *ask_rule(const struct property_case *this, const struct event *event,
                                  struct spill_ask *ask)
{
	const struct spill_rule *rule, *again;
	struct spill_ask twins = ask_of(this->twin.rules, event);

	*ask = ask_of(this->policy.rules, event);
	must(this, ask->rules == twins.rules, "a mask that changes with what its rules do not set");
	rule = spill_rule_find(&this->policy, ask);
	again = spill_rule_find(&this->twin, &twins);
	must(this, again == twin_of(this, rule), "a rule that is found by what it does not set");
	must(this,
	     (rule ? (int)spill_rule_index(&this->policy, rule) : -1) == expected_rule(&this->policy, event),
	     "not the first rule that matches");
	compare_what_it_says(this, rule);
	return rule;
}

/* -- the decisions ---------------------------------------------------------------------------------------- */

static bool same_decision(const struct spill_decision *a, const struct spill_decision *b)
{
	return a->verdict == b->verdict && a->would == b->would && a->place == b->place &&
	       a->chunks == b->chunks && same_text(a->rule, b->rule) && a->refused_by == b->refused_by;
}

static bool is_total(const struct spill_decision *decision)
{
	bool refuses = decision->would == SPILL_VERDICT_FULL || decision->would == SPILL_VERDICT_REFUSE;

	return (unsigned)decision->verdict <= SPILL_VERDICT_REFUSE &&
	       (unsigned)decision->would <= SPILL_VERDICT_REFUSE &&
	       (unsigned)decision->chunks <= SPILL_SWITCH_OFF && (unsigned)decision->place < SPILL_PLACES &&
	       (decision->would == SPILL_VERDICT_PLACE) == (decision->place != SPILL_PLACE_DEVICE) &&
	       decision->rule && refuses == (decision->refused_by != SPILL_REFUSED_BY_NONE);
}

struct spill_decision ask_decision(const struct property_case *this, const struct spill_rule *rule,
                                   const struct spill_ask *ask, const struct spill_view *view)
{
	struct spill_decision decision = spill_decide(&this->policy, rule, ask, view), again, expected;

	must(this, is_total(&decision), "a decision that says what it may not");
	again = spill_decide(&this->policy, rule, ask, view);
	must(this, same_decision(&decision, &again), "asked twice, decided otherwise");
	again = spill_decide(&this->twin, twin_of(this, rule), ask, view);
	must(this, same_decision(&decision, &again), "decided by what does not count");
	expected = expected_decision(&this->policy, rule, ask, view);
	must(this, same_decision(&decision, &expected), "not the decision that the words say");
	return decision;
}

static bool same_remedy(const struct spill_fallback *a, const struct spill_fallback *b)
{
	return a->count == b->count && memcmp(a->step, b->step, a->count * sizeof(a->step[0])) == 0 &&
	       a->surfaces == b->surfaces && a->refused_by == b->refused_by;
}

static bool is_total_when_full(const struct spill_fallback *remedy)
{
	unsigned taken = 0;

	if (remedy->count > SPILL_STEPS)
		return false;
	for (unsigned i = 0; i < remedy->count; i++) {
		if ((unsigned)remedy->step[i] >= SPILL_STEPS || taken & 1u << remedy->step[i])
			return false;
		taken |= 1u << remedy->step[i];
	}
	taken &= ~(1u << SPILL_STEP_TRIM);
	return !(remedy->surfaces && !taken) && !(remedy->refused_by && taken);
}

struct spill_fallback ask_remedy(const struct property_case *this, const struct spill_rule *rule,
                                 const struct spill_ask *ask, const struct spill_full_view *view)
{
	struct spill_fallback remedy = spill_decide_full(&this->policy, rule, ask, view), again, expected;

	must(this, is_total_when_full(&remedy), "steps that there are not, or twice");
	again = spill_decide_full(&this->policy, rule, ask, view);
	must(this, same_remedy(&remedy, &again), "asked twice, other steps");
	again = spill_decide_full(&this->twin, twin_of(this, rule), ask, view);
	must(this, same_remedy(&remedy, &again), "steps by what does not count");
	expected = expected_remedy(&this->policy, rule, ask, view);
	must(this, same_remedy(&remedy, &expected), "not the steps that the words say");
	return remedy;
}
