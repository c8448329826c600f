/* Prints a rule for `spill policy` and `spill check`. */
#include "print_rule.h"

#include "cli.h"
#include "put.h"
#include "rule_option.h"

static void print_json(const struct spill_rule *rule, const char *source)
{
	const char *comma = "";
	char value[SPILL_RULE_GLOB];

	fputs("{\"name\":", stdout);
	cli_print_json_string(stdout, rule->name);
	fputs(",\"source\":", stdout);
	cli_print_json_string(stdout, source);
	fputs(",\"keys\":{", stdout);
	for (unsigned row = 0; row < SPILL_RULE_OPTIONS; row++) {
		const struct spill_rule_option *key = spill_rule_option_row(row);

		if (!(rule->set & key->bit))
			continue;
		fputs(comma, stdout);
		cli_print_json_string(stdout, key->option.key);
		putchar(':');
		spill_rule_option_format(rule, row, value, sizeof(value));
		cli_print_json_string(stdout, value);
		comma = ",";
	}
	fputs("}}", stdout);
}

void cli_print_rule(const struct spill_rule *rule, const char *source, bool json)
{
	char text[SPILL_RULE_TEXT];

	if (json) {
		print_json(rule, source);
		return;
	}
	spill_rule_format(rule, text, sizeof(text));
	cli_printf("rule %s: %s  (%s)\n", rule->name, text, source);
}
