/* spill policy: prints the policy for a program, with the source of each value. */
#include <stdlib.h>
#include <string.h>

#include "call.h"
#include "cli.h"
#include "config.h"
#include "glob.h"
#include "print_rule.h"
#include "put.h"
#include "rule_option.h"

static struct spill_config config; /* too large for the stack */

static const char *state_text(enum spill_config_state state)
{
	static const char *const texts[] = {
	    [SPILL_CONFIG_ABSENT] = "not found",
	    [SPILL_CONFIG_READ] = "read",
	    [SPILL_CONFIG_REFUSED] = "refused",
	};

	return texts[state];
}

/* The variable that set the option. The log's path has two. */
static const char *variable_of(unsigned slot, char *name, size_t size)
{
	spill_option_variable(slot, name, size);
	return getenv(name) ? name : "SPILL_LOG";
}

/* Reads the value from the policy: the log's list of options may cut it. */
static void print_option(unsigned slot, const struct spill_log_option *option, struct spill_json *json)
{
	char value[SPILL_PATH_MAX], name[64];
	const char *variable =
	    strcmp(option->source, "environment") ? NULL : variable_of(slot, name, sizeof(name));

	spill_option_format(&config.policy, slot, value, sizeof(value));
	if (!json) {
		cli_printf("%s =%s%s  (%s%s%s)\n", option->name, *value ? " " : "", value, option->source,
		           variable ? " " : "", variable ? variable : "");
		return;
	}
	spill_json_object(json);
	cli_json_text(json, "name", option->name);
	cli_json_text(json, "value", value);
	cli_json_text(json, "source", option->source);
	if (variable)
		cli_json_text(json, "variable", variable);
	spill_json_object_end(json);
}

/* The list has the present options in the order of their slots. */
static void print_options(struct spill_json *json)
{
	for (unsigned slot = 0, index = 0; slot < SPILL_OPTION_SLOTS; slot++) {
		if (spill_option_present(&config.policy, slot))
			print_option(slot, &config.options[index++], json);
	}
}

/* Hints at missing units. */
static void print_hints(struct spill_json *json)
{
	for (unsigned slot = 0, index = 0; slot < SPILL_OPTION_SLOTS; slot++) {
		const struct spill_log_option *option = &config.options[index];
		const char *hint;
		char line[1024];

		if (!spill_option_present(&config.policy, slot))
			continue;
		index++;
		hint = cli_option_unit_forgotten(spill_option_row(slot), option->value);
		if (!hint)
			continue;
		snprintf(line, sizeof(line), "%s is %s", option->name, hint);
		cli_print_item(json, line);
	}
}

void cli_print_rule(const struct spill_rule *rule, const char *source, struct spill_json *json)
{
	char text[SPILL_RULE_TEXT], value[SPILL_RULE_GLOB];

	if (!json) {
		spill_rule_format(rule, text, sizeof(text));
		cli_printf("rule %s: %s  (%s)\n", rule->name, text, source);
		return;
	}
	spill_json_object(cli_json_element(json));
	cli_json_text(json, "name", rule->name);
	cli_json_text(json, "source", source);
	spill_json_object(cli_json_key(json, "keys"));
	for (unsigned row = 0; row < SPILL_RULE_OPTIONS; row++) {
		const struct spill_rule_option *key = spill_rule_option_row(row);

		if (!(rule->set & key->bit))
			continue;
		spill_rule_option_format(rule, row, value, sizeof(value));
		cli_json_text(json, key->option.key, value);
	}
	spill_json_object_end(json);
	spill_json_object_end(json);
}

/* Rules in the order in which they are tried. Their sources follow those of the options. */
static void print_rules(struct spill_json *json)
{
	unsigned first = config.option_count - config.rules.count;

	for (unsigned i = 0; i < config.rules.count; i++)
		cli_print_rule(&config.rules.rule[i], config.options[first + i].source, json);
}

/* Prints the lines as items. Destroys `lines`. */
static void print_lines(char *lines, struct spill_json *json)
{
	for (char *line = strtok(lines, "\n"); line; line = strtok(NULL, "\n"))
		cli_print_item(json, line);
}

static void print_json(const char *program, bool disabled)
{
	struct spill_json out, *json = &out;

	cli_json_begin(json);
	spill_json_object(json);
	cli_json_text(json, "program", *program ? program : NULL);
	cli_json_bool(json, "disabled", disabled);
	cli_json_text(json, "problem", config.problem[0] ? config.problem : NULL);
	spill_json_array(cli_json_key(json, "warnings"));
	print_lines(config.warning, json);
	spill_json_array_end(json);
	spill_json_array(cli_json_key(json, "files"));
	for (unsigned i = 0; i < config.file_count; i++) {
		spill_json_object(json);
		cli_json_text(json, "path", config.files[i].path);
		cli_json_text(json, "state", state_text(config.files[i].state));
		spill_json_object_end(json);
	}
	spill_json_array_end(json);
	spill_json_array(cli_json_key(json, "options"));
	print_options(json);
	spill_json_array_end(json);
	spill_json_array(cli_json_key(json, "rules"));
	print_rules(json);
	spill_json_array_end(json);
	spill_json_array(cli_json_key(json, "hidden"));
	print_lines(config.hidden, json);
	spill_json_array_end(json);
	cli_json_number(json, "other_rules", config.other_rules);
	spill_json_array(cli_json_key(json, "hints"));
	print_hints(json);
	spill_json_array_end(json);
	spill_json_object_end(json);
	cli_json_end(json);
}

static void print_text(const char *program, bool disabled)
{
	cli_printf("policy for %s, from these sources (the first wins):\n",
	           *program ? program : "any program");
	puts("  the environment");
	for (unsigned i = 0; i < config.file_count; i++)
		cli_printf("  %s: %s\n", config.files[i].path, state_text(config.files[i].state));
	if (disabled)
		puts("SPILL in the environment: libspill is off, and this policy does not hold");
	print_lines(config.warning, NULL);
	if (config.problem[0])
		cli_printf("%s\nso nothing else was read, the defaults hold, and libspill only observes\n",
		           config.problem);
	putchar('\n');
	print_options(NULL);
	if (config.rules.count)
		puts("\nrules in order (the first that matches a request wins):");
	print_rules(NULL);
	print_lines(config.hidden, NULL);
	if (config.other_rules)
		printf("rules for other programs or ranks, by their keys program and rank: %u\n",
		       config.other_rules);
	print_hints(NULL);
}

int cli_policy(int argc, char **argv)
{
	struct cli_call call = cli_call(argc, argv);
	const char *program = "";
	bool json = false, disabled, problem;

	while (cli_call_next(&call)) {
		if (call.option == CLI_policy_json) {
			json = true;
			continue;
		}
		program = spill_file_name(call.value);
		if (!*program)
			cli_call_refuse(&call, "--for: '%s' is not the name of a program", call.value);
	}
	if (call.over)
		return call.status;
	if (call.count)
		return cli_usage(argv[0], "unexpected argument '%s'; use --for PROGRAM", call.operand[0]);
	disabled = spill_config_disabled();
	spill_config_load(&config, program);
	problem = config.problem[0] || config.warning[0];
	if (json)
		print_json(program, disabled);
	else
		print_text(program, disabled);
	return cli_finish(problem ? CLI_FINDINGS : CLI_FINE);
}
