/*
 * Prints a line for each option's variable, as scdoc(5), in place of the line @TABLE@ of
 * libspill(7).
 */
#include <stdio.h>
#include <string.h>

#include "gen_options.h"
#include "options.h"

/* Escapes the characters of scdoc. */
static void put_escaped(const char *text)
{
	for (; *text; text++) {
		if (strchr("\\*_+", *text))
			putchar('\\');
		putchar(*text);
	}
}

void print_variables(void)
{
	char name[64];

	for (unsigned slot = 0; slot < SPILL_OPTIONS; slot++) {
		const struct spill_option *row = spill_option_row(slot);

		spill_option_variable(slot, name, sizeof(name));
		putchar('*');
		put_escaped(name);
		fputs("*: ", stdout);
		print_values(row);
		fputs(" (", stdout);
		put_escaped(*row->initial ? row->initial : "empty");
		puts(slot + 1 < SPILL_OPTIONS ? ")++" : ")");
	}
}
