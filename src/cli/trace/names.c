#include "names.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "hash.h"

static uint64_t hash_of(const char *text, size_t length)
{
	uint64_t hash = length;

	for (size_t i = 0; i < length; i++)
		hash = spill_hash(hash, (unsigned char)text[i]);
	return hash;
}

static void link_name(struct cli_names *names, struct cli_name *name)
{
	struct cli_name **bucket =
	    &names->buckets[hash_of(name->text, name->length) & (names->bucket_count - 1)];

	name->next = *bucket;
	*bucket = name;
}

static void grow_buckets(struct cli_names *names)
{
	struct cli_name **old = names->buckets;
	size_t count = names->bucket_count;

	names->bucket_count = count ? count * 2 : 256;
	names->buckets = cli_realloc(NULL, names->bucket_count, sizeof(struct cli_name *));
	memset(names->buckets, 0, names->bucket_count * sizeof(struct cli_name *));
	for (size_t i = 0; i < count; i++) {
		for (struct cli_name *name = old[i], *next; name; name = next) {
			next = name->next;
			link_name(names, name);
		}
	}
	free(old);
}

const struct cli_name *cli_names_get(struct cli_names *names, const char *text)
{
	struct cli_name *name;
	size_t length = text ? strnlen(text, CLI_NAME_MOST) : 0;

	if (!text)
		return NULL;
	if (names->count >= names->bucket_count)
		grow_buckets(names);
	for (name = names->buckets[hash_of(text, length) & (names->bucket_count - 1)]; name;
	     name = name->next) {
		if (name->length == length && !memcmp(name->text, text, length))
			return name;
	}
	name = cli_realloc(NULL, 1, sizeof(*name) + length + 1);
	name->id = names->count++;
	name->length = (unsigned)length;
	memcpy(name->text, text, length);
	name->text[length] = '\0';
	link_name(names, name);
	return name;
}

void cli_names_free(struct cli_names *names)
{
	for (size_t i = 0; i < names->bucket_count; i++) {
		for (struct cli_name *name = names->buckets[i], *next; name; name = next) {
			next = name->next;
			free(name);
		}
	}
	free(names->buckets);
	*names = (struct cli_names){0};
}

/* -- sums by name ----------------------------------------------------------------------------- */

unsigned cli_table_row(struct cli_table *table, const struct cli_name *name)
{
	size_t index = name ? name->id + 1 : 0;

	if (index >= table->index_size) {
		size_t size = index < 32 ? 64 : 2 * index;

		table->index = cli_realloc(table->index, size, sizeof(*table->index));
		memset(table->index + table->index_size, 0,
		       (size - table->index_size) * sizeof(*table->index));
		table->index_size = size;
	}
	if (!table->index[index]) {
		table->rows = cli_grow(table->rows, table->count, &table->size, sizeof(*table->rows));
		table->rows[table->count++] = (struct cli_row){.name = name};
		table->index[index] = (unsigned)table->count;
	}
	return table->index[index] - 1;
}

const struct cli_row *cli_table_find(const struct cli_table *table, const char *name)
{
	for (size_t i = 0; i < table->count; i++) {
		if (cli_name_is(table->rows[i].name, name))
			return &table->rows[i];
	}
	return NULL;
}

static int descending(uint64_t a, uint64_t b)
{
	return a < b ? 1 : a > b ? -1 : 0;
}

static int compare_rows(const void *left, const void *right)
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
		qsort(table->rows, table->count, sizeof(*table->rows), compare_rows);
}

void cli_table_free(struct cli_table *table)
{
	free(table->rows);
	free(table->index);
	*table = (struct cli_table){0};
}
