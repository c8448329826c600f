#include <limits.h>
#include <stdbool.h>
#include <string.h>

#include "minmax.h"
#include "nearest.h"

static char lower(char c)
{
	return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

/*
 * Number of edits (insert, delete, replace, swap of neighbours) from a to b. A difference in case
 * counts 0. Three rows of the usual table are enough.
 */
static unsigned count_edits(const char *a, size_t a_length, const char *b, size_t b_length)
{
	unsigned rows[3][SPILL_NEAREST_MAX + 1];
	unsigned *before = rows[0], *last = rows[1], *now = rows[2];

	for (size_t j = 0; j <= b_length; j++)
		last[j] = (unsigned)j;
	for (size_t i = 1; i <= a_length; i++) {
		now[0] = (unsigned)i;
		for (size_t j = 1; j <= b_length; j++) {
			bool same = lower(a[i - 1]) == lower(b[j - 1]);

			now[j] =
			    (unsigned)spill_min(spill_min(last[j] + 1, now[j - 1] + 1), last[j - 1] + !same);
			if (i > 1 && j > 1 && lower(a[i - 1]) == lower(b[j - 2]) &&
			    lower(a[i - 2]) == lower(b[j - 1]) && before[j - 2] + 1 < now[j])
				now[j] = before[j - 2] + 1;
		}

		unsigned *reuse = before;

		before = last;
		last = now;
		now = reuse;
	}
	return last[b_length];
}

void spill_nearest_begin(struct spill_nearest *nearest, const char *word, size_t length)
{
	nearest->word = word;
	nearest->length = length > SPILL_NEAREST_MAX ? SPILL_NEAREST_MAX : length;
	nearest->distance = UINT_MAX;
	nearest->best[0] = '\0';
}

void spill_nearest_offer(struct spill_nearest *nearest, const char *candidate, size_t length)
{
	if (length > SPILL_NEAREST_MAX)
		length = SPILL_NEAREST_MAX;

	unsigned distance = count_edits(nearest->word, nearest->length, candidate, length);

	if (distance >= nearest->distance)
		return;
	nearest->distance = distance;
	memcpy(nearest->best, candidate, length);
	nearest->best[length] = '\0';
}

const char *spill_nearest_word(const struct spill_nearest *nearest)
{
	size_t longer = strlen(nearest->best);

	if (nearest->length > longer)
		longer = nearest->length;
	/* If more than two fifths of the longer word differ, it is another word. */
	return longer && nearest->distance <= 2 * longer / 5 ? nearest->best : NULL;
}
