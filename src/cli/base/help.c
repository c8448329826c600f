/* --help, of the table of commands. */
#include <string.h>

#include "cli.h"
#include "commands.h"
#include "put.h"

#define WIDTH ((size_t)80)
#define TEXT_COLUMN ((size_t)27) /* where the texts of options begin */

/* Counts columns of UTF-8 text without wide characters. */
static size_t count_columns(const char *text, size_t bytes)
{
	size_t count = 0;

	for (size_t i = 0; i < bytes; i++)
		count += ((unsigned char)text[i] & 0xc0) != 0x80;
	return count;
}

/* Prints the text from `column` on and breaks lines between words. New lines begin at `indent`. */
static void print_wrapped(const char *text, size_t column, size_t indent)
{
	bool first = true;

	while (*text) {
		size_t length = strcspn(text, " \n"), width = count_columns(text, length);

		if (!first && column + 1 + width > WIDTH) {
			cli_printf("\n%*s", (int)indent, "");
			column = indent;
			first = true;
		}
		cli_printf("%s%.*s", first ? "" : " ", (int)length, text);
		column += width + !first;
		first = text[length] == '\n';
		if (first) {
			cli_printf("\n%*s", (int)indent, "");
			column = indent;
		}
		text += length + (text[length] != '\0');
	}
	putchar('\n');
}

/* Formats the option as "[-p FILE]" for the usage line, or for the list of options. */
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
	size_t column = strlen("usage: spill ") + strlen(command->name), first_column = column + 1;
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
		if (column + 1 + count_columns(text, strlen(text)) > WIDTH) {
			cli_printf("\n%*s", (int)first_column - 1, "");
			column = first_column - 1;
		}
		cli_printf(" %s", text);
		column += 1 + count_columns(text, strlen(text));
	}
	putchar('\n');
}

static void print_options(const struct cli_command *command)
{
	char text[128];

	puts("\noptions:");
	for (unsigned i = 0; i < CLI_OPTIONS; i++) {
		const struct cli_option *option = &cli_options[i];
		size_t column;

		if (option->command != cli_command_id(command))
			continue;
		column = (size_t)print_option(option, text, sizeof(text), false);
		cli_printf("%s%*s", text, column + 2 > TEXT_COLUMN ? 2 : (int)(TEXT_COLUMN - column), "");
		print_wrapped(option->text, column + 2 > TEXT_COLUMN ? column + 2 : TEXT_COLUMN, TEXT_COLUMN);
	}
	cli_printf("%-*s%s\n", (int)TEXT_COLUMN, "  -h, --help", "print this help");
}

int cli_help(const char *name)
{
	const struct cli_command *command = cli_command_find(name);

	print_usage(command);
	putchar('\n');
	print_wrapped(command->about, 0, 0);
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
	print_wrapped(
	    "Runs programs that need more GPU memory than there is, and shows where their memory went.", 0,
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
	     "library and its settings. 'spill --version' or -V prints the version.\n"
	     "Exit status: 0 fine, 1 findings, 2 wrong usage.");
	return cli_finish(CLI_FINE);
}
