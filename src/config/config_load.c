#include "config_load.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "glob.h"
#include "options.h"
#include "text.h"

void spill_load_problem(struct spill_config *config, const char *where, const char *why)
{
	struct spill_text text;

	if (config->problem[0])
		return; /* the first one stands */
	text = spill_text_begin(config->problem, sizeof(config->problem));
	spill_text_add(&text, where);
	spill_text_add(&text, ": ");
	spill_text_add(&text, why);
}

/* The value of SPILL: 1 on, 0 off, -1 neither. Every usual spelling of "off" must switch us off. */
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
		const char *value = spill_load_privileged() ? NULL : getenv("SPILL");

		state = value && !parse_switch(value) ? 1 : 2;
		atomic_store_explicit(&known, state, memory_order_relaxed);
	}
	return state == 1;
}

/* Sets an option from the environment. */
static void set_variable(struct spill_load *load, const char *variable, unsigned slot, const char *value)
{
	struct spill_config *config = load->config;
	struct spill_error error;

	if (load->source[slot][0])
		spill_load_problem(config, variable,
		                   "the same option is set by two variables, SPILL_LOG and SPILL_LOG_PATH");
	else if (spill_option_put(&config->policy, slot, value, &error))
		spill_load_problem(config, variable, error.text);
	else
		strcpy(load->source[slot], "environment");
}

/* Variables that are no options: those of the simulator, builds and tests, and SPILL_POLICY. */
static bool is_no_option(const char *name)
{
	return !strncmp(name, "SPILL_SIM_", 10) || !strncmp(name, "SPILL_BUILD", 11) ||
	       !strcmp(name, "SPILL_POLICY");
}

/* Begins a new line at the end. Add names as plain text: they may contain newlines. */
static struct spill_text append_line(char *lines, size_t size)
{
	struct spill_text text = {lines, size, strlen(lines)};

	spill_text_add(&text, text.length ? "\n" : "");
	return text;
}

static void take_variable(struct spill_load *load, const char *name, const char *value)
{
	struct spill_config *config = load->config;
	struct spill_error error;
	struct spill_text text;
	int slot;

	if (is_no_option(name))
		return;
	if (!strcmp(name, "SPILL_LOG"))
		slot = spill_option_find("log", "path", &error);
	else
		slot = spill_option_find_variable(name, &error);
	if (slot >= 0) {
		set_variable(load, name, (unsigned)slot, value);
	} else if (slot == -2) {
		spill_load_problem(config, name, error.text);
	} else {
		text = append_line(config->warning, sizeof(config->warning));
		spill_text_plain(&text, name);
		spill_text_add(&text, ": ");
		spill_text_add(&text, error.text);
	}
}

void spill_load_environment(struct spill_load *load)
{
	const char *value = getenv("SPILL");
	char name[128];

	if (value && parse_switch(value) < 0)
		spill_load_problem(load->config, "SPILL", "it must be 0 (off) or 1 (on)");
	for (char **entry = environ; entry && *entry; entry++) {
		const char *equals = strchr(*entry, '=');

		if (!equals || strncmp(*entry, "SPILL_", 6))
			continue;

		struct spill_text text = spill_text_begin(name, sizeof(name));

		spill_text_bytes(&text, *entry, (size_t)(equals - *entry));
		take_variable(load, name, equals + 1);
	}
}

/* Writes "FILE:LINE" of the file being read. */
static struct spill_text put_source(struct spill_load *load, char *source, size_t size, unsigned line)
{
	struct spill_text text = spill_text_begin(source, size);

	spill_text_add(&text, load->file);
	spill_text_add(&text, ":");
	spill_text_number(&text, line);
	return text;
}

void spill_load_option(void *user, unsigned slot, const char *value, unsigned line, const char *app)
{
	struct spill_load *load = user;
	struct spill_error ignored; /* the reader has already checked the value */
	struct spill_text text;

	if (app && !spill_glob(app, load->program))
		return;
	if (load->source[slot][0] && !(app && load->plain[slot]))
		return;
	if (spill_option_put(&load->config->policy, slot, value, &ignored))
		return;
	load->plain[slot] = !app;
	text = put_source(load, load->source[slot], sizeof(load->source[slot]), line);
	if (app) {
		spill_text_add(&text, " [app ");
		spill_text_add(&text, app);
		spill_text_add(&text, "]");
	}
}

/* Adds a line to `hidden`: the rule at `line` has no effect, because rule `by` has its name. */
static void add_hidden(struct spill_load *load, unsigned by, unsigned line)
{
	struct spill_config *config = load->config;
	struct spill_text text = append_line(config->hidden, sizeof(config->hidden));
	char source[512];

	put_source(load, source, sizeof(source), line);
	spill_text_plain(&text, source);
	spill_text_add(&text, ": the rule is hidden by the rule of the same name, ");
	spill_text_plain(&text, load->rule_source[by]);
}

/* Adds a line to `hidden` if an earlier rule matches all requests of the last rule. */
static void add_covered(struct spill_load *load, unsigned line)
{
	struct spill_config *config = load->config;
	const struct spill_rules *rules = &config->rules;
	unsigned last = rules->count - 1;
	char source[512];

	for (unsigned i = 0; i < last; i++) {
		if (!spill_rule_covers(&rules->rule[i], &rules->rule[last], true))
			continue;

		struct spill_text text = append_line(config->hidden, sizeof(config->hidden));

		put_source(load, source, sizeof(source), line);
		spill_text_plain(&text, source);
		spill_text_add(&text, ": " SPILL_RULE_NEVER);
		spill_text_plain(&text, load->rule_source[i]);
		return;
	}
}

void spill_load_rule(void *user, const struct spill_rule *rule, unsigned line)
{
	struct spill_load *load = user;
	struct spill_rules *rules = &load->config->rules;

	if (((rule->set & SPILL_RULE_HAS_PROGRAM) && !spill_glob(rule->program, load->program)) ||
	    !spill_rule_of_rank(rule, load->rank)) {
		load->config->other_rules++;
		return;
	}
	for (unsigned i = 0; i < rules->count; i++) {
		if (!strcmp(rules->rule[i].name, rule->name)) {
			add_hidden(load, i, line);
			return;
		}
	}
	if (rules->count == SPILL_RULES) {
		char where[512];
		struct spill_text text = put_source(load, where, sizeof(where) - 2, line);

		strcpy(where + text.length, ":2");
		spill_load_problem(load->config, where, "too many rules in all files: at most 64");
		return;
	}
	put_source(load, load->rule_source[rules->count], sizeof(*load->rule_source), line);
	rules->rule[rules->count++] = *rule;
	add_covered(load, line);
}
