/* Sums by name: a row for each, found by its name, and sorted. */
#include "unit.h"

#include <stdio.h>
#include <string.h>

#include "names.h"

static struct cli_names names;
static struct cli_table table;

/* More rows than the first table of them has room for, in an order that is not that of the names. */
TEST(a_row_for_each_name)
{
	enum { NAMES = 300 };
	char text[16];
	unsigned row[NAMES];

	for (unsigned i = 0; i < NAMES; i++) {
		snprintf(text, sizeof(text), "n%u", i);
		cli_names_get(&names, text);
	}
	for (unsigned i = 0; i < NAMES; i++) {
		snprintf(text, sizeof(text), "n%u", i * 7 % NAMES);
		row[i * 7 % NAMES] = cli_table_row(&table, cli_names_get(&names, text));
		assert_int_equal(row[i * 7 % NAMES], i);
	}
	assert_int_equal(cli_table_row(&table, NULL), NAMES);
	assert_int_equal(table.count, NAMES + 1);
	for (unsigned i = 0; i < NAMES; i++) {
		snprintf(text, sizeof(text), "n%u", i);
		assert_int_equal(cli_table_row(&table, cli_names_get(&names, text)), row[i]);
		assert_ptr_equal(cli_table_find(&table, text), &table.rows[row[i]]);
		assert_string_equal(table.rows[row[i]].name->text, text);
	}
	assert_null(table.rows[NAMES].name);
	assert_null(cli_table_find(&table, "n"));
	assert_int_equal(table.count, NAMES + 1);
	cli_table_free(&table);
	assert_null(cli_table_find(&table, "n1"));
	cli_names_free(&names);
}

static void add(const char *name, uint64_t peak, uint64_t bytes)
{
	unsigned row = cli_table_row(&table, cli_names_get(&names, name));

	table.rows[row].peak = peak;
	table.rows[row].bytes = bytes;
}

/* By the peak, then by all bytes, then by name: what has none comes first. */
TEST(rows_are_sorted)
{
	static const char *const sorted[] = {"e", "d", "c", NULL, "a", "b"};

	cli_table_sort(&table);
	add("b", 10, 20);
	add("a", 10, 20);
	add("c", 10, 21);
	add("d", 11, 1);
	add(NULL, 10, 20);
	add("e", 12, 0);
	cli_table_sort(&table);
	for (unsigned i = 0; i < 6; i++) {
		const struct cli_name *name = table.rows[i].name;

		if (sorted[i])
			assert_string_equal(name->text, sorted[i]);
		else
			assert_null(name);
	}
	cli_table_free(&table);
	cli_names_free(&names);
}
