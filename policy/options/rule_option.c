#include "rule_option.h"

#include <string.h>

#include "nearest.h"
#include "option_kind.h"

static const struct spill_rule_option rows[] = {
#define RULE(key, kind, bit, field, words, example, meaning) \
	{{"rule", key, SPILL_OPTION_##kind, words, example, meaning, offsetof(struct spill_rule, field)}, \
	 SPILL_RULE_HAS_##bit},
#include "options.def"
};

_Static_assert(offsetof(struct spill_rule, most) == offsetof(struct spill_rule, least) + sizeof(uint64_t),
               "the fields of a RANGE row are consecutive");

const struct spill_rule_option *spill_rule_option_row(unsigned row)
{
	return &rows[row];
}

/* Options that do for all requests what a rule's key does for the requests of the rule. */
static const struct alike {
	const char *option, *key;
} alike[] = {
    {"limit", "cap"},  {"device.limit", "cap"},        {"honest_first", "honest"},
    {"chain", "over"}, {"oom.honest_first", "honest"}, {"oom.chain", "over"},
};

/* The key that is like the option, or NULL. For "preferred" it is managed.preferred. */
static const char *key_like(const char *option)
{
	for (unsigned i = 0; i < sizeof(alike) / sizeof(alike[0]); i++) {
		if (!strcmp(option, alike[i].option))
			return alike[i].key;
	}
	for (unsigned row = 0; row < SPILL_RULE_OPTIONS; row++) {
		const char *point = strchr(rows[row].option.key, '.');

		if (point && !strcmp(option, point + 1))
			return rows[row].option.key;
	}
	return NULL;
}

/* "host.limit": [app NAME] takes the whole names of options. */
static bool is_option(const char *key)
{
	struct spill_error ignored;

	return spill_option_find("app *", key, &ignored) >= 0;
}

bool spill_rule_option_is(const char *key)
{
	for (unsigned row = 0; row < SPILL_RULE_OPTIONS; row++) {
		if (!strcmp(key, rows[row].option.key))
			return true;
	}
	return false;
}

int spill_rule_option_find(const char *key, struct spill_error *error)
{
	struct spill_nearest nearest;
	const char *near = key_like(key);

	spill_nearest_begin(&nearest, key, strlen(key));
	for (unsigned row = 0; row < SPILL_RULE_OPTIONS; row++) {
		const char *name = rows[row].option.key;

		if (!strcmp(key, name))
			return (int)row;
		spill_nearest_offer(&nearest, name, strlen(name));
	}
	if (!near && is_option(key))
		return spill_option_fail(error, SPILL_PART_KEY, 0,
		                         "%s is for all requests; [rule NAME] does not have it",
		                         spill_quote(key, strlen(key)).text);
	near = near ? near : nearest.best;
	return spill_option_fail(error, SPILL_PART_KEY, 0, "unknown key %s in [rule NAME]; the nearest is %s",
	                         spill_quote(key, strlen(key)).text, spill_quote(near, strlen(near)).text);
}

int spill_rule_option_put(struct spill_rule *rule, unsigned row, const char *value, struct spill_error *error)
{
	const struct spill_option *option = &rows[row].option;

	if (spill_option_kind(option)->put(option, (char *)rule + option->offset, value, error))
		return -1;
	rule->set |= rows[row].bit;
	return 0;
}

static void add_value(struct spill_text *text, const struct spill_rule *rule, unsigned row)
{
	const struct spill_option *option = &rows[row].option;

	spill_option_kind(option)->add(text, option, (const char *)rule + option->offset);
}

void spill_rule_option_format(const struct spill_rule *rule, unsigned row, char *buffer, size_t size)
{
	struct spill_text text = spill_text_begin(buffer, size);

	add_value(&text, rule, row);
}

size_t spill_rule_format(const struct spill_rule *rule, char *buffer, size_t size)
{
	struct spill_text text = spill_text_begin(buffer, size);

	for (unsigned row = 0; row < SPILL_RULE_OPTIONS; row++) {
		if (!(rule->set & rows[row].bit))
			continue;
		spill_text_format(&text, "%s%s = ", text.length ? "; " : "", rows[row].option.key);
		add_value(&text, rule, row);
	}
	return text.length;
}

bool spill_rule_check(const struct spill_rule *rule, struct spill_error *error)
{
	char keys[256];
	struct spill_text text = spill_text_begin(keys, sizeof(keys));

	if (rule->set & SPILL_RULE_ACTS)
		return true;
	for (unsigned row = 0; row < SPILL_RULE_OPTIONS; row++) {
		if (rows[row].bit & SPILL_RULE_ACTS)
			spill_text_format(&text, "%s%s", text.length ? ", " : "", rows[row].option.key);
	}
	spill_option_fail(error, SPILL_PART_SECTION, 0, "the rule does nothing; it needs one of %s", keys);
	return false;
}
