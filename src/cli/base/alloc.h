/* Memory of the command: without it there is nothing that it could still do, so it says so and ends with 1. */
#ifndef SPILL_CLI_ALLOC_H
#define SPILL_CLI_ALLOC_H

#include <stddef.h>

/* `old` (or NULL), grown to count * size bytes. */
void *cli_room(void *old, size_t count, size_t size);

/* The same, when `used` of *size elements are taken and another is due; then *size is what there is room for. */
void *cli_room_for_one(void *old, size_t used, size_t *size, size_t each);

/* A copy to be freed; NULL of NULL. */
char *cli_room_text(const char *text);

#endif
