/*
 * A pattern, a NUL, and a text: as a rule's pattern of the policy meets the name of a program or library. The answer is that of a
 * table of all beginnings, which needs no tricks.
 */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "glob.h"

#define MOST 512

/* reached[n]: the pattern so far matches the first n bytes. */
static bool matches(const char *pattern, const char *text)
{
	static bool reached[MOST + 1];
	size_t length = strlen(text);

	memset(reached, 0, sizeof(reached));
	reached[0] = true;
	for (; *pattern; pattern++) {
		if (*pattern == '*') {
			for (size_t i = 1; i <= length; i++)
				reached[i] |= reached[i - 1];
			continue;
		}
		for (size_t i = length; i > 0; i--)
			reached[i] = reached[i - 1] && (*pattern == '?' || *pattern == text[i - 1]);
		reached[0] = false;
	}
	return reached[length];
}

/* Of its own size, so that a byte too many is seen. */
static char *take_text(const uint8_t **data, size_t *size)
{
	size_t length = strnlen((const char *)*data, *size < MOST ? *size : MOST);
	char *text = strndup((const char *)*data, length);

	fuzz_require(text != NULL, "no memory");
	*data += length;
	*size -= length;
	if (*size && **data == '\0') {
		++*data;
		--*size;
	}
	return text;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *pattern, *text;
	bool right;

	if (!size)
		return 0;
	pattern = take_text(&data, &size);
	text = take_text(&data, &size);
	right = matches(pattern, text);
	fuzz_require(spill_glob(pattern, text) == right, "a pattern matches what it says");
	if (!strchr(pattern, '/'))
		right = matches(pattern, spill_file_name(text));
	fuzz_require(spill_glob_object(pattern, text) == (*text && right),
	             "with a path, or with the name of its file");
	free(pattern);
	free(text);
	return 0;
}
