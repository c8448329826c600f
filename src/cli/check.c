/* spill check: what the preload would say about policy files, before a program runs. */
#include <stdlib.h>
#include <string.h>

#include "call.h"
#include "cli.h"
#include "configfile.h"
#include "ini_file.h"

/* The rules of one file, for whatever program they are. */
static struct {
	struct spill_rules list;
	unsigned line[SPILL_RULES];
} rules;

static void take_option(void *user, unsigned slot, const char *value, unsigned line, const char *app)
{
}

static void take_rule(void *user, const struct spill_rule *rule, unsigned line)
{
	rules.line[rules.list.count] = line;
	rules.list.rule[rules.list.count++] = *rule;
}

/* True if the preload would take the file; else why not. */
static bool check(const char *path, char *problem, size_t size)
{
	static const struct spill_ini_taker taker = {take_option, take_rule, NULL};
	size_t length;
	char *data;
	bool good;

	rules.list.count = 0;

	switch (spill_configfile_read(path, &data, &length, problem, size)) {
	case SPILL_CONFIGFILE_ABSENT:
		snprintf(problem, size, "%s: no such file, or in a folder closed to us", path);
		return false;
	case SPILL_CONFIGFILE_BAD:
		return false;
	case SPILL_CONFIGFILE_READ:
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
	const char *comma = "";
	char line[2 * (size_t)SPILL_PATH_MAX + sizeof(SPILL_RULE_NEVER) + 32];

	for (unsigned i = 0; i < rules.list.count; i++) {
		int by = covering(i);

		if (by < 0)
			continue;
		snprintf(line, sizeof(line), "%s:%u: " SPILL_RULE_NEVER "%s:%u", path, rules.line[i], path,
		         rules.line[by]);
		fputs(json ? comma : "", stdout);
		if (json)
			cli_print_json_string(stdout, line);
		else
			puts(line);
		comma = ",";
	}
}

int cli_check(int argc, char **argv)
{
	char problem[4096 + 1024];
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
		bool good = check(call.operand[i], problem, sizeof(problem));

		if (!good)
			status = CLI_FINDINGS;
		if (!json) {
			printf(good ? "%s: ok\n" : "%s\n", good ? call.operand[i] : problem);
			print_rules(call.operand[i], false);
			print_covered(call.operand[i], false);
			continue;
		}
		fputs(i > 0 ? ",{\"file\":" : "{\"file\":", stdout);
		cli_print_json_string(stdout, call.operand[i]);
		printf(",\"ok\":%s", good ? "true" : "false");
		if (!good) {
			fputs(",\"error\":", stdout);
			cli_print_json_string(stdout, problem);
		}
		fputs(",\"rules\":[", stdout);
		print_rules(call.operand[i], true);
		fputs("],\"hidden\":[", stdout);
		print_covered(call.operand[i], true);
		fputs("]}", stdout);
	}
	if (json)
		puts("]");
	return cli_finish(status);
}
