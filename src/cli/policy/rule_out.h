/* Options of a policy file that rule out other keys: the reasons for which a key has no effect. */
#ifndef SPILL_CLI_RULE_OUT_H
#define SPILL_CLI_RULE_OUT_H

#include "policy_file.h"

enum cli_cause {
	CLI_NO_CAUSE,
	CLI_MOVABLE_OFF,
	CLI_MOVABLE_ON,
	CLI_NO_DEMOTE,
	CLI_NO_MANAGED,
	CLI_NO_STEPS, /* after trim */
	CLI_HONEST_OFF,
	CLI_LOG_OFF,
	CLI_LOG_PATH_OFF,
	CLI_LOG_PATH, /* it is set, so the log is not in the default folder */
	CLI_INTEGRATED,
};

/*
 * The option by which the cause holds for a key of [app `app`], or of another section if `app` is NULL.
 * NULL: the cause may not hold for all programs of that key, because a section [app NAME] gives the
 * option another meaning, or because the file does not set it.
 */
const struct cli_set_option *cli_find_cause(const struct cli_policy_file *file, enum cli_cause cause,
                                            const char *app);

/* "movable.enable is off" */
const char *cli_cause_text(enum cli_cause cause);

#endif
