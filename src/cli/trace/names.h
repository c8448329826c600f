/* Texts that repeat in a log, each kept once: equal texts are equal pointers. And sums by them. */
#ifndef SPILL_CLI_NAMES_H
#define SPILL_CLI_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct cli_name {
	struct cli_name *next;
	unsigned id;     /* from 0 on; an index for tables */
	unsigned length; /* of `text` */
	char text[];
};

/* False for NULL. */
static inline bool cli_name_is(const struct cli_name *name, const char *text)
{
	return name && !strcmp(name->text, text);
}

/* Longer texts are cut and may then become equal. */
#define CLI_NAME_MOST 1024

struct cli_names {
	struct cli_name **buckets;
	size_t bucket_count;
	unsigned count;
};

/* The name of a text; NULL for NULL. Valid until cli_names_free. */
const struct cli_name *cli_names_get(struct cli_names *names, const char *text);

void cli_names_free(struct cli_names *names);

/* Sums by name: by caller, by place, by rule. */
struct cli_row {
	const struct cli_name *name; /* NULL: the log has no name */
	uint64_t count;              /* number of allocations */
	uint64_t bytes;              /* requested bytes of all */
	uint64_t spilled;            /* bytes that libspill placed off the device */
	uint64_t live, peak;         /* bytes held at the end, and the most at once */
	uint64_t away, away_peak;    /* the part off the device by libspill, also by moves */
};

struct cli_table {
	struct cli_row *rows;
	size_t count, size;
	unsigned *index; /* by the name's id + 1 (0: no name): index of the row + 1 */
	size_t index_size;
};

/* The index of the name's row. pre: the table is not sorted */
unsigned cli_table_row(struct cli_table *table, const struct cli_name *name);

/* The row of a name by its text, or NULL. */
const struct cli_row *cli_table_find(const struct cli_table *table, const char *name);

/* Sorts by the peak, then by all bytes. Indexes of rows become invalid. */
void cli_table_sort(struct cli_table *table);

void cli_table_free(struct cli_table *table);

#endif
