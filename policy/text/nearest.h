/*
 * The valid word nearest to a misspelt one. Offer each candidate, then ask. A word that is far from
 * all candidates has no nearest word: a wild guess would mislead.
 */
#ifndef SPILL_NEAREST_H
#define SPILL_NEAREST_H

#include <stddef.h>

#define SPILL_NEAREST_MAX 48 /* longer words are compared by their first bytes */

struct spill_nearest {
	const char *word;
	size_t length;
	unsigned distance;
	char best[SPILL_NEAREST_MAX + 1];
};

void spill_nearest_begin(struct spill_nearest *nearest, const char *word, size_t length);
void spill_nearest_offer(struct spill_nearest *nearest, const char *candidate, size_t length);

/* The nearest candidate, or NULL if none is near. It lives as long as `nearest`. */
const char *spill_nearest_word(const struct spill_nearest *nearest);

#endif
