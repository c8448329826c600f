/* Small files of /proc and /sys, read whole without stdio, its locks and its heap. */
#ifndef SPILL_SMALL_FILE_H
#define SPILL_SMALL_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* `root` + `folder` + "/" + `file` into `path`; false if that is too long. */
bool spill_small_file_path(const char *root, const char *folder, const char *file, char *path, size_t size);

/*
 * Reads at most `size` bytes and returns their number. It also works if all descriptors are in use.
 * Returns 0 with errno; errno is 0 if the file is empty.
 */
size_t spill_small_file_bytes(const char *path, char *buffer, size_t size);

/*
 * Reads at most size - 1 bytes and ends them with a NUL. False with errno if there is no such file;
 * errno is 0 if the file is empty. `path` may be `text`.
 */
bool spill_small_file_read(const char *path, char *text, size_t size);

/* Both functions together: `text` first holds the path, then the content. */
bool spill_small_file_read_in(const char *root, const char *folder, const char *file, char *text,
                              size_t size);

/* The number at the start of `text`; SPILL_UNLIMITED for "max" and other words. */
uint64_t spill_small_file_number(const char *text);

#endif
