/* The table of kinds, and options from text and to text by it. */
#include "option_kind.h"

#include <string.h>

#define KIB ((uint64_t)1 << 10)
#define MIB ((uint64_t)1 << 20)

static const struct spill_kind kinds[] = {
    [SPILL_OPTION_WORD] = {spill_put_word, spill_add_word, "", true},
    [SPILL_OPTION_YESNO] = {spill_put_bool, spill_add_bool, "yes, no"},
    [SPILL_OPTION_SIZE] = {spill_put_amount, spill_add_amount, "size", .least_meant = MIB},
    [SPILL_OPTION_SHARE] = {spill_put_amount, spill_add_amount, "size, %", .least_meant = MIB},
    [SPILL_OPTION_LIMIT] = {spill_put_amount, spill_add_amount, "none, size, %", .least_meant = MIB},
    [SPILL_OPTION_PERCENT] = {spill_put_amount, spill_add_amount, "%"},
    [SPILL_OPTION_CHUNK] = {spill_put_amount, spill_add_amount, "size, a multiple of 2MiB"},
    [SPILL_OPTION_TIME] = {spill_put_time, spill_add_time, "time"},
    [SPILL_OPTION_CHAIN] = {spill_put_chain, spill_add_chain,
                            "auto, list of trim, demote, split, managed, host"},
    [SPILL_OPTION_PLACES] = {spill_put_places, spill_add_places, "list of ", true},
    [SPILL_OPTION_PATH] = {spill_put_path, spill_add_path, "pattern, folder, off"},
    [SPILL_OPTION_NODE] = {spill_put_node, spill_add_node, "nearest, N"},
    [SPILL_OPTION_NUMBER] = {spill_put_number, spill_add_number, "number"},
    [SPILL_OPTION_ONOFF] = {spill_put_bool, spill_add_bool, "on, off"},
    [SPILL_OPTION_BYTES] = {spill_put_bytes, spill_add_bytes, "size", .least_meant = MIB},
    /* Programs do ask for some KiB. */
    [SPILL_OPTION_RANGE] = {spill_put_range, spill_add_range, "1MiB..2GiB, 1MiB.., ..2GiB, size",
                            .least_meant = KIB},
    [SPILL_OPTION_DEVICES] = {spill_put_devices, spill_add_devices, "list of numbers"},
    [SPILL_OPTION_RANKS] = {spill_put_ranks, spill_add_ranks, "list of 0, 8..15, 8.. or ..15"},
    [SPILL_OPTION_GLOB] = {spill_put_glob, spill_add_glob, "pattern"},
    [SPILL_OPTION_SYMBOL] = {spill_put_glob, spill_add_glob, "pattern"},
    [SPILL_OPTION_NAME] = {spill_put_glob, spill_add_glob, "pattern"},
    [SPILL_OPTION_OVER] = {spill_put_word, spill_add_word, "", true},
};

const struct spill_kind *spill_option_kind(const struct spill_option *row)
{
	return &kinds[row->kind];
}

uint64_t spill_option_least_meant(const struct spill_option *row)
{
	return kinds[row->kind].least_meant;
}

int spill_option_fail(struct spill_error *error, enum spill_option_part part, size_t offset,
                      const char *format, ...)
{
	struct spill_text text = spill_text_begin(error->text, sizeof(error->text));
	va_list arguments;

	error->part = part;
	error->offset = offset;
	va_start(arguments, format);
	spill_text_vformat(&text, format, arguments);
	va_end(arguments);
	return -1;
}

int spill_option_fail_at(struct spill_error *error, const char *what, const char *value, size_t at,
                         const char *why)
{
	return why ? spill_option_fail(error, SPILL_PART_VALUE, at, "%s%s: %s", what,
	                               spill_quote(value, strlen(value)).text, why)
	           : 0;
}

int spill_option_fail_twice(struct spill_error *error, const char *value, const char *item, size_t length)
{
	return spill_option_fail(error, SPILL_PART_VALUE, (size_t)(item - value), "%s is in the list twice",
	                         spill_quote(item, length).text);
}

int spill_option_fail_range(struct spill_error *error, enum spill_option_part part, size_t offset)
{
	return spill_option_fail(error, part, offset, "the device number is out of range: 0 to %u",
	                         SPILL_DEVICES - 1u);
}

int spill_option_put(struct spill_policy *policy, unsigned slot, const char *value, struct spill_error *error)
{
	const struct spill_option *row = spill_option_row(slot);

	return kinds[row->kind].put(row, spill_option_field(policy, slot), value, error);
}

size_t spill_option_format(const struct spill_policy *policy, unsigned slot, char *buffer, size_t size)
{
	struct spill_text text = spill_text_begin(buffer, size);
	const struct spill_option *row = spill_option_row(slot);

	kinds[row->kind].add(&text, row, spill_option_value(policy, slot));
	return text.length;
}

bool spill_option_present(const struct spill_policy *policy, unsigned slot)
{
	return slot < SPILL_OPTIONS ||
	       ((const struct spill_amount *)spill_option_value(policy, slot))->kind != SPILL_AMOUNT_NONE;
}

void spill_policy_default(struct spill_policy *policy)
{
	struct spill_error ignored; /* a unit test sets every row's default and expects no error */

	memset(policy, 0, sizeof(*policy));
	for (unsigned slot = 0; slot < SPILL_OPTIONS; slot++) {
		const struct spill_option *row = spill_option_row(slot);

		/*
		 * The default path has the form of a shell variable; an empty field stands for it.
		 */
		if (row->kind != SPILL_OPTION_PATH)
			spill_option_put(policy, slot, row->initial, &ignored);
	}
}
