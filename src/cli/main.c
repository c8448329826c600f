#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "call.h"
#include "cli.h"
#include "json.h"
#include "nearest.h"
#include "put.h"
#include "room.h"

/* Their functions, in the order of the table. */
static int (*const functions[CLI_COMMANDS])(int argc, char **argv) = {
#define COMMAND(name, operands, word, options_first, summary, about) cli_##name,
#define OPTION(command, name, letter, argument, word, text)
#define EXAMPLE(command, line)
#include "commands.def"
};

int cli_usage_list(const char *command, const char *format, va_list arguments)
{
	cli_fprintf(stderr, "spill%s%s: ", *command ? " " : "", command);
	cli_vfprintf(stderr, format, arguments);
	cli_fprintf(stderr, "\ntry: spill %s%s--help\n", command, *command ? " " : "");
	return CLI_USAGE;
}

int cli_usage(const char *command, const char *format, ...)
{
	va_list arguments;
	int status;

	va_start(arguments, format);
	status = cli_usage_list(command, format, arguments);
	va_end(arguments);
	return status;
}

int cli_finish(int status)
{
	if (fflush(stdout) || ferror(stdout)) {
		perror("spill: standard output");
		return CLI_FINDINGS;
	}
	return status;
}

void cli_print_json_string(FILE *out, const char *text)
{
	size_t most = 6 * strlen(text) + 3; /* an escape is six bytes for one */
	char *buffer = cli_room(NULL, most, 1);
	struct spill_json json;

	spill_json_begin(&json, buffer, most);
	spill_json_string(&json, text);
	fwrite(buffer, 1, json.length, out);
	free(buffer);
}

void cli_print_item(FILE *out, const char *text, bool json, bool *any)
{
	if (json) {
		fputs(*any ? "," : "", out);
		cli_print_json_string(out, text);
	} else {
		cli_fprintf(out, "%s\n", text);
	}
	*any = true;
}

int cli_version(int argc, char **argv)
{
	struct cli_call call = cli_call(argc, argv);
	bool json;

	if (!cli_call_json(&call, &json, CLI_version_json))
		return call.status;
	if (call.count)
		return cli_usage(argv[0], "unexpected argument '%s'", call.operand[0]);
	cli_printf(json ? "{\"version\":\"%s\"}\n" : "spill %s\n", SPILL_VERSION);
	return cli_finish(CLI_FINE);
}

static int unknown_command(const char *name)
{
	struct spill_nearest nearest;

	spill_nearest_begin(&nearest, name, strlen(name));
	for (size_t i = 0; i < CLI_COMMANDS; i++)
		spill_nearest_offer(&nearest, cli_commands[i].name, strlen(cli_commands[i].name));
	spill_nearest_offer(&nearest, "help", strlen("help"));
	if (spill_nearest_word(&nearest))
		return cli_usage("", "unknown command '%s'; the nearest is '%s'", name,
		                 spill_nearest_word(&nearest));
	return cli_usage("", "unknown command '%s'", name);
}

/* `spill help`, and of one command. */
static int help(int argc, char **argv)
{
	if (argc == 1)
		return cli_help_all();
	if (argc > 2)
		return cli_usage("", "help: unexpected argument '%s'", argv[2]);
	return cli_command_find(argv[1]) ? cli_help(argv[1]) : unknown_command(argv[1]);
}

int main(int argc, char **argv)
{
	const struct cli_command *command;

	if (argc < 2)
		return cli_usage("", "which command?");
	if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h"))
		return cli_help_all();
	if (!strcmp(argv[1], "help"))
		return help(argc - 1, argv + 1);
	if (!strcmp(argv[1], "--version"))
		argv[1] += strlen("--");
	command = cli_command_find(argv[1]);
	return command ? functions[cli_command_id(command)](argc - 1, argv + 1) : unknown_command(argv[1]);
}
