/*
 * Build-time tool: `gen_commands man|bash|zsh|fish` prints text from the table of commands. The
 * text replaces the line @TABLE@ in docs/man/spill.1.scd and in completions/.
 */
#include <stdio.h>
#include <string.h>

#include "commands.h"
#include "ini_file.h"

/* The kinds in the names of completion functions, like _spill_policy. */
static const char *const words[] = {
    [CLI_WORD_NONE] = "none",     [CLI_WORD_NOTHING] = "nothing", [CLI_WORD_FILE] = "file",
    [CLI_WORD_FOLDER] = "folder", [CLI_WORD_POLICY] = "policy",   [CLI_WORD_PROFILE] = "profile",
    [CLI_WORD_LOG] = "log",       [CLI_WORD_PROGRAM] = "program", [CLI_WORD_SIZE] = "size",
    [CLI_WORD_NUMBER] = "number", [CLI_WORD_TEXT] = "text",
};

/* Puts a backslash before each of the `special` characters. */
static void put_escaped(const char *text, const char *special)
{
	for (; *text; text++) {
		if (strchr(special, *text))
			putchar('\\');
		putchar(*text);
	}
}

/* Quotes for a POSIX shell or zsh. `special` characters get a backslash for a second reader. */
static void put_quoted(const char *text, const char *special)
{
	for (; *text; text++) {
		if (strchr(special, *text))
			putchar('\\');
		if (*text == '\'')
			fputs("'\\''", stdout);
		else
			putchar(*text);
	}
}

static bool belongs_to(const struct cli_option *option, const struct cli_command *command)
{
	return option->command == cli_command_id(command);
}

/* -- spill(1), scdoc(5) ----------------------------------------------------------------------- */

#define SCDOC "\\*_+"

static void print_man_option(const struct cli_option *option)
{
	if (option->letter)
		printf("*-%c*, ", option->letter);
	printf("*--%s*", option->name);
	if (*option->argument) {
		fputs(" _", stdout);
		put_escaped(option->argument, SCDOC);
		putchar('_');
	}
	fputs("\n\t", stdout);
	put_escaped(option->text, SCDOC);
	fputs("\n\n", stdout);
}

static void print_man_command(const struct cli_command *command)
{
	bool any = false;

	printf("## spill %s - ", command->name);
	put_escaped(command->summary, SCDOC);
	printf("\n\n*spill %s*", command->name);
	for (unsigned i = 0; i < CLI_OPTIONS; i++)
		any |= belongs_to(&cli_options[i], command);
	printf(any ? " [_OPTION_]… " : " ");
	put_escaped(command->operands, SCDOC);
	fputs("\n\n", stdout);
	for (const char *c = command->about; *c; c++) {
		if (strchr(SCDOC, *c))
			putchar('\\');
		fputs(*c == '\n' ? "\n" : "", stdout);
		putchar(*c);
	}
	fputs("\n\n", stdout);
	for (unsigned i = 0; i < CLI_OPTIONS; i++) {
		if (belongs_to(&cli_options[i], command))
			print_man_option(&cli_options[i]);
	}
	puts("```");
	for (size_t i = 0; i < cli_example_count; i++) {
		if (cli_examples[i].command == cli_command_id(command))
			puts(cli_examples[i].line);
	}
	puts("```\n");
}

static void print_man(void)
{
	for (unsigned i = 0; i < CLI_COMMANDS; i++)
		print_man_command(&cli_commands[i]);
}

/* -- bash: a function that sets variables by the command's name ------------------------------- */

static void print_bash(void)
{
	fputs("_spill_profiles='", stdout);
	for (const struct spill_profile *profile = spill_profiles; profile->name; profile++)
		printf("%s%s", profile == spill_profiles ? "" : " ", profile->name);
	fputs("'\n_spill_commands='", stdout);
	for (unsigned i = 0; i < CLI_COMMANDS; i++)
		printf("%s%s", i ? " " : "", cli_commands[i].name);
	puts("'\n\n# OPTION=what its value is\n_spill_table()\n{\n\tcase $1 in");
	for (unsigned i = 0; i < CLI_COMMANDS; i++) {
		const struct cli_command *command = &cli_commands[i];

		printf("\t%s)\n\t\toperand=%s options='--help=none -h=none", command->name,
		       words[command->word]);
		for (unsigned j = 0; j < CLI_OPTIONS; j++) {
			const struct cli_option *option = &cli_options[j];

			if (!belongs_to(option, command))
				continue;
			printf(" --%s=%s", option->name, words[option->word]);
			if (option->letter)
				printf(" -%c=%s", option->letter, words[option->word]);
		}
		puts("'\n\t\t;;");
	}
	puts("\tesac\n}");
}

/* -- zsh: the arguments of _arguments, for each command --------------------------------------- */

#define ZSH "\\[]:"

/* Prints ':NAME:ACTION' after an option or for an operand. */
static void print_zsh_word(const char *name, enum cli_word word)
{
	putchar(':');
	put_quoted(name, ZSH);
	printf(":_spill_%s'", words[word]);
}

static void print_zsh_option(const struct cli_option *option)
{
	bool valued = *option->argument;

	if (option->letter)
		printf("\t\t\t'(-%c --%s)'{-%c%s,--%s%s}'[", option->letter, option->name, option->letter,
		       valued ? "+" : "", option->name, valued ? "=" : "");
	else
		printf("\t\t\t'--%s%s[", option->name, valued ? "=" : "");
	put_quoted(option->text, ZSH);
	putchar(']');
	if (valued)
		print_zsh_word(option->argument, option->word);
	else
		putchar('\'');
	puts(" \\");
}

static void print_zsh(void)
{
	puts("_spill_commands=(");
	for (unsigned i = 0; i < CLI_COMMANDS; i++) {
		printf("\t'%s:", cli_commands[i].name);
		put_quoted(cli_commands[i].summary, ZSH);
		puts("'");
	}
	puts(")\n_spill_profiles=(");
	for (const struct spill_profile *profile = spill_profiles; profile->name; profile++)
		printf("\t%s\n", profile->name);
	puts(")\n\n_spill_arguments()\n{\n\tcase $1 in");
	for (unsigned i = 0; i < CLI_COMMANDS; i++) {
		const struct cli_command *command = &cli_commands[i];

		printf("\t%s)\n\t\t_arguments -S \\\n\t\t\t'(- *)'{-h,--help}'[print help]' \\\n",
		       command->name);
		for (unsigned j = 0; j < CLI_OPTIONS; j++) {
			if (belongs_to(&cli_options[j], command))
				print_zsh_option(&cli_options[j]);
		}
		if (command->options_first) {
			fputs("\t\t\t'(-)1", stdout);
			print_zsh_word("program", command->word);
			puts(" \\\n\t\t\t'*::argument:_normal'");
		} else {
			fputs("\t\t\t'*", stdout);
			print_zsh_word(*command->operands ? command->operands : " ", command->word);
			putchar('\n');
		}
		puts("\t\t;;");
	}
	puts("\tesac\n}");
}

/* -- fish: one `complete` for each command, option and operand -------------------------------- */

/* Quotes for fish, which knows only these two escapes. */
static void put_fish_quoted(const char *text)
{
	putchar('\'');
	put_escaped(text, "\\'");
	putchar('\'');
}

static void print_fish_command(const struct cli_command *command)
{
	printf("complete -c spill -n __spill_no_command -a %s -d ", command->name);
	put_fish_quoted(command->summary);
	putchar('\n');
	for (unsigned i = 0; i < CLI_OPTIONS; i++) {
		const struct cli_option *option = &cli_options[i];

		if (!belongs_to(option, command))
			continue;
		printf("complete -c spill -n '__spill_options_of %s' -l %s", command->name, option->name);
		if (option->letter)
			printf(" -s %c", option->letter);
		if (*option->argument)
			printf(" -x -a '(__spill_%s)'", words[option->word]);
		fputs(" -d ", stdout);
		put_fish_quoted(option->text);
		putchar('\n');
	}
	if (command->word != CLI_WORD_NOTHING)
		printf("complete -c spill -n '__spill_operands_of %s' -k -a '(__spill_%s)'\n", command->name,
		       words[command->word]);
}

static void print_fish(void)
{
	fputs("set -g __spill_profiles", stdout);
	for (const struct spill_profile *profile = spill_profiles; profile->name; profile++)
		printf(" %s", profile->name);
	fputs("\nset -g __spill_commands", stdout);
	for (unsigned i = 0; i < CLI_COMMANDS; i++)
		printf(" %s", cli_commands[i].name);
	/* Arguments before the program belong to spill. */
	fputs("\nset -g __spill_runners", stdout);
	for (unsigned i = 0; i < CLI_COMMANDS; i++)
		printf("%s%s", cli_commands[i].options_first ? " " : "",
		       cli_commands[i].options_first ? cli_commands[i].name : "");
	fputs("\nset -g __spill_valued", stdout);
	for (unsigned i = 0; i < CLI_OPTIONS; i++) {
		if (!*cli_options[i].argument)
			continue;
		printf(" %s:--%s", cli_commands[cli_options[i].command].name, cli_options[i].name);
		if (cli_options[i].letter)
			printf(" %s:-%c", cli_commands[cli_options[i].command].name, cli_options[i].letter);
	}
	putchar('\n');
	for (unsigned i = 0; i < CLI_COMMANDS; i++)
		print_fish_command(&cli_commands[i]);
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*print)(void);
	} outputs[] = {{"man", print_man}, {"bash", print_bash}, {"zsh", print_zsh}, {"fish", print_fish}};

	for (size_t i = 0; argc == 2 && i < sizeof(outputs) / sizeof(outputs[0]); i++) {
		if (strcmp(argv[1], outputs[i].name))
			continue;
		outputs[i].print();
		return ferror(stdout) || fflush(stdout) ? 1 : 0;
	}
	fputs("usage: gen_commands man|bash|zsh|fish\n", stderr);
	return 2;
}
