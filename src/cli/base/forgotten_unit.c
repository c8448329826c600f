/* Sizes of memory that nobody means: a few bytes, since a number without a unit is bytes. */
#include <stdio.h>
#include <string.h>

#include "amount.h"
#include "cli.h"
#include "options.h"

#define LEAST (1u << 20) /* no device or host limit is meant to be less, but for 0 */

const char *cli_unit_forgotten(const char *value)
{
	static char hint[96];
	struct spill_amount amount;
	size_t at;

	if (strspn(value, "0123456789") != strlen(value) || spill_amount_parse(value, 0, &amount, &at) ||
	    !amount.value || amount.value >= LEAST)
		return NULL;
	/* 6 may be either; a card of 4096 GiB there is not. */
	if (amount.value < 1024)
		snprintf(hint, sizeof(hint), "%s bytes; did you mean %sGiB or %sMiB?", value, value, value);
	else
		snprintf(hint, sizeof(hint), "%s bytes; did you mean %sMiB?", value, value);
	return hint;
}

const char *cli_option_unit_forgotten(unsigned slot, const char *value)
{
	const struct spill_option *row = spill_option_row(slot);
	bool size = row->kind == SPILL_OPTION_SIZE || row->kind == SPILL_OPTION_SHARE ||
	            row->kind == SPILL_OPTION_LIMIT;

	if (!size || (strcmp(row->section, "device") && strcmp(row->section, "host")))
		return NULL;
	return cli_unit_forgotten(value);
}
