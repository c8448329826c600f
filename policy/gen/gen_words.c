/* Prints the words of a policy file as a dictionary for libFuzzer (-dict=FILE). */
#include <stdio.h>
#include <string.h>

#include "gen_options.h"
#include "option_kind.h"
#include "rule_option.h"

/* No word of the table has characters that a dictionary must escape. */
static void print_row(const struct spill_option *row)
{
	const char *word;
	size_t at = 0, length;

	printf("\"%s = \"\n\"[%s]\"\n", row->key, row->section);
	if (*row->initial)
		printf("\"%s\"\n", row->initial);
	while (spill_option_item(row->values, &at, &word, &length))
		printf("\"%.*s\"\n", (int)length, word);
}

void print_words(void)
{
	puts("\"[rule a]\"\n\"[app a]\"\n\"[device 1]\"\n\"..\"\n\"GiB\"\n\"%\"\n\"ms\"");
	for (unsigned row = 0; row < SPILL_OPTIONS; row++)
		print_row(spill_option_row(row));
	for (unsigned row = 0; row < SPILL_RULE_OPTIONS; row++)
		print_row(&spill_rule_option_row(row)->option);
}
