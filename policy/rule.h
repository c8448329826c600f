/*
 * Rules: what a `[rule NAME]` of the policy says, and which of them is about a request. Pure; the arrays are the caller's.
 *
 * A rule matches by what it sets (`set`), and acts by what it sets. The first rule in the order of the list that matches is the
 * one that counts, whole: what it does not set is as without any rule, and no later rule adds to it. The order is that of the
 * sources: of an earlier source first, within a file from its top; a name that an earlier source has used is not used again.
 *
 * Matching is split in two, since only a part of it differs from call to call. What a call site decides (`api`, `caller`) is found
 * once a site and kept as a mask of rules (spill_rules_of); the rest (`size`, `device`, `growth`) is compared for each request
 * (spill_rule_find), in a nanosecond or so a rule and in nothing where no rule has a say. `program` is settled when the
 * policy is loaded: rules for other programs are not in the list.
 */
#ifndef SPILL_RULE_H
#define SPILL_RULE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "policy.h"

#define SPILL_RULES 64 /* the bits of a mask */

/* Longest texts of a rule, with their end. Longer ones are an error in the policy file. */
#define SPILL_RULE_NAME 46
#define SPILL_RULE_GLOB 256

/* What `place` and `over` say; spill_rule_where makes a place of it. */
enum spill_rule_place {
	SPILL_RULE_DEVICE, /* the driver's plain call and never chunks; what happens when it is full is not changed */
	SPILL_RULE_MOVABLE, /* chunks that can move, as far as that is safe, however empty the device is */
	SPILL_RULE_SPLIT,   /* at once, without asking the driver's plain call first; likewise the next two */
	SPILL_RULE_MANAGED,
	SPILL_RULE_HOST,
	SPILL_RULE_REFUSE, /* out of memory, at once */
};

/* Bits of `set`: a key that the rule has. */
enum spill_rule_key {
	/* It matches by these: all that are set have to. */
	SPILL_RULE_HAS_SIZE = 1u << 0,
	SPILL_RULE_HAS_API = 1u << 1,
	SPILL_RULE_HAS_CALLER = 1u << 2,
	SPILL_RULE_HAS_DEVICE = 1u << 3,
	SPILL_RULE_HAS_PROGRAM = 1u << 4,
	SPILL_RULE_HAS_GROWTH = 1u << 5,
	/* It acts by these. */
	SPILL_RULE_HAS_PLACE = 1u << 6,
	SPILL_RULE_HAS_OVER = 1u << 7,
	SPILL_RULE_HAS_CAP = 1u << 8,
	SPILL_RULE_HAS_PRIORITY = 1u << 9,
	SPILL_RULE_HAS_PREFETCH = 1u << 10,
	SPILL_RULE_HAS_HONEST = 1u << 11,
	SPILL_RULE_HAS_PREFERRED = 1u << 12, /* managed.preferred */
	SPILL_RULE_HAS_ACCESSED_BY = 1u << 13,
	SPILL_RULE_HAS_READ_MOSTLY = 1u << 14,
	SPILL_RULE_HAS_PREFETCH_BELOW = 1u << 15,
};

struct spill_rule {
	char name[SPILL_RULE_NAME];
	unsigned set; /* enum spill_rule_key: the others below are not to be looked at */

	uint64_t least, most; /* size: bytes that the program asks for, both inclusive; least <= most */
	uint32_t devices;     /* a bit each */
	bool
	    growth; /* one of a run of ever larger requests from one call site (growth.h); false: none of one */
	char api[SPILL_RULE_GLOB];
	char caller[SPILL_RULE_GLOB];
	char program[SPILL_RULE_GLOB];

	enum spill_rule_place place;
	/*
	 * Where what does not fit goes, instead of oom.chain (SPLIT, MANAGED, HOST or REFUSE): when the device is full, when
	 * device.limit is reached and above `cap`.
	 */
	enum spill_rule_place over;
	uint64_t cap; /* most device bytes of all that this rule matched, over all devices */
	enum spill_priority priority;
	bool prefetch; /* managed: to the device whatever its size, if it fits; or never */
	bool honest;   /* whether the first failure surfaces, whoever calls (oom.honest_first) */
	struct spill_managed_advice advice;
};

struct spill_rules {
	unsigned count;
	struct spill_rule rule[SPILL_RULES];
	/* By spill_rules_index: rules that look at the call site, and at growth. What none looks at need not be found out. */
	uint64_t by_site, by_growth;
	/*
	 * By spill_rules_index, for spill_rule_find: what a request is compared with, as masks. A rule fits that is in all of
	 * them; one that does not say is in each.
	 */
	uint64_t on_device[SPILL_DEVICES + 1]; /* rules for a device; last: for one that is not known */
	uint64_t by_grows[2];                  /* rules for what does not grow, and for what does */
	/* Sizes at which rules begin or no longer fit, rising; of_size[i]: rules for sizes from edge[i - 1] on, below edge[i]. */
	unsigned edges;
	uint64_t edge[2 * SPILL_RULES], of_size[2 * SPILL_RULES + 1];
};

/* Fills in what is derived of the rules; call it when the list is complete. */
void spill_rules_index(struct spill_rules *rules);

/*
 * Mask of the rules whose `api` and `caller` fit, or that do not say. api: the name of the function that the program called;
 * a rule means it with or without the suffixes by which vendors tell versions and streams apart (_v2, _v3, _ptsz, _ptds, _spt).
 * caller: path of the calling library or program as loaded; a rule with a '/' means the whole of it, else the file's name.
 * "" for generated code, which is no library: no rule about callers fits it.
 */
uint64_t spill_rules_of(const struct spill_rules *rules, const char *api, const char *caller);

/*
 * Whether `earlier` matches all that `later` does, so that no request ever comes to `later`. What cannot be told from the patterns
 * is no. same_program: both are for the program in question, whatever their `program` says.
 */
#define SPILL_RULE_NEVER "the rule is never reached: one before it matches all that it does, "
bool spill_rule_covers(const struct spill_rule *earlier, const struct spill_rule *later, bool same_program);

/* Those of every call site, where spill_rules_of need not be asked. */
static inline uint64_t spill_rules_all(const struct spill_rules *rules)
{
	return rules->count == SPILL_RULES ? UINT64_MAX : ((uint64_t)1 << rules->count) - 1;
}

/* The rule that counts for the request, or NULL. `policy->rules` may be NULL. */
const struct spill_rule *spill_rule_find(const struct spill_policy *policy, const struct spill_ask *ask);

/* Its position in the list, for accounts. pre: it is of this policy */
unsigned spill_rule_index(const struct spill_policy *policy, const struct spill_rule *rule);

/* Device bytes that it may still hold under its cap; SPILL_UNLIMITED without one. `rule` may be NULL. used: as spill_view */
uint64_t spill_rule_room(const struct spill_rule *rule, uint64_t used);

/*
 * The advice for managed memory that holds under `rule`, which may be NULL. `prefetch` is part of its prefetch_below, and
 * counts before the rule's own.
 */
struct spill_managed_advice spill_rule_advice(const struct spill_policy *policy,
                                              const struct spill_rule *rule);

/* Which leaves the device first. */
enum spill_priority spill_rule_priority(const struct spill_rule *rule);

#endif
