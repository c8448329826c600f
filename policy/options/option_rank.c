/* The kind of options whose value is a list of ranks: 0, 8..15, 32.. */
#include <string.h>

#include "option_kind.h"
#include "rule.h"

/* One end of a range. A missing one leaves *end unchanged. False: it is no rank. */
static bool read_end(const char *text, size_t length, uint32_t *end)
{
	uint64_t number = 0;

	if (!length)
		return true;
	if (length > 9) /* fewer than UINT32_MAX, and far more than any job has */
		return false;
	for (size_t i = 0; i < length; i++) {
		if (text[i] < '0' || text[i] > '9')
			return false;
		number = number * 10 + (uint64_t)(text[i] - '0');
	}
	*end = (uint32_t)number;
	return true;
}

/* NULL, or the reason why the item is no rank or range. */
static const char *read_item(const char *item, size_t length, struct spill_rank_range *range)
{
	static const char forms[] = "write 0, 8..15, 8.. or ..15";
	const char *dots = memmem(item, length, "..", 2);
	size_t first = dots ? (size_t)(dots - item) : length, second = dots ? length - first - 2 : 0;

	*range = (struct spill_rank_range){0, SPILL_RULE_LAST_RANK};
	if ((!first && !second) || !read_end(item, first, &range->first) ||
	    (dots && !read_end(dots + 2, second, &range->last)))
		return forms;
	if (!dots)
		range->last = range->first;
	return range->first > range->last ? "it is empty: the first rank is more than the last" : NULL;
}

int spill_put_ranks(const struct spill_option *row, void *field, const char *value, struct spill_error *error)
{
	struct spill_rule_ranks ranks = {0};
	const char *item;
	size_t at = 0, length;

	(void)row;
	/* An empty item is an error, also behind the last comma. */
	do {
		struct spill_rank_range range;
		const char *why;

		if (!spill_option_item(value, &at, &item, &length)) {
			item = value + strlen(value);
			length = 0;
		}
		why = read_item(item, length, &range);
		if (why)
			return spill_option_fail(error, SPILL_PART_VALUE, (size_t)(item - value),
			                         "bad rank %s: %s", spill_quote(item, length).text, why);
		if (ranks.count == SPILL_RULE_RANKS)
			return spill_option_fail(error, SPILL_PART_VALUE, (size_t)(item - value),
			                         "a list has at most %u ranks and ranges",
			                         (unsigned)SPILL_RULE_RANKS);
		ranks.range[ranks.count++] = range;
	} while (value[at] || (at && value[at - 1] == ','));
	*(struct spill_rule_ranks *)field = ranks;
	return 0;
}

void spill_add_ranks(struct spill_text *text, const struct spill_option *row, const void *field)
{
	const struct spill_rule_ranks *ranks = field;

	(void)row;
	for (unsigned i = 0; i < ranks->count; i++) {
		const struct spill_rank_range *range = &ranks->range[i];

		spill_text_format(text, "%s%u", i ? ", " : "", (unsigned)range->first);
		if (range->last == SPILL_RULE_LAST_RANK)
			spill_text_add(text, "..");
		else if (range->last != range->first)
			spill_text_format(text, "..%u", (unsigned)range->last);
	}
}
