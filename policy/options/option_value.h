/*
 * Inside policy/: what option_value.c has not the room for, and what is said of a value that is wrong. Each function reads the
 * whole of `value` into `field`: 0, or -1, why not, and the field unchanged.
 */
#ifndef SPILL_OPTION_VALUE_H
#define SPILL_OPTION_VALUE_H

#include <string.h>

#include "options.h"
#include "text.h"

int spill_value_node(int *field, const char *value, struct spill_error *error);
int spill_value_bytes(uint64_t *field, const char *value, struct spill_error *error);

/* fields: least and most */
int spill_value_range(uint64_t *fields, const char *value, struct spill_error *error);

int spill_value_devices(uint32_t *field, const char *value, struct spill_error *error);

/* A pattern with its end, at most SPILL_RULE_GLOB bytes; kind: GLOB, SYMBOL or NAME. One that nothing can match is wrong. */
int spill_value_glob(char *field, enum spill_option_kind kind, const char *value, struct spill_error *error);

/* Begins the message about the byte at `wrong` of `value`. */
static inline struct spill_text fail(struct spill_error *error, const char *value, const char *wrong)
{
	error->part = SPILL_PART_VALUE;
	error->offset = (size_t)(wrong - value);
	return spill_text_begin(error->text, sizeof(error->text));
}

/* 0 if there is nothing wrong (`why` is NULL). */
static inline int say_bad_number(struct spill_error *error, const char *what, const char *value, size_t at,
                                 const char *why)
{
	if (!why)
		return 0;

	struct spill_text text = fail(error, value, value + at);

	spill_text_add(&text, what);
	spill_text_quote(&text, value, strlen(value));
	spill_text_add(&text, ": ");
	spill_text_add(&text, why);
	return -1;
}

static inline int say_twice(struct spill_error *error, const char *value, const char *item, size_t length)
{
	struct spill_text text = fail(error, value, item);

	spill_text_quote(&text, item, length);
	spill_text_add(&text, " is in the list twice");
	return -1;
}

#endif
