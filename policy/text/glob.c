#include "glob.h"

#include <stddef.h>

/* Only the last star is tried again: it can match all that an earlier one could. */
bool spill_glob(const char *pattern, const char *text)
{
	const char *star = NULL, *from = NULL;

	while (*text) {
		if (*pattern == '*') {
			star = pattern++;
			from = text;
		} else if (*pattern == '?' || *pattern == *text) {
			pattern++;
			text++;
		} else if (star) {
			pattern = star + 1;
			text = ++from;
		} else {
			return false;
		}
	}
	while (*pattern == '*')
		pattern++;
	return !*pattern;
}

bool spill_glob_object(const char *pattern, const char *path)
{
	return *path && spill_glob(pattern, strchr(pattern, '/') ? path : spill_file_name(path));
}
