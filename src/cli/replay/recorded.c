/* Reads a recorded run's policy from its start line. */
#include <stdio.h>
#include <string.h>

#include "replay.h"
#include "rule_option.h"
#include "text.h"

/* One at a time; too large for the stack. */
static struct {
	struct spill_policy policy;
	struct spill_rules rules;
	bool has[SPILL_OPTION_SLOTS];
	char problem[1024];
} recorded;

static bool set_error(struct spill_error *error, const char *why)
{
	snprintf(error->text, sizeof(error->text), "%s", why);
	return false;
}

static char *find_item_end(char *item)
{
	char *end = item, key[64];

	while ((end = strstr(end, "; "))) {
		size_t length = strcspn(end + 2, " ");

		snprintf(key, sizeof(key), "%.*s", (int)(length < sizeof(key) ? length : 0), end + 2);
		if (!strncmp(end + 2 + length, " = ", 3) && spill_rule_option_is(key))
			return end;
		end += 2;
	}
	return item + strlen(item);
}

/* "size = 1MiB..; place = host" */
static bool read_keys(struct spill_rule *rule, const char *value, struct spill_error *error)
{
	char text[SPILL_RULE_TEXT], *item = text;

	if (strlen(value) >= sizeof(text))
		return set_error(error, "a rule is too long");
	strcpy(text, value);
	while (*item) {
		char *end = find_item_end(item), *equals, *next = *end ? end + 2 : end;
		int row;

		*end = '\0';
		equals = strstr(item, " = ");
		if (!equals)
			return set_error(error, "a rule is cut, or none of ours");
		*equals = '\0';
		row = spill_rule_option_find(item, error);
		if (row < 0 || spill_rule_option_put(rule, (unsigned)row, equals + 3, error))
			return false;
		item = next;
	}
	return spill_rule_check(rule, error);
}

static bool read_rule(const struct spill_record_option *option, struct spill_error *error)
{
	struct spill_rules *rules = &recorded.rules;
	struct spill_rule *rule = &rules->rule[rules->count];
	const char *name = spill_record_rule(option);

	if (rules->count == SPILL_RULES)
		return set_error(error, "too many rules");
	if (strlen(name) >= sizeof(rule->name))
		return set_error(error, "the name of a rule is too long");
	*rule = (struct spill_rule){0};
	strcpy(rule->name, name);
	rules->count++;
	return read_keys(rule, option->value, error);
}

/* "device.limit", "device 1.limit" */
static bool read_option(const struct spill_record_option *option, struct spill_error *error)
{
	const char *point = strrchr(option->name, '.');
	char section[64];
	int slot;

	if (!point || (size_t)(point - option->name) >= sizeof(section))
		return set_error(error, "an option without a section");
	snprintf(section, sizeof(section), "%.*s", (int)(point - option->name), option->name);
	slot = spill_option_find(section, point + 1, error);
	if (slot < 0 || spill_option_put(&recorded.policy, (unsigned)slot, option->value, error))
		return false;
	recorded.has[slot] = true;
	return true;
}

/*
 * Options of the log and of `spill run` decide nothing. A long path may be cut, and a later version
 * may have more frameworks.
 */
static bool is_without_effect(const char *name)
{
	return !strncmp(name, "log.", 4) || !strncmp(name, "run.", 4);
}

static bool read_setting(const struct spill_record_option *option, struct spill_error *error)
{
	if (is_without_effect(option->name))
		return true;
	if (spill_record_rule(option))
		return read_rule(option, error);
	return read_option(option, error);
}

/* Lists options that did not exist when the log was written. */
static void name_missing(char *missing, size_t size)
{
	struct spill_text text = spill_text_begin(missing, size);
	char name[64];

	for (unsigned slot = 0; slot < SPILL_OPTIONS; slot++) {
		spill_option_name(slot, name, sizeof(name));
		if (recorded.has[slot] || is_without_effect(name))
			continue;
		spill_text_format(&text, "%s%s", text.length ? ", " : "", name);
	}
}

static const char *policy_problem(const char *path, unsigned long line, const char *why)
{
	snprintf(recorded.problem, sizeof(recorded.problem),
	         "%s:%lu: %s; give one: --policy FILE or --profile NAME (none: as without any setting)", path,
	         line, why);
	return recorded.problem;
}

const struct spill_policy *cli_replay_recorded(const char *path, unsigned long line,
                                               const struct spill_record_start *start, char *missing,
                                               size_t size, const char **problem)
{
	struct spill_error error;
	char why[sizeof(error.text) + 64];

	spill_policy_default(&recorded.policy);
	recorded.rules.count = 0;
	memset(recorded.has, 0, sizeof(recorded.has));
	if (!start->option_count) {
		*problem = policy_problem(path, line, "the start line does not have the policy");
		return NULL;
	}
	for (unsigned i = 0; i < start->option_count; i++) {
		if (read_setting(&start->policy[i], &error))
			continue;
		snprintf(why, sizeof(why), "not a policy that this spill knows: %s", error.text);
		*problem = policy_problem(path, line, why);
		return NULL;
	}
	name_missing(missing, size);
	spill_rules_index(&recorded.rules);
	recorded.policy.rules = recorded.rules.count ? &recorded.rules : NULL;
	return &recorded.policy;
}
