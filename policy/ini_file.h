/*
 * Strict reading of a policy file: libinih knows the format, this refuses what it would fold, cut or guess.
 * Not part of the pure archive (libinih allocates nothing here, but it is not ours).
 *
 * Every message is `FILE:LINE:COL: why`, with the nearest valid name; lines and columns count from 1, columns
 * in bytes.
 */
#ifndef SPILL_INI_FILE_H
#define SPILL_INI_FILE_H

#include <stdbool.h>
#include <stddef.h>

#include "rule.h"

#define SPILL_INI_LINE 4352       /* longest line: a path of SPILL_PATH_MAX and its key */
#define SPILL_INI_FILE (1u << 20) /* longest file; a policy of a mebibyte is a mistake */

#define SPILL_INI_APPS 256 /* most [app NAME] in one file; of [rule NAME], SPILL_RULES */

/* What is done with a file that is valid, in its order. */
struct spill_ini_taker {
	/* One option. `app` is the NAME of its section if that is `[app NAME]`, else NULL. */
	void (*option)(void *user, unsigned slot, const char *value, unsigned line, const char *app);
	/* One rule, whole, for whatever program it is; `line` is its section's. */
	void (*rule)(void *user, const struct spill_rule *rule, unsigned line);
	void *user;
};

/*
 * Reads the file's bytes: every section, for whatever program it is. Only if all of it is valid, `taker` (may be NULL) is called
 * and true returned; else false and the first error in `error`. `name` is the FILE of messages.
 */
bool spill_ini_read(const char *name, const char *data, size_t size, const struct spill_ini_taker *taker,
                    char *error, size_t error_size);

/* The same for who has no such room on the stack: SPILL_INI_ROOM bytes, aligned as for anything, for the time of the call. */
#define SPILL_INI_ROOM ((size_t)12 << 10)
bool spill_ini_read_in(void *room, const char *name, const char *data, size_t size,
                       const struct spill_ini_taker *taker, char *error, size_t error_size);

#endif
