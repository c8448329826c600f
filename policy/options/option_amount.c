/* Kinds of options whose values are numbers: sizes, shares, times, ranges, nodes, devices. */
#include <string.h>

#include "option_kind.h"
#include "rule.h"

/* A chunk is a multiple of it: the granule for physical memory of each device so far. */
#define CHUNK_UNIT ((uint64_t)2 << 20)

_Static_assert(SPILL_NODES == 1024, "as the message says");

static int put_percent(struct spill_amount *field, const struct spill_amount *amount, const char *value,
                       struct spill_error *error)
{
	if (amount->kind != SPILL_AMOUNT_PERCENT)
		return spill_option_fail_at(error, "bad share ", value, strlen(value),
		                            "it must be a percentage, such as 50%");
	*field = *amount;
	return 0;
}

static int put_chunk(struct spill_amount *field, const struct spill_amount *amount, const char *value,
                     struct spill_error *error)
{
	if (!amount->value || amount->value % CHUNK_UNIT)
		return spill_option_fail_at(
		    error, "bad size ", value, 0,
		    "it must be 2MiB or a multiple of it, because the device maps nothing smaller");
	*field = *amount;
	return 0;
}

int spill_put_amount(const struct spill_option *row, void *field, const char *value,
                     struct spill_error *error)
{
	static const unsigned allow[] = {
	    [SPILL_OPTION_SHARE] = SPILL_ALLOW_PERCENT,
	    [SPILL_OPTION_LIMIT] = SPILL_ALLOW_PERCENT | SPILL_ALLOW_NONE,
	    [SPILL_OPTION_PERCENT] = SPILL_ALLOW_PERCENT,
	    [SPILL_OPTION_CHUNK] = 0, /* the last kind that is an amount */
	};
	struct spill_amount amount;
	size_t at = 0;
	const char *why = spill_amount_parse(value, allow[row->kind], &amount, &at);

	if (why)
		return spill_option_fail_at(error, "bad size ", value, at, why);
	if (row->kind == SPILL_OPTION_PERCENT)
		return put_percent(field, &amount, value, error);
	if (row->kind == SPILL_OPTION_CHUNK)
		return put_chunk(field, &amount, value, error);
	*(struct spill_amount *)field = amount;
	return 0;
}

void spill_add_amount(struct spill_text *text, const struct spill_option *row, const void *field)
{
	char buffer[32];

	spill_amount_format(*(const struct spill_amount *)field, buffer, sizeof(buffer));
	spill_text_add(text, buffer);
}

int spill_put_time(const struct spill_option *row, void *field, const char *value, struct spill_error *error)
{
	size_t at = 0;
	const char *why = spill_time_parse(value, field, &at);

	return spill_option_fail_at(error, "bad time ", value, at, why);
}

void spill_add_time(struct spill_text *text, const struct spill_option *row, const void *field)
{
	char buffer[32];

	spill_time_format(*(const uint64_t *)field, buffer, sizeof(buffer));
	spill_text_add(text, buffer);
}

int spill_put_number(const struct spill_option *row, void *field, const char *value,
                     struct spill_error *error)
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
		*(unsigned *)field = (unsigned)number;
	return spill_option_fail_at(error, "bad number ", value, at, why);
}

void spill_add_number(struct spill_text *text, const struct spill_option *row, const void *field)
{
	spill_text_number(text, *(const unsigned *)field);
}

int spill_put_node(const struct spill_option *row, void *field, const char *value, struct spill_error *error)
{
	size_t at = 0;
	int node = 0;

	if (!strcmp(value, "nearest")) {
		*(int *)field = SPILL_NODE_NEAREST;
		return 0;
	}
	for (; value[at] >= '0' && value[at] <= '9'; at++)
		node = node < SPILL_NODES ? node * 10 + (value[at] - '0') : SPILL_NODES;
	if (value[at] || !at || node >= SPILL_NODES || (value[0] == '0' && at > 1))
		return spill_option_fail_at(error, "bad node ", value, value[at] ? at : 0,
		                            "it must be nearest, or a number from 0 to 1023");
	*(int *)field = node;
	return 0;
}

void spill_add_node(struct spill_text *text, const struct spill_option *row, const void *field)
{
	const int *node = field;

	if (*node == SPILL_NODE_NEAREST)
		spill_text_add(text, row->initial);
	else
		spill_text_number(text, (uint64_t)*node);
}

int spill_put_bytes(const struct spill_option *row, void *field, const char *value, struct spill_error *error)
{
	struct spill_amount amount;
	size_t at = 0;
	const char *why = spill_amount_parse(value, 0, &amount, &at);

	if (!why)
		*(uint64_t *)field = amount.value;
	return spill_option_fail_at(error, "bad size ", value, at, why);
}

void spill_add_bytes(struct spill_text *text, const struct spill_option *row, const void *field)
{
	spill_add_amount(text, row, &(struct spill_amount){SPILL_AMOUNT_BYTES, *(const uint64_t *)field});
}

/*
 * Reads one end of a range: `length` bytes of value + start. A missing end leaves *end unchanged.
 */
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

/* Adds the forms of a range to the message. */
static int add_range_forms(struct spill_error *error)
{
	struct spill_text text = {error->text, sizeof(error->text), strlen(error->text)};

	spill_text_add(&text, "; write 1MiB..2GiB, 1MiB.. or ..2GiB");
	return -1;
}

int spill_put_range(const struct spill_option *row, void *field, const char *value, struct spill_error *error)
{
	const char *dots = strstr(value, ".."), *why;
	uint64_t least = 0, most = SPILL_UNLIMITED, *ends = field;
	size_t at = 0, first;

	if (!dots) {
		if (spill_put_bytes(row, ends, value, error))
			return add_range_forms(error);
		ends[1] = ends[0];
		return 0;
	}
	first = (size_t)(dots - value);
	why = read_end(value, 0, first, &least, &at);
	if (!why)
		why = read_end(value, first + 2, strlen(dots + 2), &most, &at);
	if (!why && !value[2] && !first)
		why = "one of its ends must be there";
	if (spill_option_fail_at(error, "bad range ", value, at, why))
		return add_range_forms(error);
	if (least > most)
		return spill_option_fail_at(error, "bad range ", value, 0,
		                            "it is empty: the first end is more than the second");
	ends[0] = least;
	ends[1] = most;
	return 0;
}

void spill_add_range(struct spill_text *text, const struct spill_option *row, const void *field)
{
	const uint64_t *ends = field;

	if (ends[0] || ends[1] == SPILL_UNLIMITED || ends[1] == 0)
		spill_add_bytes(text, row, &ends[0]);
	if (ends[0] == ends[1])
		return;
	spill_text_add(text, "..");
	if (ends[1] != SPILL_UNLIMITED)
		spill_add_bytes(text, row, &ends[1]);
}

/* number: the result of spill_option_device */
static int fail_device(struct spill_error *error, const char *value, const char *item, size_t length,
                       int number)
{
	size_t at = (size_t)(item - value);

	return number < 0
	           ? spill_option_fail(error, SPILL_PART_VALUE, at, "bad device number %s: write 0 or 0, 2",
	                               spill_quote(item, length).text)
	           : spill_option_fail_range(error, SPILL_PART_VALUE, at);
}

int spill_put_devices(const struct spill_option *row, void *field, const char *value,
                      struct spill_error *error)
{
	const char *item;
	size_t at = 0, length;
	uint32_t devices = 0;

	/* An empty item is an error, also behind the last comma. */
	do {
		if (!spill_option_item(value, &at, &item, &length)) {
			item = value + strlen(value);
			length = 0;
		}

		int number = spill_option_device(item, length);

		if (number < 0 || number >= SPILL_DEVICES)
			return fail_device(error, value, item, length, number);
		if (devices >> number & 1)
			return spill_option_fail_twice(error, value, item, length);
		devices |= (uint32_t)1 << number;
	} while (value[at] || (at && value[at - 1] == ','));
	*(uint32_t *)field = devices;
	return 0;
}

void spill_add_devices(struct spill_text *text, const struct spill_option *row, const void *field)
{
	const uint32_t *devices = field;

	for (uint32_t left = *devices; left; left &= left - 1)
		spill_text_format(text, "%s%u", left == *devices ? "" : ", ", (unsigned)__builtin_ctz(left));
}
