/* Values that only rules have. */
#include <string.h>

#include "amount.h"
#include "option_value.h"
#include "rule.h"

int spill_value_bytes(uint64_t *field, const char *value, struct spill_error *error)
{
	struct spill_amount amount;
	size_t at = 0;
	const char *why = spill_amount_parse(value, 0, &amount, &at);

	if (say_bad_number(error, "bad size ", value, at, why))
		return -1;
	*field = amount.value;
	return 0;
}

/* One end of a range, `length` bytes of value + start; what is missing leaves *end as it is. */
static const char *read_end(const char *value, size_t start, size_t length, uint64_t *end, size_t *at)
{
	char text[64];
	struct spill_amount amount;
	const char *why;

	*at = start;
	if (!length)
		return NULL;
	if (length >= sizeof(text))
		return "the number is too long";
	memcpy(text, value + start, length);
	text[length] = '\0';
	why = spill_amount_parse(text, 0, &amount, at);
	*at += start;
	if (!why)
		*end = amount.value;
	return why;
}

/* Behind what was wrong with an end: how a range is written. */
static int say_forms(struct spill_error *error)
{
	struct spill_text text = {error->text, sizeof(error->text), strlen(error->text)};

	spill_text_add(&text, "; write 1MiB..2GiB, 1MiB.. or ..2GiB");
	return -1;
}

int spill_value_range(uint64_t *fields, const char *value, struct spill_error *error)
{
	const char *dots = strstr(value, "..");
	uint64_t least = 0, most = SPILL_UNLIMITED;
	size_t at = 0, first;
	const char *why;

	if (!dots) {
		if (spill_value_bytes(fields, value, error))
			return say_forms(error);
		fields[1] = fields[0];
		return 0;
	}
	first = (size_t)(dots - value);
	why = read_end(value, 0, first, &least, &at);
	if (!why)
		why = read_end(value, first + 2, strlen(dots + 2), &most, &at);
	if (!why && !value[2] && !first)
		why = "one of its ends must be there";
	if (say_bad_number(error, "bad range ", value, at, why))
		return say_forms(error);
	if (least > most)
		return say_bad_number(error, "bad range ", value, 0,
		                      "it is empty: the first end is more than the second");
	fields[0] = least;
	fields[1] = most;
	return 0;
}

/* number: as spill_option_device has it */
static int say_bad_device(struct spill_error *error, const char *value, const char *item, size_t length,
                          int number)
{
	struct spill_text text = fail(error, value, item);

	if (number < 0) {
		spill_text_add(&text, "bad device number ");
		spill_text_quote(&text, item, length);
		spill_text_add(&text, ": write 0 or 0, 2");
	} else {
		spill_option_add_out_of_range(&text);
	}
	return -1;
}

int spill_value_devices(uint32_t *field, const char *value, struct spill_error *error)
{
	const char *item;
	size_t at = 0, length, end = strlen(value);
	uint32_t devices = 0;

	/* An empty item, also behind the last comma, is no number. */
	do {
		bool more = spill_option_item(value, &at, &item, &length);
		int number;

		if (!more) {
			item = value + end;
			length = 0;
		}
		number = spill_option_device(item, length);
		if (number < 0 || number >= SPILL_DEVICES)
			return say_bad_device(error, value, item, length, number);
		if (devices >> number & 1)
			return say_twice(error, value, item, length);
		devices |= (uint32_t)1 << number;
	} while (value[at] || (at && value[at - 1] == ','));
	*field = devices;
	return 0;
}

/* Why a pattern has what no name of its kind has, so that nothing would ever match, and where; NULL if it may match. */
static const char *never_matches(enum spill_option_kind kind, const char *value, size_t *at)
{
	static const char symbol[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_*?";
	const char *slash = strchr(value, '/');

	if (kind == SPILL_OPTION_SYMBOL) {
		*at = strspn(value, symbol);
		return value[*at] ? "a function's name has only letters, digits and '_'; write one pattern"
		                  : NULL;
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

int spill_value_glob(char *field, enum spill_option_kind kind, const char *value, struct spill_error *error)
{
	const char *why;
	size_t at = 0;

	if (!*value)
		why = "a pattern is missing; '*' is any";
	else if (strlen(value) >= SPILL_RULE_GLOB)
		why = "the pattern is too long: at most 255 bytes";
	else
		why = never_matches(kind, value, &at);
	if (why) {
		struct spill_text text = fail(error, value, value + at);

		spill_text_add(&text, why);
		return -1;
	}
	memcpy(field, value, strlen(value) + 1);
	return 0;
}
