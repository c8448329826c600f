/* The loader's cache of where libraries are, /etc/ld.so.cache, in the format of glibc 2.32 and later (dl-cache.h, "new" format). */
#ifndef SPILL_CLI_LD_CACHE_H
#define SPILL_CLI_LD_CACHE_H

#include <stdbool.h>
#include <stddef.h>

/* Of the file system below `root`, the same at each call: the `which`th path that the cache has for the name, of whatever architecture; false if there are no more. */
bool ld_cache_find(const char *root, const char *name, unsigned which, char *path, size_t size);

#endif
