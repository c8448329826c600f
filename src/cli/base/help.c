/* --help, of the table of commands. */
#include <string.h>

#include "cli.h"
#include "commands.h"
#include "put.h"

#define WIDTH ((size_t)80)
#define COLUMN ((size_t)27) /* at which the texts of options begin */

/* Columns of the first `bytes` of the text: UTF-8 without wide characters. */
static size_t columns(const char *text, size_t bytes)
{
	size_t count = 0;

	for (size_t i = 0; i < bytes; i++)
		count += ((unsigned char)text[i] & 0xc0) != 0x80;
	return count;
}

/* Prints the text word by word from column `at` on; lines that follow begin at `indent`. */
static void wrap(const char *text, size_t at, size_t indent)
{
	bool first = true;

	while (*text) {
		size_t length = strcspn(text, " \n"), width = columns(text, length);

		if (!first && at + 1 + width > WIDTH) {
			cli_printf("\n%*s", (int)indent, "");
			at = indent;
			first = true;
		}
		cli_printf("%s%.*s", first ? "" : " ", (int)length, text);
		at += width + !first;
		first = text[length] == '\n';
		if (first) {
			cli_printf("\n%*s", (int)indent, "");
			at = indent;
		}
		text += length + (text[length] != '\0');
	}
	putchar('\n');
}

/* As in "[-p FILE]" and as in the list of options. */
static int print_option(const struct cli_option *option, char *text, size_t size, bool usage)
{
	const char *blank = *option->argument ? " " : "";

	if (usage && option->letter)
		return snprintf(text, size, "[-%c%s%s]", option->letter, blank, option->argument);
	if (usage)
		return snprintf(text, size, "[--%s%s%s]", option->name, blank, option->argument);
	if (option->letter)
		return snprintf(text, size, "  -%c, --%s%s%s", option->letter, option->name, blank,
		                option->argument);
	return snprintf(text, size, "      --%s%s%s", option->name, blank, option->argument);
}

static void print_usage(const struct cli_command *command)
{
	size_t at = strlen("usage: spill ") + strlen(command->name), begin = at + 1;
	char text[128];

	cli_printf("usage: spill %s", command->name);
	for (unsigned i = 0; i <= CLI_OPTIONS; i++) {
		if (i < CLI_OPTIONS && cli_options[i].command != cli_command_id(command))
			continue;
		if (i < CLI_OPTIONS)
			print_option(&cli_options[i], text, sizeof(text), true);
		else
			snprintf(text, sizeof(text), "%s", command->operands);
		if (!*text)
			continue;
		if (at + 1 + columns(text, strlen(text)) > WIDTH) {
			cli_printf("\n%*s", (int)begin - 1, "");
			at = begin - 1;
		}
		cli_printf(" %s", text);
		at += 1 + columns(text, strlen(text));
	}
	putchar('\n');
}

static void print_options(const struct cli_command *command)
{
	char text[128];

	puts("\noptions:");
	for (unsigned i = 0; i < CLI_OPTIONS; i++) {
		const struct cli_option *option = &cli_options[i];
		size_t at;

		if (option->command != cli_command_id(command))
			continue;
		at = (size_t)print_option(option, text, sizeof(text), false);
		cli_put(stdout, text);
		cli_printf("%*s", at + 2 > COLUMN ? 2 : (int)(COLUMN - at), "");
		wrap(option->text, at + 2 > COLUMN ? at + 2 : COLUMN, COLUMN);
	}
	cli_printf("%-*s%s\n", (int)COLUMN, "  -h, --help", "print this help");
}

int cli_help(const char *name)
{
	const struct cli_command *command = cli_command_find(name);

	print_usage(command);
	putchar('\n');
	wrap(command->about, 0, 0);
	print_options(command);
	puts("\nexamples:");
	for (size_t i = 0; i < cli_example_count; i++) {
		if (cli_examples[i].command == cli_command_id(command))
			cli_printf("  %s\n", cli_examples[i].line);
	}
	return cli_finish(CLI_FINE);
}

int cli_help_all(void)
{
	puts("usage: spill COMMAND [OPTION]… [ARGUMENT]…\n");
	wrap("Runs programs that need more GPU memory than there is, and shows where their memory went.", 0,
	     0);
	puts("\ncommands:");
	for (size_t i = 0; i < CLI_COMMANDS; i++)
		cli_printf("  %-9s %s\n", cli_commands[i].name, cli_commands[i].summary);
	puts("\nfirst steps:\n"
	     "  spill doctor -- llama-server              check the machine and the program\n"
	     "  spill run -- llama-server -m model.gguf   run it; a spill names the log\n"
	     "  spill report LOG                          see what spilled, and why\n"
	     "\n"
	     "'spill COMMAND --help' shows options and examples. 'man libspill' describes the\n"
	     "library and its settings. 'spill --version' prints the version.\n"
	     "Exit status: 0 fine, 1 findings, 2 wrong usage.");
	return cli_finish(CLI_FINE);
}
