/*
 * Finding rows: by symbol for dlsym, which big programs call thousands of times, and by base for the vendors' resolvers.
 * The orders are made at build time, so there is nothing to set up before another library's constructor calls.
 */
#include <string.h>

#include "hooks.h"
#include "hooks_index.h"

_Static_assert(sizeof(rows_by_symbol) / sizeof(rows_by_symbol[0]) == SPILL_HOOKS &&
                   sizeof(rows_by_base) / sizeof(rows_by_base[0]) == SPILL_HOOKS,
               "hooks_index.h was made from another table");

static const char *symbol_at(unsigned at)
{
	return spill_rows[rows_by_symbol[at]].symbol;
}

static const char *base_at(unsigned at)
{
	return spill_rows[rows_by_base[at]].base;
}

/* The first place whose name is not before `name`. */
static unsigned first(const char *(*name_at)(unsigned at), const char *name)
{
	unsigned low = 0, high = SPILL_HOOKS;
	while (low < high) {
		unsigned middle = (low + high) / 2;
		if (strcmp(name_at(middle), name) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

const struct spill_row *spill_row_of(const char *symbol)
{
	unsigned at = first(symbol_at, symbol);
	return at < SPILL_HOOKS && strcmp(symbol_at(at), symbol) == 0 ? &spill_rows[rows_by_symbol[at]]
	                                                              : NULL;
}

const struct spill_row *spill_row_of_base(const char *base, unsigned *at)
{
	if (*at == 0)
		*at = first(base_at, base) + 1;
	else
		++*at;
	unsigned place = *at - 1;
	return place < SPILL_HOOKS && strcmp(base_at(place), base) == 0 ? &spill_rows[rows_by_base[place]]
	                                                                : NULL;
}

bool spill_row_has_stub(const struct spill_row *row, const void *address)
{
	for (int way = 0; way < SPILL_WAYS_COUNT; way++)
		if (row->stub[way] == address)
			return true;
	return false;
}
