#include <string.h>

#include "amount.h"
#include "options.h"
#include "rule.h"
#include "text.h"

bool spill_option_present(const struct spill_policy *policy, unsigned slot)
{
	return slot < SPILL_OPTIONS ||
	       ((const struct spill_amount *)spill_option_value(policy, slot))->kind != SPILL_AMOUNT_NONE;
}

static void add_word(struct spill_text *text, const char *words, unsigned index)
{
	const char *item = "";
	size_t at = 0, length = 0;

	for (unsigned i = 0; i <= index; i++)
		spill_option_item(words, &at, &item, &length);
	spill_text_bytes(text, item, length);
}

static void add_amount(struct spill_text *text, const struct spill_amount *amount)
{
	char buffer[32];

	spill_amount_format(*amount, buffer, sizeof(buffer));
	spill_text_add(text, buffer);
}

static void add_time(struct spill_text *text, uint64_t us)
{
	char buffer[32];

	spill_time_format(us, buffer, sizeof(buffer));
	spill_text_add(text, buffer);
}

static void add_chain(struct spill_text *text, const struct spill_chain *chain)
{
	if (chain->by_capability)
		spill_text_add(text, "auto");
	for (unsigned i = 0; i < chain->count; i++) {
		if (i)
			spill_text_add(text, ", ");
		spill_text_add(text, spill_step_name(chain->step[i]));
	}
}

static void add_places(struct spill_text *text, const bool *fields, const char *words)
{
	const char *item, *comma = "";
	size_t at = 0, length;

	for (; spill_option_item(words, &at, &item, &length); fields++) {
		if (!*fields)
			continue;
		spill_text_add(text, comma);
		spill_text_bytes(text, item, length);
		comma = ", ";
	}
}

static void add_bytes(struct spill_text *text, uint64_t bytes)
{
	add_amount(text, &(struct spill_amount){SPILL_AMOUNT_BYTES, bytes});
}

static void add_range(struct spill_text *text, const uint64_t *ends)
{
	if (ends[0] || ends[1] == SPILL_UNLIMITED || ends[1] == 0)
		add_bytes(text, ends[0]);
	if (ends[0] == ends[1])
		return;
	spill_text_add(text, "..");
	if (ends[1] != SPILL_UNLIMITED)
		add_bytes(text, ends[1]);
}

static void add_devices(struct spill_text *text, uint32_t devices)
{
	for (uint32_t left = devices; left; left &= left - 1) {
		if (left != devices)
			spill_text_add(text, ", ");
		spill_text_number(text, (uint64_t)__builtin_ctz(left));
	}
}

void spill_option_add_field(struct spill_text *text, const struct spill_option *row, const void *field)
{
	switch (row->kind) {
	case SPILL_OPTION_WORD:
		add_word(text, row->values, *(const unsigned *)field);
		break;
	case SPILL_OPTION_YESNO:
		spill_text_add(text, *(const bool *)field ? "yes" : "no");
		break;
	case SPILL_OPTION_SIZE:
	case SPILL_OPTION_SHARE:
	case SPILL_OPTION_LIMIT:
	case SPILL_OPTION_PERCENT:
	case SPILL_OPTION_CHUNK:
		add_amount(text, field);
		break;
	case SPILL_OPTION_TIME:
		add_time(text, *(const uint64_t *)field);
		break;
	case SPILL_OPTION_NUMBER:
		spill_text_number(text, *(const unsigned *)field);
		break;
	case SPILL_OPTION_CHAIN:
		add_chain(text, field);
		break;
	case SPILL_OPTION_PLACES:
		add_places(text, field, row->values);
		break;
	case SPILL_OPTION_PATH:
		spill_text_add(text, *(const char *)field ? field : row->initial);
		break;
	case SPILL_OPTION_NODE:
		if (*(const int *)field == SPILL_NODE_NEAREST)
			spill_text_add(text, row->initial);
		else
			spill_text_number(text, (uint64_t) * (const int *)field);
		break;
	case SPILL_OPTION_ONOFF:
		spill_text_add(text, *(const bool *)field ? "on" : "off");
		break;
	case SPILL_OPTION_BYTES:
		add_bytes(text, *(const uint64_t *)field);
		break;
	case SPILL_OPTION_RANGE:
		add_range(text, field);
		break;
	case SPILL_OPTION_DEVICES:
		add_devices(text, *(const uint32_t *)field);
		break;
	case SPILL_OPTION_GLOB:
	case SPILL_OPTION_SYMBOL:
	case SPILL_OPTION_NAME:
		spill_text_add(text, field);
		break;
	case SPILL_OPTION_OVER:
		add_word(text, row->values, *(const unsigned *)field - SPILL_RULE_SPLIT);
		break;
	}
}

size_t spill_option_format(const struct spill_policy *policy, unsigned slot, char *buffer, size_t size)
{
	struct spill_text text = spill_text_begin(buffer, size);

	spill_option_add_field(&text, spill_option_row(slot), spill_option_value(policy, slot));
	return text.length;
}
