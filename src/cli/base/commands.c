#include "commands.h"

#include <string.h>

const struct cli_command cli_commands[CLI_COMMANDS] = {
#define COMMAND(name, operands, word, options_first, summary, about) \
	{#name, operands, CLI_WORD_##word, options_first, summary, about},
#include "commands.def"
};

const struct cli_option cli_options[CLI_OPTIONS] = {
#define OPTION(command, name, letter, argument, word, text) \
	{CLI_##command, #name, letter, argument, CLI_WORD_##word, text},
#include "commands.def"
};

const struct cli_example cli_examples[] = {
#define EXAMPLE(command, line) {CLI_##command, line},
#include "commands.def"
};

const size_t cli_example_count = sizeof(cli_examples) / sizeof(cli_examples[0]);

const struct cli_command *cli_command_find(const char *name)
{
	for (size_t i = 0; i < CLI_COMMANDS; i++) {
		if (!strcmp(cli_commands[i].name, name))
			return &cli_commands[i];
	}
	return NULL;
}
