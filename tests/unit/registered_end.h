/*
 * What product code registers for the end of the process, and calls of a test's world that can be refused, or at which something else
 * happens once. For tests in which all that a file calls is replaced.
 */
#ifndef SPILL_TEST_REGISTERED_END_H
#define SPILL_TEST_REGISTERED_END_H

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static const char *refused; /* the call that fails, by the test's word for it; NULL: none */
static void (*at_end)(void);
static unsigned registrations;

static inline bool is_refused(const char *word)
{
	return refused && !strcmp(refused, word);
}

static inline void call_once(void (**handler)(void))
{
	void (*called)(void) = *handler;
	*handler = NULL;
	if (called)
		called();
}

int atexit(void (*handler)(void))
{
	registrations++;
	if (is_refused("atexit"))
		return -1;
	at_end = handler;
	return 0;
}

#endif
