#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "property.h"

/* Small numbers, so that edges are met: a device has some hundred bytes, and the driver gives whole blocks of 8. */
#define BLOCK 8

const char *const callers[] = {
    "/usr/lib/libggml-cuda.so", "/opt/torch/lib/libc10_cuda.so", "/usr/bin/llama-server",
    "", /* generated code */
};
#define CALLERS (sizeof(callers) / sizeof(callers[0]))

const char *const apis[] = {"cuMemAlloc_v2", "cuMemAllocAsync_ptsz", "cuMemCreate", "hipMalloc_spt"};
#define APIS (sizeof(apis) / sizeof(apis[0]))

static const char *const caller_globs[] = {"libggml*", "*cuda*",       "*",       "/usr/*",
                                           "*/lib/*",  "llama-server", "lib?10_*"};
static const char *const api_globs[] = {"cuMemAlloc", "cuMem*", "*_v2",          "cuMemAllocAsync",
                                        "hipMalloc",  "*",      "cuMemCreate_v2"};

void case_broken(const struct property_case *this, const char *what)
{
	fprintf(stderr, "property: seed %llu, case %llu, event %u: %s\n", (unsigned long long)this->seed,
	        (unsigned long long)this->number, this->at, what);
	fprintf(stderr, "again: tests/property/property --seed %llu --case %llu\n",
	        (unsigned long long)this->seed, (unsigned long long)this->number);
	exit(1);
}

static uint64_t some_bytes(struct chance *chance)
{
	static const uint64_t edges[] = {0, 1, BLOCK, 100, UINT64_MAX - 1, UINT64_MAX};

	if (chance_once_in(chance, 40))
		return edges[chance_below(chance, sizeof(edges) / sizeof(edges[0]))];
	return chance_below(chance, 300);
}

static struct spill_amount some_amount(struct chance *chance)
{
	switch (chance_below(chance, 4)) {
	case 0:
		return (struct spill_amount){SPILL_AMOUNT_PERCENT, chance_below(chance, 100001)};
	case 1:
		return (struct spill_amount){SPILL_AMOUNT_NONE, chance_any(chance)};
	default:
		return (struct spill_amount){SPILL_AMOUNT_BYTES, chance_below(chance, 800)};
	}
}

static struct spill_amount some_reserve(struct chance *chance)
{
	return (struct spill_amount){SPILL_AMOUNT_BYTES, chance_below(chance, 60)};
}

static void make_chain(struct chance *chance, struct spill_fallback_chain *chain)
{
	*chain = (struct spill_fallback_chain){.by_capability = chance_once_in(chance, 2)};
	for (unsigned i = 0; i < SPILL_STEPS; i++) {
		unsigned at = (unsigned)chance_below(chance, i + 1);

		chain->step[i] = chain->step[at];
		chain->step[at] = (enum spill_step)i;
	}
	chain->count = (unsigned)chance_below(chance, SPILL_STEPS + 1);
}

static void make_advice(struct chance *chance, struct spill_managed_advice *advice)
{
	*advice = (struct spill_managed_advice){
	    .preferred = (enum spill_location)chance_below(chance, 3),
	    .accessed_by_device = chance_once_in(chance, 2),
	    .accessed_by_host = chance_once_in(chance, 2),
	    .read_mostly = chance_once_in(chance, 2),
	    .prefetch_below = {SPILL_AMOUNT_BYTES, chance_below(chance, 200)},
	};
}

static void make_policy(struct chance *chance, struct spill_policy *policy)
{
	policy->device_limit = some_amount(chance);
	for (unsigned i = 0; i < DEVICES; i++) {
		policy->device_limits[i] =
		    chance_once_in(chance, 4) ? some_amount(chance) : (struct spill_amount){0};
		policy->device_reserves[i] =
		    chance_once_in(chance, 4) ? some_reserve(chance) : (struct spill_amount){0};
	}
	policy->device_reserve = some_reserve(chance);
	policy->host_reserve = some_reserve(chance);
	make_chain(chance, &policy->chain);
	policy->movable_enable = (enum spill_switch)chance_below(chance, 3);
	policy->honest_first = (enum spill_honest_first)chance_below(chance, 3);
	policy->honest_window_us = chance_below(chance, 3000);
	make_advice(chance, &policy->advice);
}

static void make_rule(struct chance *chance, struct spill_rule *rule, unsigned number)
{
	uint64_t least = some_bytes(chance), most = some_bytes(chance);
	/* Few keys to match by, or no rule ever would. */
	unsigned matchers = (unsigned)(chance_any(chance) & chance_any(chance) & 0x3f);

	snprintf(rule->name, sizeof(rule->name), "rule %u", number);
	rule->set = matchers | (unsigned)(chance_any(chance) & chance_any(chance) & 0xffc0);
	if (chance_once_in(chance, 2))
		rule->set |= SPILL_RULE_HAS_PLACE;
	rule->least = least < most ? least : most;
	rule->most = least < most ? most : least;
	rule->devices = (uint32_t)chance_any(chance);
	rule->growth = chance_once_in(chance, 2);
	strcpy(rule->api, api_globs[chance_below(chance, sizeof(api_globs) / sizeof(api_globs[0]))]);
	strcpy(rule->caller,
	       caller_globs[chance_below(chance, sizeof(caller_globs) / sizeof(caller_globs[0]))]);
	rule->place = (enum spill_rule_place)chance_below(chance, SPILL_RULE_REFUSE + 1);
	rule->over = (enum spill_rule_place)(SPILL_RULE_SPLIT + chance_below(chance, 4));
	rule->cap = some_bytes(chance);
	rule->priority = (enum spill_priority)chance_below(chance, 3);
	rule->prefetch = chance_once_in(chance, 2);
	rule->honest = chance_once_in(chance, 2);
	make_advice(chance, &rule->advice);
}

/* The same rule, with something else in all that it does not set. */
static void make_twin(struct chance *chance, struct spill_rule *twin, const struct spill_rule *rule)
{
	make_rule(chance, twin, 0);
	twin->set = rule->set;
	strcpy(twin->name, rule->name);
#define KEEP(key, field) \
	if (rule->set & SPILL_RULE_HAS_##key) \
		twin->field = rule->field;
	KEEP(SIZE, least)
	KEEP(SIZE, most)
	KEEP(DEVICE, devices)
	KEEP(GROWTH, growth)
	KEEP(PLACE, place)
	KEEP(OVER, over)
	KEEP(CAP, cap)
	KEEP(PRIORITY, priority)
	KEEP(PREFETCH, prefetch)
	KEEP(HONEST, honest)
	KEEP(PREFERRED, advice.preferred)
	KEEP(ACCESSED_BY, advice.accessed_by_device)
	KEEP(ACCESSED_BY, advice.accessed_by_host)
	KEEP(READ_MOSTLY, advice.read_mostly)
	KEEP(PREFETCH_BELOW, advice.prefetch_below)
#undef KEEP
	if (rule->set & SPILL_RULE_HAS_API)
		strcpy(twin->api, rule->api);
	if (rule->set & SPILL_RULE_HAS_CALLER)
		strcpy(twin->caller, rule->caller);
}

static unsigned some_count(struct chance *chance)
{
	if (chance_once_in(chance, 50))
		return SPILL_RULES - (unsigned)chance_below(chance, 2);
	return (unsigned)chance_below(chance, 7);
}

/* What lies behind the list is of an earlier case: garbage, too. */
static void make_rules(struct chance *chance, struct property_case *this)
{
	this->rules.count = this->twin_rules.count = some_count(chance);
	for (unsigned i = 0; i < this->rules.count; i++) {
		make_rule(chance, &this->rules.rule[i], i);
		make_twin(chance, &this->twin_rules.rule[i], &this->rules.rule[i]);
	}
	spill_rules_index(&this->rules);
	spill_rules_index(&this->twin_rules);
	this->policy.rules = this->rules.count || chance_once_in(chance, 2) ? &this->rules : NULL;
	this->twin = this->policy;
	this->twin.rules = this->policy.rules ? &this->twin_rules : NULL;
	this->twin.log_level = SPILL_LOG_OFF;
	this->twin.meminfo_report = SPILL_MEMINFO_SPILL;
	this->twin.host_ahead = some_amount(chance);
	this->twin.movable_above = some_amount(chance);
	this->twin.device_limits[SPILL_DEVICES - 1] = some_amount(chance);
}

static struct event some_event(struct chance *chance)
{
	static const enum event_kind kinds[] = {ALLOC,         ALLOC,       ALLOC, ALLOC,    ALLOC,
	                                        ALLOC,         FREE,        FREE,  FREE,     NEIGHBOUR,
	                                        CAPTURE_BEGIN, CAPTURE_END, MAP,   PASS_TIME};
	struct event event = {
	    .kind = kinds[chance_below(chance, sizeof(kinds) / sizeof(kinds[0]))],
	    .thread = (unsigned)chance_below(chance, THREADS),
	    .caller = (unsigned)chance_below(chance, CALLERS),
	    .api = (unsigned)chance_below(chance, APIS),
	    .device = (int)chance_below(chance, DEVICES),
	    .bytes = some_bytes(chance),
	    .operation = (enum spill_retry)(1u << chance_below(chance, 3)),
	    .fixed = chance_once_in(chance, 6),
	    .grows = chance_once_in(chance, 3),
	    .idle = chance_once_in(chance, 3),
	    .asks_again = !chance_once_in(chance, 3),
	    .amount = chance_below(chance, 1000),
	};

	/* A capture that begins is rare, and ends soon. */
	if (event.kind == CAPTURE_BEGIN && !chance_once_in(chance, 2))
		event.kind = ALLOC;
	/* What asks for nothing goes straight to the driver. */
	event.bytes += event.bytes == 0;
	event.weight =
	    event.bytes > UINT64_MAX - BLOCK ? event.bytes : (event.bytes + BLOCK - 1) / BLOCK * BLOCK;
	return event;
}

void case_make(struct property_case *this, uint64_t seed, uint64_t number)
{
	struct chance chance = {.state = seed * UINT64_C(0xd1342543de82ef95) +
	                                 number * UINT64_C(0xaf251af3b0f025b5)};

	this->seed = seed;
	this->number = number;
	this->at = 0;
	spill_policy_default(&this->policy);
	make_policy(&chance, &this->policy);
	make_rules(&chance, this);
	for (unsigned i = 0; i < DEVICES; i++) {
		this->capabilities[i] = (unsigned)chance_any(&chance) & (SPILL_CAN_SPLIT | SPILL_CAN_MANAGED |
		                                                         SPILL_CAN_HOST | SPILL_CAN_MOVE);
		this->capacity[i] = 100 + chance_below(&chance, 700);
	}
	this->host_available = chance_below(&chance, 1500);
	this->host_limit = chance_once_in(&chance, 4) ? SPILL_UNLIMITED : chance_below(&chance, 1500);
	for (unsigned i = 0; i < EVENTS; i++)
		this->events[i] = some_event(&chance);
}

void case_mode(struct property_case *this, enum spill_mode mode)
{
	this->policy.mode = this->twin.mode = mode;
	this->at = 0;
}
