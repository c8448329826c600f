/*
 * Keys of `[rule NAME]`: their text, and the members of struct spill_rule. The table is
 * options.def. Values are read and written by their kind, as those of options.
 */
#ifndef SPILL_RULE_OPTION_H
#define SPILL_RULE_OPTION_H

#include "options.h"
#include "rule.h"

/* Bits of the keys by which a rule acts. It matches by the others. */
#define SPILL_RULE_ACTS (~0u << 7)
_Static_assert(SPILL_RULE_HAS_GROWTH << 1 == SPILL_RULE_HAS_PLACE && SPILL_RULE_HAS_PLACE == 1u << 7,
               "acts are the bits from that of place on");

/* Room for any rule in one line. */
#define SPILL_RULE_TEXT 1472

struct spill_rule_option {
	struct spill_option option;
	unsigned bit; /* enum spill_rule_key */
};

/* pre: row < SPILL_RULE_OPTIONS */
const struct spill_rule_option *spill_rule_option_row(unsigned row);

/* Is it a key of rules? */
bool spill_rule_option_is(const char *key);

/* Row of a key, or -1 and the reason, with the nearest key. */
int spill_rule_option_find(const char *key, struct spill_error *error);

/* Sets the row's key of the rule: 0, or -1, the reason, and the rule unchanged. */
int spill_rule_option_put(struct spill_rule *rule, unsigned row, const char *value,
                          struct spill_error *error);

/* Writes the key's value as a user would. pre: the rule has the key */
void spill_rule_option_format(const struct spill_rule *rule, unsigned row, char *buffer, size_t size);

/*
 * Writes the keys of the rule in the table's order: "size = 1MiB..2GiB; place = managed". Returns
 * the length, cut to size - 1.
 */
size_t spill_rule_format(const struct spill_rule *rule, char *buffer, size_t size);

/* False, and the reason, for a rule without a key by which it acts. */
bool spill_rule_check(const struct spill_rule *rule, struct spill_error *error);

#endif
