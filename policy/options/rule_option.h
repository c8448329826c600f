/*
 * Keys of `[rule NAME]` by name: from words to fields of struct spill_rule and back. Pure; the table is options.def, and a row is
 * one of it: how values are read and printed is what options.h has for all.
 */
#ifndef SPILL_RULE_OPTION_H
#define SPILL_RULE_OPTION_H

#include "options.h"
#include "rule.h"

/* Bits of the keys that a rule acts by; the others are what it matches by. */
#define SPILL_RULE_ACTS (~0u << 6)
_Static_assert(SPILL_RULE_HAS_GROWTH << 1 == SPILL_RULE_HAS_PLACE && SPILL_RULE_HAS_PLACE == 1u << 6,
               "acts are the bits from that of place on");

/* A rule in one line, whatever it has, with its end. */
#define SPILL_RULE_TEXT 1280

struct spill_rule_option {
	struct spill_option option;
	unsigned bit; /* enum spill_rule_key */
};

/* pre: row < SPILL_RULE_OPTIONS */
const struct spill_rule_option *spill_rule_option_row(unsigned row);

/* Whether there is such a key. */
bool spill_rule_option_is(const char *key);

/* Row of a key, or -1 and why not, with the nearest. */
int spill_rule_option_find(const char *key, struct spill_error *error);

/* Sets the row's key of the rule: 0, or -1, why not, and the rule unchanged. */
int spill_rule_option_put(struct spill_rule *rule, unsigned row, const char *value,
                          struct spill_error *error);

/* The key's value as a user would write it; pre: the rule has it */
void spill_rule_option_format(const struct spill_rule *rule, unsigned row, char *buffer, size_t size);

/* "size = 1MiB..2GiB; place = managed": what the rule has, in the table's order; returns its length, cut to size - 1 if longer. */
size_t spill_rule_format(const struct spill_rule *rule, char *buffer, size_t size);

/* False and why not for a rule that does nothing to what it matches. */
bool spill_rule_check(const struct spill_rule *rule, struct spill_error *error);

#endif
