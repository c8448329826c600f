/* Replaced functions that say which they are: a test compares what was said with what it expects. */
#ifndef SPILL_TEST_SAID_H
#define SPILL_TEST_SAID_H

#include <stdint.h>
#include <stdio.h>
#include <string.h>

static char said[1024];

/* "WORD:NUMBER", behind what was said before. */
static inline void say(const char *word, uint64_t number)
{
	size_t length = strlen(said);
	snprintf(said + length, sizeof(said) - length, "%s%s:%lld", length ? " " : "", word,
	         (long long)number);
}

/* What was said since the last call; it is valid until the next one. */
static inline const char *what_was_said(void)
{
	static char last[sizeof(said)];
	strcpy(last, said);
	said[0] = '\0';
	return last;
}

#endif
