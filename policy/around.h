/* What stands against movable memory in a process: the list is around.def. Pure: the caller looks at the process. */
#ifndef SPILL_AROUND_H
#define SPILL_AROUND_H

#include <stdbool.h>

/* A row about a library. */
struct spill_around {
	const char *object, *open, *what;
};

/* Number of rows; they fit the bits of an unsigned. */
unsigned spill_around_rows(void);
const struct spill_around *spill_around_row(unsigned row);

/* The row for a mapped file, by its path, or -1. */
int spill_around_find(const char *path);

/* Whether an open file's path is one that the row waits for. */
bool spill_around_opened(const struct spill_around *row, const char *path);

/* Why memory of a process with this variable, "NAME=VALUE", is exported; NULL: for all that it says, it is not. */
const char *spill_around_exported(const char *variable);

#endif
