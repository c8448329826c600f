/*
 * spill policy: prints the policy that the library finds for a program, with the source of each
 * value.
 */
#include <stdlib.h>
#include <string.h>

#include "call.h"
#include "cli.h"
#include "config.h"
#include "glob.h"
#include "print_rule.h"
#include "put.h"

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
static void print_option(unsigned slot, const struct spill_log_option *option, bool json)
{
	char value[SPILL_PATH_MAX], variable[64];
	bool environment = !strcmp(option->source, "environment");

	spill_option_format(&config.policy, slot, value, sizeof(value));
	if (json) {
		fputs("{\"name\":", stdout);
		cli_print_json_string(stdout, option->name);
		fputs(",\"value\":", stdout);
		cli_print_json_string(stdout, value);
		fputs(",\"source\":", stdout);
		cli_print_json_string(stdout, option->source);
		if (environment) {
			fputs(",\"variable\":", stdout);
			cli_print_json_string(stdout, variable_of(slot, variable, sizeof(variable)));
		}
		putchar('}');
		return;
	}
	cli_printf("%s =%s%s  (%s%s%s)\n", option->name, *value ? " " : "", value, option->source,
	           environment ? " " : "", environment ? variable_of(slot, variable, sizeof(variable)) : "");
}

/* The list has the present options in the order of their slots. */
static void print_options(bool json)
{
	unsigned index = 0;

	for (unsigned slot = 0; slot < SPILL_OPTION_SLOTS; slot++) {
		if (!spill_option_present(&config.policy, slot))
			continue;
		if (json && index)
			putchar(',');
		print_option(slot, &config.options[index++], json);
	}
}

/* Hints at missing units: lines, or items of a JSON array. */
static void print_hints(bool json)
{
	unsigned index = 0;
	bool any = false;

	for (unsigned slot = 0; slot < SPILL_OPTION_SLOTS; slot++) {
		const struct spill_log_option *option = &config.options[index];
		const char *hint;
		char line[1024];

		if (!spill_option_present(&config.policy, slot))
			continue;
		index++;
		hint = cli_option_unit_forgotten(slot, option->value);
		if (!hint)
			continue;
		snprintf(line, sizeof(line), "%s is %s", option->name, hint);
		cli_print_item(stdout, line, json, &any);
	}
}

/* Rules in the order in which they are tried. Their sources follow those of the options. */
static void print_rules(bool json)
{
	unsigned first = config.option_count - config.rules.count;

	for (unsigned i = 0; i < config.rules.count; i++) {
		if (json && i)
			putchar(',');
		cli_print_rule(&config.rules.rule[i], config.options[first + i].source, json);
	}
}

/* Prints lines, or items of a JSON array. Destroys `lines`. */
static void print_lines(char *lines, bool json)
{
	bool any = false;

	for (char *line = strtok(lines, "\n"); line; line = strtok(NULL, "\n"))
		cli_print_item(stdout, line, json, &any);
}

static void print_json(const char *program, bool disabled)
{
	fputs("{\"program\":", stdout);
	if (*program)
		cli_print_json_string(stdout, program);
	else
		fputs("null", stdout);
	cli_printf(",\"disabled\":%s,\"problem\":", disabled ? "true" : "false");
	if (config.problem[0])
		cli_print_json_string(stdout, config.problem);
	else
		fputs("null", stdout);
	fputs(",\"warnings\":[", stdout);
	print_lines(config.warning, true);
	fputs("],\"files\":[", stdout);
	for (unsigned i = 0; i < config.file_count; i++) {
		fputs(i ? ",{\"path\":" : "{\"path\":", stdout);
		cli_print_json_string(stdout, config.files[i].path);
		cli_printf(",\"state\":\"%s\"}", state_text(config.files[i].state));
	}
	fputs("],\"options\":[", stdout);
	print_options(true);
	fputs("],\"rules\":[", stdout);
	print_rules(true);
	fputs("],\"hidden\":[", stdout);
	print_lines(config.hidden, true);
	printf("],\"other_rules\":%u,\"hints\":[", config.other_rules);
	print_hints(true);
	puts("]}");
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
	print_lines(config.warning, false);
	if (config.problem[0])
		cli_printf("%s\nso nothing else was read, the defaults hold, and libspill only observes\n",
		           config.problem);
	putchar('\n');
	print_options(false);
	if (config.rules.count)
		puts("\nrules in order (the first that matches a request wins):");
	print_rules(false);
	print_lines(config.hidden, false);
	if (config.other_rules)
		printf("rules for other programs, by their key program: %u\n", config.other_rules);
	print_hints(false);
}

/* The program's name, from a name or path. NULL: the argument has none. */
static const char *program_name(const char *argument)
{
	const char *name = spill_file_name(argument);

	return *name ? name : NULL;
}

int cli_policy(int argc, char **argv)
{
	struct cli_call call = cli_call(argc, argv);
	const char *program = "";
	bool json = false, disabled, problem;

	while (cli_call_next(&call)) {
		if (call.option == CLI_policy_json)
			json = true;
		else if (!(program = program_name(call.value)))
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
