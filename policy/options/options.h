/*
 * options: the policy, its table of options, and the conversion between its values and their text.
 *
 * The room has rules (rule.h, rule_option.h), the strict reader of policy files and the shipped
 * policies (ini_file.h), too. It never opens a file: src/config.c finds the sources, and decides the
 * order in which they count. Begin reading with the table, options.def.
 *
 * The slot of an option is its row in the table. The keys of `[device N]` have slots behind the rows,
 * so one array of SPILL_OPTION_SLOTS is enough for sources and duplicates. A key of `[app NAME]` has
 * the slot of the option itself.
 */
#ifndef SPILL_OPTIONS_H
#define SPILL_OPTIONS_H

#include "policy.h"

enum spill_option_kind {
	SPILL_OPTION_WORD,    /* one of `words`; the field is an enum in their order */
	SPILL_OPTION_YESNO,   /* bool */
	SPILL_OPTION_SIZE,    /* 4.5GiB */
	SPILL_OPTION_SHARE,   /* size or % */
	SPILL_OPTION_LIMIT,   /* none, size or % */
	SPILL_OPTION_PERCENT, /* % */
	SPILL_OPTION_CHUNK,   /* size: 2 MiB or a multiple of it */
	SPILL_OPTION_TIME,    /* 250ms; uint64_t microseconds */
	SPILL_OPTION_CHAIN,   /* list of steps, or auto */
	SPILL_OPTION_PLACES,  /* list of `words`; the fields are consecutive bools in their order */
	SPILL_OPTION_PATH,    /* pattern, folder or off */
	SPILL_OPTION_NODE,    /* number of a NUMA node, or nearest; int */
	SPILL_OPTION_NUMBER,  /* unsigned */
	/* Of rules only. */
	SPILL_OPTION_ONOFF, /* bool */
	SPILL_OPTION_BYTES, /* as SIZE; uint64_t */
	SPILL_OPTION_RANGE, /* 1MiB..2GiB, either end may be missing, or one size; two consecutive uint64_t */
	SPILL_OPTION_DEVICES, /* list of device numbers; uint32_t, a bit each */
	SPILL_OPTION_GLOB, /* pattern (glob.h) of files or, with a '/', of whole paths; char[SPILL_RULE_GLOB] */
	SPILL_OPTION_SYMBOL, /* the same of functions' names */
	SPILL_OPTION_NAME,   /* the same of names, without a folder */
	SPILL_OPTION_OVER,   /* one of `words`; enum spill_rule_place from SPILL_RULE_SPLIT on */
};

struct spill_option {
	const char *section, *key;
	enum spill_option_kind kind;
	const char *values;  /* as the documents name them; of a WORD or PLACES, the words themselves */
	const char *initial; /* default as a user would write it; of a rule's key, an example */
	const char *meaning; /* one sentence, Markdown */
	size_t offset;       /* of the field in struct spill_policy, or struct spill_rule */
};

enum {
#define OPTION(section, key, kind, field, words, initial, meaning) +1
#define DEVICE(key, field)
#define RULE(key, kind, bit, field, words, example, meaning)
	SPILL_OPTIONS = 0
#include "options.def"
	,
#define OPTION(section, key, kind, field, words, initial, meaning)
#define DEVICE(key, field) +1
#define RULE(key, kind, bit, field, words, example, meaning)
	SPILL_DEVICE_OPTIONS = 0
#include "options.def"
	,
#define OPTION(section, key, kind, field, words, initial, meaning)
#define DEVICE(key, field)
#define RULE(key, kind, bit, field, words, example, meaning) +1
	SPILL_RULE_OPTIONS = 0
#include "options.def"
	,
	SPILL_OPTION_SLOTS = SPILL_OPTIONS + SPILL_DEVICE_OPTIONS * SPILL_DEVICES
};

/* Which part of `[section] key = value` a message is about, and the byte in it that is wrong. */
enum spill_option_part { SPILL_PART_SECTION, SPILL_PART_KEY, SPILL_PART_VALUE };

struct spill_text; /* text.h */

struct spill_error {
	enum spill_option_part part;
	size_t offset;
	char text[320];
};

const struct spill_option *spill_option_row(unsigned slot);

/* Whether a section exists: 0, or -1 and why not. `[device 1]`, `[app x]` and `[rule x]` are. */
int spill_option_section(const char *section, struct spill_error *error);

/* NAME of an existing section `[app NAME]`, a pattern (glob.h) within `section`; NULL if it is another section. */
const char *spill_option_app(const char *section);

/* The same of an existing section `[rule NAME]`. */
const char *spill_option_rule(const char *section);

/*
 * Slot of an option, or -1 and why not (unknown, with the nearest name). A key of `[app NAME]`
 * is "device.limit"; those of `[rule NAME]` are no options (rule_option.h).
 */
int spill_option_find(const char *section, const char *key, struct spill_error *error);

/*
 * The same for an environment variable's name, SPILL_DEVICE_LIMIT: -1 for one that nobody knows, -2 for one
 * that names an option that cannot be set (device out of range).
 */
int spill_option_find_variable(const char *variable, struct spill_error *error);

/* Sets the option of `slot` from text: 0, or -1, why not, and the policy unchanged. */
int spill_option_put(struct spill_policy *policy, unsigned slot, const char *value,
                     struct spill_error *error);

/* Find and put in one. */
int spill_option_set(struct spill_policy *policy, const char *section, const char *key, const char *value,
                     struct spill_error *error);

/* False for a `[device N]` that nobody set. */
bool spill_option_present(const struct spill_policy *policy, unsigned slot);

/* Effective value as a user would write it; returns its length, cut to size - 1 if longer. */
size_t spill_option_format(const struct spill_policy *policy, unsigned slot, char *buffer, size_t size);

/* "device.limit", "device 1.limit"; "SPILL_DEVICE_LIMIT", "SPILL_DEVICE_1_LIMIT" (pre: size >= 48). */
void spill_option_name(unsigned slot, char *buffer, size_t size);
void spill_option_variable(unsigned slot, char *buffer, size_t size);

/* Inside policy/: where the option's value is. */
void *spill_option_field(struct spill_policy *policy, unsigned slot);
const void *spill_option_value(const struct spill_policy *policy, unsigned slot);

/* Inside policy/: `field` from text and to text, in the row's kind. */
int spill_option_put_field(const struct spill_option *row, void *field, const char *value,
                           struct spill_error *error);
void spill_option_add_field(struct spill_text *text, const struct spill_option *row, const void *field);

/* Inside policy/: digits of a device number, without a sign or leading zeros: its value, SPILL_DEVICES if too large, or -1. */
int spill_option_device(const char *text, size_t length);
void spill_option_add_out_of_range(struct spill_text *text);

/* Inside policy/: the next item of a comma-separated list at *at, blanks stripped; false at the end. */
bool spill_option_item(const char *list, size_t *at, const char **item, size_t *length);

#endif
