/* Counts the requests of each rule. A rule without any probably has a wrong match. */
#include <inttypes.h>
#include <string.h>

#include "log_reader.h"
#include "put.h"
#include "rule.h"

static struct {
	unsigned count;
	bool whole; /* every request of the run has a line */
	struct {
		char name[SPILL_RULE_NAME];
		uint64_t requests;
	} rule[SPILL_RULES];
} run;

static void begin_run(const struct spill_record_start *start)
{
	run.count = 0;
	run.whole = true;
	for (unsigned i = 0; i < start->option_count; i++) {
		const struct spill_record_option *option = &start->policy[i];

		const char *rule;

		if (!option->name)
			continue;
		if (!strcmp(option->name, "log.level"))
			run.whole = option->value && strcmp(option->value, "spills");
		rule = spill_record_rule(option);
		if (!rule || run.count == SPILL_RULES)
			continue;
		snprintf(run.rule[run.count].name, SPILL_RULE_NAME, "%s", rule);
		run.rule[run.count++].requests = 0;
	}
}

static void count_requests(const char *rule, uint64_t count)
{
	for (unsigned i = 0; rule && i < run.count; i++)
		run.rule[i].requests += strcmp(run.rule[i].name, rule) ? 0 : count;
}

void cli_rules_take(const struct spill_record *record)
{
	switch (record->kind) {
	case SPILL_KIND_START:
		begin_run(&record->start);
		break;
	case SPILL_KIND_ALLOC:
		count_requests(record->alloc.rule, 1);
		break;
	case SPILL_KIND_SUM:
		count_requests(record->sum.rule, record->sum.allocs.count);
		break;
	case SPILL_KIND_OOM:
		count_requests(record->oom.rule, 1);
		break;
	case SPILL_KIND_NOTE:
		if (record->note.code && !strcmp(record->note.code, "log-lost"))
			run.whole = false;
		break;
	case SPILL_KIND_DROP:
		run.whole = false;
		break;
	default:
		break;
	}
}

void cli_rules_print(FILE *out)
{
	for (unsigned i = 0; run.whole && i < run.count; i++) {
		if (run.rule[i].requests)
			cli_fprintf(out, "  rule %s: %" PRIu64 " request%s\n", run.rule[i].name,
			            run.rule[i].requests, run.rule[i].requests == 1 ? "" : "s");
		else
			cli_fprintf(out, "  rule %s: no request\n", run.rule[i].name);
	}
	run.count = 0;
}
