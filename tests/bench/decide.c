/*
 * What a decision costs: spill_rule_find and spill_decide for a request that fits, without rules, and with 32 rules of which none
 * matches. Each rule says a device, growth and a size, and all fit the call site; device and growth fit too, so that the sizes,
 * 64 different ends of ranges, have to be looked at. Prints "rules nanoseconds" for each round. scripts/bench --decide runs it.
 *
 * usage: decide [ROUNDS [CALLS]]
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "decide.h"

#define MIB ((uint64_t)1 << 20)

static struct spill_rules rules;

/* Of this thread: what else runs on the machine meanwhile is no part of it. */
static double now(void)
{
	struct timespec time;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
	return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

/* Odd sizes of 1 to 64 MiB; what is asked for is even. */
static void fill(void)
{
	rules.count = 32;
	for (unsigned i = 0; i < rules.count; i++) {
		rules.rule[i] = (struct spill_rule){
		    .set = SPILL_RULE_HAS_SIZE | SPILL_RULE_HAS_DEVICE | SPILL_RULE_HAS_GROWTH |
		           SPILL_RULE_HAS_PLACE,
		    .least = (2 * i + 1) * MIB,
		    .most = (2 * i + 2) * MIB - 1,
		    .devices = 1,
		    .growth = true,
		    .place = SPILL_RULE_HOST,
		};
	}
	spill_rules_index(&rules);
}

static void measure(const struct spill_policy *policy, unsigned count, uint64_t calls)
{
	struct spill_ask ask = {
	    .placeable = true, .grows = true, .rules = count ? spill_rules_all(&rules) : 0};
	struct spill_view view = {.device_limit = UINT64_MAX >> 1};
	double start = now();
	for (uint64_t i = 0; i < calls; i++) {
		ask.bytes = ask.weight = (i % 32 + 1) * 2 * MIB;
		view.device_used = i;
		const struct spill_rule *rule = spill_rule_find(policy, &ask);
		if (rule || spill_decide(policy, rule, &ask, &view).verdict != SPILL_VERDICT_DRIVER)
			abort();
	}
	printf("%u %.2f\n", count, (now() - start) / (double)calls);
}

int main(int count, char **arguments)
{
	unsigned long rounds = count > 1 ? strtoul(arguments[1], NULL, 10) : 5;
	uint64_t calls = count > 2 ? strtoull(arguments[2], NULL, 10) : 2000000;
	static struct spill_policy none, many;
	spill_policy_default(&none);
	spill_policy_default(&many);
	fill();
	many.rules = &rules;
	for (unsigned long round = 0; round < rounds && calls; round++) {
		measure(&none, 0, calls);
		measure(&many, rules.count, calls);
	}
	return 0;
}
