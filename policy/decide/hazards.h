/*
 * Reasons why memory of this process must not move. Some libraries reach device memory past our
 * hooks, some programs share it with other processes, and some libraries export their allocations.
 * The lists are hazards.def and exporters.def. Pure: the caller looks at the process.
 */
#ifndef SPILL_HAZARDS_H
#define SPILL_HAZARDS_H

#include <stdbool.h>

/* A library that reaches device memory past our hooks. */
struct spill_hazard {
	const char *object, *open, *what;
};

/* Number of rows; they fit the bits of an unsigned. */
unsigned spill_hazard_rows(void);
const struct spill_hazard *spill_hazard_row(unsigned row);

/* The row for a mapped file, by its path, or -1. */
int spill_hazard_find(const char *path);

/* Is this the path of an open file that makes the row count? */
bool spill_hazard_opened(const struct spill_hazard *row, const char *path);

/*
 * Why a process with this variable, "NAME=VALUE", exports its memory; NULL: the variable says
 * nothing.
 */
const char *spill_hazard_exported(const char *variable);

/* A library that exports the device memory that it allocates. */
struct spill_exporter {
	const char *caller, *what;
};

/* The row for a library, by its path as loaded, or NULL. "", the main program, has none. */
const struct spill_exporter *spill_exporter_find(const char *path);

/* Does this library ask for exportable memory that it does not export? */
bool spill_exporter_keeps(const char *path);

#endif
