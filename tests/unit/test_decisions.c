/* The two decisions under rules, by tables: before the driver is asked, and when the device is full. */
#include "unit.h"

#include <string.h>

#include "decide.h"

#define ALL (SPILL_CAN_MOVE | SPILL_CAN_SPLIT | SPILL_CAN_MANAGED | SPILL_CAN_HOST)

enum {
	PLACE = SPILL_RULE_HAS_PLACE,
	OVER = SPILL_RULE_HAS_OVER,
	CAP = SPILL_RULE_HAS_CAP,
	HONEST = SPILL_RULE_HAS_HONEST,
};

/* -- before the driver is asked --------------------------------------------------------------------------- */

/* 10 bytes, with 90 of 100 held on the device, and 5 by the rule. */
static const struct before {
	const char *what;
	struct spill_rule rule;
	uint64_t bytes, weight; /* 0: 10 */
	uint64_t limit;         /* 0: 100 */
	bool fixed, place_failed;
	enum spill_verdict would;
	enum spill_place place;
	enum spill_switch chunks;
	enum spill_refused_by refused_by;
} before[] = {
    {.what = "a rule that does not place",
     .rule = {.set = SPILL_RULE_HAS_PRIORITY, .place = SPILL_RULE_REFUSE},
     .would = SPILL_VERDICT_DRIVER},
    {.what = "as plain memory",
     .rule = {.set = PLACE, .place = SPILL_RULE_DEVICE},
     .chunks = SPILL_SWITCH_OFF},
    {.what = "in chunks", .rule = {.set = PLACE, .place = SPILL_RULE_MOVABLE}, .chunks = SPILL_SWITCH_ON},
    {.what = "split",
     .rule = {.set = PLACE, .place = SPILL_RULE_SPLIT},
     .would = SPILL_VERDICT_PLACE,
     .place = SPILL_PLACE_SPLIT},
    {.what = "managed",
     .rule = {.set = PLACE, .place = SPILL_RULE_MANAGED},
     .would = SPILL_VERDICT_PLACE,
     .place = SPILL_PLACE_MANAGED},
    {.what = "host",
     .rule = {.set = PLACE, .place = SPILL_RULE_HOST},
     .would = SPILL_VERDICT_PLACE,
     .place = SPILL_PLACE_HOST},
    {.what = "host, whatever the limit is",
     .rule = {.set = PLACE, .place = SPILL_RULE_HOST},
     .limit = 1,
     .would = SPILL_VERDICT_PLACE,
     .place = SPILL_PLACE_HOST},
    {.what = "host, which takes nothing of the cap",
     .rule = {.set = PLACE | CAP, .place = SPILL_RULE_HOST, .cap = 1},
     .would = SPILL_VERDICT_PLACE,
     .place = SPILL_PLACE_HOST},
    {.what = "what cannot be elsewhere is not",
     .rule = {.set = PLACE, .place = SPILL_RULE_HOST},
     .fixed = true},
    {.what = "nor is it in chunks without the rule",
     .rule = {.set = PLACE, .place = SPILL_RULE_SPLIT},
     .fixed = true,
     .limit = 99,
     .would = SPILL_VERDICT_FULL,
     .refused_by = SPILL_REFUSED_BY_DEVICE_LIMIT},
    {.what = "what was tried in vain goes to the driver",
     .rule = {.set = PLACE, .place = SPILL_RULE_MANAGED},
     .place_failed = true},
    {.what = "or is full",
     .rule = {.set = PLACE, .place = SPILL_RULE_MANAGED},
     .place_failed = true,
     .limit = 99,
     .would = SPILL_VERDICT_FULL,
     .refused_by = SPILL_REFUSED_BY_DEVICE_LIMIT},
    {.what = "refused",
     .rule = {.set = PLACE, .place = SPILL_RULE_REFUSE},
     .would = SPILL_VERDICT_REFUSE,
     .refused_by = SPILL_REFUSED_BY_RULE_PLACE},
    {.what = "refused also where it cannot be elsewhere",
     .rule = {.set = PLACE, .place = SPILL_RULE_REFUSE},
     .fixed = true,
     .would = SPILL_VERDICT_REFUSE,
     .refused_by = SPILL_REFUSED_BY_RULE_PLACE},
    {.what = "refused before any limit",
     .rule = {.set = PLACE | CAP, .place = SPILL_RULE_REFUSE},
     .limit = 1,
     .would = SPILL_VERDICT_REFUSE,
     .refused_by = SPILL_REFUSED_BY_RULE_PLACE},
    {.what = "just within the cap", .rule = {.set = CAP, .cap = 15}},
    {.what = "above the cap",
     .rule = {.set = CAP, .cap = 14},
     .would = SPILL_VERDICT_FULL,
     .refused_by = SPILL_REFUSED_BY_RULE_CAP},
    {.what = "a cap of nothing",
     .rule = {.set = CAP, .cap = 0},
     .would = SPILL_VERDICT_FULL,
     .refused_by = SPILL_REFUSED_BY_RULE_CAP},
    {.what = "a cap without end", .rule = {.set = CAP, .cap = UINT64_MAX}, .bytes = UINT64_MAX},
    {.what = "a cap that is passed by wrapping",
     .rule = {.set = CAP, .cap = 15},
     .bytes = UINT64_MAX - 2,
     .would = SPILL_VERDICT_FULL,
     .refused_by = SPILL_REFUSED_BY_RULE_CAP},
    {.what = "a cap that the rule does not set", .rule = {.set = OVER, .cap = 0}},
    {.what = "the cap is of asked bytes", .rule = {.set = CAP, .cap = 15}, .weight = 11, .limit = UINT64_MAX},
    {.what = "the limit is of the driver's",
     .rule = {.set = CAP, .cap = 15},
     .weight = 11,
     .would = SPILL_VERDICT_FULL,
     .refused_by = SPILL_REFUSED_BY_DEVICE_LIMIT},
    {.what = "above both: the cap is named",
     .rule = {.set = CAP, .cap = 14},
     .limit = 1,
     .would = SPILL_VERDICT_FULL,
     .refused_by = SPILL_REFUSED_BY_RULE_CAP},
    {.what = "in chunks, above the cap",
     .rule = {.set = PLACE | CAP, .place = SPILL_RULE_MOVABLE, .cap = 14},
     .chunks = SPILL_SWITCH_ON,
     .would = SPILL_VERDICT_FULL,
     .refused_by = SPILL_REFUSED_BY_RULE_CAP},
};

static struct spill_decision decide(const struct before *c, enum spill_mode mode)
{
	struct spill_policy policy;
	struct spill_ask ask = {
	    .bytes = c->bytes ? c->bytes : 10,
	    .weight = c->weight ? c->weight : 10,
	    .placeable = !c->fixed,
	    .place_failed = c->place_failed,
	};
	struct spill_view view = {
	    .device_used = 90, .device_limit = c->limit ? c->limit : 100, .rule_used = 5};

	spill_policy_default(&policy);
	policy.mode = mode;
	return spill_decide(&policy, &c->rule, &ask, &view);
}

TEST(before_the_driver)
{
	for (size_t i = 0; i < sizeof(before) / sizeof(before[0]); i++) {
		const struct before *c = &before[i];
		struct spill_decision decision = decide(c, SPILL_MODE_SPILL);

		if (decision.verdict != c->would || decision.would != c->would ||
		    decision.place != c->place || decision.chunks != c->chunks ||
		    decision.rule != c->rule.name || decision.refused_by != c->refused_by)
			fail_msg("%s: verdict %d, would %d, place %d, chunks %d, refused by %s", c->what,
			         decision.verdict, decision.would, decision.place, decision.chunks,
			         spill_refused_by_name(decision.refused_by));
	}
}

/* `would` has the verdict of mode=spill; the real verdict is the driver's plain call. */
TEST(observed)
{
	for (size_t i = 0; i < sizeof(before) / sizeof(before[0]); i++) {
		const struct before *c = &before[i];
		struct spill_decision decision = decide(c, SPILL_MODE_OBSERVE);

		if (decision.verdict != SPILL_VERDICT_DRIVER || decision.chunks != SPILL_SWITCH_OFF ||
		    decision.would != c->would || decision.place != c->place ||
		    decision.refused_by != c->refused_by)
			fail_msg("%s", c->what);
	}
}

/* -- when the device is full ------------------------------------------------------------------------------ */

#define S(name) SPILL_STEP_##name

/* A chain that nobody wrote, on a device that can do all, for memory that can be elsewhere. */
static const struct full {
	const char *what;
	struct spill_rule rule;
	bool no_rule, written;
	struct spill_fallback_chain chain;
	struct spill_full_view view;
	enum spill_mode mode;
	unsigned count;
	enum spill_step step[SPILL_STEPS];
	enum spill_refused_by refused_by;
} full[] = {
    {.what = "no rule",
     .no_rule = true,
     .count = 5,
     .step = {S(TRIM), S(DEMOTE), S(SPLIT), S(MANAGED), S(HOST)}},
    {.what = "a rule that says nothing of it",
     .rule = {.set = PLACE | CAP, .over = SPILL_RULE_HOST},
     .count = 5,
     .step = {S(TRIM), S(DEMOTE), S(SPLIT), S(MANAGED), S(HOST)}},
    {.what = "above a cap nothing is given back",
     .rule = {.set = CAP},
     .view.capped = true,
     .count = 3,
     .step = {S(SPLIT), S(MANAGED), S(HOST)}},
    {.what = "nor by a chain as written",
     .rule = {.set = CAP},
     .written = true,
     .chain = {.count = 4, .step = {S(HOST), S(TRIM), S(DEMOTE), S(SPLIT)}},
     .view.capped = true,
     .count = 2,
     .step = {S(HOST), S(SPLIT)}},
    {.what = "above a cap with an empty chain", .rule = {.set = CAP}, .written = true, .view.capped = true},
    {.what = "over: split",
     .rule = {.set = OVER, .over = SPILL_RULE_SPLIT},
     .count = 2,
     .step = {S(TRIM), S(SPLIT)}},
    {.what = "over: managed",
     .rule = {.set = OVER, .over = SPILL_RULE_MANAGED},
     .count = 2,
     .step = {S(TRIM), S(MANAGED)}},
    {.what = "over: host",
     .rule = {.set = OVER, .over = SPILL_RULE_HOST},
     .count = 2,
     .step = {S(TRIM), S(HOST)}},
    {.what = "over, with an empty chain",
     .rule = {.set = OVER, .over = SPILL_RULE_MANAGED},
     .written = true,
     .count = 2,
     .step = {S(TRIM), S(MANAGED)}},
    {.what = "over, above the cap",
     .rule = {.set = OVER | CAP, .over = SPILL_RULE_HOST},
     .view.capped = true,
     .count = 1,
     .step = {S(HOST)}},
    {.what = "over: refuse",
     .rule = {.set = OVER, .over = SPILL_RULE_REFUSE},
     .count = 1,
     .step = {S(TRIM)},
     .refused_by = SPILL_REFUSED_BY_RULE_OVER},
    {.what = "over: refuse, above the cap",
     .rule = {.set = OVER | CAP, .over = SPILL_RULE_REFUSE},
     .view.capped = true,
     .refused_by = SPILL_REFUSED_BY_RULE_OVER},
    {.what = "its stream captures",
     .no_rule = true,
     .view = {.capturing = true, .any_capture = true},
     .refused_by = SPILL_REFUSED_BY_CAPTURE},
    {.what = "its stream captures, over",
     .rule = {.set = OVER, .over = SPILL_RULE_HOST},
     .view = {.capturing = true, .any_capture = true},
     .refused_by = SPILL_REFUSED_BY_CAPTURE},
    {.what = "another captures",
     .rule = {.set = OVER, .over = SPILL_RULE_HOST},
     .view.any_capture = true,
     .count = 2,
     .step = {S(TRIM), S(HOST)}},
    {.what = "observed", .rule = {.set = OVER, .over = SPILL_RULE_REFUSE}, .mode = SPILL_MODE_OBSERVE},
    {.what = "observed, no rule", .no_rule = true, .mode = SPILL_MODE_OBSERVE},
    {.what = "off", .no_rule = true, .mode = SPILL_MODE_OFF},
};

static struct spill_fallback remedy_of(const struct full *c, enum spill_honest_first honest, bool placeable)
{
	struct spill_policy policy;
	struct spill_ask ask = {.bytes = 10, .weight = 10, .placeable = placeable};
	struct spill_full_view view = c->view;

	spill_policy_default(&policy);
	policy.mode = c->mode;
	policy.honest_first = honest;
	if (c->written)
		policy.chain = c->chain;
	view.capabilities = ALL;
	return spill_decide_full(&policy, c->no_rule ? NULL : &c->rule, &ask, &view);
}

TEST(when_full)
{
	for (size_t i = 0; i < sizeof(full) / sizeof(full[0]); i++) {
		const struct full *c = &full[i];
		struct spill_fallback remedy = remedy_of(c, SPILL_HONEST_AUTO, true);

		if (remedy.count != c->count || remedy.refused_by != c->refused_by || remedy.surfaces)
			fail_msg("%s: %u steps, refused by %s", c->what, remedy.count,
			         spill_refused_by_name(remedy.refused_by));
		for (unsigned at = 0; at < c->count; at++) {
			if (remedy.step[at] != c->step[at])
				fail_msg("%s: step %u is %s", c->what, at, spill_step_name(remedy.step[at]));
		}
	}
}

/* -- honest first ----------------------------------------------------------------------------------------- */

static const struct honest {
	const char *what;
	struct full full;
	enum spill_honest_first first;
	bool fixed;
	bool surfaces;
} honest[] = {
    {.what = "who asks again", .full = {.no_rule = true, .view.asks_again = true}, .surfaces = true},
    {.what = "who does not", .full = {.no_rule = true}},
    {.what = "everyone", .full = {.no_rule = true}, .first = SPILL_HONEST_ON, .surfaces = true},
    {.what = "nobody", .full = {.no_rule = true, .view.asks_again = true}, .first = SPILL_HONEST_OFF},
    {.what = "the repeat", .full = {.no_rule = true, .view = {.asks_again = true, .repeats = true}}},
    {.what = "the repeat of everyone",
     .full = {.no_rule = true, .view.repeats = true},
     .first = SPILL_HONEST_ON},
    {.what = "the repeat under a rule",
     .full = {.rule = {.set = HONEST, .honest = true}, .view.repeats = true}},
    {.what = "what cannot be elsewhere", .full = {.no_rule = true, .view.asks_again = true}, .fixed = true},
    {.what = "while anything captures",
     .full = {.no_rule = true, .view = {.asks_again = true, .any_capture = true}}},
    {.what = "while anything captures, by rule",
     .full = {.rule = {.set = HONEST, .honest = true}, .view.any_capture = true}},
    {.what = "while it captures itself, by rule",
     .full = {.rule = {.set = HONEST, .honest = true}, .view = {.capturing = true, .any_capture = true}}},
    {.what = "a rule that says on",
     .full = {.rule = {.set = HONEST, .honest = true}},
     .first = SPILL_HONEST_OFF,
     .surfaces = true},
    {.what = "a rule that says off",
     .full = {.rule = {.set = HONEST}, .view.asks_again = true},
     .first = SPILL_HONEST_ON},
    {.what = "a rule that does not say", .full = {.rule = {.set = PLACE, .honest = true}}},
    {.what = "a rule that does not say, to who asks again",
     .full = {.rule = {.set = PLACE}, .view.asks_again = true},
     .surfaces = true},
    {.what = "above a cap", .full = {.rule = {.set = CAP}, .view = {.asks_again = true, .capped = true}}},
    {.what = "above a cap, of everyone",
     .full = {.rule = {.set = CAP}, .view.capped = true},
     .first = SPILL_HONEST_ON},
    {.what = "above a cap, by rule",
     .full = {.rule = {.set = CAP | HONEST, .honest = true}, .view.capped = true},
     .surfaces = true},
    {.what = "with over",
     .full = {.rule = {.set = OVER, .over = SPILL_RULE_HOST}, .view.asks_again = true},
     .surfaces = true},
    {.what = "nothing to skip: over = refuse",
     .full = {.rule = {.set = OVER | HONEST, .honest = true, .over = SPILL_RULE_REFUSE}}},
    {.what = "nothing to skip: an empty chain",
     .full = {.no_rule = true, .written = true},
     .first = SPILL_HONEST_ON},
    {.what = "nothing to skip: trim",
     .full = {.no_rule = true, .written = true, .chain = {.count = 1, .step = {S(TRIM)}}},
     .first = SPILL_HONEST_ON},
    {.what = "something to skip: demote",
     .full = {.no_rule = true, .written = true, .chain = {.count = 2, .step = {S(TRIM), S(DEMOTE)}}},
     .first = SPILL_HONEST_ON,
     .surfaces = true},
    {.what = "nothing to skip above a cap: demote",
     .full = {.rule = {.set = HONEST | CAP, .honest = true},
              .written = true,
              .chain = {.count = 2, .step = {S(TRIM), S(DEMOTE)}},
              .view.capped = true}},
    {.what = "observed",
     .full = {.rule = {.set = HONEST, .honest = true}, .mode = SPILL_MODE_OBSERVE},
     .first = SPILL_HONEST_ON},
};

TEST(whose_failure_surfaces_first)
{
	for (size_t i = 0; i < sizeof(honest) / sizeof(honest[0]); i++) {
		const struct honest *c = &honest[i];

		if (remedy_of(&c->full, c->first, !c->fixed).surfaces != c->surfaces)
			fail_msg("%s", c->what);
	}
}

/* Its place could not be had: then it is as without `place`, first failures included. */
TEST(after_a_place_in_vain_the_first_failure_surfaces)
{
	struct spill_policy policy;
	struct spill_rule rule = {.set = PLACE, .place = SPILL_RULE_HOST};
	struct spill_ask ask = {.bytes = 10, .weight = 10, .placeable = true, .place_failed = true};
	struct spill_full_view view = {.capabilities = ALL, .asks_again = true};

	spill_policy_default(&policy);
	assert_true(spill_decide_full(&policy, &rule, &ask, &view).surfaces);
}

/* What an observed program is told: as if it were not observed. */
TEST(supposed)
{
	struct spill_policy policy;
	struct spill_ask ask = {.bytes = 10, .weight = 10, .placeable = true};
	struct spill_full_view view = {.capabilities = ALL};

	spill_policy_default(&policy);
	struct spill_fallback spilled = spill_decide_full(&policy, NULL, &ask, &view);
	policy.mode = SPILL_MODE_OBSERVE;
	assert_int_equal(spill_decide_full(&policy, NULL, &ask, &view).count, 0);
	view.supposed = true;
	struct spill_fallback remedy = spill_decide_full(&policy, NULL, &ask, &view);
	assert_int_equal(remedy.count, spilled.count);
	assert_memory_equal(remedy.step, spilled.step, spilled.count * sizeof(spilled.step[0]));
}
