#include "rule.h"

#include <string.h>

#include "glob.h"

/* Does the rule hold for the device? An unknown device is SPILL_DEVICES. */
static bool is_on(const struct spill_rule *rule, unsigned device)
{
	if (!(rule->set & SPILL_RULE_HAS_DEVICE))
		return true;
	return device < SPILL_DEVICES && rule->devices >> device & 1;
}

static bool is_of_size(const struct spill_rule *rule, uint64_t bytes)
{
	return !(rule->set & SPILL_RULE_HAS_SIZE) || (rule->least <= bytes && bytes <= rule->most);
}

static void add_edge(struct spill_rules *rules, uint64_t bytes)
{
	unsigned at = rules->edges;

	while (at && rules->edge[at - 1] > bytes)
		at--;
	memmove(&rules->edge[at + 1], &rules->edge[at], (rules->edges - at) * sizeof(rules->edge[0]));
	rules->edge[at] = bytes;
	rules->edges++;
}

static void find_edges(struct spill_rules *rules)
{
	rules->edges = 0;
	for (unsigned i = 0; i < rules->count; i++) {
		const struct spill_rule *rule = &rules->rule[i];

		if (!(rule->set & SPILL_RULE_HAS_SIZE))
			continue;
		add_edge(rules, rule->least);
		/* The largest number + 1 is 0, where an edge does no harm. */
		add_edge(rules, rule->most + 1);
	}
}

static void index_rule(struct spill_rules *rules, unsigned i)
{
	const struct spill_rule *rule = &rules->rule[i];
	uint64_t bit = (uint64_t)1 << i;

	if (rule->set & (SPILL_RULE_HAS_API | SPILL_RULE_HAS_CALLER))
		rules->by_site |= bit;
	if (rule->set & SPILL_RULE_HAS_GROWTH)
		rules->by_growth |= bit;
	for (unsigned device = 0; device <= SPILL_DEVICES; device++)
		rules->on_device[device] |= is_on(rule, device) ? bit : 0;
	for (unsigned grows = 0; grows < 2; grows++) {
		if (!(rule->set & SPILL_RULE_HAS_GROWTH) || rule->growth == grows)
			rules->by_grows[grows] |= bit;
	}
	/* All sizes between two edges match the same rules as the first of them. */
	for (unsigned at = 0; at <= rules->edges; at++)
		rules->of_size[at] |= is_of_size(rule, at ? rules->edge[at - 1] : 0) ? bit : 0;
}

void spill_rules_index(struct spill_rules *rules)
{
	rules->by_site = rules->by_growth = 0;
	memset(rules->on_device, 0, sizeof(rules->on_device));
	memset(rules->by_grows, 0, sizeof(rules->by_grows));
	memset(rules->of_size, 0, sizeof(rules->of_size));
	find_edges(rules);
	for (unsigned i = 0; i < rules->count; i++)
		index_rule(rules, i);
}

/* Length of the name without suffixes: cuMemAllocAsync_ptsz is cuMemAllocAsync. */
static size_t bare_length(const char *api)
{
	static const char *const suffixes[] = {"_ptsz", "_ptds", "_spt", "_v2", "_v3"};
	size_t length = strlen(api);

	for (unsigned i = 0; i < sizeof(suffixes) / sizeof(suffixes[0]); i++) {
		size_t suffix = strlen(suffixes[i]);

		if (length > suffix && !memcmp(api + length - suffix, suffixes[i], suffix))
			length -= suffix;
	}
	return length;
}

static bool matches_api(const char *glob, const char *api)
{
	char bare[SPILL_RULE_GLOB];
	size_t length = bare_length(api);

	if (spill_glob(glob, api))
		return true;
	if (length >= sizeof(bare))
		return false;
	memcpy(bare, api, length);
	bare[length] = '\0';
	return spill_glob(glob, bare);
}

uint64_t spill_rules_of(const struct spill_rules *rules, const char *api, const char *caller)
{
	uint64_t mask = 0;

	for (unsigned i = 0; i < rules->count; i++) {
		const struct spill_rule *rule = &rules->rule[i];

		if ((rule->set & SPILL_RULE_HAS_API) && !matches_api(rule->api, api))
			continue;
		if ((rule->set & SPILL_RULE_HAS_CALLER) && !spill_glob_object(rule->caller, caller))
			continue;
		mask |= (uint64_t)1 << i;
	}
	return mask;
}

/* Does the earlier pattern match each text that the later one matches? False if unsure. */
static bool glob_covers(const char *earlier, const char *later)
{
	if (!earlier[strspn(earlier, "*")])
		return true;
	/* One is compared with paths, the other with names; or a '*' matches more than a '?'. */
	if (!strchr(earlier, '/') != !strchr(later, '/') || (strchr(earlier, '?') && strchr(later, '*')))
		return false;
	return spill_glob(earlier, later);
}

bool spill_rule_of_rank(const struct spill_rule *rule, const char *rank)
{
	const struct spill_rule_ranks *ranks = &rule->ranks;
	uint64_t number = 0;

	if (!(rule->set & SPILL_RULE_HAS_RANK))
		return true;
	if (!rank || !*rank || rank[strspn(rank, "0123456789")])
		return false;
	for (; *rank && number < SPILL_RULE_LAST_RANK; rank++)
		number = number * 10 + (uint64_t)(*rank - '0');
	for (unsigned i = 0; i < ranks->count; i++) {
		if (ranks->range[i].first <= number &&
		    (number <= ranks->range[i].last || ranks->range[i].last == SPILL_RULE_LAST_RANK))
			return true;
	}
	return false;
}

/* Is the range within one of the list? Two ranges that touch are not joined: false if unsure. */
static bool ranks_have(const struct spill_rule_ranks *ranks, struct spill_rank_range range)
{
	for (unsigned i = 0; i < ranks->count; i++) {
		if (ranks->range[i].first <= range.first && range.last <= ranks->range[i].last)
			return true;
	}
	return false;
}

static bool ranks_cover(const struct spill_rule_ranks *earlier, const struct spill_rule_ranks *later)
{
	for (unsigned i = 0; i < later->count; i++) {
		if (!ranks_have(earlier, later->range[i]))
			return false;
	}
	return true;
}

bool spill_rule_covers(const struct spill_rule *earlier, const struct spill_rule *later, bool same_process)
{
	unsigned keys = earlier->set & (SPILL_RULE_HAS_PLACE - 1);

	if (same_process)
		keys &= ~(unsigned)(SPILL_RULE_HAS_PROGRAM | SPILL_RULE_HAS_RANK);
	if (keys & ~later->set)
		return false;
	if ((keys & SPILL_RULE_HAS_SIZE) && (later->least < earlier->least || earlier->most < later->most))
		return false;
	if ((keys & SPILL_RULE_HAS_DEVICE) && later->devices & ~earlier->devices)
		return false;
	if ((keys & SPILL_RULE_HAS_GROWTH) && earlier->growth != later->growth)
		return false;
	if ((keys & SPILL_RULE_HAS_RANK) && !ranks_cover(&earlier->ranks, &later->ranks))
		return false;
	return (!(keys & SPILL_RULE_HAS_API) || glob_covers(earlier->api, later->api)) &&
	       (!(keys & SPILL_RULE_HAS_CALLER) || glob_covers(earlier->caller, later->caller)) &&
	       (!(keys & SPILL_RULE_HAS_PROGRAM) || glob_covers(earlier->program, later->program));
}

/*
 * Mask of the rules for a size. Binary search without branches, because sizes are not predictable.
 */
static uint64_t rules_for_size(const struct spill_rules *rules, uint64_t bytes)
{
	const uint64_t *from = rules->edge;

	if (!rules->edges)
		return rules->of_size[0];
	for (unsigned left = rules->edges; left > 1; left -= left / 2)
		from += from[left / 2 - 1] <= bytes ? left / 2 : 0;
	return rules->of_size[from - rules->edge + (*from <= bytes)];
}

const struct spill_rule *spill_rule_find(const struct spill_policy *policy, const struct spill_ask *ask)
{
	const struct spill_rules *rules = policy->rules;
	unsigned device = (unsigned)ask->device < SPILL_DEVICES ? (unsigned)ask->device : SPILL_DEVICES;
	uint64_t fit;

	if (!rules)
		return NULL;
	fit = ask->rules & rules->on_device[device] & rules->by_grows[ask->grows];
	if (fit)
		fit &= rules_for_size(rules, ask->bytes);
	return fit ? &rules->rule[__builtin_ctzll(fit)] : NULL;
}

unsigned spill_rule_index(const struct spill_policy *policy, const struct spill_rule *rule)
{
	return (unsigned)(rule - policy->rules->rule);
}

uint64_t spill_rule_room(const struct spill_rule *rule, uint64_t used)
{
	if (!rule || !(rule->set & SPILL_RULE_HAS_CAP) || rule->cap == SPILL_UNLIMITED)
		return SPILL_UNLIMITED;
	return rule->cap > used ? rule->cap - used : 0;
}

struct spill_managed_advice spill_rule_advice(const struct spill_policy *policy,
                                              const struct spill_rule *rule)
{
	struct spill_managed_advice advice = policy->advice;

	if (!rule)
		return advice;
	if (rule->set & SPILL_RULE_HAS_PREFERRED)
		advice.preferred = rule->advice.preferred;
	if (rule->set & SPILL_RULE_HAS_ACCESSED_BY) {
		advice.accessed_by_device = rule->advice.accessed_by_device;
		advice.accessed_by_host = rule->advice.accessed_by_host;
	}
	if (rule->set & SPILL_RULE_HAS_READ_MOSTLY)
		advice.read_mostly = rule->advice.read_mostly;
	if (rule->set & SPILL_RULE_HAS_PREFETCH_BELOW)
		advice.prefetch_below = rule->advice.prefetch_below;
	if (rule->set & SPILL_RULE_HAS_PREFETCH)
		advice.prefetch_below = (struct spill_amount){
		    SPILL_AMOUNT_BYTES,
		    rule->prefetch ? SPILL_UNLIMITED : 0,
		};
	return advice;
}

enum spill_priority spill_rule_priority(const struct spill_rule *rule)
{
	return rule && (rule->set & SPILL_RULE_HAS_PRIORITY) ? rule->priority : SPILL_PRIORITY_NORMAL;
}
