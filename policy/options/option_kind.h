/*
 * Inside options/ and gen/: the kinds of values. A kind reads a value, writes it and has a
 * description. The table is in option_kind.c; option_amount.c, option_rank.c and option_word.c have the
 * functions.
 */
#ifndef SPILL_OPTION_KIND_H
#define SPILL_OPTION_KIND_H

#include "options.h"
#include "text.h"

struct spill_kind {
	/*
	 * Reads the whole of `value` into `field`. 0, or -1, the reason, and the field unchanged.
	 */
	int (*put)(const struct spill_option *row, void *field, const char *value, struct spill_error *error);
	/* Adds the field's value as a user would write it. */
	void (*add)(struct spill_text *text, const struct spill_option *row, const void *field);
	const char *values; /* their description in documents */
	bool with_words;    /* the row's words follow the description */
	/* A smaller size without a unit is probably a mistake; 0: no sizes. Nobody means so few bytes. */
	uint64_t least_meant;
};

const struct spill_kind *spill_option_kind(const struct spill_option *row);

#define SPILL_KIND(name) \
	int spill_put_##name(const struct spill_option *row, void *field, const char *value, \
	                     struct spill_error *error); \
	void spill_add_##name(struct spill_text *text, const struct spill_option *row, const void *field);

/* option_amount.c */
SPILL_KIND(amount)
SPILL_KIND(time)
SPILL_KIND(number)
SPILL_KIND(node)
SPILL_KIND(bytes)
SPILL_KIND(range)
SPILL_KIND(devices)

/* option_rank.c */
SPILL_KIND(ranks)

/* option_word.c */
SPILL_KIND(word)
SPILL_KIND(bool)
SPILL_KIND(chain)
SPILL_KIND(places)
SPILL_KIND(path)
SPILL_KIND(glob)
#undef SPILL_KIND

/* Where the option's value is. */
void *spill_option_field(struct spill_policy *policy, unsigned slot);
const void *spill_option_value(const struct spill_policy *policy, unsigned slot);

/* The next item of a comma-separated list at *at, without blanks around it. False at the end. */
bool spill_option_item(const char *list, size_t *at, const char **item, size_t *length);

/*
 * A device number from its digits, without sign and leading zeros; SPILL_DEVICES if too large, or
 * -1.
 */
int spill_option_device(const char *text, size_t length);

/* These set an error and return -1. */
/* The message, as spill_text_format, is about the byte at `offset` of the part. */
int spill_option_fail(struct spill_error *error, enum spill_option_part part, size_t offset,
                      const char *format, ...) __attribute__((format(printf, 4, 5)));

/* The message `what` 'value': `why`. Returns 0 without a message if `why` is NULL. */
int spill_option_fail_at(struct spill_error *error, const char *what, const char *value, size_t at,
                         const char *why);

/* An item of a list is repeated. */
int spill_option_fail_twice(struct spill_error *error, const char *value, const char *item, size_t length);

/* A device number is too large. */
int spill_option_fail_range(struct spill_error *error, enum spill_option_part part, size_t offset);

#endif
