/*
 * Which of a program's arguments are secrets. By name only: the value of an option, or of NAME=VALUE, a header or a member of JSON
 * anywhere in an argument, whose name has a word like key, token, secret, password, credential or auth; and what carries a login by
 * its form (user:password@ in a URL, an Authorization header).
 */
#ifndef SPILL_REDACT_H
#define SPILL_REDACT_H

#include <stdbool.h>
#include <stddef.h>

struct spill_redact {
	bool next;  /* the option before was named like a secret and had no value of its own */
	bool count; /* … and may as well be a number of tokens */
};

/* Bytes of `argument` that may be shown; the rest is a secret. strlen(argument) if there is none. Call in order. */
size_t spill_redact_shown(struct spill_redact *state, const char *argument);

#endif
