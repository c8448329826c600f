/* Rules: which of them a request meets, and what they say of managed memory, priority and room. */
#include "unit.h"

#include <stdio.h>
#include <string.h>

#include "rule.h"
#include "rule_option.h"

#define MIB ((uint64_t)1 << 20)
#define GGML "/usr/lib/libggml-cuda.so"

/* -- the call site ---------------------------------------------------------------------------------------- */

static struct spill_rules rules;

static void one_rule(const char *api, const char *caller)
{
	struct spill_rule *rule = &rules.rule[0];

	rules = (struct spill_rules){.count = 1};
	if (api) {
		rule->set |= SPILL_RULE_HAS_API;
		strcpy(rule->api, api);
	}
	if (caller) {
		rule->set |= SPILL_RULE_HAS_CALLER;
		strcpy(rule->caller, caller);
	}
	spill_rules_index(&rules);
}

TEST(an_api_is_meant_with_and_without_suffix)
{
	static const struct {
		const char *rule, *called;
		bool fits;
	} cases[] = {
	    {"cuMemAlloc", "cuMemAlloc_v2", true},
	    {"cuMemAlloc_v2", "cuMemAlloc_v2", true},
	    {"cuMemAlloc_v3", "cuMemAlloc_v2", false},
	    {"cuMemAlloc_v2", "cuMemAlloc", false},
	    {"cuArrayCreate", "cuArrayCreate_v3", true},
	    {"cuMemAllocAsync", "cuMemAllocAsync_ptsz", true},
	    {"cuMemAllocAsync_ptsz", "cuMemAllocAsync", false},
	    {"cuMemAllocAsync", "cuMemAllocAsync_ptds", true},
	    {"hipMalloc", "hipMalloc_spt", true},
	    {"cuMemcpyHtoD", "cuMemcpyHtoD_v2_ptds", true},
	    {"cuMemAlloc", "cuMemAllocPitch_v2", false},
	    {"cuMemAlloc*", "cuMemAllocPitch_v2", true},
	    {"*Async", "cuMemAllocAsync_ptsz", true},
	    {"*_v2", "cuMemAlloc_v2", true},
	    {"cudaMalloc", "cudaMallocAsync", false},
	    {"cudaMalloc", "cudaMalloc_v4", false},
	    {"cudaMalloc", "_v2", false},
	    {"", "_v2", false}, /* there is no function without a name */
	    {"cuMemAlloc", "", false},
	    {"*", "cuMemAlloc_v2", true},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		one_rule(cases[i].rule, NULL);
		if (spill_rules_of(&rules, cases[i].called, GGML) != cases[i].fits)
			fail_msg("api = %s for %s", cases[i].rule, cases[i].called);
	}
}

TEST(an_api_may_be_longer_than_any_pattern)
{
	char called[2 * SPILL_RULE_GLOB];

	memset(called, 'a', sizeof(called));
	memcpy(called + sizeof(called) - 4, "_v2", 4);
	one_rule("a*a", NULL);
	assert_int_equal(spill_rules_of(&rules, called, GGML), 0);
	one_rule("a*_v2", NULL);
	assert_int_equal(spill_rules_of(&rules, called, GGML), 1);
	/* The longest that is compared without its suffix, and one more. */
	memcpy(called + SPILL_RULE_GLOB - 1, "_v2", 4);
	one_rule("a*a", NULL);
	assert_int_equal(spill_rules_of(&rules, called, GGML), 1);
	memcpy(called + SPILL_RULE_GLOB - 1, "a_v2", 5);
	assert_int_equal(spill_rules_of(&rules, called, GGML), 0);
}

TEST(a_caller_is_a_file_or_with_a_slash_a_path)
{
	static const struct {
		const char *rule, *path;
		bool fits;
	} cases[] = {
	    {"libggml-cuda.so", GGML, true},
	    {"libggml*", GGML, true},
	    {"libggml", GGML, false},
	    {"*lib*", GGML, true},
	    {"*usr*", GGML, false}, /* the file's name only */
	    {"*/usr*", GGML, true},
	    {"/usr/lib/*", GGML, true},
	    {"/usr/lib", GGML, false},
	    {"/opt/*", GGML, false},
	    {"libggml-cuda.so", "libggml-cuda.so", true},
	    {"/*", "libggml-cuda.so", false},
	    {"llama-server", "/usr/bin/llama-server", true}, /* the main program is its executable */
	    {"*", "", false},                                /* generated code */
	    {"*/*", "", false},
	    {"", "", false},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		one_rule(NULL, cases[i].rule);
		if (spill_rules_of(&rules, "cuMemAlloc_v2", cases[i].path) != cases[i].fits)
			fail_msg("caller = %s for '%s'", cases[i].rule, cases[i].path);
	}
}

TEST(both_have_to_fit_and_none_fits_all)
{
	one_rule("cuMemAlloc", "libggml*");
	assert_int_equal(spill_rules_of(&rules, "cuMemAlloc_v2", GGML), 1);
	assert_int_equal(spill_rules_of(&rules, "cuMemCreate", GGML), 0);
	assert_int_equal(spill_rules_of(&rules, "cuMemAlloc_v2", "/x/libc10_cuda.so"), 0);
	rules.count = SPILL_RULES;
	memcpy(&rules.rule[63], &rules.rule[0], sizeof(rules.rule[0]));
	assert_int_equal(spill_rules_of(&rules, "cuMemAlloc_v2", GGML), UINT64_MAX);
	assert_int_equal(spill_rules_of(&rules, "cuMemCreate", GGML), UINT64_MAX >> 1 & ~(uint64_t)1);
	one_rule(NULL, NULL);
	/* What is not set is not looked at. */
	strcpy(rules.rule[0].api, "nothing");
	strcpy(rules.rule[0].caller, "nobody");
	assert_int_equal(spill_rules_of(&rules, "cuMemAlloc_v2", GGML), 1);
	assert_int_equal(spill_rules_of(&rules, "cuMemAlloc_v2", ""), 1);
}

TEST(what_no_rule_looks_at_need_not_be_found_out)
{
	one_rule(NULL, NULL);
	assert_int_equal(rules.by_site | rules.by_growth, 0);
	rules.count = SPILL_RULES;
	rules.rule[1].set = SPILL_RULE_HAS_SIZE | SPILL_RULE_HAS_DEVICE | SPILL_RULE_HAS_PLACE;
	rules.rule[2].set = SPILL_RULE_HAS_API;
	rules.rule[4].set = SPILL_RULE_HAS_GROWTH;
	rules.rule[63].set = SPILL_RULE_HAS_CALLER | SPILL_RULE_HAS_GROWTH;
	spill_rules_index(&rules);
	assert_int_equal(rules.by_site, (uint64_t)1 << 63 | 1 << 2);
	assert_int_equal(rules.by_growth, (uint64_t)1 << 63 | 1 << 4);
	assert_int_equal(spill_rules_all(&rules), UINT64_MAX);
	/* Made anew, not added to. */
	rules.count = 3;
	spill_rules_index(&rules);
	assert_int_equal(rules.by_site, 1 << 2);
	assert_int_equal(rules.by_growth, 0);
	assert_int_equal(spill_rules_all(&rules), 7);
	rules.count = 0;
	assert_int_equal(spill_rules_all(&rules), 0);
}

/* -- the request ------------------------------------------------------------------------------------------ */

/* The place in the list of the rule found, or -1. */
static int found(struct spill_ask ask)
{
	struct spill_policy policy;
	const struct spill_rule *rule;

	spill_policy_default(&policy);
	policy.rules = &rules;
	rule = spill_rule_find(&policy, &ask);
	return rule ? (int)spill_rule_index(&policy, rule) : -1;
}

TEST(a_request_is_compared_by_size_device_and_growth)
{
	enum { SIZE = SPILL_RULE_HAS_SIZE, DEVICE = SPILL_RULE_HAS_DEVICE, GROWTH = SPILL_RULE_HAS_GROWTH };
	static const struct {
		unsigned set;
		uint64_t least, most;
		uint32_t devices;
		bool growth;
		uint64_t bytes;
		int device;
		bool grows;
		bool fits;
	} cases[] = {
	    {SIZE, 10, 20, 0, false, 9, 0, false, false},
	    {SIZE, 10, 20, 0, false, 10, 0, false, true},
	    {SIZE, 10, 20, 0, false, 20, 0, false, true},
	    {SIZE, 10, 20, 0, false, 21, 0, false, false},
	    {SIZE, 10, 10, 0, false, 10, 0, false, true},
	    {SIZE, 10, 10, 0, false, 0, 0, false, false},
	    {SIZE, 10, 10, 0, false, UINT64_MAX, 0, false, false},
	    {SIZE, 0, UINT64_MAX, 0, false, 0, 0, false, true},
	    {SIZE, 0, UINT64_MAX, 0, false, UINT64_MAX, 0, false, true},
	    {SIZE, 1, UINT64_MAX, 0, false, 0, 0, false, false},
	    {SIZE, 1, UINT64_MAX, 0, false, UINT64_MAX, 0, false, true},
	    {SIZE, 0, UINT64_MAX - 1, 0, false, UINT64_MAX, 0, false, false},
	    {DEVICE, 0, 0, 1u << 2, false, 1, 2, false, true},
	    {DEVICE, 0, 0, 1u << 2, false, 1, 3, false, false},
	    {DEVICE, 0, 0, 1u << 31 | 1, false, 1, 31, false, true},
	    {DEVICE, 0, 0, 1u << 31 | 1, false, 1, 0, false, true},
	    {DEVICE, 0, 0, ~0u, false, 1, 32, false, false},
	    {DEVICE, 0, 0, ~0u, false, 1, -1, false, false},
	    {0, 0, 0, 0, false, 1, 32, false, true},
	    {0, 0, 0, 0, false, 1, -1, true, true},
	    {GROWTH, 0, 0, 0, true, 1, 0, true, true},
	    {GROWTH, 0, 0, 0, true, 1, 0, false, false},
	    {GROWTH, 0, 0, 0, false, 1, 0, true, false},
	    {GROWTH, 0, 0, 0, false, 1, 0, false, true},
	    {SIZE | DEVICE | GROWTH, 1, 2, 1, true, 1, 0, true, true},
	    {SIZE | DEVICE | GROWTH, 1, 2, 1, true, 3, 0, true, false},
	    {SIZE | DEVICE | GROWTH, 1, 2, 1, true, 1, 1, true, false},
	    {SIZE | DEVICE | GROWTH, 1, 2, 1, true, 1, 0, false, false},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		rules = (struct spill_rules){
		    .count = 1,
		    .rule = {{.set = cases[i].set,
		              .least = cases[i].least,
		              .most = cases[i].most,
		              .devices = cases[i].devices,
		              .growth = cases[i].growth}},
		};
		spill_rules_index(&rules);
		if ((found((struct spill_ask){.bytes = cases[i].bytes,
		                              .device = cases[i].device,
		                              .grows = cases[i].grows,
		                              .rules = 1}) == 0) != cases[i].fits)
			fail_msg("case %zu", i);
	}
}

TEST(the_first_of_64_counts)
{
	rules = (struct spill_rules){.count = SPILL_RULES};
	for (unsigned i = 0; i < SPILL_RULES; i++) {
		rules.rule[i].set = SPILL_RULE_HAS_SIZE;
		rules.rule[i].least = i;
		rules.rule[i].most = UINT64_MAX;
	}
	spill_rules_index(&rules);
	assert_int_equal(found((struct spill_ask){.bytes = 9, .rules = UINT64_MAX}), 0);
	/* Not of those that the call site does not meet. */
	assert_int_equal(found((struct spill_ask){.bytes = 70, .rules = 1 << 5 | (uint64_t)1 << 63}), 5);
	assert_int_equal(found((struct spill_ask){.bytes = 70, .rules = (uint64_t)1 << 63}), 63);
	assert_int_equal(found((struct spill_ask){.bytes = 62, .rules = (uint64_t)1 << 63}), -1);
	assert_int_equal(found((struct spill_ask){.bytes = 4, .rules = 1 << 5 | 1 << 4}), 4);
	assert_int_equal(found((struct spill_ask){.bytes = 70}), -1);
}

TEST(bits_beyond_the_list_are_no_rules)
{
	struct spill_policy policy;

	one_rule("nothing*", NULL);
	rules.rule[0].set |= SPILL_RULE_HAS_SIZE;
	rules.rule[0].least = rules.rule[0].most = 1;
	spill_rules_index(&rules);
	assert_int_equal(found((struct spill_ask){.bytes = 2, .rules = UINT64_MAX}), -1);
	spill_policy_default(&policy);
	assert_null(spill_rule_find(&policy, &(struct spill_ask){.bytes = 1, .rules = UINT64_MAX}));
	/* A list that became shorter. */
	rules.rule[0].most = 2;
	spill_rules_index(&rules);
	assert_int_equal(found((struct spill_ask){.bytes = 2, .rules = UINT64_MAX}), 0);
	rules.count = 0;
	spill_rules_index(&rules);
	assert_int_equal(found((struct spill_ask){.bytes = 2, .rules = UINT64_MAX}), -1);
}

TEST(an_index_is_made_anew)
{
	one_rule(NULL, NULL);
	rules.rule[0].set = SPILL_RULE_HAS_DEVICE | SPILL_RULE_HAS_GROWTH;
	rules.rule[0].devices = 1;
	spill_rules_index(&rules);
	assert_int_equal(found((struct spill_ask){.rules = 1}), 0);
	rules.rule[0].devices = 2;
	spill_rules_index(&rules);
	assert_int_equal(found((struct spill_ask){.rules = 1}), -1);
	assert_int_equal(found((struct spill_ask){.rules = 1, .device = 1}), 0);
	rules.rule[0].growth = true;
	spill_rules_index(&rules);
	assert_int_equal(found((struct spill_ask){.rules = 1, .device = 1}), -1);
	assert_int_equal(found((struct spill_ask){.rules = 1, .device = 1, .grows = true}), 0);
}

/* -- what a rule says ------------------------------------------------------------------------------------- */

static bool is_the_policys(struct spill_managed_advice advice, const struct spill_policy *policy)
{
	const struct spill_managed_advice *of = &policy->advice;

	return advice.preferred == of->preferred && advice.accessed_by_device == of->accessed_by_device &&
	       advice.accessed_by_host == of->accessed_by_host && advice.read_mostly == of->read_mostly &&
	       advice.prefetch_below.kind == of->prefetch_below.kind &&
	       advice.prefetch_below.value == of->prefetch_below.value;
}

TEST(advice_is_the_policys_but_for_what_the_rule_sets)
{
	struct spill_policy policy;
	struct spill_managed_advice advice;
	struct spill_rule rule = {
	    .advice = {.preferred = SPILL_LOCATION_DEVICE,
	               .accessed_by_host = true,
	               .read_mostly = true,
	               .prefetch_below = {SPILL_AMOUNT_BYTES, 7 * MIB}},
	};

	spill_policy_default(&policy);
	policy.advice = (struct spill_managed_advice){
	    .preferred = SPILL_LOCATION_HOST,
	    .accessed_by_device = true,
	    .prefetch_below = {SPILL_AMOUNT_BYTES, MIB},
	};
	assert_true(is_the_policys(spill_rule_advice(&policy, NULL), &policy));
	assert_true(is_the_policys(spill_rule_advice(&policy, &rule), &policy));

	rule.set = SPILL_RULE_HAS_PREFERRED;
	advice = spill_rule_advice(&policy, &rule);
	assert_int_equal(advice.preferred, SPILL_LOCATION_DEVICE);
	assert_true(advice.accessed_by_device && !advice.accessed_by_host && !advice.read_mostly);
	rule.set = SPILL_RULE_HAS_ACCESSED_BY;
	advice = spill_rule_advice(&policy, &rule);
	assert_int_equal(advice.preferred, SPILL_LOCATION_HOST);
	assert_true(!advice.accessed_by_device && advice.accessed_by_host);
	rule.set = SPILL_RULE_HAS_READ_MOSTLY;
	assert_true(spill_rule_advice(&policy, &rule).read_mostly);
	rule.set = SPILL_RULE_HAS_PREFETCH_BELOW;
	assert_int_equal(spill_rule_advice(&policy, &rule).prefetch_below.value, 7 * MIB);
	assert_int_equal(spill_rule_advice(&policy, &rule).preferred, SPILL_LOCATION_HOST);
}

static uint64_t prefetched_below(unsigned set, bool prefetch)
{
	struct spill_policy policy;
	struct spill_rule rule = {
	    .set = set, .prefetch = prefetch, .advice.prefetch_below = {SPILL_AMOUNT_BYTES, MIB}};

	spill_policy_default(&policy);
	return spill_amount_resolve(spill_rule_advice(&policy, &rule).prefetch_below, 0, 0);
}

TEST(prefetch_counts_before_prefetch_below)
{
	assert_int_equal(prefetched_below(SPILL_RULE_HAS_PREFETCH, true), UINT64_MAX);
	assert_int_equal(prefetched_below(SPILL_RULE_HAS_PREFETCH, false), 0);
	assert_int_equal(prefetched_below(SPILL_RULE_HAS_PREFETCH | SPILL_RULE_HAS_PREFETCH_BELOW, true),
	                 UINT64_MAX);
	assert_int_equal(prefetched_below(SPILL_RULE_HAS_PREFETCH | SPILL_RULE_HAS_PREFETCH_BELOW, false), 0);
	assert_int_equal(prefetched_below(SPILL_RULE_HAS_PREFETCH_BELOW, true), MIB);
}

TEST(priority_and_room)
{
	struct spill_rule rule = {.priority = SPILL_PRIORITY_HOT, .cap = 10};

	assert_int_equal(spill_rule_priority(NULL), SPILL_PRIORITY_NORMAL);
	assert_int_equal(spill_rule_priority(&rule), SPILL_PRIORITY_NORMAL);
	assert_true(spill_rule_room(NULL, 5) == SPILL_UNLIMITED);
	assert_true(spill_rule_room(&rule, 5) == SPILL_UNLIMITED);
	rule.set = SPILL_RULE_HAS_PRIORITY | SPILL_RULE_HAS_CAP;
	assert_int_equal(spill_rule_priority(&rule), SPILL_PRIORITY_HOT);
	assert_int_equal(spill_rule_room(&rule, 0), 10);
	assert_int_equal(spill_rule_room(&rule, 9), 1);
	assert_int_equal(spill_rule_room(&rule, 10), 0);
	/* More than its cap: what was refilled behind our back. */
	assert_int_equal(spill_rule_room(&rule, 11), 0);
	rule.cap = SPILL_UNLIMITED;
	assert_true(spill_rule_room(&rule, 11) == SPILL_UNLIMITED);
}

/* -- one before another ------------------------------------------------------------------------------------- */

static bool covers(const char *api, const char *later_api)
{
	struct spill_rule earlier = {.set = SPILL_RULE_HAS_API}, later = earlier;

	strcpy(earlier.api, api);
	strcpy(later.api, later_api);
	return spill_rule_covers(&earlier, &later, false);
}

TEST(a_rule_covers_what_matches_no_more)
{
	static const struct spill_rule all = {.set = SPILL_RULE_HAS_CAP};
	static const struct spill_rule size = {.set = SPILL_RULE_HAS_SIZE, .least = 5, .most = 9};
	static const struct spill_rule devices = {.set = SPILL_RULE_HAS_DEVICE, .devices = 6};
	static const struct spill_rule grows = {.set = SPILL_RULE_HAS_GROWTH, .growth = true};
	static const struct spill_rule program = {.set = SPILL_RULE_HAS_PROGRAM, .program = "a*"};
	struct spill_rule later = {
	    .set =
	        SPILL_RULE_HAS_SIZE | SPILL_RULE_HAS_DEVICE | SPILL_RULE_HAS_GROWTH | SPILL_RULE_HAS_PROGRAM,
	    .least = 5,
	    .most = 9,
	    .devices = 2,
	    .growth = true,
	    .program = "ab",
	};

	assert_true(spill_rule_covers(&all, &later, false));
	assert_true(spill_rule_covers(&all, &all, false));
	assert_false(spill_rule_covers(&size, &all, false));
	assert_false(spill_rule_covers(&devices, &all, false));
	assert_true(spill_rule_covers(&size, &later, false));
	later.least = 4;
	assert_false(spill_rule_covers(&size, &later, false));
	later.least = 5;
	later.most = 10;
	assert_false(spill_rule_covers(&size, &later, false));
	assert_true(spill_rule_covers(&devices, &later, false));
	later.devices = 3;
	assert_false(spill_rule_covers(&devices, &later, false));
	assert_true(spill_rule_covers(&grows, &later, false));
	later.growth = false;
	assert_false(spill_rule_covers(&grows, &later, false));
	assert_true(spill_rule_covers(&program, &later, false));
	later.program[0] = 'b';
	assert_false(spill_rule_covers(&program, &later, false));
	assert_true(spill_rule_covers(&program, &later, true));
	assert_false(spill_rule_covers(&program, &all, false));
	assert_true(spill_rule_covers(&program, &all, true));
	assert_true(covers("cu*", "cuMem*"));
	assert_true(covers("cuMem?lloc", "cuMemAlloc"));
	assert_false(covers("cuMem*", "cu*"));
	/* Any file is any path. */
	assert_true(covers("*", "/lib/*"));
}

static struct spill_rule of_ranks(const char *value)
{
	struct spill_rule rule = {.set = 0};
	struct spill_error error;
	int row = spill_rule_option_find("rank", &error);

	assert_int_equal(spill_rule_option_put(&rule, (unsigned)row, value, &error), 0);
	return rule;
}

TEST(a_rule_holds_for_ranks)
{
	const struct spill_rule any = {.set = 0}, some = of_ranks("0, 8..15, 4000000.."),
	                        low = of_ranks("..2");

	assert_true(spill_rule_of_rank(&any, NULL));
	assert_true(spill_rule_of_rank(&any, "3"));
	assert_true(spill_rule_of_rank(&some, "0"));
	assert_false(spill_rule_of_rank(&some, "1"));
	assert_false(spill_rule_of_rank(&some, "7"));
	assert_true(spill_rule_of_rank(&some, "8"));
	assert_true(spill_rule_of_rank(&some, "015"));
	assert_false(spill_rule_of_rank(&some, "16"));
	assert_true(spill_rule_of_rank(&some, "4000000"));
	assert_true(spill_rule_of_rank(&some, "99999999999999999999999999"));
	assert_true(spill_rule_of_rank(&low, "2"));
	assert_false(spill_rule_of_rank(&low, "3"));
	/* A process without a rank, and a variable that somebody else meant. */
	assert_false(spill_rule_of_rank(&some, NULL));
	assert_false(spill_rule_of_rank(&some, ""));
	assert_false(spill_rule_of_rank(&some, "0x"));
	assert_false(spill_rule_of_rank(&some, "-0"));
}

TEST(a_rule_covers_ranks)
{
	const struct spill_rule any = {.set = 0}, some = of_ranks("0..7, 9"), few = of_ranks("9, 2..3"),
	                        more = of_ranks("2..8");

	assert_true(spill_rule_covers(&any, &some, false));
	assert_false(spill_rule_covers(&some, &any, false));
	assert_true(spill_rule_covers(&some, &few, false));
	assert_false(spill_rule_covers(&few, &some, false));
	assert_false(spill_rule_covers(&some, &more, false));
	assert_true(spill_rule_covers(&some, &more, true));
}

/* What is behind the last range of a list, of one that was longer, is no range. */
TEST(a_list_of_ranks_ends_at_its_count)
{
	struct spill_rule shorter = of_ranks("0..7, 9"), nine = of_ranks("9, 20");

	shorter.ranks.count = nine.ranks.count = 1;
	assert_false(spill_rule_of_rank(&shorter, "9"));
	assert_false(spill_rule_covers(&shorter, &nine, false));
	shorter = of_ranks("9");
	assert_true(spill_rule_covers(&shorter, &nine, false));
}

/* All texts of at most three of the characters, the empty one too; false behind the last. */
static bool next_text(char text[4], const char *characters)
{
	for (unsigned i = 0; i < 3; i++) {
		const char *at = text[i] ? strchr(characters, text[i]) : characters - 1;

		text[i] = at[1] ? at[1] : *characters;
		if (at[1])
			return true;
	}
	return false;
}

/* Each pair of small patterns: no caller is the later rule's that is not the earlier one's. */
TEST(what_is_covered_never_matches_alone)
{
	char earlier[4] = "a", later[4], caller[4];
	unsigned covered = 0;

	do {
		memcpy(later, "a\0\0", 4);
		do {
			one_rule(NULL, earlier);
			rules.count = 2;
			rules.rule[1] = rules.rule[0];
			strcpy(rules.rule[1].caller, later);
			if (!spill_rule_covers(&rules.rule[0], &rules.rule[1], false))
				continue;
			covered++;
			memset(caller, 0, sizeof(caller));
			do {
				if (spill_rules_of(&rules, "x", caller) == 2)
					fail_msg("%s does not cover %s: %s", earlier, later, caller);
			} while (next_text(caller, "ab/"));
		} while (next_text(later, "ab*?/"));
	} while (next_text(earlier, "ab*?/"));
	assert_in_range(covered, 1000, 10000);
}

/* Of other rules than before: nothing of these is left. */
TEST(an_index_made_again_is_as_made_at_first)
{
	static const struct spill_rule before = {.set = SPILL_RULE_HAS_SIZE | SPILL_RULE_HAS_API |
	                                                SPILL_RULE_HAS_GROWTH,
	                                         .least = 5,
	                                         .most = 9,
	                                         .growth = true,
	                                         .api = "cuMemAlloc"};
	static const struct spill_rule after = {
	    .set = SPILL_RULE_HAS_SIZE | SPILL_RULE_HAS_DEVICE, .least = 20, .most = 30, .devices = 2};
	static struct spill_rules fresh, again;

	fresh = (struct spill_rules){.count = 1, .rule = {after}};
	spill_rules_index(&fresh);
	again = (struct spill_rules){.count = 2, .rule = {before, before}};
	spill_rules_index(&again);
	again.count = 1;
	again.rule[0] = after;
	spill_rules_index(&again);
	assert_int_equal(again.by_site, fresh.by_site);
	assert_int_equal(again.by_growth, fresh.by_growth);
	assert_memory_equal(again.on_device, fresh.on_device, sizeof(fresh.on_device));
	assert_memory_equal(again.by_grows, fresh.by_grows, sizeof(fresh.by_grows));
	assert_int_equal(again.edges, fresh.edges);
	assert_memory_equal(again.edge, fresh.edge, fresh.edges * sizeof(fresh.edge[0]));
	assert_memory_equal(again.of_size, fresh.of_size, sizeof(fresh.of_size));
}
