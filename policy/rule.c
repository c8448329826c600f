#include "rule.h"

#include <string.h>

#include "glob.h"

void spill_rules_index(struct spill_rules *rules)
{
	rules->by_site = rules->by_growth = 0;
	for (unsigned i = 0; i < rules->count; i++) {
		unsigned set = rules->rule[i].set;

		if (set & (SPILL_RULE_HAS_API | SPILL_RULE_HAS_CALLER))
			rules->by_site |= (uint64_t)1 << i;
		if (set & SPILL_RULE_HAS_GROWTH)
			rules->by_growth |= (uint64_t)1 << i;
	}
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

static bool fits(const struct spill_rule *rule, const struct spill_ask *ask)
{
	if ((rule->set & SPILL_RULE_HAS_SIZE) && (ask->bytes < rule->least || ask->bytes > rule->most))
		return false;
	if ((rule->set & SPILL_RULE_HAS_DEVICE) &&
	    (ask->device < 0 || ask->device >= SPILL_DEVICES || !(rule->devices >> ask->device & 1)))
		return false;
	return !(rule->set & SPILL_RULE_HAS_GROWTH) || rule->growth == ask->grows;
}

const struct spill_rule *spill_rule_find(const struct spill_policy *policy, const struct spill_ask *ask)
{
	if (!policy->rules)
		return NULL;
	for (uint64_t left = ask->rules; left; left &= left - 1) {
		unsigned i = (unsigned)__builtin_ctzll(left);

		if (i >= policy->rules->count)
			break;
		if (fits(&policy->rules->rule[i], ask))
			return &policy->rules->rule[i];
	}
	return NULL;
}

unsigned spill_rule_index(const struct spill_policy *policy, const struct spill_rule *rule)
{
	return (unsigned)(rule - policy->rules->rule);
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
