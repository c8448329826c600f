/* The table of commands.def as data, for the command and for gen_commands.c. */
#ifndef SPILL_CLI_COMMANDS_H
#define SPILL_CLI_COMMANDS_H

#include <stdbool.h>
#include <stddef.h>

/* The kind of an option's value or of an operand, for completions. */
enum cli_word {
	CLI_WORD_NONE, /* an option without a value */
	CLI_WORD_NOTHING,
	CLI_WORD_FILE,
	CLI_WORD_FOLDER,
	CLI_WORD_POLICY, /* a policy file */
	CLI_WORD_PROFILE,
	CLI_WORD_LOG, /* a log, or a folder of logs */
	CLI_WORD_PROGRAM,
	CLI_WORD_SIZE,
	CLI_WORD_NUMBER,
	CLI_WORD_TEXT, /* free text */
};

/* Commands and options in the table's order. */
enum cli_command_id {
#define COMMAND(name, operands, word, options_first, summary, about) CLI_##name,
#include "commands.def"
	CLI_COMMANDS
};

enum cli_option_id {
#define OPTION(command, name, letter, argument, word, text) CLI_##command##_##name,
#include "commands.def"
	CLI_OPTIONS
};

struct cli_command {
	const char *name;
	const char *operands;
	enum cli_word word;
	bool options_first;
	const char *summary, *about;
};

struct cli_option {
	enum cli_command_id command;
	const char *name;
	char letter;
	const char *argument;
	enum cli_word word;
	const char *text;
};

struct cli_example {
	enum cli_command_id command;
	const char *line;
};

extern const struct cli_command cli_commands[CLI_COMMANDS];
extern const struct cli_option cli_options[CLI_OPTIONS];
extern const struct cli_example cli_examples[];
extern const size_t cli_example_count;

/* NULL: no such command. */
const struct cli_command *cli_command_find(const char *name);

static inline enum cli_command_id cli_command_id(const struct cli_command *command)
{
	return (enum cli_command_id)(command - cli_commands);
}

#endif
