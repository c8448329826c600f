/* Inside the configuration: one load of it, and what each source that is asked says (config_take.c). */
#ifndef SPILL_CONFIG_LOAD_H
#define SPILL_CONFIG_LOAD_H

#include <stddef.h>
#include <sys/auxv.h>

#include "config.h"
#include "ini_file.h"

/* One load: where each option's value came from, in the order in which sources are asked. */
struct spill_load {
	struct spill_config *config;
	const char *program;                  /* for [app NAME] */
	const char *file;                     /* the file being read */
	bool plain[SPILL_OPTION_SLOTS];       /* set by a plain section of that file */
	char source[SPILL_OPTION_SLOTS][512]; /* empty: nobody set it yet */
	char rule_source[SPILL_RULES][512];   /* of config->rules, in their order */
	/* Too much for the stack, as this all is: for fall_back, the user's file, and the reader's. */
	struct spill_policy kept;
	char path[SPILL_PATH_MAX];
	_Alignas(max_align_t) char room[SPILL_INI_ROOM];
};

/* A program whose environment is another user's word. */
static inline bool spill_load_privileged(void)
{
	return getauxval(AT_SECURE) != 0;
}

/* Keeps the first problem: "where: why". */
void spill_load_problem(struct spill_config *config, const char *where, const char *why);

/* All variables; to the end also after a problem. */
void spill_load_environment(struct spill_load *load);

/*
 * One option of load->file (user is the load); the sources before the file have the first word. Within the file it is the
 * program's own section, wherever it stands, and of several the first.
 */
void spill_load_option(void *user, unsigned slot, const char *value, unsigned line, const char *app);

/* One rule of it: not of another program, and not of a name that an earlier source has used for this one. */
void spill_load_rule(void *user, const struct spill_rule *rule, unsigned line);

#endif
