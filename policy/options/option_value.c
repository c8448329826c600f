#include <string.h>

#include "amount.h"
#include "nearest.h"
#include "option_value.h"
#include "options.h"
#include "rule.h"
#include "text.h"

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

/* What a chunk is a multiple of: the vendor's granule for physical memory on every device so far. */
#define CHUNK_UNIT ((uint64_t)2 << 20)

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

static size_t word_count(const char *words)
{
	const char *item;
	size_t at = 0, length, count = 0;

	while (spill_option_item(words, &at, &item, &length))
		count++;
	return count;
}

static int say_bad_word(struct spill_error *error, const char *value, const char *word, size_t length,
                        const char *words)
{
	struct spill_text text = fail(error, value, word);
	struct spill_nearest nearest;
	const char *item;
	size_t at = 0, item_length;

	if (length) {
		spill_text_add(&text, "bad value ");
		spill_text_quote(&text, word, length);
	} else {
		spill_text_add(&text, "a value is missing");
	}
	spill_text_add(&text, "; it must be one of ");
	spill_text_add(&text, words);
	spill_nearest_begin(&nearest, word, length);
	while (spill_option_item(words, &at, &item, &item_length))
		spill_nearest_offer(&nearest, item, item_length);
	if (length && spill_nearest_word(&nearest)) {
		spill_text_add(&text, "; the nearest is ");
		spill_text_quote(&text, nearest.best, strlen(nearest.best));
	}
	return -1;
}

static int put_word(void *field, const char *words, const char *value, struct spill_error *error)
{
	int index = word_index(words, value, strlen(value));

	if (index < 0)
		return say_bad_word(error, value, value, strlen(value), words);
	*(unsigned *)field = (unsigned)index;
	return 0;
}

/* words: that of true, that of false */
static int put_switch(bool *field, const char *words, const char *value, struct spill_error *error)
{
	unsigned index = 0;

	if (put_word(&index, words, value, error))
		return -1;
	*field = index == 0;
	return 0;
}

static int put_over(enum spill_rule_place *field, const char *words, const char *value,
                    struct spill_error *error)
{
	unsigned index = 0;

	if (put_word(&index, words, value, error))
		return -1;
	*field = (enum spill_rule_place)(SPILL_RULE_SPLIT + index);
	return 0;
}

static int put_amount(struct spill_amount *field, unsigned allow, const char *value,
                      struct spill_error *error)
{
	size_t at = 0;
	const char *why = spill_amount_parse(value, allow, field, &at);

	return say_bad_number(error, "bad size ", value, at, why);
}

static int put_percent(struct spill_amount *field, const char *value, struct spill_error *error)
{
	struct spill_amount amount;

	if (put_amount(&amount, SPILL_ALLOW_PERCENT, value, error))
		return -1;
	if (amount.kind != SPILL_AMOUNT_PERCENT)
		return say_bad_number(error, "bad share ", value, strlen(value),
		                      "it must be a percentage, such as 50%");
	*field = amount;
	return 0;
}

static int put_chunk(struct spill_amount *field, const char *value, struct spill_error *error)
{
	struct spill_amount amount;

	if (put_amount(&amount, 0, value, error))
		return -1;
	if (!amount.value || amount.value % CHUNK_UNIT)
		return say_bad_number(
		    error, "bad size ", value, 0,
		    "it must be 2MiB or a multiple of it, because the device maps nothing smaller");
	*field = amount;
	return 0;
}

static int put_time(uint64_t *field, const char *value, struct spill_error *error)
{
	size_t at = 0;
	const char *why = spill_time_parse(value, field, &at);

	return say_bad_number(error, "bad time ", value, at, why);
}

static int put_number(unsigned *field, const char *value, struct spill_error *error)
{
	const char *why = value[0] ? NULL : "empty";
	uint64_t number = 0;
	size_t at = 0;

	for (; value[at] >= '0' && value[at] <= '9' && number <= UINT32_MAX; at++)
		number = number * 10 + (uint64_t)(value[at] - '0');
	if (number > UINT32_MAX)
		why = "too large";
	else if (value[at])
		why = "not a whole number";
	if (!why)
		*field = (unsigned)number;
	return say_bad_number(error, "bad number ", value, at, why);
}

/*
 * Reads a list into positions of `words`; an empty value is an empty list, an empty item an error.
 * Returns the count or -1 (pre: words has at most SPILL_STEPS items).
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
			return say_bad_word(error, value, item, length, words);
		for (int i = 0; i < count; i++) {
			if (index[i] == found)
				return say_twice(error, value, item, length);
		}
		index[count++] = found;
	}
	if (value[end - 1] == ',')
		return say_bad_word(error, value, value + end, 0, words);
	return count;
}

static int put_chain(struct spill_chain *field, const char *value, struct spill_error *error)
{
	int index[SPILL_STEPS] = {0}, count;

	if (!strcmp(value, "auto")) {
		*field = (struct spill_chain){.by_capability = true};
		return 0;
	}
	count = read_list(chain_words, value, index, error);
	if (count < 0)
		return -1;
	*field = (struct spill_chain){.count = (unsigned)count};
	for (int i = 0; i < count; i++)
		field->step[i] = (enum spill_step)index[i];
	return 0;
}

static int put_places(bool *fields, const char *words, const char *value, struct spill_error *error)
{
	int index[SPILL_STEPS] = {0}, count = read_list(words, value, index, error);

	if (count < 0)
		return -1;
	memset(fields, 0, word_count(words) * sizeof(*fields));
	for (int i = 0; i < count; i++)
		fields[index[i]] = true;
	return 0;
}

/* The first % that is no part of a pattern, or NULL. */
static const char *bad_pattern(const char *value)
{
	const char *percent = value;

	while ((percent = strchr(percent, '%'))) {
		if (!percent[1] || !strchr("hep%", percent[1]))
			return percent;
		percent += 2;
	}
	return NULL;
}

static int put_path(char *field, const char *value, struct spill_error *error)
{
	size_t length = strlen(value);
	const char *wrong = bad_pattern(value), *why = NULL;

	if (!length)
		why = "a path is missing; 'off' is no log";
	else if (value[0] == '~' && value[1] != '/')
		why = "only ~/ is expanded; write the whole path";
	else if (length >= SPILL_PATH_MAX)
		why = "the path is too long";
	else if (wrong)
		why = "a pattern knows only %h host, %e program, %p pid and %% for %";
	if (why) {
		struct spill_text text = fail(error, value, wrong ? wrong : value);

		spill_text_add(&text, why);
		return -1;
	}
	memcpy(field, value, length + 1);
	return 0;
}

int spill_option_put_field(const struct spill_option *row, void *field, const char *value,
                           struct spill_error *error)
{
	switch (row->kind) {
	case SPILL_OPTION_WORD:
		return put_word(field, row->values, value, error);
	case SPILL_OPTION_YESNO:
		return put_switch(field, "yes, no", value, error);
	case SPILL_OPTION_SIZE:
		return put_amount(field, 0, value, error);
	case SPILL_OPTION_SHARE:
		return put_amount(field, SPILL_ALLOW_PERCENT, value, error);
	case SPILL_OPTION_LIMIT:
		return put_amount(field, SPILL_ALLOW_PERCENT | SPILL_ALLOW_NONE, value, error);
	case SPILL_OPTION_PERCENT:
		return put_percent(field, value, error);
	case SPILL_OPTION_CHUNK:
		return put_chunk(field, value, error);
	case SPILL_OPTION_TIME:
		return put_time(field, value, error);
	case SPILL_OPTION_NUMBER:
		return put_number(field, value, error);
	case SPILL_OPTION_CHAIN:
		return put_chain(field, value, error);
	case SPILL_OPTION_PLACES:
		return put_places(field, row->values, value, error);
	case SPILL_OPTION_PATH:
		return put_path(field, value, error);
	case SPILL_OPTION_NODE:
		return spill_value_node(field, value, error);
	case SPILL_OPTION_ONOFF:
		return put_switch(field, "on, off", value, error);
	case SPILL_OPTION_BYTES:
		return spill_value_bytes(field, value, error);
	case SPILL_OPTION_RANGE:
		return spill_value_range(field, value, error);
	case SPILL_OPTION_DEVICES:
		return spill_value_devices(field, value, error);
	case SPILL_OPTION_GLOB:
	case SPILL_OPTION_SYMBOL:
	case SPILL_OPTION_NAME:
		return spill_value_glob(field, row->kind, value, error);
	case SPILL_OPTION_OVER:
		return put_over(field, row->values, value, error);
	}
	return -1;
}

int spill_option_put(struct spill_policy *policy, unsigned slot, const char *value, struct spill_error *error)
{
	return spill_option_put_field(spill_option_row(slot), spill_option_field(policy, slot), value, error);
}

void spill_policy_default(struct spill_policy *policy)
{
	struct spill_error ignored; /* the unit tests set every row's default and expect no error */

	memset(policy, 0, sizeof(*policy));
	for (unsigned slot = 0; slot < SPILL_OPTIONS; slot++) {
		const struct spill_option *row = spill_option_row(slot);

		/* The default path is a pattern of the shell's kind; an empty field stands for it. */
		if (row->kind != SPILL_OPTION_PATH)
			spill_option_put(policy, slot, row->initial, &ignored);
	}
}
