/*
 * policy: `spill policy` and `spill check`. The policy as the library finds it for a program, and
 * whether policy files are right.
 *
 * It decides nothing and has no rules of its own on what is right: it asks the library's readers
 * (config_file.h, ini_file.h), so that both always say the same.
 *
 * Begin with cli_policy in policy.c and cli_check in check.c.
 */
#ifndef SPILL_CLI_PRINT_RULE_H
#define SPILL_CLI_PRINT_RULE_H

#include <stdbool.h>

#include "rule.h"

/* A rule and its source, FILE:LINE: one line, or a JSON object. */
void cli_print_rule(const struct spill_rule *rule, const char *source, bool json);

#endif
