/*
 * config: finds and reads the policy: environment, SPILL_POLICY, XDG folders, /etc, a shipped profile (docs/options.md has the
 * order). It runs once, at the first GPU call, in the host program.
 *
 * It makes no allocation that outlives it, uses no locale, and refuses a bad file as a whole. Begin with spill_config_load.
 */
#ifndef SPILL_CONFIG_H
#define SPILL_CONFIG_H

#include "log.h"
#include "options.h"
#include "policy.h"
#include "rule.h"

/* SPILL_POLICY, the program's own, the user's, the system's, the profile. */
#define SPILL_CONFIG_FILES 5

enum spill_config_state { SPILL_CONFIG_ABSENT, SPILL_CONFIG_READ, SPILL_CONFIG_REFUSED };

/* A policy file that was looked for; that of a profile is in the library, and its path "profile NAME". */
struct spill_config_file {
	enum spill_config_state state;
	char path[SPILL_PATH_MAX];
};

struct spill_config {
	struct spill_policy policy; /* its rules are those below */
	/* For this program, in effective order: of the sources in order, of a source from its top. */
	struct spill_rules rules;
	unsigned other_rules; /* of other programs: as if they were not there */
	/*
	 * Effective options with their sources, for the log's start line: the slots that are present, in order; behind them
	 * the rules as "rule NAME", in order.
	 */
	unsigned option_count;
	struct spill_log_option options[SPILL_OPTION_SLOTS + SPILL_RULES];
	/* In the order in which they were tried; after a problem no more are. */
	unsigned file_count;
	struct spill_config_file files[SPILL_CONFIG_FILES];
	char problem[1024]; /* "FILE:LINE:COL: …", or "" : the file was refused whole and mode is observe */
	/*
	 * Rules that have no say, since an earlier source has used their name or an earlier rule matches all that they do:
	 * "FILE:LINE: …", lines as those of `warning`. The latter are in the list all the same.
	 */
	char hidden[2048];
	char warning[1024]; /* unknown SPILL_ variables, a line each without a last newline, or "" */
};

/*
 * Fills `config`; never fails: with a problem the defaults hold with mode=observe. `program` is the name
 * used for PROGRAM.conf, [app NAME] and %e; pass NULL to have it found (/proc/self/exe; for interpreters, the script or
 * the -m module).
 */
void spill_config_load(struct spill_config *config, const char *program);

/*
 * The same of one source alone, whatever else there is here: a policy file, or a shipped profile by its name (one of them is
 * NULL). What it does not say is as by default, and as by the profile that a file names.
 */
void spill_config_load_only(struct spill_config *config, const char *program, const char *path,
                            const char *profile);

/*
 * True if SPILL=0 (or off, no, false): cheap, used before anything else. A privileged program's environment
 * does not count, and its /etc policy is not read here: `mode = off` in a file is known once it is loaded.
 */
bool spill_config_disabled(void);

#endif
