/*
 * Keys of a policy file that have no effect, because others of the same file rule them out.
 *
 * Only what is certain is told. A section [app NAME] may change the option that rules a key out for
 * some programs. So the option counts only if no section of the file gives it another meaning.
 */
#include <stdio.h>
#include <string.h>

#include "rule_out.h"

/* -- options ----------------------------------------------------------------------------------- */

static bool has_profile(const struct cli_policy_file *file)
{
	struct spill_error ignored;
	int slot = spill_option_find("spill", "profile", &ignored);

	for (size_t i = 0; i < file->option_count; i++) {
		if ((int)file->options[i].slot == slot && strcmp(file->options[i].value, "none"))
			return true;
	}
	return false;
}

static bool has_place(const struct spill_rule *rule, enum spill_rule_place place)
{
	return (rule->set & SPILL_RULE_HAS_PLACE) && rule->place == place;
}

static bool has_over(const struct spill_rule *rule, enum spill_rule_place over)
{
	return (rule->set & SPILL_RULE_HAS_OVER) && rule->over == over;
}

static bool makes_managed(const struct spill_rule *rule)
{
	return has_place(rule, SPILL_RULE_MANAGED) || has_over(rule, SPILL_RULE_MANAGED);
}

static bool has_steps(const struct spill_rule *rule)
{
	return (rule->set & SPILL_RULE_HAS_OVER) && rule->over != SPILL_RULE_REFUSE;
}

static bool surfaces(const struct spill_rule *rule)
{
	return (rule->set & SPILL_RULE_HAS_HONEST) && rule->honest;
}

/* An option, what rules it out, and the rules that use it nevertheless. */
static const struct {
	const char *section, *key;
	enum cli_cause cause;
	bool (*used)(const struct spill_rule *rule);
} dead_options[] = {
    {"movable", "enable", CLI_NO_DEMOTE},
    {"movable", "min", CLI_NO_DEMOTE},
    {"movable", "min", CLI_MOVABLE_OFF},
    {"movable", "above", CLI_NO_DEMOTE},
    {"movable", "above", CLI_MOVABLE_OFF},
    {"movable", "above", CLI_MOVABLE_ON},
    {"movable", "wait", CLI_NO_DEMOTE},
    {"movable", "wait", CLI_MOVABLE_OFF},
    {"managed", "preferred", CLI_NO_MANAGED, makes_managed},
    {"managed", "accessed_by", CLI_NO_MANAGED, makes_managed},
    {"managed", "read_mostly", CLI_NO_MANAGED, makes_managed},
    {"managed", "prefetch_below", CLI_NO_MANAGED, makes_managed},
    {"oom", "honest_first", CLI_NO_STEPS, has_steps},
    {"oom", "honest_window", CLI_NO_STEPS, has_steps},
    {"oom", "honest_window", CLI_HONEST_OFF, surfaces},
    {"device", "reserve", CLI_INTEGRATED},
    {"log", "level", CLI_LOG_PATH_OFF},
    {"log", "path", CLI_LOG_OFF},
    {"log", "max", CLI_LOG_OFF},
    {"log", "max", CLI_LOG_PATH_OFF},
    {"log", "keep", CLI_LOG_OFF},
    {"log", "keep", CLI_LOG_PATH_OFF},
    {"log", "keep", CLI_LOG_PATH},
};

/* A profile may have such a rule, too. */
static bool is_used(const struct cli_policy_file *file, bool (*used)(const struct spill_rule *rule))
{
	if (used && has_profile(file))
		return true;
	for (unsigned i = 0; used && i < file->rule_count; i++) {
		if (used(&file->rules[i].rule))
			return true;
	}
	return false;
}

/* "off", or "no", agrees with what rules it out, and "auto" follows it. */
static bool asks_for_nothing(const char *value)
{
	return !strcmp(value, "off") || !strcmp(value, "no") || !strcmp(value, "auto");
}

/* One warning for a key, whatever else rules it out. */
static void check_option(struct cli_policy_file *file, const struct cli_set_option *set)
{
	const struct spill_option *row = spill_option_row(set->slot);
	char name[64];

	for (size_t i = 0; i < sizeof(dead_options) / sizeof(dead_options[0]); i++) {
		enum cli_cause cause = dead_options[i].cause;
		const struct cli_set_option *by;

		if (strcmp(row->section, dead_options[i].section) || strcmp(row->key, dead_options[i].key))
			continue;
		by = cli_find_cause(file, cause, set->app);
		if (!by || asks_for_nothing(set->value) || is_used(file, dead_options[i].used))
			continue;
		spill_option_name(set->slot, name, sizeof(name));
		cli_policy_file_warn(file, set->line, "%s has no effect: %s (line %u)", name,
		                     cli_cause_text(cause), by->line);
		return;
	}
}

/* Nothing is movable, so nothing can be demoted. A user who wrote the step expects it. */
static void check_chain(struct cli_policy_file *file, const struct cli_set_option *set)
{
	const struct spill_option *row = spill_option_row(set->slot);
	const struct cli_set_option *by = cli_find_cause(file, CLI_MOVABLE_OFF, set->app);

	if (by && row->kind == SPILL_OPTION_CHAIN && strstr(set->value, "demote"))
		cli_policy_file_warn(file, set->line, "demote in oom.chain has no effect: %s (line %u)",
		                     cli_cause_text(CLI_MOVABLE_OFF), by->line);
}

/* Does the first pattern match all names that the second one matches? False if unsure. */
static bool app_covers(const char *first, const char *second)
{
	struct spill_rule earlier = {.set = SPILL_RULE_HAS_PROGRAM}, later = earlier;

	snprintf(earlier.program, sizeof(earlier.program), "%s", first);
	snprintf(later.program, sizeof(later.program), "%s", second);
	return spill_rule_covers(&earlier, &later, false);
}

/* A key of [app NAME] wins over one for all programs, and over one of a later section [app NAME]. */
static void check_covered_app(struct cli_policy_file *file, const struct cli_set_option *set)
{
	char name[64];

	for (size_t i = 0; i < file->option_count; i++) {
		const struct cli_set_option *by = &file->options[i];

		if (by->slot != set->slot || !by->app || (set->app && by >= set) ||
		    !app_covers(by->app, set->app ? set->app : "*"))
			continue;
		spill_option_name(set->slot, name, sizeof(name));
		cli_policy_file_warn(
		    file, set->line,
		    "%s has no effect: [app %s] sets it for the same programs, and wins (line %u)", name,
		    by->app, by->line);
		return;
	}
}

/* -- keys of rules ----------------------------------------------------------------------------- */

#define MANAGED_KEYS \
	(SPILL_RULE_HAS_PREFERRED | SPILL_RULE_HAS_ACCESSED_BY | SPILL_RULE_HAS_READ_MOSTLY | \
	 SPILL_RULE_HAS_PREFETCH_BELOW | SPILL_RULE_HAS_PREFETCH)

static bool always_refuses(const struct spill_rule *rule)
{
	return has_place(rule, SPILL_RULE_REFUSE);
}

static bool refuses_over(const struct spill_rule *rule)
{
	return has_over(rule, SPILL_RULE_REFUSE);
}

static bool has_prefetch(const struct spill_rule *rule)
{
	return rule->set & SPILL_RULE_HAS_PREFETCH;
}

/* Without `over`, oom.chain may make managed memory. */
static bool never_managed(const struct spill_rule *rule)
{
	return (rule->set & SPILL_RULE_HAS_OVER) && !makes_managed(rule);
}

static bool leaves_it_to_chain(const struct spill_rule *rule)
{
	return !makes_managed(rule);
}

static bool wants_movable(const struct spill_rule *rule)
{
	return has_place(rule, SPILL_RULE_MOVABLE);
}

static bool any_rule(const struct spill_rule *rule)
{
	return true;
}

/* Keys of a rule that have no effect if the rule is so, and the cause, if any, holds. */
static const struct {
	unsigned keys;
	bool (*holds)(const struct spill_rule *rule);
	enum cli_cause cause;
	const char *text; /* without a cause */
} dead_keys[] = {
    {SPILL_RULE_ACTS & ~(unsigned)SPILL_RULE_HAS_PLACE, always_refuses, CLI_NO_CAUSE,
     "the rule has place = refuse"},
    {SPILL_RULE_HAS_HONEST, refuses_over, CLI_NO_CAUSE, "over = refuse is out of memory at once"},
    {MANAGED_KEYS, never_managed, CLI_NO_CAUSE, "neither place nor over is managed"},
    {MANAGED_KEYS, leaves_it_to_chain, CLI_NO_MANAGED, NULL},
    {SPILL_RULE_HAS_PREFETCH_BELOW, has_prefetch, CLI_NO_CAUSE, "the rule's prefetch decides"},
    {SPILL_RULE_HAS_PLACE, wants_movable, CLI_MOVABLE_OFF, NULL},
    {SPILL_RULE_HAS_PLACE, wants_movable, CLI_NO_DEMOTE, NULL},
    {SPILL_RULE_HAS_PRIORITY, any_rule, CLI_MOVABLE_OFF, NULL},
    {SPILL_RULE_HAS_PRIORITY, any_rule, CLI_NO_DEMOTE, NULL},
};

static void warn_of_key(struct cli_policy_file *file, const struct cli_set_rule *set, unsigned row,
                        size_t dead, const struct cli_set_option *by)
{
	const char *key = spill_rule_option_row(row)->option.key;
	unsigned line = set->key_line[row];

	if (by)
		cli_policy_file_warn(file, line, "%s of rule %s has no effect: %s (line %u)", key,
		                     set->rule.name, cli_cause_text(dead_keys[dead].cause), by->line);
	else
		cli_policy_file_warn(file, line, "%s of rule %s has no effect: %s", key, set->rule.name,
		                     dead_keys[dead].text);
}

static void check_key(struct cli_policy_file *file, const struct cli_set_rule *set, unsigned row)
{
	for (size_t i = 0; i < sizeof(dead_keys) / sizeof(dead_keys[0]); i++) {
		enum cli_cause cause = dead_keys[i].cause;
		const struct cli_set_option *by = NULL;

		if (!(dead_keys[i].keys & spill_rule_option_row(row)->bit) || !dead_keys[i].holds(&set->rule))
			continue;
		if (cause)
			by = cli_find_cause(file, cause, NULL);
		if (cause && !by)
			continue;
		warn_of_key(file, set, row, i, by);
		return;
	}
}

static void check_rule(struct cli_policy_file *file, const struct cli_set_rule *set)
{
	char value[SPILL_RULE_GLOB];

	for (unsigned row = 0; row < SPILL_RULE_OPTIONS; row++) {
		if (!(set->rule.set & spill_rule_option_row(row)->bit))
			continue;
		spill_rule_option_format(&set->rule, row, value, sizeof(value));
		if (!asks_for_nothing(value))
			check_key(file, set, row);
	}
}

void cli_check_dead_keys(struct cli_policy_file *file)
{
	for (size_t i = 0; i < file->option_count; i++) {
		check_option(file, &file->options[i]);
		check_chain(file, &file->options[i]);
		check_covered_app(file, &file->options[i]);
	}
	for (unsigned i = 0; i < file->rule_count; i++)
		check_rule(file, &file->rules[i]);
}
