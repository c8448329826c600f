#include "table.h"

#include <stdlib.h>
#include <string.h>

#include "cli.h"

unsigned cli_table_row(struct cli_table *table, const struct cli_name *name)
{
	size_t at = name ? name->id + 1 : 0;

	if (at >= table->index_size) {
		size_t size = at < 32 ? 64 : 2 * at;

		table->index = cli_realloc(table->index, size, sizeof(*table->index));
		memset(table->index + table->index_size, 0,
		       (size - table->index_size) * sizeof(*table->index));
		table->index_size = size;
	}
	if (!table->index[at]) {
		table->rows = cli_grow(table->rows, table->count, &table->size, sizeof(*table->rows));
		table->rows[table->count++] = (struct cli_row){.name = name};
		table->index[at] = (unsigned)table->count;
	}
	return table->index[at] - 1;
}

static int descending(uint64_t a, uint64_t b)
{
	return a < b ? 1 : a > b ? -1 : 0;
}

static int compare(const void *left, const void *right)
{
	const struct cli_row *a = left, *b = right;
	int order = descending(a->peak, b->peak);

	if (!order)
		order = descending(a->bytes, b->bytes);
	if (!order)
		order = strcmp(a->name ? a->name->text : "", b->name ? b->name->text : "");
	return order;
}

void cli_table_sort(struct cli_table *table)
{
	if (table->count)
		qsort(table->rows, table->count, sizeof(*table->rows), compare);
}

void cli_table_free(struct cli_table *table)
{
	free(table->rows);
	free(table->index);
	*table = (struct cli_table){0};
}
