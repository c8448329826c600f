#include <stdlib.h>
#include <string.h>

#include "config_load.h"
#include "process.h"
#include "process_ranks.h"
#include "ini_file.h"
#include "options.h"
#include "record.h"
#include "rule_option.h"
#include "text.h"

#ifndef SPILL_SYSTEM_POLICY
#define SPILL_SYSTEM_POLICY "/etc/spill/spill.conf"
#endif

#define NAME_SIZE 56 /* longest "device 31.limit" or "rule NAME" */
_Static_assert(NAME_SIZE > sizeof(SPILL_RECORD_RULE) + SPILL_RULE_NAME, "a rule's name fits");
_Static_assert(sizeof(((struct spill_log_option *)0)->value) >= SPILL_RULE_TEXT, "and all that it says");

static char names[SPILL_OPTION_SLOTS + SPILL_RULES][NAME_SIZE]; /* the start line points here */

/* Adds a file to the list of those tried. SPILL_CONFIG_FILES is enough for all callers. */
static struct spill_config_file *add_file(struct spill_config *config, const char *path)
{
	struct spill_config_file *file = &config->files[config->file_count++];
	struct spill_text text = spill_text_begin(file->path, sizeof(file->path));

	spill_text_add(&text, path);
	file->state = SPILL_CONFIG_REFUSED;
	return file;
}

/* Takes the content of `file`. False after a problem. */
static bool take_text(struct spill_load *load, struct spill_config_file *file, const char *data, size_t size)
{
	struct spill_config *config = load->config;
	const struct spill_ini_taker taker = {spill_load_option, spill_load_rule, load};

	load->file = file->path;
	memset(load->plain, 0, sizeof(load->plain));
	if (!spill_ini_read_in(load->room, file->path, data, size, &taker, config->problem,
	                       sizeof(config->problem)) ||
	    config->problem[0])
		return false;
	file->state = SPILL_CONFIG_READ;
	return true;
}

#define NO_FILE "no such file, or in a folder closed to us"

/* Reads and takes a file. False after a problem. `missing`: the problem if absent, or NULL. */
static bool take_file(struct spill_load *load, const char *path, const char *missing)
{
	struct spill_config *config = load->config;
	struct spill_config_file *file = add_file(config, path);
	size_t size;
	char *data;
	bool good;

	switch (spill_config_file_read(path, &data, &size, config->problem, sizeof(config->problem))) {
	case SPILL_CONFIG_FILE_BAD:
		return false;
	case SPILL_CONFIG_FILE_ABSENT:
		file->state = SPILL_CONFIG_ABSENT;
		if (missing)
			spill_load_problem(config, path, missing);
		return !missing;
	case SPILL_CONFIG_FILE_READ:
		break;
	}
	good = take_text(load, file, data, size);
	free(data);
	return good;
}

/* $XDG_CONFIG_HOME/spill/NAME.conf. False if the environment names no folder. */
static bool user_path(const char *name, char *path, size_t size)
{
	const char *folder = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");
	struct spill_text text = spill_text_begin(path, size);

	if (folder && folder[0] == '/') {
		spill_text_add(&text, folder);
	} else if (home && home[0] == '/') {
		spill_text_add(&text, home);
		spill_text_add(&text, "/.config");
	} else {
		return false;
	}
	spill_text_add(&text, "/spill/");
	spill_text_add(&text, name);
	spill_text_add(&text, ".conf");
	return text.length < size - 1; /* a path that was cut names another file */
}

static bool take_user_files(struct spill_load *load)
{
	const char *program = load->program;
	const char *policy = getenv("SPILL_POLICY");
	char *path = load->path;
	const size_t size = sizeof(load->path);

	if (policy && policy[0] && !take_file(load, policy, NO_FILE " (SPILL_POLICY names it)"))
		return false;
	if (program[0] && strcmp(program, "spill") && user_path(program, path, size) &&
	    !take_file(load, path, NULL))
		return false;
	return !user_path("spill", path, size) || take_file(load, path, NULL);
}

/* pre: all other sources have been read, because they name the profile and win over it */
static void take_profile(struct spill_load *load)
{
	char label[80] = "profile ";
	struct spill_error error;
	int slot = spill_option_find("spill", "profile", &error);
	const struct spill_profile *profile;

	spill_option_format(&load->config->policy, (unsigned)slot, label + 8, sizeof(label) - 8);
	profile = spill_profile_find(label + 8);
	if (profile)
		take_text(load, add_file(load->config, label), profile->text, profile->size);
}

/*
 * After a problem the defaults hold with mode=observe. Two settings of the environment stay,
 * because they can only make us quieter: its log options, and SPILL_MODE=off.
 */
static void fall_back(struct spill_load *load)
{
	struct spill_policy *policy = &load->config->policy, *kept = &load->kept;
	bool off = false;

	*kept = *policy;
	spill_policy_default(policy);
	load->config->rules.count = load->config->other_rules = 0;
	load->config->hidden[0] = '\0';
	for (unsigned slot = 0; slot < SPILL_OPTION_SLOTS; slot++) {
		const struct spill_option *row = spill_option_row(slot);
		bool environment = !strcmp(load->source[slot], "environment");
		bool mode = !strcmp(row->section, "spill") && !strcmp(row->key, "mode");

		if (environment && mode && kept->mode == SPILL_MODE_OFF)
			off = true;
		else if (mode)
			strcpy(load->source[slot], "problem");
		else if (!environment || strcmp(row->section, "log"))
			load->source[slot][0] = '\0';
		else if (row->kind == SPILL_OPTION_PATH)
			strcpy(policy->log_path, kept->log_path);
		else
			memcpy((char *)policy + row->offset, (char *)kept + row->offset, sizeof(unsigned));
	}
	policy->mode = off ? SPILL_MODE_OFF : SPILL_MODE_OBSERVE;
}

/* The option of a path is off, because the program is privileged. */
static void write_no_file(struct spill_load *load, const char *section, const char *key)
{
	struct spill_error error;
	int slot = spill_option_find(section, key, &error);

	spill_option_put(&load->config->policy, (unsigned)slot, "off", &error);
	strcpy(load->source[slot], "privileged program");
}

static void list_options(struct spill_load *load)
{
	struct spill_config *config = load->config;

	for (unsigned slot = 0; slot < SPILL_OPTION_SLOTS; slot++) {
		struct spill_log_option *option = &config->options[config->option_count];

		if (!spill_option_present(&config->policy, slot))
			continue;
		spill_option_name(slot, names[slot], sizeof(names[slot]));
		option->name = names[slot];
		spill_option_format(&config->policy, slot, option->value, sizeof(option->value));
		strcpy(option->source, load->source[slot][0] ? load->source[slot] : "default");
		config->option_count++;
	}
}

static void list_rules(struct spill_load *load)
{
	struct spill_config *config = load->config;

	for (unsigned i = 0; i < config->rules.count; i++) {
		struct spill_log_option *option = &config->options[config->option_count++];
		char *name = names[SPILL_OPTION_SLOTS + i];
		struct spill_text text = spill_text_begin(name, NAME_SIZE);

		spill_text_add(&text, SPILL_RECORD_RULE);
		spill_text_add(&text, config->rules.rule[i].name);
		option->name = name;
		spill_rule_format(&config->rules.rule[i], option->value, sizeof(option->value));
		strcpy(option->source, load->rule_source[i]);
	}
	spill_rules_index(&config->rules);
	/* NULL lets a decision skip the search for a rule. */
	config->policy.rules = config->rules.count ? &config->rules : NULL;
}

static struct spill_load load; /* 100 KiB, too large for a stack */

static void begin_load(struct spill_config *config)
{
	memset(&load, 0, sizeof(load));
	load.config = config;
	config->option_count = config->file_count = config->rules.count = config->other_rules = 0;
	config->problem[0] = config->warning[0] = config->hidden[0] = '\0';
	spill_policy_default(&config->policy);
}

static void take_named_profile(const char *name)
{
	struct spill_error error;

	if (spill_option_set(&load.config->policy, "spill", "profile", name, &error))
		spill_load_problem(load.config, "profile", error.text);
	else
		take_profile(&load);
}

void spill_config_load_only(struct spill_config *config, const char *program, const char *rank,
                            const char *path, const char *profile)
{
	begin_load(config);
	load.program = program;
	load.rank = rank;
	if (profile)
		take_named_profile(profile);
	else if (take_file(&load, path, NO_FILE))
		take_profile(&load);
	if (config->problem[0])
		fall_back(&load);
	list_options(&load);
	list_rules(&load);
}

void spill_config_load(struct spill_config *config, const char *program)
{
	const struct spill_record_ranks ranks = spill_process_ranks();
	char found[256];

	begin_load(config);
	if (!program) {
		spill_program_name(found, sizeof(found));
		program = found;
	}
	load.program = program;
	load.rank = spill_ranks_rank(&ranks);
	bool privileged = spill_load_privileged();
	if (!privileged)
		spill_load_environment(&load);
	if (!config->problem[0] && (privileged || take_user_files(&load)) &&
	    take_file(&load, SPILL_SYSTEM_POLICY, NULL))
		take_profile(&load);
	if (config->problem[0])
		fall_back(&load);
	if (privileged) {
		write_no_file(&load, "log", "path");
		write_no_file(&load, "log", "metrics");
		write_no_file(&load, "movable", "record");
	}
	list_options(&load);
	list_rules(&load);
}
