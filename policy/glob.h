/* Patterns for names of programs and libraries. */
#ifndef SPILL_GLOB_H
#define SPILL_GLOB_H

#include <stdbool.h>

/* True if the whole of `text` matches: `*` is any characters, '/' too, `?` any one, all others themselves. */
bool spill_glob(const char *pattern, const char *text);

#endif
