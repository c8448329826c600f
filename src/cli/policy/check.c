/* spill check: what the preload would say about policy files, before a program runs. */
#include <stdlib.h>
#include <string.h>

#include "call.h"
#include "cli.h"
#include "config.h"
#include "ini_file.h"
#include "print_rule.h"
#include "put.h"
#include "rule_option.h"

/* The rules of one file, for whatever program they are. */
static struct {
	struct spill_rules list;
	unsigned line[SPILL_RULES];
} rules;

/* Sizes of which the unit was probably forgotten: a line each, or the items of a JSON array. */
struct hints {
	const char *path;
	bool json, any;
	char *text;
	size_t size;
	FILE *out; /* into text */
};

static void add_hint(struct hints *hints, unsigned line, const char *name, const char *hint)
{
	char text[SPILL_PATH_MAX + 256];

	snprintf(text, sizeof(text), "%s:%u: %s is %s", hints->path, line, name, hint);
	cli_print_item(hints->out, text, hints->json, &hints->any);
}

static void take_option(void *user, unsigned slot, const char *value, unsigned line, const char *app)
{
	const char *hint = cli_option_unit_forgotten(slot, value);
	char name[64];

	spill_option_name(slot, name, sizeof(name));
	if (hint)
		add_hint(user, line, name, hint);
}

/* Of a rule's sizes the cap: requests may well be of a few bytes. */
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

static void take_rule(void *user, const struct spill_rule *rule, unsigned line)
{
	rules.line[rules.list.count] = line;
	rules.list.rule[rules.list.count++] = *rule;
	hint_at_cap(user, rule, line);
}

/* True if the preload would take the file; else why not. */
static bool check(const char *path, struct hints *hints, char *problem, size_t size)
{
	const struct spill_ini_taker taker = {take_option, take_rule, hints};
	size_t length;
	char *data;
	bool good;

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
	good = spill_ini_read(path, data, length, &taker, problem, size);
	free(data);
	return good;
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

/* The rule before rule[last] that matches all that it does, or -1. */
static int covering(unsigned last)
{
	for (unsigned i = 0; i < last; i++) {
		if (spill_rule_covers(&rules.list.rule[i], &rules.list.rule[last], false))
			return (int)i;
	}
	return -1;
}

/* Rules that no request comes to: a line each, or the items of a JSON array. */
static void print_covered(const char *path, bool json)
{
	bool any = false;
	char line[2 * (size_t)SPILL_PATH_MAX + sizeof(SPILL_RULE_NEVER) + 32];

	for (unsigned i = 0; i < rules.list.count; i++) {
		int by = covering(i);

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

/* True if there is nothing wrong with it. */
static bool check_one(const char *path, bool json)
{
	char problem[4096 + 1024];
	struct hints hints = {.path = path, .json = json};
	bool good;

	hints.out = open_memstream(&hints.text, &hints.size);
	if (!hints.out) {
		perror("spill check");
		return false;
	}
	good = check(path, &hints, problem, sizeof(problem));
	fclose(hints.out);
	(json ? print_json : print_text)(path, good ? NULL : problem, &hints);
	free(hints.text);
	return good;
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
