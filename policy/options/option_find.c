/* Slots of the names of sections, keys and variables, and messages about unknown names. */
#include <string.h>

#include "nearest.h"
#include "option_kind.h"
#include "rule_option.h"

static bool row_is(unsigned row, const char *section, const char *key)
{
	return !strcmp(spill_option_row(row)->section, section) && !strcmp(spill_option_row(row)->key, key);
}

int spill_option_device(const char *text, size_t length)
{
	int number = 0;

	if (!length || (text[0] == '0' && length > 1))
		return -1;
	for (size_t i = 0; i < length; i++) {
		if (text[i] < '0' || text[i] > '9')
			return -1;
		if (number < SPILL_DEVICES)
			number = number * 10 + (text[i] - '0');
	}
	return number < SPILL_DEVICES ? number : SPILL_DEVICES;
}

/* The number of `[device N]`; -1: another section; -2: a bad number, and the reason. */
static int section_device(const char *section, struct spill_error *error)
{
	static const char prefix[] = "device ";
	size_t start = sizeof(prefix) - 1;

	if (strncmp(section, prefix, start))
		return -1;
	while (section[start] == ' ')
		start++;

	int number = spill_option_device(section + start, strlen(section + start));
	if (number >= 0 && number < SPILL_DEVICES)
		return number;
	if (number < 0)
		spill_option_fail(error, SPILL_PART_SECTION, start, "bad device number %s: write [device 1]",
		                  spill_quote(section + start, strlen(section + start)).text);
	else
		spill_option_fail_range(error, SPILL_PART_SECTION, start);
	return -2;
}

static bool section_known(const char *section)
{
	for (unsigned row = 0; row < SPILL_OPTIONS; row++)
		if (!strcmp(spill_option_row(row)->section, section))
			return true;
	return false;
}

static bool first_word_is(const char *section, const char *word)
{
	size_t length = strcspn(section, " ");

	return length == strlen(word) && !memcmp(section, word, length);
}

/* NAME of `[WORD NAME]`, or NULL */
static const char *name_behind(const char *word, const char *section)
{
	if (!first_word_is(section, word))
		return NULL;
	section += strlen(word);
	return section + strspn(section, " ");
}

const char *spill_option_app(const char *section)
{
	return name_behind("app", section);
}

const char *spill_option_rule(const char *section)
{
	return name_behind("rule", section);
}

/* Refuses a name that no program can have: the section would never be used. */
static int check_app(const char *section, const char *name, struct spill_error *error)
{
	const char *slash = strchr(name, '/');

	if (*name && !slash)
		return 0;
	return spill_option_fail(error, SPILL_PART_SECTION, (size_t)((slash ? slash : name) - section),
	                         slash ? "a program's name has no folder: write [app NAME]"
	                               : "the program's name is missing: write [app NAME]");
}

static int check_rule(const char *section, const char *name, struct spill_error *error)
{
	const char *why = NULL;

	if (!*name)
		why = "the rule's name is missing: write [rule NAME]";
	else if (strlen(name) >= SPILL_RULE_NAME)
		why = "the rule's name is too long";
	else if (!strcmp(name, "default"))
		why = "'default' means no rule in the log: choose another name";
	return why ? spill_option_fail(error, SPILL_PART_SECTION, (size_t)(name - section), "%s", why) : 0;
}

int spill_option_section(const char *section, struct spill_error *error)
{
	struct spill_nearest nearest;
	int device = section_device(section, error);
	const char *app = spill_option_app(section), *rule = spill_option_rule(section), *word, *end;

	if (device != -1)
		return device < 0 ? -1 : 0;
	if (app)
		return check_app(section, app, error);
	if (rule)
		return check_rule(section, rule, error);
	if (section_known(section))
		return 0;
	/* Compares the first word: a number or a name may follow it. */
	spill_nearest_begin(&nearest, section, strcspn(section, " "));
	spill_nearest_offer(&nearest, "app", 3);
	spill_nearest_offer(&nearest, "rule", 4);
	for (unsigned row = 0; row < SPILL_OPTIONS; row++)
		spill_nearest_offer(&nearest, spill_option_row(row)->section,
		                    strlen(spill_option_row(row)->section));
	word = spill_nearest_word(&nearest);
	end = word && (!strcmp(word, "app") || !strcmp(word, "rule")) ? " NAME]" : "]";
	return spill_option_fail(error, SPILL_PART_SECTION, 0, "unknown section %s%s%s%s",
	                         spill_quote(section, strlen(section)).text, word ? "; the nearest is [" : "",
	                         word ? word : "", word ? end : "");
}

/* The section of options that has the key, "rule NAME", or NULL. */
static const char *section_with(const char *key)
{
	for (unsigned row = 0; row < SPILL_OPTIONS; row++)
		if (!strcmp(spill_option_row(row)->key, key))
			return spill_option_row(row)->section;
	return spill_rule_option_is(key) ? "rule NAME" : NULL;
}

/* Suggests the key in another section, else the nearest key of this section. */
static int say_unknown_key(const char *section, const char *key, struct spill_error *error)
{
	const char *other = section_with(key), *near = key;
	struct spill_nearest nearest;

	spill_nearest_begin(&nearest, key, strlen(key));
	for (unsigned row = 0; row < SPILL_OPTIONS && !other; row++) {
		if (!strcmp(spill_option_row(row)->section, section))
			spill_nearest_offer(&nearest, spill_option_row(row)->key,
			                    strlen(spill_option_row(row)->key));
		near = nearest.best;
	}
	return spill_option_fail(error, SPILL_PART_KEY, 0, "unknown key %s in [%s]; the nearest is %s%s%s%s",
	                         spill_quote(key, strlen(key)).text, section,
	                         spill_quote(near, strlen(near)).text, other ? " in [" : "",
	                         other ? other : "", other ? "]" : "");
}

static int find_for_device(int device, const char *key, struct spill_error *error)
{
	struct spill_nearest nearest;

	spill_nearest_begin(&nearest, key, strlen(key));
	for (unsigned slot = SPILL_OPTIONS; slot < SPILL_OPTION_SLOTS; slot += SPILL_DEVICES) {
		const char *name = spill_option_row(slot)->key;

		if (!strcmp(key, name))
			return (int)slot + device;
		spill_nearest_offer(&nearest, name, strlen(name));
	}
	return spill_option_fail(
	    error, SPILL_PART_KEY, 0, "%s cannot be set for one device; the nearest is %s",
	    spill_quote(key, strlen(key)).text, spill_quote(nearest.best, strlen(nearest.best)).text);
}

/*
 * Slot of a key of `[app NAME]`, "device.limit". For "limit" alone, suggests the option with that
 * key.
 */
static int find_for_app(const char *key, struct spill_error *error)
{
	const struct spill_word quoted = spill_quote(key, strlen(key));
	struct spill_nearest nearest;
	char name[64], bare[64] = "";
	const char *near;

	spill_nearest_begin(&nearest, key, strlen(key));
	for (unsigned row = 0; row < SPILL_OPTIONS; row++) {
		spill_option_name(row, name, sizeof(name));
		if (!strcmp(key, name))
			return (int)row;
		spill_nearest_offer(&nearest, name, strlen(name));
		if (!bare[0] && !strcmp(key, spill_option_row(row)->key))
			memcpy(bare, name, sizeof(name));
	}
	if (!strncmp(key, "device ", 7))
		return spill_option_fail(error, SPILL_PART_KEY, 0,
		                         "%s cannot be set for one program; the nearest is 'device.limit'",
		                         quoted.text);
	if (!strncmp(key, "rule", 4) || (!bare[0] && spill_rule_option_is(key)))
		return spill_option_fail(
		    error, SPILL_PART_KEY, 0,
		    "%s is no option; a rule for one program is [rule NAME] with program = NAME",
		    quoted.text);
	near = bare[0] ? bare : nearest.best;
	return spill_option_fail(error, SPILL_PART_KEY, 0, "unknown key %s in [app NAME]; the nearest is %s",
	                         quoted.text, spill_quote(near, strlen(near)).text);
}

int spill_option_find(const char *section, const char *key, struct spill_error *error)
{
	int device = section_device(section, error);

	if (spill_option_section(section, error))
		return -1;
	if (device >= 0)
		return find_for_device(device, key, error);
	if (spill_option_app(section))
		return find_for_app(key, error);
	for (unsigned row = 0; row < SPILL_OPTIONS; row++)
		if (row_is(row, section, key))
			return (int)row;
	return say_unknown_key(section, key, error);
}

static const char device_variable[] = "SPILL_DEVICE_";

/* N of SPILL_DEVICE_<N>_LIMIT, and "_LIMIT", as spill_option_device. -1: another form. */
static int device_in_variable(const char *variable, const char **rest)
{
	const char *number = variable + sizeof(device_variable) - 1;

	if (strncmp(variable, device_variable, sizeof(device_variable) - 1))
		return -1;
	*rest = number + strspn(number, "0123456789");
	return spill_option_device(number, (size_t)(*rest - number));
}

/* Slot of SPILL_DEVICE_<N>_LIMIT; -1: the name has another form; -2: N is out of range. */
static int variable_device(const char *variable)
{
	const char *rest;
	int device = device_in_variable(variable, &rest);
	char name[64];

	for (unsigned slot = SPILL_OPTIONS; device >= 0 && slot < SPILL_OPTION_SLOTS; slot += SPILL_DEVICES) {
		spill_option_variable(slot, name, sizeof(name));
		/* The name for device 0 has one digit, so the rest begins there. */
		if (!strcmp(rest, name + sizeof(device_variable)))
			return device < SPILL_DEVICES ? (int)slot + device : -2;
	}
	return -1;
}

/* Suggests SPILL_DEVICE_1_LIMIT for SPILL_DEVICE_1_LIMT, and not the variable of all devices. */
static void offer_devices(struct spill_nearest *nearest, const char *variable)
{
	const char *rest;
	int device = device_in_variable(variable, &rest);
	char name[64];

	if (device < 0 || device >= SPILL_DEVICES)
		return;
	for (unsigned slot = SPILL_OPTIONS; slot < SPILL_OPTION_SLOTS; slot += SPILL_DEVICES) {
		spill_option_variable(slot + (unsigned)device, name, sizeof(name));
		spill_nearest_offer(nearest, name, strlen(name));
	}
}

int spill_option_find_variable(const char *variable, struct spill_error *error)
{
	static const char *const others[] = {"SPILL_POLICY", "SPILL_LOG"};
	struct spill_nearest nearest;
	char name[64];
	int found = variable_device(variable);

	if (found >= 0)
		return found;
	spill_nearest_begin(&nearest, variable, strlen(variable));
	for (unsigned i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		spill_nearest_offer(&nearest, others[i], strlen(others[i]));
	for (unsigned row = 0; row < SPILL_OPTIONS; row++) {
		spill_option_variable(row, name, sizeof(name));
		if (!strcmp(name, variable))
			return (int)row;
		spill_nearest_offer(&nearest, name, strlen(name));
	}
	offer_devices(&nearest, variable);
	if (found == -2) {
		spill_option_fail_range(error, SPILL_PART_SECTION, 0);
		return -2;
	}
	if (!strncmp(variable, "SPILL_RULE", 10))
		return spill_option_fail(error, SPILL_PART_SECTION, 0,
		                         "unknown variable; a rule is [rule NAME] in a policy file");
	return spill_option_fail(error, SPILL_PART_SECTION, 0, "unknown variable; the nearest is %s",
	                         nearest.best);
}

int spill_option_set(struct spill_policy *policy, const char *section, const char *key, const char *value,
                     struct spill_error *error)
{
	int slot = spill_option_find(section, key, error);

	return slot < 0 ? -1 : spill_option_put(policy, (unsigned)slot, value, error);
}
