/* Sums by name: by who asked, by place, by rule. */
#ifndef SPILL_CLI_TABLE_H
#define SPILL_CLI_TABLE_H

#include <stddef.h>
#include <stdint.h>

#include "names.h"

struct cli_row {
	const struct cli_name *name; /* NULL: was not told */
	uint64_t count;              /* allocations */
	uint64_t bytes;              /* asked by all of them together */
	uint64_t spilled;            /* of that placed off the device by us */
	uint64_t live, peak;         /* held of that at the end, and at most at once */
};

struct cli_table {
	struct cli_row *rows;
	size_t count, size;
	unsigned *index; /* by the name's id (the first: no name): 1 + where its row is */
	size_t index_size;
};

/* Where the name's row is. pre: the table is not sorted */
unsigned cli_table_row(struct cli_table *table, const struct cli_name *name);

/* Most bytes at once first, and of equal ones those with most in all; then where rows are means nothing any more. */
void cli_table_sort(struct cli_table *table);

void cli_table_free(struct cli_table *table);

#endif
