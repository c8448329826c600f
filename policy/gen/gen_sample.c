/*
 * Prints the example policy from options.def. Each key has its default behind a `#`, so the file
 * changes nothing. Without the `#` it sets each default and has one rule. A test reads both forms.
 */
#include <stdio.h>
#include <string.h>

#include "gen_options.h"
#include "options.h"
#include "rule_option.h"

static const char head[] =
    "# Example policy of libspill. It changes nothing: remove the # before the keys that "
    "you want to change.\n"
    "# A # with a blank behind it begins a comment. Copy the file to "
    "~/.config/spill/spill.conf, and see\n"
    "# `spill check FILE`, `spill policy --for PROGRAM` and spill.conf(5).\n";

#define WIDTH 100

/* Prints a comment in lines of at most WIDTH characters, without the backquotes of Markdown. */
static void print_comment(const char *text)
{
	size_t column = 1;

	putchar('#');
	while (*text) {
		size_t length = strcspn(text, " "), shown = length;

		for (size_t i = 0; i < length; i++)
			shown -= text[i] == '`';
		if (column + 1 + shown > WIDTH) {
			fputs("\n#", stdout);
			column = 1;
		}
		putchar(' ');
		for (size_t i = 0; i < length; i++) {
			if (text[i] != '`')
				putchar(text[i]);
		}
		column += 1 + shown;
		text += length + (text[length] == ' ');
	}
	putchar('\n');
}

/*
 * The default path of the log has a shell variable, which policy files do not have: prints its
 * default.
 */
static void print_initial(const struct spill_option *row)
{
	const char *usual = row->kind == SPILL_OPTION_PATH ? strstr(row->initial, ":-") : NULL;

	if (!usual)
		fputs(row->initial, stdout);
	else
		printf("%.*s%s", (int)strcspn(usual + 2, "}"), usual + 2, strchr(usual, '}') + 1);
}

static void print_option(const struct spill_option *row)
{
	print_comment(row->meaning);
	fputs("# Values: ", stdout);
	print_values(row);
	printf("\n#%s = ", row->key);
	print_initial(row);
	putchar('\n');
}

static void print_device(void)
{
	puts("\n# For one device:\n#[device 1]");
	for (unsigned slot = SPILL_OPTIONS; slot < SPILL_OPTION_SLOTS; slot += SPILL_DEVICES)
		printf("#%s = %s\n", spill_option_row(slot)->key, spill_option_row(slot)->initial);
}

static void print_rule(void)
{
	puts("\n# A rule: keys by which it matches a request, and keys by which it acts. The first match "
	     "counts.\n"
	     "#[rule example]");
	for (unsigned row = 0; row < SPILL_RULE_OPTIONS; row++)
		print_option(&spill_rule_option_row(row)->option);
}

void print_sample(void)
{
	const char *section = "";

	fputs(head, stdout);
	for (unsigned row = 0; row < SPILL_OPTIONS; row++) {
		const struct spill_option *option = spill_option_row(row);

		if (strcmp(option->section, section))
			printf("\n[%s]\n", option->section);
		section = option->section;
		print_option(option);
	}
	print_device();
	puts("\n# For some programs, by any of the keys above:\n#[app llama-*]\n#device.limit = none");
	print_rule();
}
