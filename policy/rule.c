#include "rule.h"

#include <string.h>

#include "glob.h"

/* Of the devices a rule is for; those that are not known are SPILL_DEVICES. */
static bool is_on(const struct spill_rule *rule, unsigned device)
{
	if (!(rule->set & SPILL_RULE_HAS_DEVICE))
		return true;
	return device < SPILL_DEVICES && rule->devices >> device & 1;
}

static void index_rule(struct spill_rules *rules, unsigned i)
{
	const struct spill_rule *rule = &rules->rule[i];
	uint64_t bit = (uint64_t)1 << i;
	bool sized = rule->set & SPILL_RULE_HAS_SIZE;

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
	rules->least[i] = sized ? rule->least : 0;
	rules->span[i] = sized ? rule->most - rule->least : UINT64_MAX;
}

void spill_rules_index(struct spill_rules *rules)
{
	rules->by_site = rules->by_growth = 0;
	memset(rules->on_device, 0, sizeof(rules->on_device));
	memset(rules->by_grows, 0, sizeof(rules->by_grows));
	for (unsigned i = 0; i < rules->count; i++)
		index_rule(rules, i);
}

/* Length of the name without its suffixes: cuMemAllocAsync of cuMemAllocAsync_ptsz, hipMalloc of hipMalloc_spt. */
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

static bool is_api(const char *glob, const char *api)
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
	const char *slash = strrchr(caller, '/');
	const char *file = slash ? slash + 1 : caller;
	uint64_t mask = 0;

	for (unsigned i = 0; i < rules->count; i++) {
		const struct spill_rule *rule = &rules->rule[i];

		if ((rule->set & SPILL_RULE_HAS_API) && !is_api(rule->api, api))
			continue;
		if ((rule->set & SPILL_RULE_HAS_CALLER) &&
		    !(*caller && spill_glob(rule->caller, strchr(rule->caller, '/') ? caller : file)))
			continue;
		mask |= (uint64_t)1 << i;
	}
	return mask;
}

const struct spill_rule *spill_rule_find(const struct spill_policy *policy, const struct spill_ask *ask)
{
	const struct spill_rules *rules = policy->rules;
	unsigned device = (unsigned)ask->device < SPILL_DEVICES ? (unsigned)ask->device : SPILL_DEVICES;

	if (!rules)
		return NULL;
	for (uint64_t left = ask->rules & rules->on_device[device] & rules->by_grows[ask->grows]; left;
	     left &= left - 1) {
		unsigned i = (unsigned)__builtin_ctzll(left);

		/* What is smaller wraps, to above any span. */
		if (ask->bytes - rules->least[i] <= rules->span[i])
			return &rules->rule[i];
	}
	return NULL;
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
