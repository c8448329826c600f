/* Kinds of options whose values are words, lists of words, paths and patterns. */
#include <string.h>

#include "nearest.h"
#include "option_kind.h"
#include "rule.h"

_Static_assert(sizeof(enum spill_mode) == sizeof(unsigned) &&
                   sizeof(enum spill_location) == sizeof(unsigned) &&
                   sizeof(enum spill_log_level) == sizeof(unsigned) &&
                   sizeof(enum spill_honest_first) == sizeof(unsigned) &&
                   sizeof(enum spill_switch) == sizeof(unsigned) &&
                   sizeof(enum spill_meminfo_report) == sizeof(unsigned) &&
                   sizeof(enum spill_rule_place) == sizeof(unsigned) &&
                   sizeof(enum spill_priority) == sizeof(unsigned) &&
                   sizeof(enum spill_log_stderr) == sizeof(unsigned),
               "a WORD is stored as an unsigned");
_Static_assert(offsetof(struct spill_policy, advice.accessed_by_host) ==
                   offsetof(struct spill_policy, advice.accessed_by_device) + sizeof(bool),
               "the fields of a PLACES row are consecutive");

/* Steps of oom.chain in the order of enum spill_step. */
static const char chain_words[] = "trim, demote, split, managed, host";

bool spill_option_item(const char *list, size_t *at, const char **item, size_t *length)
{
	const char *start = list + *at;

	if (!*start)
		return false;
	start += strspn(start, " \t");
	*item = start;
	*length = strcspn(start, ",");
	*at = (size_t)(start - list) + *length;
	if (list[*at] == ',')
		++*at;
	while (*length && strchr(" \t", start[*length - 1]))
		--*length;
	return true;
}

/* Position of a word in a list of words, or -1. */
static int word_index(const char *words, const char *word, size_t length)
{
	const char *item;
	size_t at = 0, item_length;

	for (int i = 0; spill_option_item(words, &at, &item, &item_length); i++) {
		if (item_length == length && !memcmp(item, word, length))
			return i;
	}
	return -1;
}

static int fail_word(struct spill_error *error, const char *value, const char *word, size_t length,
                     const char *words)
{
	size_t at = 0, item_length, offset = (size_t)(word - value);
	struct spill_nearest nearest;
	const char *item;

	if (!length)
		return spill_option_fail(error, SPILL_PART_VALUE, offset,
		                         "a value is missing; it must be one of %s", words);
	spill_nearest_begin(&nearest, word, length);
	while (spill_option_item(words, &at, &item, &item_length))
		spill_nearest_offer(&nearest, item, item_length);
	item = spill_nearest_word(&nearest);
	return spill_option_fail(error, SPILL_PART_VALUE, offset, "bad value %s; it must be one of %s%s%s",
	                         spill_quote(word, length).text, words, item ? "; the nearest is " : "",
	                         item ? spill_quote(item, strlen(item)).text : "");
}

/* Some options have on and off, and some yes and no. Nobody has to know which. "": no such word. */
static const char *other_word(const char *value)
{
	static const char *const pairs[][2] = {{"on", "yes"}, {"off", "no"}};

	for (size_t i = 0; i < 4; i++) {
		if (!strcmp(value, pairs[i / 2][i % 2]))
			return pairs[i / 2][1 - i % 2];
	}
	return "";
}

/* Position of the whole value in `words`, or -1 and the message. */
static int read_word(const char *words, const char *value, struct spill_error *error)
{
	int index = word_index(words, value, strlen(value));

	if (index < 0)
		index = word_index(words, other_word(value), strlen(other_word(value)));
	return index < 0 ? fail_word(error, value, value, strlen(value), words) : index;
}

static void add_word(struct spill_text *text, const char *words, unsigned index)
{
	const char *item = "";
	size_t at = 0, length = 0;

	for (unsigned i = 0; i <= index; i++)
		spill_option_item(words, &at, &item, &length);
	spill_text_bytes(text, item, length);
}

/* The value of the first word. */
static unsigned first_value(const struct spill_option *row)
{
	return row->kind == SPILL_OPTION_OVER ? SPILL_RULE_SPLIT : 0;
}

int spill_put_word(const struct spill_option *row, void *field, const char *value, struct spill_error *error)
{
	int index = read_word(row->values, value, error);

	if (index < 0)
		return -1;
	*(unsigned *)field = first_value(row) + (unsigned)index;
	return 0;
}

void spill_add_word(struct spill_text *text, const struct spill_option *row, const void *field)
{
	add_word(text, row->values, *(const unsigned *)field - first_value(row));
}

/* Of true, of false. */
static const char *bool_words(const struct spill_option *row)
{
	return row->kind == SPILL_OPTION_ONOFF ? "on, off" : "yes, no";
}

int spill_put_bool(const struct spill_option *row, void *field, const char *value, struct spill_error *error)
{
	int index = read_word(bool_words(row), value, error);

	if (index < 0)
		return -1;
	*(bool *)field = index == 0;
	return 0;
}

void spill_add_bool(struct spill_text *text, const struct spill_option *row, const void *field)
{
	add_word(text, bool_words(row), !*(const bool *)field);
}

/*
 * Reads a list into positions of `words`. An empty value is an empty list; an empty item is an
 * error. Returns the count, or -1. pre: `words` has at most SPILL_STEPS items
 */
static int read_list(const char *words, const char *value, int index[SPILL_STEPS], struct spill_error *error)
{
	const char *item;
	size_t at = 0, length, end = strlen(value);
	int count = 0;

	if (!value[strspn(value, " \t")])
		return 0;
	while (spill_option_item(value, &at, &item, &length)) {
		int found = word_index(words, item, length);

		if (found < 0)
			return fail_word(error, value, item, length, words);
		for (int i = 0; i < count; i++) {
			if (index[i] == found)
				return spill_option_fail_twice(error, value, item, length);
		}
		index[count++] = found;
	}
	if (value[end - 1] == ',')
		return fail_word(error, value, value + end, 0, words);
	return count;
}

int spill_put_chain(const struct spill_option *row, void *field, const char *value, struct spill_error *error)
{
	struct spill_fallback_chain *chain = field;
	int index[SPILL_STEPS] = {0}, count;

	if (!strcmp(value, "auto")) {
		*chain = (struct spill_fallback_chain){.by_capability = true};
		return 0;
	}
	count = read_list(chain_words, value, index, error);
	if (count < 0)
		return -1;
	*chain = (struct spill_fallback_chain){.count = (unsigned)count};
	for (int i = 0; i < count; i++)
		chain->step[i] = (enum spill_step)index[i];
	return 0;
}

void spill_add_chain(struct spill_text *text, const struct spill_option *row, const void *field)
{
	const struct spill_fallback_chain *chain = field;

	if (chain->by_capability)
		spill_text_add(text, "auto");
	for (unsigned i = 0; i < chain->count; i++)
		spill_text_format(text, "%s%s", i ? ", " : "", spill_step_name(chain->step[i]));
}

int spill_put_places(const struct spill_option *row, void *field, const char *value,
                     struct spill_error *error)
{
	int index[SPILL_STEPS] = {0}, count = read_list(row->values, value, index, error);
	bool *places = field;
	const char *item;
	size_t at = 0, length;

	if (count < 0)
		return -1;
	while (spill_option_item(row->values, &at, &item, &length))
		*places++ = false;
	for (int i = 0; i < count; i++)
		((bool *)field)[index[i]] = true;
	return 0;
}

void spill_add_places(struct spill_text *text, const struct spill_option *row, const void *field)
{
	const char *item;
	bool first = true;
	size_t at = 0, length;

	for (const bool *place = field; spill_option_item(row->values, &at, &item, &length); place++) {
		if (!*place)
			continue;
		spill_text_add(text, first ? "" : ", ");
		spill_text_bytes(text, item, length);
		first = false;
	}
}

/* The first % that is no part of a pattern, or NULL. */
static const char *bad_pattern(const char *value)
{
	const char *percent = value;

	while ((percent = strchr(percent, '%'))) {
		if (!percent[1] || !strchr("hepjt%", percent[1]))
			return percent;
		percent += 2;
	}
	return NULL;
}

/* Copies a value with its end. If `why` is set: fails at `wrong`. */
static int put_string(char *field, const char *value, const char *wrong, const char *why,
                      struct spill_error *error)
{
	if (why)
		return spill_option_fail(error, SPILL_PART_VALUE, (size_t)(wrong - value), "%s", why);
	memcpy(field, value, strlen(value) + 1);
	return 0;
}

int spill_put_path(const struct spill_option *row, void *field, const char *value, struct spill_error *error)
{
	const char *wrong = bad_pattern(value), *why = NULL;

	if (!*value)
		why = "a path is missing; 'off' is no log";
	else if (value[0] == '~' && value[1] != '/')
		why = "only ~/ is expanded; write the whole path";
	else if (strlen(value) >= SPILL_PATH_MAX)
		why = "the path is too long";
	else if (wrong)
		why = "a pattern knows only %h host, %e program, %p pid, %j job, %t rank and %% for %";
	return put_string(field, value, wrong ? wrong : value, why, error);
}

void spill_add_path(struct spill_text *text, const struct spill_option *row, const void *field)
{
	spill_text_add(text, *(const char *)field ? field : row->initial);
}

/* Why no name of its kind can match the pattern, and where; NULL if one can. */
static const char *never_matches(enum spill_option_kind kind, const char *value, size_t *at)
{
	static const char symbol[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_*?";
	const char *slash = strchr(value, '/'), *comma = strchr(value, ',');

	if (kind == SPILL_OPTION_SYMBOL) {
		*at = strspn(value, symbol);
		return value[*at] ? "a function's name has only letters, digits and '_'; write one pattern"
		                  : NULL;
	}
	if (comma) {
		*at = (size_t)(comma - value);
		return "one pattern and no list: write a rule for each; a '?' matches a comma in a name";
	}
	if (!slash)
		return NULL;
	if (kind == SPILL_OPTION_NAME) {
		*at = (size_t)(slash - value);
		return "a program's name has no folder";
	}
	if (strchr("/*?", *value))
		return NULL;
	return "a pattern with a '/' is compared with the whole path: begin it with '/' or '*/'";
}

int spill_put_glob(const struct spill_option *row, void *field, const char *value, struct spill_error *error)
{
	const char *why;
	size_t at = 0;

	if (!*value)
		why = "a pattern is missing; '*' is any";
	else if (strlen(value) >= SPILL_RULE_GLOB)
		why = "the pattern is too long: at most 255 bytes";
	else
		why = never_matches(row->kind, value, &at);
	return put_string(field, value, value + at, why, error);
}

void spill_add_glob(struct spill_text *text, const struct spill_option *row, const void *field)
{
	spill_text_add(text, field);
}
