/*
 * Files below a root that an input fills, for readers of /proc, /sys and /etc. An input has the form that `tail -n +1 FILE…` prints:
 * "==> /proc/meminfo <==", then the content, then an empty line before the next header. So any machine's files make one.
 *
 * The target names all paths that there can be. Without its header a file is missing. Other headers are ignored.
 */
#ifndef FUZZ_TREE_H
#define FUZZ_TREE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FUZZ_TREE_FILES 64

/* Once: the paths, each from the root on. They are kept. */
void fuzz_tree_begin(const char *const *paths, size_t count);

/* The root; "" is never one. */
const char *fuzz_tree_root(void);

/* Makes the files those of the input. */
void fuzz_tree_fill(const uint8_t *data, size_t size);

/* The content of a file, with a NUL behind it; NULL: it is missing. Valid until the next change of it. */
const char *fuzz_tree_content(const char *path, size_t *length);

/* Changes one file. content == NULL: it is removed. */
void fuzz_tree_put(const char *path, const void *content, size_t length);

#endif
