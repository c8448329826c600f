/*
 * Rules: the contents of a `[rule NAME]` section, and the rule that holds for a request. Pure; the
 * caller has the arrays.
 *
 * The keys that a rule sets (`set`) say which requests it matches and how it acts. The first rule
 * of the list that matches a request decides it alone: for a key that this rule does not set, no
 * later rule counts. Rules of an earlier source come first; within a file, from the top. A later
 * rule whose name was used before is left out.
 *
 * Matching has two parts. `api` and `caller` depend on the call site only: spill_rules_of compares
 * them once a site, and the result is kept as a mask of rules. `size`, `device` and `growth` are
 * compared for each request (spill_rule_find). That costs about a nanosecond a rule, and nothing
 * without rules. `program` and `rank` are compared when the policy is loaded: rules for other
 * programs and ranks are not in the list.
 */
#ifndef SPILL_RULE_H
#define SPILL_RULE_H

#include "policy.h"

#define SPILL_RULES 64 /* the bits of a mask */

/* Longest texts of a rule, with their end. Longer ones are an error in the policy file. */
#define SPILL_RULE_NAME 46
#define SPILL_RULE_GLOB 256

/* Values of `place` and `over`. */
enum spill_rule_place {
	SPILL_RULE_DEVICE,  /* the driver's plain call, never chunks; a full device is handled as usual. */
	SPILL_RULE_MOVABLE, /* movable chunks, as far as that is safe, on an empty device, too. */
	SPILL_RULE_SPLIT,   /* at once, without the driver's plain call; so are the next two. */
	SPILL_RULE_MANAGED,
	SPILL_RULE_HOST,
	SPILL_RULE_REFUSE, /* out of memory, at once */
};

/* Bits of `set`: a key that the rule has. */
enum spill_rule_key {
	/* It matches by these: all that are set have to fit. */
	SPILL_RULE_HAS_SIZE = 1u << 0,
	SPILL_RULE_HAS_API = 1u << 1,
	SPILL_RULE_HAS_CALLER = 1u << 2,
	SPILL_RULE_HAS_DEVICE = 1u << 3,
	SPILL_RULE_HAS_PROGRAM = 1u << 4,
	SPILL_RULE_HAS_RANK = 1u << 5,
	SPILL_RULE_HAS_GROWTH = 1u << 6,
	/* It acts by these. */
	SPILL_RULE_HAS_PLACE = 1u << 7,
	SPILL_RULE_HAS_OVER = 1u << 8,
	SPILL_RULE_HAS_CAP = 1u << 9,
	SPILL_RULE_HAS_PRIORITY = 1u << 10,
	SPILL_RULE_HAS_PREFETCH = 1u << 11,
	SPILL_RULE_HAS_HONEST = 1u << 12,
	SPILL_RULE_HAS_PREFERRED = 1u << 13, /* managed.preferred */
	SPILL_RULE_HAS_ACCESSED_BY = 1u << 14,
	SPILL_RULE_HAS_READ_MOSTLY = 1u << 15,
	SPILL_RULE_HAS_PREFETCH_BELOW = 1u << 16,
};

/* Ranks of a job, as ranges with both ends included; first <= last. */
#define SPILL_RULE_RANKS 8
#define SPILL_RULE_LAST_RANK UINT32_MAX /* `last` of a range without an end */

struct spill_rule_ranks {
	unsigned count;
	struct spill_rank_range {
		uint32_t first, last;
	} range[SPILL_RULE_RANKS];
};

struct spill_rule {
	char name[SPILL_RULE_NAME];
	unsigned set; /* enum spill_rule_key: only the members of these keys are valid */

	uint64_t least, most; /* size: bytes that the program asks for, both inclusive; least <= most */
	uint32_t devices;     /* a bit each */
	bool growth;          /* matches a request of a growing series (growth.h); false: any other */
	char api[SPILL_RULE_GLOB];
	char caller[SPILL_RULE_GLOB];
	char program[SPILL_RULE_GLOB];
	struct spill_rule_ranks ranks;

	enum spill_rule_place place;
	/*
	 * Replaces oom.chain when the device is full, device.limit is reached, or `cap` is
	 * exceeded. SPLIT, MANAGED, HOST or REFUSE.
	 */
	enum spill_rule_place over;
	uint64_t cap; /* most device bytes of all allocations of this rule, over all devices */
	enum spill_priority priority;
	bool prefetch; /* managed memory: prefetch whatever its size, if it fits; or never */
	bool honest;   /* does the first failure surface, for any caller? (oom.honest_first) */
	struct spill_managed_advice advice;
};

struct spill_rules {
	unsigned count;
	struct spill_rule rule[SPILL_RULES];
	/*
	 * The rest is filled in by spill_rules_index. First the rules that look at the call site,
	 * and at growth: if there are none, the caller need not find these out.
	 */
	uint64_t by_site, by_growth;
	/*
	 * Masks for spill_rule_find. A rule fits if it is in each; one without the key is in all of
	 * them.
	 */
	uint64_t on_device[SPILL_DEVICES + 1]; /* rules for a device; last: for an unknown device. */
	uint64_t by_grows[2];                  /* rules for other requests, and for a growing series. */
	/*
	 * Sizes at which rules begin or end, rising; of_size[i]: rules for sizes in [edge[i - 1],
	 * edge[i]).
	 */
	unsigned edges;
	uint64_t edge[2 * SPILL_RULES], of_size[2 * SPILL_RULES + 1];
};

/* The members of a request that decisions depend on. */
struct spill_ask {
	uint64_t bytes;  /* size that the program asks for: rules match it, and caps count it */
	uint64_t weight; /* device bytes that the driver takes for it: limits count them */
	int device;
	uint64_t rules; /* mask of rules that fit its call site (spill_rules_of) */
	bool grows;     /* part of a growing series from its call site; found out if a rule needs it */
	/*
	 * It can be placed elsewhere. False: some kinds of memory, and any during its stream's
	 * capture.
	 */
	bool placeable;
	bool place_failed; /* the rule's place was tried and failed: ignore `place` now */
};

/* Computes the masks and edges. Call it when the list is complete. */
void spill_rules_index(struct spill_rules *rules);

/*
 * Mask of the rules whose `api` and `caller` fit or are not set.
 * api: the function that the program called. A rule matches it with and without the suffixes of
 * versions and streams (_v2, _v3, _ptsz, _ptds, _spt).
 * caller: path of the calling library or program as loaded. A pattern with a '/' is compared with
 * the path, another one with the file's name. "" is generated code: no rule with `caller` fits.
 */
uint64_t spill_rules_of(const struct spill_rules *rules, const char *api, const char *caller);

/*
 * Does the rule hold in a process of this rank? The rank is as its launcher gave it; NULL or a text
 * that is no number: no rule with `rank` holds.
 */
bool spill_rule_of_rank(const struct spill_rule *rule, const char *rank);

/*
 * Does `earlier` match each request that `later` matches, so that `later` is never reached? False
 * if the patterns do not prove it. same_process: both hold for the process, whatever `program` and
 * `rank` say.
 */
#define SPILL_RULE_NEVER "the rule is never reached: an earlier rule matches all of its requests, "
bool spill_rule_covers(const struct spill_rule *earlier, const struct spill_rule *later, bool same_process);

/* The mask of all rules, for policies where no rule looks at the call site. */
static inline uint64_t spill_rules_all(const struct spill_rules *rules)
{
	return rules->count == SPILL_RULES ? UINT64_MAX : ((uint64_t)1 << rules->count) - 1;
}

/* The rule that decides the request, or NULL. `policy->rules` may be NULL. */
const struct spill_rule *spill_rule_find(const struct spill_policy *policy, const struct spill_ask *ask);

/* Its position in the list, for accounts. pre: it is of this policy */
unsigned spill_rule_index(const struct spill_policy *policy, const struct spill_rule *rule);

/*
 * Device bytes that the rule may still hold under its cap; SPILL_UNLIMITED without one. `rule` may
 * be NULL. `used` is rule_used of struct spill_view.
 */
uint64_t spill_rule_room(const struct spill_rule *rule, uint64_t used);

/*
 * The advice for managed memory under `rule`, which may be NULL. `prefetch` wins over the rule's
 * own prefetch_below.
 */
struct spill_managed_advice spill_rule_advice(const struct spill_policy *policy,
                                              const struct spill_rule *rule);

/* Its eviction priority; NORMAL without a rule. */
enum spill_priority spill_rule_priority(const struct spill_rule *rule);

#endif
