/* Patterns for names of programs and libraries. */
#ifndef SPILL_GLOB_H
#define SPILL_GLOB_H

#include <stdbool.h>
#include <string.h>

/* True if the whole of `text` matches: `*` is any characters, '/' too, `?` any one, all others themselves. */
bool spill_glob(const char *pattern, const char *text);

/*
 * The same for a library or program by its path as loaded: a pattern with a '/' means the whole of it, another one the file's
 * name. "" is code of no file, which no pattern is about.
 */
bool spill_glob_object(const char *pattern, const char *path);

/* The file's name in a path: what is behind the last '/'. */
static inline const char *spill_file_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

#endif
