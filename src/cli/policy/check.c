/* spill check: checks policy files as the library would read them. */
#include <stdlib.h>
#include <string.h>

#include "call.h"
#include "cli.h"
#include "config.h"
#include "ini_file.h"
#include "print_rule.h"
#include "put.h"
#include "rule_option.h"

/* All rules of one file, for any program. */
static struct {
	struct spill_rules list;
	unsigned line[SPILL_RULES];
} rules;

/* Hints at missing units: lines, or items of a JSON array. */
struct hints {
	const char *path;
	bool json, any;
	char *text;
	size_t size;
	FILE *out; /* writes into text */
};

static void add_hint(struct hints *hints, unsigned line, const char *name, const char *hint)
{
	char text[SPILL_PATH_MAX + 256];

	snprintf(text, sizeof(text), "%s:%u: %s is %s", hints->path, line, name, hint);
	cli_print_item(hints->out, text, hints->json, &hints->any);
}

static void hint_at_option(void *user, unsigned slot, const char *value, unsigned line, const char *app)
{
	const char *hint = cli_option_unit_forgotten(slot, value);
	char name[64];

	spill_option_name(slot, name, sizeof(name));
	if (hint)
		add_hint(user, line, name, hint);
}

/* Checks a rule's cap only: requests of a few bytes are normal. */
static void hint_at_cap(struct hints *hints, const struct spill_rule *rule, unsigned line)
{
	char value[SPILL_RULE_GLOB], name[SPILL_RULE_NAME + 16];
	struct spill_error error;
	const char *hint;

	if (!(rule->set & SPILL_RULE_HAS_CAP))
		return;
	spill_rule_option_format(rule, (unsigned)spill_rule_option_find("cap", &error), value, sizeof(value));
	hint = cli_unit_forgotten(value);
	snprintf(name, sizeof(name), "cap of rule %s", rule->name);
	if (hint)
		add_hint(hints, line, name, hint);
}

static void add_rule(void *user, const struct spill_rule *rule, unsigned line)
{
	rules.line[rules.list.count] = line;
	rules.list.rule[rules.list.count++] = *rule;
	hint_at_cap(user, rule, line);
}

/* True if the library would accept the file. Else sets `problem`. */
static bool check_file(const char *path, struct hints *hints, char *problem, size_t size)
{
	const struct spill_ini_taker taker = {hint_at_option, add_rule, hints};
	size_t length;
	char *data;
	bool valid;

	rules.list.count = 0;

	switch (spill_config_file_read(path, &data, &length, problem, size)) {
	case SPILL_CONFIG_FILE_ABSENT:
		snprintf(problem, size, "%s: no such file, or its folder cannot be read", path);
		return false;
	case SPILL_CONFIG_FILE_BAD:
		return false;
	case SPILL_CONFIG_FILE_READ:
		break;
	}
	valid = spill_ini_read(path, data, length, &taker, problem, size);
	free(data);
	return valid;
}

static void print_rules(const char *path, bool json)
{
	char source[4096 + 16];

	for (unsigned i = 0; i < rules.list.count; i++) {
		snprintf(source, sizeof(source), "%s:%u", path, rules.line[i]);
		if (json && i)
			putchar(',');
		cli_print_rule(&rules.list.rule[i], source, json);
	}
}

/* The index of an earlier rule that matches everything that rule[last] matches, or -1. */
static int find_covering_rule(unsigned last)
{
	for (unsigned i = 0; i < last; i++) {
		if (spill_rule_covers(&rules.list.rule[i], &rules.list.rule[last], false))
			return (int)i;
	}
	return -1;
}

/* Prints rules that are never reached: lines, or items of a JSON array. */
static void print_covered(const char *path, bool json)
{
	bool any = false;
	char line[2 * (size_t)SPILL_PATH_MAX + sizeof(SPILL_RULE_NEVER) + 32];

	for (unsigned i = 0; i < rules.list.count; i++) {
		int by = find_covering_rule(i);

		if (by < 0)
			continue;
		snprintf(line, sizeof(line), "%s:%u: " SPILL_RULE_NEVER "%s:%u", path, rules.line[i], path,
		         rules.line[by]);
		cli_print_item(stdout, line, json, &any);
	}
}

static void print_text(const char *path, const char *problem, const struct hints *hints)
{
	if (problem)
		cli_printf("%s\n", problem);
	else
		cli_printf("%s: ok\n", path);
	print_rules(path, false);
	print_covered(path, false);
	fputs(hints->text, stdout);
}

static void print_json(const char *path, const char *problem, const struct hints *hints)
{
	fputs("{\"file\":", stdout);
	cli_print_json_string(stdout, path);
	cli_printf(",\"ok\":%s", problem ? "false" : "true");
	if (problem) {
		fputs(",\"error\":", stdout);
		cli_print_json_string(stdout, problem);
	}
	fputs(",\"rules\":[", stdout);
	print_rules(path, true);
	fputs("],\"hidden\":[", stdout);
	print_covered(path, true);
	cli_printf("],\"hints\":[%s]}", hints->text);
}

/* True if the file has no error. */
static bool check_one(const char *path, bool json)
{
	char problem[4096 + 1024];
	struct hints hints = {.path = path, .json = json};
	bool valid;

	hints.out = open_memstream(&hints.text, &hints.size);
	if (!hints.out) {
		perror("spill check");
		return false;
	}
	valid = check_file(path, &hints, problem, sizeof(problem));
	fclose(hints.out);
	(json ? print_json : print_text)(path, valid ? NULL : problem, &hints);
	free(hints.text);
	return valid;
}

int cli_check(int argc, char **argv)
{
	struct cli_call call = cli_call(argc, argv);
	int status = CLI_FINE;
	bool json;

	if (!cli_call_json(&call, &json, CLI_check_json))
		return call.status;
	if (!call.count)
		return cli_usage(argv[0], "which file?");
	if (json)
		putchar('[');
	for (int i = 0; i < call.count; i++) {
		if (json && i)
			putchar(',');
		if (!check_one(call.operand[i], json))
			status = CLI_FINDINGS;
	}
	if (json)
		puts("]");
	return cli_finish(status);
}
