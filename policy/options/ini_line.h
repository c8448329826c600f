/* Inside the reader of policy files: its state, and the lines (ini_line.c). */
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
	uint32_t *at; /* offsets of the names in the data */
};

struct spill_ini {
	const char *name;
	const char *data;
	size_t size, at;
	unsigned line;
	const char *text; /* the current line, not terminated */
	size_t length;
	bool in_section;
	bool lost; /* the section has an error, so its keys mean nothing */
	const struct spill_ini_taker *taker;
	char *error;
	size_t error_size;
	bool failed;
	bool goes_on;                      /* after an error: taker->problem wants all of them */
	struct spill_policy scratch;       /* to validate values by setting them */
	unsigned seen[SPILL_OPTION_SLOTS]; /* line of an option's first value; a second is refused */
	char app[SPILL_INI_NAME + 1];      /* NAME of the current [app NAME], or "" */
	unsigned app_seen[SPILL_OPTION_SLOTS];
	struct spill_ini_names apps, rules;
	uint32_t app_at[SPILL_INI_APPS], rule_at[SPILL_RULES];
	struct spill_rule rule; /* the current [rule NAME]; without a name: none */
	unsigned rule_line;
	bool rule_bad; /* it has an error, so the whole of it is not known */
	unsigned rule_seen[SPILL_RULE_OPTIONS];
};
_Static_assert(sizeof(struct spill_ini) <= SPILL_INI_ROOM, "the caller of spill_ini_read_in has this room");

/*
 * Writes `FILE:LINE:COL: why` for the current line. Only the first error counts, unless the reader
 * goes on. `why` is a format of spill_text_format. Returns false.
 */
bool spill_ini_fail(struct spill_ini *file, size_t column, const char *why, ...)
    __attribute__((format(printf, 3, 4)));

/*
 * Index of the first byte from `at` on that is no blank, or is one of `bytes`; the length if none.
 */
size_t spill_ini_skip_blanks(const struct spill_ini *file, size_t at);
size_t spill_ini_find(const struct spill_ini *file, size_t at, const char *bytes);

/* True after an error, unless the reader goes on. */
static inline bool spill_ini_stops(const struct spill_ini *file)
{
	return file->failed && !file->goes_on;
}

/* Checks the form of the line. Blank lines and comments are valid anywhere. */
bool spill_ini_check_line(struct spill_ini *file);

/* Completes the current rule, if any: its section or the file ends. */
bool spill_ini_end_rule(struct spill_ini *file);

#endif
