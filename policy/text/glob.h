/* Patterns for names of programs and libraries. */
#ifndef SPILL_GLOB_H
#define SPILL_GLOB_H

#include <stdbool.h>
#include <string.h>

/*
 * True if the whole of `text` matches. `*` matches any characters, also '/', and `?` any one.
 * Others match themselves.
 */
bool spill_glob(const char *pattern, const char *text);

/*
 * The same for a library or program by its path as loaded. A pattern with a '/' is compared with
 * the path, another one with the file's name. "" is code that comes from no file: no pattern
 * matches it.
 */
bool spill_glob_object(const char *pattern, const char *path);

/* The file's name in a path: the part behind the last '/'. */
static inline const char *spill_file_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

#endif
