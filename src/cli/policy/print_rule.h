/*
 * policy: `spill policy` and `spill check`. It prints the policy that the library finds for a
 * program, and checks policy files.
 *
 * It decides nothing and has no rules of its own. It calls the library's readers (config_file.h,
 * ini_file.h), so both always agree.
 *
 * Begin with cli_policy in policy.c and cli_check in check.c.
 */
#ifndef SPILL_CLI_PRINT_RULE_H
#define SPILL_CLI_PRINT_RULE_H

#include "json_out.h"
#include "rule.h"

/* Prints a rule with its source, FILE:LINE, as a line or a JSON object; json NULL: a line. */
void cli_print_rule(const struct spill_rule *rule, const char *source, struct spill_json *json);

#endif
