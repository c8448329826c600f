/*
 * Finds and reads the policy: environment, SPILL_POLICY, XDG folders, /etc (docs/options.md has the
 * order). Runs once, at the first GPU call, in the host program: no allocation that outlives it, no locale.
 */
#ifndef SPILL_CONFIG_H
#define SPILL_CONFIG_H

#include "log.h"
#include "policy.h"

#define SPILL_CONFIG_OPTIONS 64

struct spill_config {
	struct spill_policy policy;
	unsigned option_count; /* effective options with their sources, for the log's start line */
	struct spill_log_option options[SPILL_CONFIG_OPTIONS];
	char problem[1024]; /* "FILE:LINE:COL: …", or "" : the file was refused whole and mode is observe */
	char warning[1024]; /* unknown SPILL_ variables, a line each without a last newline, or "" */
};

/*
 * Fills `config`; never fails: with a problem the defaults hold with mode=observe. `program` is the name
 * used for PROGRAM.conf and %e; pass NULL to have it found (/proc/self/exe; for interpreters, the script or
 * the -m module).
 */
void spill_config_load(struct spill_config *config, const char *program);

/*
 * True if SPILL=0 (or off, no, false): cheap, used before anything else. A privileged program's environment
 * does not count, and its /etc policy is not read here: `mode = off` in a file is known once it is loaded.
 */
bool spill_config_disabled(void);

/* Writes the program's name as above into name[size]. */
void spill_config_program(char *name, size_t size);

#endif
