/* Inside config: the state of one load, and how values of each source enter it. */
#ifndef SPILL_CONFIG_LOAD_H
#define SPILL_CONFIG_LOAD_H

#include <stddef.h>
#include <sys/auxv.h>

#include "config.h"
#include "ini_file.h"

/* One load. Sources are read in order, and the first source of an option wins. */
struct spill_load {
	struct spill_config *config;
	const char *program;                  /* for [app NAME]. */
	const char *rank;                     /* in its job; NULL: it has none. */
	const char *file;                     /* the file being read. */
	bool plain[SPILL_OPTION_SLOTS];       /* set by a plain section of that file. */
	char source[SPILL_OPTION_SLOTS][512]; /* "": not set yet. */
	char rule_source[SPILL_RULES][512];   /* of config->rules, in the same order. */
	/* Buffers too large for the stack: of fall_back, the user's file, the reader. */
	struct spill_policy kept;
	char path[SPILL_PATH_MAX];
	_Alignas(max_align_t) char room[SPILL_INI_ROOM];
};

/* True for a program that must not trust its environment, such as a setuid program. */
static inline bool spill_load_privileged(void)
{
	return getauxval(AT_SECURE) != 0;
}

/* Sets the problem, "where: why". The first one stays. */
void spill_load_problem(struct spill_config *config, const char *where, const char *why);

/* Takes all SPILL_ variables. It continues after a problem, so that SPILL_LOG=off still counts. */
void spill_load_environment(struct spill_load *load);

/*
 * Takes one option of load->file, unless an earlier source has set it. `user` is the load. Within a
 * file, the first [app NAME] that matches the program wins over plain sections.
 */
void spill_load_option(void *user, unsigned slot, const char *value, unsigned line, const char *app);

/*
 * Takes one rule of load->file, unless for another program or rank, or of a name in an earlier
 * source.
 */
void spill_load_rule(void *user, const struct spill_rule *rule, unsigned line);

#endif
