/*
 * Small files of /proc and /sys, read whole. Raw calls: no stdio buffer in the host's heap, and none of its locks.
 */
#ifndef SPILL_SMALL_FILE_H
#define SPILL_SMALL_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* `root` + `folder` + "/" + `file` into `path`; false if that is too long. */
bool spill_small_file_path(const char *root, const char *folder, const char *file, char *path, size_t size);

/*
 * Reads at most `size` bytes, also if all descriptors are in use; returns how many. 0 with errno,
 * which is 0 if nothing is in the file.
 */
size_t spill_small_file_bytes(const char *path, char *buffer, size_t size);

/*
 * Reads at most size - 1 bytes, and ends them with a 0. False with errno if there is no such file,
 * or nothing in it (0). `path` may be `text`.
 */
bool spill_small_file_read(const char *path, char *text, size_t size);

/* The two together: the path, too, is put together in `text`. */
bool spill_small_file_read_in(const char *root, const char *folder, const char *file, char *text,
                              size_t size);

/* The number at the start of `text`; "max" and nonsense are SPILL_UNLIMITED. */
uint64_t spill_small_file_number(const char *text);

#endif
