/*
 * config: finds and reads the policy. docs/options.md has the order of the sources: environment,
 * SPILL_POLICY, XDG folders, /etc, a shipped profile. This happens once, at the first GPU call, in
 * the host program.
 *
 * config keeps no allocation after that, uses no locale, and refuses a bad file as a whole. Begin
 * with spill_config_load.
 */
#ifndef SPILL_CONFIG_H
#define SPILL_CONFIG_H

#include <stddef.h>

#include "log.h"
#include "options.h"
#include "policy.h"
#include "rule.h"

/* SPILL_POLICY, PROGRAM.conf, the user's spill.conf, the system's, the profile. */
#define SPILL_CONFIG_FILES 5

enum spill_config_state { SPILL_CONFIG_ABSENT, SPILL_CONFIG_READ, SPILL_CONFIG_REFUSED };

/* A policy file that was looked for. A shipped profile has the path "profile NAME". */
struct spill_config_file {
	enum spill_config_state state;
	char path[SPILL_PATH_MAX];
};

struct spill_config {
	struct spill_policy policy; /* policy.rules points to `rules` */
	/* The rules for this program and rank, in the order of sources, then of lines. */
	struct spill_rules rules;
	unsigned other_rules; /* rules for other programs and ranks, which have no effect here */
	/* Effective options with their sources, then the rules as "rule NAME". */
	unsigned option_count;
	struct spill_log_option options[SPILL_OPTION_SLOTS + SPILL_RULES];
	/* In the order of the search, which stops at a problem. */
	unsigned file_count;
	struct spill_config_file files[SPILL_CONFIG_FILES];
	/* "FILE:LINE:COL: …", or "". With a problem the file is refused and mode is observe. */
	char problem[1024];
	/*
	 * Rules without effect, a line "FILE:LINE: …" each. Either an earlier source has a rule of
	 * that name, or an earlier rule matches the same requests. Rules of the second kind are in
	 * `rules` too.
	 */
	char hidden[2048];
	char warning[1024]; /* unknown SPILL_ variables, a line each; the last has no newline */
};

/*
 * Fills `config`. Never fails: with a problem it has the defaults and mode=observe. `program` is
 * the name for PROGRAM.conf, [app NAME] and %e; NULL means spill_program_name.
 */
void spill_config_load(struct spill_config *config, const char *program);

/*
 * The same from one source alone: a policy file, or a shipped profile by its name. The other one is
 * NULL. `rank` is that of the process in its job, or NULL. Options that the source does not set come
 * from the profile that the file names, or are the defaults.
 */
void spill_config_load_only(struct spill_config *config, const char *program, const char *rank,
                            const char *path, const char *profile);

/*
 * True if SPILL=0 (or off, no, false) in the environment of an unprivileged program. Cheap, and
 * called first. A `mode = off` in a file is known only after spill_config_load.
 */
bool spill_config_disabled(void);

enum spill_config_found {
	SPILL_CONFIG_FILE_READ,
	SPILL_CONFIG_FILE_ABSENT,
	SPILL_CONFIG_FILE_BAD, /* `problem` says why */
};

/*
 * Reads a policy file. It must be a regular file of the effective user or root that no other user
 * can write. If READ, *data is the content, and the caller frees it. `problem` gets "PATH: why". If
 * the file cannot be read for the moment, for example for lack of a descriptor, this tries again
 * for some tenths of a second.
 */
enum spill_config_found spill_config_file_read(const char *path, char **data, size_t *size, char *problem,
                                               size_t problem_size);

#endif
