/*
 * Strict reading of policy files, and the shipped policies. libinih knows the format; this reader
 * refuses each line that libinih would fold, cut or guess. libinih does not allocate here, but it
 * is not ours, so the reader is not part of the pure archive.
 *
 * Each message is `FILE:LINE:COL: why`, with the nearest valid name. Lines and columns count from
 * 1, columns in bytes.
 */
#ifndef SPILL_INI_FILE_H
#define SPILL_INI_FILE_H

#include "rule.h"

#define SPILL_INI_LINE 4352       /* longest line: a path of SPILL_PATH_MAX and its key */
#define SPILL_INI_FILE (1u << 20) /* longest file; a policy of a mebibyte is a mistake */

#define SPILL_INI_APPS 256 /* most [app NAME] in one file; of [rule NAME], SPILL_RULES */

/* Receives the contents of a valid file, in its order. */
struct spill_ini_taker {
	/* One option. `app` is NAME of its section `[app NAME]`, else NULL. */
	void (*option)(void *user, unsigned slot, const char *value, unsigned line, const char *app);
	/* One whole rule, for any program; `line` is its section's. */
	void (*rule)(void *user, const struct spill_rule *rule, unsigned line);
	void *user;

	/* The others are for a checker of files, and may be NULL. */

	/* The head of a section, without its brackets. */
	void (*section)(void *user, const char *section, unsigned line);
	/* One key of a rule, as it is written. The whole rule follows. */
	void (*key)(void *user, unsigned row, const char *value, unsigned line);
	/*
	 * Each error of the file, in its order. With this function the reader goes on after an error. It
	 * passes on what is valid, and leaves out a rule with an error, and the keys of a bad section.
	 */
	void (*problem)(void *user, const char *text);
};

/*
 * Reads the file's bytes: every section, for any program. If all of it is valid, calls `taker` (may
 * be NULL) and returns true. Otherwise returns false with the first error in `error`. `name` is the
 * FILE of messages. With taker->problem, `error` has the last error.
 */
bool spill_ini_read(const char *name, const char *data, size_t size, const struct spill_ini_taker *taker,
                    char *error, size_t error_size);

/* The same with SPILL_INI_ROOM bytes of the caller, aligned for any type, instead of the stack. */
#define SPILL_INI_ROOM ((size_t)20 << 10)
bool spill_ini_read_in(void *room, const char *name, const char *data, size_t size,
                       const struct spill_ini_taker *taker, char *error, size_t error_size);

/*
 * A shipped policy: the text of profiles/NAME.conf, in the library itself. The words of
 * `spill.profile` in options.def are their names; a test compares.
 */
struct spill_profile {
	const char *name, *text;
	size_t size; /* of the text */
};

/*
 * Made by the build (gen_profiles.c), in the order of the words; a row without a name is the end.
 */
extern const struct spill_profile spill_profiles[];

/* NULL if no profile has that name. */
const struct spill_profile *spill_profile_find(const char *name);

#endif
