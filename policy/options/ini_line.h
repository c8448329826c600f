/* Inside the reader of policy files: the file that is read, and its lines (ini_line.c). */
#ifndef SPILL_INI_LINE_H
#define SPILL_INI_LINE_H

#include "ini_file.h"
#include "options.h"
#include "rule_option.h"

#define SPILL_INI_NAME 49 /* libinih cuts section and key at 50 bytes with the terminator */

/* NAMEs of the sections `[app NAME]` or `[rule NAME]` so far. */
struct spill_ini_names {
	const char *word;
	unsigned count, most;
	uint32_t *at; /* where they begin in the data: small, for the stack */
};

struct spill_ini {
	const char *name;
	const char *data;
	size_t size, at;
	unsigned line;
	const char *text; /* of the current line, where columns are counted; not terminated */
	size_t length;
	bool in_section;
	const struct spill_ini_taker *taker;
	char *error;
	size_t error_size;
	bool failed;
	struct spill_policy scratch;       /* values are validated by setting them */
	unsigned seen[SPILL_OPTION_SLOTS]; /* line of an option's first value, to refuse a second */
	char app[SPILL_INI_NAME + 1];      /* NAME of the [app NAME] that we are in, or "" */
	unsigned app_seen[SPILL_OPTION_SLOTS];
	struct spill_ini_names apps, rules;
	uint32_t app_at[SPILL_INI_APPS], rule_at[SPILL_RULES];
	struct spill_rule rule; /* of the [rule NAME] that we are in; no name: of none */
	unsigned rule_line;
	unsigned rule_seen[SPILL_RULE_OPTIONS];
};
_Static_assert(sizeof(struct spill_ini) <= SPILL_INI_ROOM, "who reads a file has this room for it");

/* Begins `FILE:LINE:COL: ` with the current line; the first error stands. Returns false. */
bool spill_ini_fail(struct spill_ini *file, size_t column, const char *why);

/* Index in the line of the first byte from `at` that is no blank, or is one of `bytes`; the length if none is. */
size_t spill_ini_skip_blanks(const struct spill_ini *file, size_t at);
size_t spill_ini_find(const struct spill_ini *file, size_t at, const char *bytes);

/* Refuses what cannot be a line of a policy. Blank lines and comments are fine anywhere. */
bool spill_ini_check_line(struct spill_ini *file);

/* Where a section or the file ends: the rule that we are in, if any, is complete. */
bool spill_ini_end_rule(struct spill_ini *file);

#endif
