/* Options of a policy file that rule out other keys. */
#include "rule_out.h"

#include <string.h>

#include "decide.h"

/* oom.chain = auto may have it. */
static bool has_step(const struct spill_policy *policy, enum spill_step step)
{
	for (unsigned i = 0; i < policy->chain.count; i++) {
		if (policy->chain.step[i] == step)
			return true;
	}
	return policy->chain.by_capability;
}

static bool never_moves(const struct spill_policy *policy)
{
	return policy->movable_enable == SPILL_SWITCH_OFF;
}

static bool always_movable(const struct spill_policy *policy)
{
	return policy->movable_enable == SPILL_SWITCH_ON;
}

static bool lacks_demote(const struct spill_policy *policy)
{
	return !spill_policy_demotes(policy);
}

static bool lacks_managed(const struct spill_policy *policy)
{
	return !has_step(policy, SPILL_STEP_MANAGED);
}

/* oom.honest_first is asked before the first step other than trim. */
static bool lacks_steps(const struct spill_policy *policy)
{
	return policy->chain.count == (unsigned)has_step(policy, SPILL_STEP_TRIM);
}

static bool never_surfaces(const struct spill_policy *policy)
{
	return policy->honest_first == SPILL_HONEST_OFF;
}

static bool has_no_log(const struct spill_policy *policy)
{
	return policy->log_level == SPILL_LOG_OFF;
}

static bool has_no_log_path(const struct spill_policy *policy)
{
	return !strcmp(policy->log_path, "off");
}

static bool has_log_path(const struct spill_policy *policy)
{
	return policy->log_path[0];
}

static bool is_integrated(const struct spill_policy *policy)
{
	return policy->device_memory == SPILL_MEMORY_INTEGRATED;
}

static const struct {
	const char *section, *key;
	bool (*holds)(const struct spill_policy *policy);
	const char *text;
} causes[] = {
    [CLI_MOVABLE_OFF] = {"movable", "enable", never_moves, "movable.enable is off"},
    [CLI_MOVABLE_ON] = {"movable", "enable", always_movable, "movable.enable is on, and not auto"},
    [CLI_NO_DEMOTE] = {"oom", "chain", lacks_demote, "oom.chain has no demote, so nothing is movable"},
    [CLI_NO_MANAGED] = {"oom", "chain", lacks_managed,
                        "neither oom.chain nor a rule of this file makes managed memory"},
    [CLI_NO_STEPS] = {"oom", "chain", lacks_steps, "oom.chain has no step to take afterwards"},
    [CLI_HONEST_OFF] = {"oom", "honest_first", never_surfaces, "oom.honest_first is off"},
    [CLI_LOG_OFF] = {"log", "level", has_no_log, "log.level is off"},
    [CLI_LOG_PATH_OFF] = {"log", "path", has_no_log_path, "log.path is off"},
    [CLI_LOG_PATH] = {"log", "path", has_log_path,
                      "it is for the default folder, and log.path names another place"},
    [CLI_INTEGRATED] = {"device", "memory", is_integrated,
                        "device.memory is integrated, so nothing is kept free"},
};

static bool holds(enum cli_cause cause, const struct cli_set_option *set)
{
	static struct spill_policy policy; /* large */
	struct spill_error ignored;        /* the reader has checked the value */

	spill_policy_default(&policy);
	spill_option_put(&policy, set->slot, set->value, &ignored);
	return causes[cause].holds(&policy);
}

const struct cli_set_option *cli_find_cause(const struct cli_policy_file *file, enum cli_cause cause,
                                            const char *app)
{
	const struct cli_set_option *all = NULL, *own = NULL, *found;
	struct spill_error ignored;
	int slot = spill_option_find(causes[cause].section, causes[cause].key, &ignored);

	for (size_t i = 0; i < file->option_count; i++) {
		const struct cli_set_option *set = &file->options[i];

		if ((int)set->slot != slot)
			continue;
		if (!set->app)
			all = set;
		else if (!holds(cause, set))
			return NULL;
		else if (app && !strcmp(set->app, app))
			own = set;
	}
	found = own ? own : all;
	return found && holds(cause, found) ? found : NULL;
}

const char *cli_cause_text(enum cli_cause cause)
{
	return causes[cause].text;
}
