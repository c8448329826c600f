#include <string.h>

#include "nearest.h"
#include "options.h"
#include "text.h"

static const struct spill_option rows[] = {
#define OPTION(section, key, kind, field, words, initial, meaning) \
	{section, key, SPILL_OPTION_##kind, words, initial, meaning, offsetof(struct spill_policy, field)},
#define PLANNED(section, key, values, initial, meaning) \
	{section, key, SPILL_OPTION_PLANNED, values, initial, meaning, 0},
#include "options.def"
};

static const char planned[] = " is not implemented yet in this version";

static int slot_device(unsigned slot)
{
	return slot < SPILL_OPTIONS ? -1 : (int)(slot - SPILL_OPTIONS);
}

static bool row_is(unsigned row, const char *section, const char *key)
{
	return !strcmp(rows[row].section, section) && !strcmp(rows[row].key, key);
}

/* Row of `[device] limit`, the one that `[device N]` can override. */
static unsigned device_limit_row(void)
{
	unsigned row = 0;

	while (!row_is(row, "device", "limit"))
		row++;
	return row;
}

const struct spill_option *spill_option_row(unsigned slot)
{
	return &rows[slot < SPILL_OPTIONS ? slot : device_limit_row()];
}

static struct spill_text fail(struct spill_error *error, enum spill_option_part part, size_t offset)
{
	error->part = part;
	error->offset = offset;
	return spill_text_begin(error->text, sizeof(error->text));
}

/* Digits of a device number, without a sign or leading zeros: its value, SPILL_DEVICES if too large, or -1. */
static int device_number(const char *text, size_t length)
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

static void say_out_of_range(struct spill_text *text)
{
	spill_text_add(text, "the device number is out of range: 0 to ");
	spill_text_number(text, SPILL_DEVICES - 1);
}

/* `[device N]`: the number; -1 if the section is another; -2 and why not. */
static int section_device(const char *section, struct spill_error *error)
{
	static const char prefix[] = "device ";
	size_t start = sizeof(prefix) - 1;

	if (strncmp(section, prefix, start))
		return -1;
	while (section[start] == ' ')
		start++;

	int number = device_number(section + start, strlen(section + start));
	struct spill_text text;

	if (number >= 0 && number < SPILL_DEVICES)
		return number;
	text = fail(error, SPILL_PART_SECTION, start);
	if (number < 0) {
		spill_text_add(&text, "bad device number ");
		spill_text_quote(&text, section + start, strlen(section + start));
		spill_text_add(&text, ": write [device 1]");
	} else {
		say_out_of_range(&text);
	}
	return -2;
}

static bool section_known(const char *section)
{
	for (unsigned row = 0; row < SPILL_OPTIONS; row++) {
		if (!strcmp(rows[row].section, section))
			return true;
	}
	return false;
}

/* [rule NAME] and [app NAME]: the word before the name. */
static bool section_planned(const char *section)
{
	size_t length = strcspn(section, " ");

	return (length == 4 && !memcmp(section, "rule", 4)) || (length == 3 && !memcmp(section, "app", 3));
}

int spill_option_section(const char *section, struct spill_error *error)
{
	struct spill_nearest nearest;
	struct spill_text text;
	int device = section_device(section, error);

	if (device != -1)
		return device < 0 ? -1 : 0;
	if (section_planned(section)) {
		text = fail(error, SPILL_PART_SECTION, 0);
		spill_text_add(&text, "section [");
		spill_text_bytes(&text, section, strcspn(section, " "));
		spill_text_add(&text, " NAME]");
		spill_text_add(&text, planned);
		return -1;
	}
	if (section_known(section))
		return 0;
	text = fail(error, SPILL_PART_SECTION, 0);
	spill_text_add(&text, "unknown section ");
	spill_text_quote(&text, section, strlen(section));
	spill_nearest_begin(&nearest, section, strlen(section));
	for (unsigned row = 0; row < SPILL_OPTIONS; row++)
		spill_nearest_offer(&nearest, rows[row].section, strlen(rows[row].section));
	if (spill_nearest_word(&nearest)) {
		spill_text_add(&text, "; the nearest is [");
		spill_text_add(&text, spill_nearest_word(&nearest));
		spill_text_add(&text, "]");
	}
	return -1;
}

static int say_planned(unsigned row, struct spill_error *error)
{
	struct spill_text text = fail(error, SPILL_PART_KEY, 0);

	spill_text_add(&text, rows[row].section);
	spill_text_add(&text, ".");
	spill_text_add(&text, rows[row].key);
	spill_text_add(&text, planned);
	return -1;
}

/* Names what the user may have meant: the key of another section, else the nearest of this one. */
static int say_unknown_key(const char *section, const char *key, struct spill_error *error)
{
	struct spill_text text = fail(error, SPILL_PART_KEY, 0);
	struct spill_nearest nearest;

	spill_text_add(&text, "unknown key ");
	spill_text_quote(&text, key, strlen(key));
	spill_text_add(&text, " in [");
	spill_text_add(&text, section);
	spill_text_add(&text, "]; the nearest is ");
	for (unsigned row = 0; row < SPILL_OPTIONS; row++) {
		if (strcmp(rows[row].key, key) || rows[row].kind == SPILL_OPTION_PLANNED)
			continue;
		spill_text_add(&text, "'");
		spill_text_add(&text, key);
		spill_text_add(&text, "' in [");
		spill_text_add(&text, rows[row].section);
		spill_text_add(&text, "]");
		return -1;
	}
	spill_nearest_begin(&nearest, key, strlen(key));
	for (unsigned row = 0; row < SPILL_OPTIONS; row++) {
		if (!strcmp(rows[row].section, section))
			spill_nearest_offer(&nearest, rows[row].key, strlen(rows[row].key));
	}
	spill_text_quote(&text, nearest.best, strlen(nearest.best));
	return -1;
}

int spill_option_find(const char *section, const char *key, struct spill_error *error)
{
	int device = section_device(section, error);

	if (spill_option_section(section, error))
		return -1;
	if (device >= 0) {
		if (!strcmp(key, "limit"))
			return SPILL_OPTIONS + device;

		struct spill_text text = fail(error, SPILL_PART_KEY, 0);

		spill_text_quote(&text, key, strlen(key));
		spill_text_add(&text, " cannot be set for one device; the nearest is 'limit'");
		return -1;
	}
	for (unsigned row = 0; row < SPILL_OPTIONS; row++) {
		if (row_is(row, section, key))
			return rows[row].kind == SPILL_OPTION_PLANNED ? say_planned(row, error) : (int)row;
	}
	return say_unknown_key(section, key, error);
}

void spill_option_name(unsigned slot, char *buffer, size_t size)
{
	struct spill_text text = spill_text_begin(buffer, size);
	int device = slot_device(slot);

	spill_text_add(&text, spill_option_row(slot)->section);
	if (device >= 0) {
		spill_text_add(&text, " ");
		spill_text_number(&text, (uint64_t)device);
	}
	spill_text_add(&text, ".");
	spill_text_add(&text, spill_option_row(slot)->key);
}

/* ASCII only: toupper follows the host program's locale. */
static void add_upper(struct spill_text *text, const char *word)
{
	for (; *word; word++) {
		char c = *word >= 'a' && *word <= 'z' ? (char)(*word - 'a' + 'A') : *word;

		spill_text_bytes(text, &c, 1);
	}
}

void spill_option_variable(unsigned slot, char *buffer, size_t size)
{
	const struct spill_option *row = spill_option_row(slot);
	struct spill_text text = spill_text_begin(buffer, size);
	int device = slot_device(slot);

	spill_text_add(&text, "SPILL_");
	if (strcmp(row->section, "spill")) {
		add_upper(&text, row->section);
		spill_text_add(&text, "_");
	}
	if (device >= 0) {
		spill_text_number(&text, (uint64_t)device);
		spill_text_add(&text, "_");
	}
	add_upper(&text, row->key);
}

/* SPILL_DEVICE_<N>_LIMIT: the number; -1 if the name is of another form. */
static int variable_device(const char *variable)
{
	static const char before[] = "SPILL_DEVICE_", after[] = "_LIMIT";
	const char *number = variable + sizeof(before) - 1;

	if (strncmp(variable, before, sizeof(before) - 1))
		return -1;

	size_t digits = strspn(number, "0123456789");

	return strcmp(number + digits, after) ? -1 : device_number(number, digits);
}

int spill_option_find_variable(const char *variable, struct spill_error *error)
{
	static const char *const others[] = {"SPILL_POLICY", "SPILL_LOG"};
	struct spill_nearest nearest;
	struct spill_text text;
	char name[64];
	int device = variable_device(variable);

	if (device >= 0 && device < SPILL_DEVICES)
		return SPILL_OPTIONS + device;
	spill_nearest_begin(&nearest, variable, strlen(variable));
	for (unsigned i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		spill_nearest_offer(&nearest, others[i], strlen(others[i]));
	for (unsigned row = 0; row < SPILL_OPTIONS; row++) {
		if (section_planned(rows[row].section))
			continue;
		spill_option_variable(row, name, sizeof(name));
		if (!strcmp(name, variable)) {
			if (rows[row].kind != SPILL_OPTION_PLANNED)
				return (int)row;
			say_planned(row, error);
			return -2;
		}
		spill_nearest_offer(&nearest, name, strlen(name));
	}
	text = fail(error, SPILL_PART_SECTION, 0);
	if (device == SPILL_DEVICES) {
		say_out_of_range(&text);
		return -2;
	}
	spill_text_add(&text, "unknown variable; the nearest is ");
	spill_text_add(&text, nearest.best);
	return -1;
}

int spill_option_set(struct spill_policy *policy, const char *section, const char *key, const char *value,
                     struct spill_error *error)
{
	int slot = spill_option_find(section, key, error);

	return slot < 0 ? -1 : spill_option_put(policy, (unsigned)slot, value, error);
}
