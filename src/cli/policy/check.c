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

static struct {
	struct spill_rules list;
	unsigned line[SPILL_RULES];
} rules;

/* Hints at missing units. */
struct hints {
	const char *path;
	char **texts;
	size_t count, size;
};

static void add_hint(struct hints *hints, unsigned line, const char *name, const char *hint)
{
	char text[SPILL_PATH_MAX + 256];

	snprintf(text, sizeof(text), "%s:%u: %s is %s", hints->path, line, name, hint);
	hints->texts = cli_grow(hints->texts, hints->count, &hints->size, sizeof(hints->texts[0]));
	hints->texts[hints->count++] = cli_strdup(text);
}

static void hint_at_option(void *user, unsigned slot, const char *value, unsigned line, const char *app)
{
	const char *hint = cli_option_unit_forgotten(spill_option_row(slot), value);
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

static void print_rules(const char *path, struct spill_json *json)
{
	char source[4096 + 16];

	for (unsigned i = 0; i < rules.list.count; i++) {
		snprintf(source, sizeof(source), "%s:%u", path, rules.line[i]);
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

/* Prints rules that are never reached. */
static void print_covered(const char *path, struct spill_json *json)
{
	char line[2 * (size_t)SPILL_PATH_MAX + sizeof(SPILL_RULE_NEVER) + 32];

	for (unsigned i = 0; i < rules.list.count; i++) {
		int by = find_covering_rule(i);

		if (by < 0)
			continue;
		snprintf(line, sizeof(line), "%s:%u: " SPILL_RULE_NEVER "%s:%u", path, rules.line[i], path,
		         rules.line[by]);
		cli_print_item(json, line);
	}
}

static void print_hints(const struct hints *hints, struct spill_json *json)
{
	for (size_t i = 0; i < hints->count; i++)
		cli_print_item(json, hints->texts[i]);
}

static void print_text(const char *problem, const struct hints *hints)
{
	if (problem)
		cli_printf("%s\n", problem);
	else
		cli_printf("%s: ok\n", hints->path);
	print_rules(hints->path, NULL);
	print_covered(hints->path, NULL);
	print_hints(hints, NULL);
}

static void print_json(const char *problem, const struct hints *hints, struct spill_json *json)
{
	spill_json_object(cli_json_element(json));
	cli_json_text(json, "file", hints->path);
	cli_json_bool(json, "ok", !problem);
	if (problem)
		cli_json_text(json, "error", problem);
	spill_json_array(cli_json_key(json, "rules"));
	print_rules(hints->path, json);
	spill_json_array_end(json);
	spill_json_array(cli_json_key(json, "hidden"));
	print_covered(hints->path, json);
	spill_json_array_end(json);
	spill_json_array(cli_json_key(json, "hints"));
	print_hints(hints, json);
	spill_json_array_end(json);
	spill_json_object_end(json);
}

static bool check_one(const char *path, struct spill_json *json)
{
	char problem[4096 + 1024];
	struct hints hints = {.path = path};
	bool valid = check_file(path, &hints, problem, sizeof(problem));

	if (json)
		print_json(valid ? NULL : problem, &hints, json);
	else
		print_text(valid ? NULL : problem, &hints);
	for (size_t i = 0; i < hints.count; i++)
		free(hints.texts[i]);
	free(hints.texts);
	return valid;
}

int cli_check(int argc, char **argv)
{
	struct cli_call call = cli_call(argc, argv);
	struct spill_json out;
	int status = CLI_FINE;
	bool json;

	if (!cli_call_json(&call, &json, CLI_check_json))
		return call.status;
	if (!call.count)
		return cli_usage(argv[0], "which file?");
	if (json) {
		cli_json_begin(&out);
		spill_json_array(&out);
	}
	for (int i = 0; i < call.count; i++) {
		if (!check_one(call.operand[i], json ? &out : NULL))
			status = CLI_FINDINGS;
	}
	if (json) {
		spill_json_array_end(&out);
		cli_json_end(&out);
	}
	return cli_finish(status);
}
