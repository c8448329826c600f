#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

#include "config.h"
#include "configfile.h"
#include "glob.h"
#include "ini_file.h"
#include "options.h"
#include "profile.h"
#include "rule_option.h"
#include "text.h"

#ifndef SPILL_SYSTEM_POLICY
#define SPILL_SYSTEM_POLICY "/etc/spill/spill.conf"
#endif

#define NAME_SIZE 56 /* longest "device 31.limit" or "rule NAME" */
_Static_assert(NAME_SIZE > sizeof("rule ") + SPILL_RULE_NAME, "a rule's name fits");

/* One load: where each option's value came from, in the order in which sources are asked. */
struct load {
	struct spill_config *config;
	const char *program;                  /* for [app NAME] */
	const char *file;                     /* the file being read */
	bool plain[SPILL_OPTION_SLOTS];       /* set by a plain section of that file */
	char source[SPILL_OPTION_SLOTS][512]; /* empty: nobody set it yet */
	char rule_source[SPILL_RULES][512];   /* of config->rules, in their order */
	struct spill_policy kept;             /* for fall_back: too much for the stack, as this all is */
};

static char names[SPILL_OPTION_SLOTS + SPILL_RULES][NAME_SIZE]; /* the log's start line points here */

static bool privileged(void)
{
	return getauxval(AT_SECURE) != 0;
}

static void problem(struct spill_config *config, const char *where, const char *why)
{
	struct spill_text text;

	if (config->problem[0])
		return; /* the first one stands */
	text = spill_text_begin(config->problem, sizeof(config->problem));
	spill_text_add(&text, where);
	spill_text_add(&text, ": ");
	spill_text_add(&text, why);
}

/* What SPILL says: 1 on, 0 off, -1 neither. A switch that is off in any spelling must be off. */
static int parse_switch(const char *value)
{
	static const char *const on[] = {"", "1", "on", "yes", "true"};
	static const char *const off[] = {"0", "off", "no", "false"};

	for (unsigned i = 0; i < sizeof(on) / sizeof(on[0]); i++) {
		if (!strcmp(value, on[i]))
			return 1;
	}
	for (unsigned i = 0; i < sizeof(off) / sizeof(off[0]); i++) {
		if (!strcmp(value, off[i]))
			return 0;
	}
	return -1;
}

bool spill_config_disabled(void)
{
	static atomic_int known; /* 0 not yet, 1 off, 2 on */
	int state = atomic_load_explicit(&known, memory_order_relaxed);

	if (!state) {
		const char *value = privileged() ? NULL : getenv("SPILL");

		state = value && !parse_switch(value) ? 1 : 2;
		atomic_store_explicit(&known, state, memory_order_relaxed);
	}
	return state == 1;
}

/* Sets an option from the environment. */
static void set_variable(struct load *load, const char *variable, unsigned slot, const char *value)
{
	struct spill_config *config = load->config;
	struct spill_error error;

	if (load->source[slot][0])
		problem(config, variable,
		        "the same option is set by two variables, SPILL_LOG and SPILL_LOG_PATH");
	else if (spill_option_put(&config->policy, slot, value, &error))
		problem(config, variable, error.text);
	else
		strcpy(load->source[slot], "environment");
}

/* Variables of other parts: of the simulator, and of builds and tests. */
static bool foreign(const char *name)
{
	return !strncmp(name, "SPILL_SIM_", 10) || !strncmp(name, "SPILL_BUILD", 11) ||
	       !strcmp(name, "SPILL_POLICY");
}

static void take_variable(struct load *load, const char *name, const char *value)
{
	struct spill_config *config = load->config;
	struct spill_error error;
	struct spill_text text;
	int slot;

	if (foreign(name))
		return;
	if (!strcmp(name, "SPILL_LOG"))
		slot = spill_option_find("log", "path", &error);
	else
		slot = spill_option_find_variable(name, &error);
	if (slot >= 0) {
		set_variable(load, name, (unsigned)slot, value);
	} else if (slot == -2) {
		problem(config, name, error.text);
	} else {
		text = (struct spill_text){config->warning, sizeof(config->warning), strlen(config->warning)};
		spill_text_add(&text, text.length ? "\n" : "");
		spill_text_add(&text, name);
		spill_text_add(&text, ": ");
		spill_text_add(&text, error.text);
	}
}

static void take_environment(struct load *load)
{
	const char *value = getenv("SPILL");
	char name[128];

	if (value && parse_switch(value) < 0)
		problem(load->config, "SPILL", "it must be 0 (off) or 1 (on)");
	/* To the end also after a problem: SPILL_LOG=off counts even then. */
	for (char **entry = environ; entry && *entry; entry++) {
		const char *equals = strchr(*entry, '=');

		if (!equals || strncmp(*entry, "SPILL_", 6))
			continue;

		struct spill_text text = spill_text_begin(name, sizeof(name));

		spill_text_bytes(&text, *entry, (size_t)(equals - *entry));
		take_variable(load, name, equals + 1);
	}
}

/* "FILE:LINE" of the file being read */
static struct spill_text tell_source(struct load *load, char *source, size_t size, unsigned line)
{
	struct spill_text text = spill_text_begin(source, size);

	spill_text_add(&text, load->file);
	spill_text_add(&text, ":");
	spill_text_number(&text, line);
	return text;
}

/*
 * One option of a file; the sources before the file have the first word. Within the file it is the program's own
 * section, wherever it stands, and of several the first.
 */
static void take_option(void *user, unsigned slot, const char *value, unsigned line, const char *app)
{
	struct load *load = user;
	struct spill_error ignored; /* the reader has set it already, elsewhere */
	struct spill_text text;

	if (app && !spill_glob(app, load->program))
		return;
	if (load->source[slot][0] && !(app && load->plain[slot]))
		return;
	if (spill_option_put(&load->config->policy, slot, value, &ignored))
		return;
	load->plain[slot] = !app;
	text = tell_source(load, load->source[slot], sizeof(load->source[slot]), line);
	if (app) {
		spill_text_add(&text, " [app ");
		spill_text_add(&text, app);
		spill_text_add(&text, "]");
	}
}

/* One rule of a file: not of another program, and not of a name that an earlier source has used for this one. */
static void take_rule(void *user, const struct spill_rule *rule, unsigned line)
{
	struct load *load = user;
	struct spill_rules *rules = &load->config->rules;

	if ((rule->set & SPILL_RULE_HAS_PROGRAM) && !spill_glob(rule->program, load->program))
		return;
	for (unsigned i = 0; i < rules->count; i++) {
		if (!strcmp(rules->rule[i].name, rule->name))
			return;
	}
	if (rules->count == SPILL_RULES) {
		char where[512];
		struct spill_text text = tell_source(load, where, sizeof(where) - 2, line);

		strcpy(where + text.length, ":2");
		problem(load->config, where, "too many rules, with those of the files before: at most 64");
		return;
	}
	tell_source(load, load->rule_source[rules->count], sizeof(*load->rule_source), line);
	rules->rule[rules->count++] = *rule;
}

/* pre: fewer than SPILL_CONFIG_FILES were: those of take_user_files, the system's and a profile are all */
static struct spill_config_file *tried(struct spill_config *config, const char *path)
{
	struct spill_config_file *file = &config->files[config->file_count++];
	struct spill_text text = spill_text_begin(file->path, sizeof(file->path));

	spill_text_add(&text, path);
	file->state = SPILL_CONFIG_REFUSED;
	return file;
}

/* False after a problem. `file` is what it is told as. */
static bool take_text(struct load *load, struct spill_config_file *file, const char *data, size_t size)
{
	struct spill_config *config = load->config;
	const struct spill_ini_taker taker = {take_option, take_rule, load};

	load->file = file->path;
	memset(load->plain, 0, sizeof(load->plain));
	if (!spill_ini_read(file->path, data, size, &taker, config->problem, sizeof(config->problem)) ||
	    config->problem[0])
		return false;
	file->state = SPILL_CONFIG_READ;
	return true;
}

/* False after a problem. `named`: the user named the file, so that it must be there. */
static bool take_file(struct load *load, const char *path, bool named)
{
	struct spill_config *config = load->config;
	struct spill_config_file *file = tried(config, path);
	size_t size;
	char *data;
	bool good;

	switch (spill_configfile_read(path, &data, &size, config->problem, sizeof(config->problem))) {
	case SPILL_CONFIGFILE_BAD:
		return false;
	case SPILL_CONFIGFILE_ABSENT:
		file->state = SPILL_CONFIG_ABSENT;
		if (named)
			problem(config, path,
			        "no such file, or in a folder closed to us (SPILL_POLICY names it)");
		return !named;
	case SPILL_CONFIGFILE_READ:
		break;
	}
	good = take_text(load, file, data, size);
	free(data);
	return good;
}

/* $XDG_CONFIG_HOME/spill/NAME.conf; false if there is no such folder to speak of. */
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

static bool take_user_files(struct load *load)
{
	const char *program = load->program;
	const char *policy = getenv("SPILL_POLICY");
	char path[SPILL_PATH_MAX];

	if (policy && policy[0] && !take_file(load, policy, true))
		return false;
	if (program[0] && strcmp(program, "spill") && user_path(program, path, sizeof(path)) &&
	    !take_file(load, path, false))
		return false;
	return !user_path("spill", path, sizeof(path)) || take_file(load, path, false);
}

/* pre: all other sources have been read: which profile it is, and what is left to it, is theirs to say */
static void take_profile(struct load *load)
{
	char label[80] = "profile ";
	struct spill_error error;
	int slot = spill_option_find("spill", "profile", &error);
	const struct spill_profile *profile;

	spill_option_format(&load->config->policy, (unsigned)slot, label + 8, sizeof(label) - 8);
	profile = spill_profile_find(label + 8);
	if (profile)
		take_text(load, tried(load->config, label), profile->text, profile->size);
}

/*
 * After a problem nothing that was read counts, with two exceptions that can only make us quieter: where
 * the environment wants the log, and that it wants us off.
 */
static void fall_back(struct load *load)
{
	struct spill_policy *policy = &load->config->policy, *kept = &load->kept;
	bool off = false;

	*kept = *policy;
	spill_policy_default(policy);
	load->config->rules.count = 0;
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

static void list_options(struct load *load)
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

static void list_rules(struct load *load)
{
	struct spill_config *config = load->config;

	for (unsigned i = 0; i < config->rules.count; i++) {
		struct spill_log_option *option = &config->options[config->option_count++];
		char *name = names[SPILL_OPTION_SLOTS + i];
		struct spill_text text = spill_text_begin(name, NAME_SIZE);

		spill_text_add(&text, "rule ");
		spill_text_add(&text, config->rules.rule[i].name);
		option->name = name;
		spill_rule_format(&config->rules.rule[i], option->value, sizeof(option->value));
		strcpy(option->source, load->rule_source[i]);
	}
	spill_rules_index(&config->rules);
	/* Without any rule, who decides is not to look for one. */
	config->policy.rules = config->rules.count ? &config->rules : NULL;
}

void spill_config_load(struct spill_config *config, const char *program)
{
	static struct load load; /* 90 KiB: too much for the stack of a host program's thread */
	char found[256];

	memset(&load, 0, sizeof(load));
	load.config = config;
	config->option_count = config->file_count = config->rules.count = 0;
	config->problem[0] = config->warning[0] = '\0';
	spill_policy_default(&config->policy);
	if (!program) {
		spill_config_program(found, sizeof(found));
		program = found;
	}
	load.program = program;
	if (privileged()) {
		struct spill_error error;

		if (take_file(&load, SPILL_SYSTEM_POLICY, false))
			take_profile(&load);
		if (config->problem[0])
			fall_back(&load);
		strcpy(config->policy.log_path, "off");
		strcpy(load.source[spill_option_find("log", "path", &error)], "privileged program");
	} else {
		take_environment(&load);
		if (!config->problem[0] && take_user_files(&load) &&
		    take_file(&load, SPILL_SYSTEM_POLICY, false))
			take_profile(&load);
		if (config->problem[0])
			fall_back(&load);
	}
	list_options(&load);
	list_rules(&load);
}
