/* Calls the subcommand's function. `version` and `help` are here. */
#include <string.h>

#include "call.h"
#include "cli.h"
#include "nearest.h"
#include "put.h"

/* In the table's order. */
static int (*const command_functions[CLI_COMMANDS])(int argc, char **argv) = {
#define COMMAND(name, operands, word, options_first, summary, about) cli_##name,
#include "commands.def"
};

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

/* `spill help [COMMAND]`. */
static int print_help(int argc, char **argv)
{
	if (argc == 1)
		return cli_help_all();
	if (argc > 2)
		return cli_usage("", "help: unexpected argument '%s'", argv[2]);
	return cli_command_find(argv[1]) ? cli_help(argv[1]) : unknown_command(argv[1]);
}

int main(int argc, char **argv)
{
	static char version[] = "version";
	const struct cli_command *command;

	if (argc < 2)
		return cli_usage("", "which command?");
	if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h"))
		return cli_help_all();
	if (!strcmp(argv[1], "help"))
		return print_help(argc - 1, argv + 1);
	if (!strcmp(argv[1], "--version") || !strcmp(argv[1], "-V"))
		argv[1] = version;
	command = cli_command_find(argv[1]);
	return command ? command_functions[cli_command_id(command)](argc - 1, argv + 1)
	               : unknown_command(argv[1]);
}
