/* spill check: checks policy files as the library would read them. */
#include <stdio.h>

#include "call.h"
#include "cli.h"
#include "policy_file.h"
#include "print_rule.h"
#include "put.h"

static struct cli_policy_file file; /* too large for the stack */

static void print_rules(struct spill_json *json)
{
	char source[4096 + 16];

	for (unsigned i = 0; i < file.rule_count; i++) {
		snprintf(source, sizeof(source), "%s:%u", file.path, file.rules[i].line);
		cli_print_rule(&file.rules[i].rule, source, json);
	}
}

/* The index of an earlier rule that matches everything that rules[last] matches, or -1. */
static int find_covering_rule(unsigned last)
{
	for (unsigned i = 0; i < last; i++) {
		if (spill_rule_covers(&file.rules[i].rule, &file.rules[last].rule, false))
			return (int)i;
	}
	return -1;
}

/* Prints rules that are never reached. */
static void print_covered(struct spill_json *json)
{
	char line[2 * (size_t)SPILL_PATH_MAX + sizeof(SPILL_RULE_NEVER) + 32];

	for (unsigned i = 0; i < file.rule_count; i++) {
		int by = find_covering_rule(i);

		if (by < 0)
			continue;
		snprintf(line, sizeof(line), "%s:%u: " SPILL_RULE_NEVER "%s:%u", file.path,
		         file.rules[i].line, file.path, file.rules[by].line);
		cli_print_item(json, line);
	}
}

static void print_messages(const struct cli_messages *messages, struct spill_json *json)
{
	for (size_t i = 0; i < messages->count; i++)
		cli_print_item(json, messages->list[i].text);
}

/* The rules of a file with an error are not complete. */
static void print_text(bool valid)
{
	if (valid)
		cli_printf("%s: ok\n", file.path);
	print_messages(&file.errors, NULL);
	if (valid) {
		print_rules(NULL);
		print_covered(NULL);
	}
	print_messages(&file.warnings, NULL);
}

static void print_json(bool valid, struct spill_json *json)
{
	spill_json_object(cli_json_element(json));
	cli_json_text(json, "file", file.path);
	cli_json_bool(json, "ok", valid);
	if (!valid) {
		cli_json_text(json, "error", file.errors.list[0].text);
		spill_json_array(cli_json_key(json, "errors"));
		print_messages(&file.errors, json);
		spill_json_array_end(json);
	}
	spill_json_array(cli_json_key(json, "rules"));
	if (valid)
		print_rules(json);
	spill_json_array_end(json);
	spill_json_array(cli_json_key(json, "hidden"));
	if (valid)
		print_covered(json);
	spill_json_array_end(json);
	spill_json_array(cli_json_key(json, "hints"));
	print_messages(&file.warnings, json);
	spill_json_array_end(json);
	spill_json_object_end(json);
}

static bool check_one(const char *path, struct spill_json *json)
{
	bool valid = cli_policy_file_read(&file, path);

	if (json)
		print_json(valid, json);
	else
		print_text(valid);
	cli_policy_file_release(&file);
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
