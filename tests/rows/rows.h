/*
 * Every row of one domain of hooks.def by one way in. rows.c has the rows, and one of ways_*.c the
 * vendor's own ways to them. They are linked into a program (main.c), or into a library that main.c
 * loads.
 */
#ifndef ROWS_H
#define ROWS_H

#include <stdbool.h>

#include "request.h"

struct rows_row {
	const char *symbol, *base, *operation;
	int since;
	bool per_thread;
	enum spill_op op;
	void *(*linked)(void);      /* what the loader found; NULL if nobody has it */
	int (*call)(void *address); /* with all arguments zero */
};

struct rows_way {
	const char *name;
	void *(*find)(const struct rows_row *row); /* NULL: the row cannot be reached this way */
};

/* The vendor's own ways, ended by a NULL name. */
extern const struct rows_way rows_ways[];

/* One real allocation, so that there is a log; an error code or 0. */
int rows_begin(void);

/* The vendor's last error, cleared by this; 0 where there is none. */
int rows_last_error(void);

/* Flags of cuGetProcAddress, cudaGetDriverEntryPoint and hipGetProcAddress: the legacy or the per-thread stream. */
static inline unsigned rows_flags(const struct rows_row *row)
{
	return row->per_thread ? 2 : 1;
}

/* True if no other row of its base and variant is of a later version. */
bool rows_newest(const struct rows_row *row);

typedef int rows_run_function(int count, char **arguments);
__attribute__((visibility("default"))) rows_run_function rows_run; /* main */

#endif
