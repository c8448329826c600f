/*
 * options: the policy, its table of options, and the conversion between its values and their text.
 *
 * The room has rules (rule.h, rule_option.h), the strict reader of policy files and the shipped
 * policies (ini_file.h), too. It never opens a file: config.c finds the sources, and decides
 * the order in which they count. Begin reading with the table, options.def.
 *
 * The slot of an option is its row in the table. The keys of `[device N]` have slots behind the
 * rows, so one array of SPILL_OPTION_SLOTS is enough for sources and duplicates. A key of `[app
 * NAME]` has the slot of the option itself.
 */
#ifndef SPILL_OPTIONS_H
#define SPILL_OPTIONS_H

#include "policy.h"

/* How the value is written, and the type of its field. option_kind.c has a row for each. */
enum spill_option_kind {
	SPILL_OPTION_WORD,    /* one of `words`; an enum in their order. */
	SPILL_OPTION_YESNO,   /* bool */
	SPILL_OPTION_SIZE,    /* 4.5GiB; struct spill_amount, as the next four. */
	SPILL_OPTION_SHARE,   /* size or % */
	SPILL_OPTION_LIMIT,   /* none, size or % */
	SPILL_OPTION_PERCENT, /* % */
	SPILL_OPTION_CHUNK,   /* size: 2 MiB or a multiple of it. */
	SPILL_OPTION_TIME,    /* 250ms; uint64_t microseconds */
	SPILL_OPTION_CHAIN,   /* list of steps, or auto; struct spill_fallback_chain. */
	SPILL_OPTION_PLACES,  /* list of `words`; consecutive bools in their order */
	SPILL_OPTION_PATH,    /* pattern, folder or off; char[SPILL_PATH_MAX]. */
	SPILL_OPTION_NODE,    /* number of a NUMA node, or nearest; int. */
	SPILL_OPTION_NUMBER,  /* unsigned */
	/* Of rules only. */
	SPILL_OPTION_ONOFF,   /* bool */
	SPILL_OPTION_BYTES,   /* as SIZE; uint64_t. */
	SPILL_OPTION_RANGE,   /* 1MiB..2GiB, 1MiB.., ..2GiB, or one size; two consecutive uint64_t. */
	SPILL_OPTION_DEVICES, /* list of device numbers; uint32_t, a bit each. */
	SPILL_OPTION_RANKS,   /* list of ranks and ranges, 0, 8..15, 32..; struct spill_rule_ranks. */
	SPILL_OPTION_GLOB,    /* pattern (glob.h) of files or whole paths; char[SPILL_RULE_GLOB]. */
	SPILL_OPTION_SYMBOL,  /* the same for names of functions */
	SPILL_OPTION_NAME,    /* the same for names without a folder. */
	SPILL_OPTION_OVER,    /* one of `words`; enum spill_rule_place from SPILL_RULE_SPLIT on */
};

struct spill_option {
	const char *section, *key;
	enum spill_option_kind kind;
	const char *values;  /* the words, for kinds that have some; else "". */
	const char *initial; /* default as a user would write it; for a rule's key, an example. */
	const char *meaning; /* one or more sentences, Markdown */
	size_t offset;       /* of the field in struct spill_policy, or struct spill_rule */
};

enum {
#define OPTION(section, key, kind, field, words, initial, meaning) +1
	SPILL_OPTIONS = 0
#include "options.def"
	,
#define DEVICE(key, field) +1
	SPILL_DEVICE_OPTIONS = 0
#include "options.def"
	,
#define RULE(key, kind, bit, field, words, example, meaning) +1
	SPILL_RULE_OPTIONS = 0
#include "options.def"
	,
	SPILL_OPTION_SLOTS = SPILL_OPTIONS + SPILL_DEVICE_OPTIONS * SPILL_DEVICES
};

/* The part of `[section] key = value` that a message is about, and the wrong byte in it. */
enum spill_option_part { SPILL_PART_SECTION, SPILL_PART_KEY, SPILL_PART_VALUE };

struct spill_error {
	enum spill_option_part part;
	size_t offset;
	char text[320];
};

const struct spill_option *spill_option_row(unsigned slot);

/* Bytes below which a size without a unit is probably a mistake. 0: its values are no sizes. */
uint64_t spill_option_least_meant(const struct spill_option *row);

/* Does a section exist? 0, or -1 and why not. `[device 1]`, `[app x]` and `[rule x]` exist. */
int spill_option_section(const char *section, struct spill_error *error);

/*
 * NAME of an existing section `[app NAME]`: a pattern (glob.h) within `section`. NULL for other
 * sections.
 */
const char *spill_option_app(const char *section);

/* The same for an existing section `[rule NAME]`. */
const char *spill_option_rule(const char *section);

/*
 * Slot of an option, or -1 and the reason, with the nearest name. In `[app NAME]` the key is the
 * whole name, "device.limit". Keys of `[rule NAME]` are in rule_option.h.
 */
int spill_option_find(const char *section, const char *key, struct spill_error *error);

/*
 * The same for the name of an environment variable, SPILL_DEVICE_LIMIT. -1: unknown. -2: the option
 * exists, but not for that device.
 */
int spill_option_find_variable(const char *variable, struct spill_error *error);

/* Sets the option of `slot` from text: 0, or -1, the reason, and the policy unchanged. */
int spill_option_put(struct spill_policy *policy, unsigned slot, const char *value,
                     struct spill_error *error);

/* Find and put in one. */
int spill_option_set(struct spill_policy *policy, const char *section, const char *key, const char *value,
                     struct spill_error *error);

/* False for a key of `[device N]` that is not set. */
bool spill_option_present(const struct spill_policy *policy, unsigned slot);

/* Writes the value as a user would; returns its length, cut to size - 1. */
size_t spill_option_format(const struct spill_policy *policy, unsigned slot, char *buffer, size_t size);

/*
 * "device.limit", "device 1.limit"; "SPILL_DEVICE_LIMIT", "SPILL_DEVICE_1_LIMIT". pre: size >= 48
 */
void spill_option_name(unsigned slot, char *buffer, size_t size);
void spill_option_variable(unsigned slot, char *buffer, size_t size);

#endif
