/* Any bytes as a policy file. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "ini_file.h"
#include "options.h"
#include "rule_option.h"

struct seen {
	struct spill_policy policy;
	unsigned last_line;
};

/* What was accepted can be printed, and means the same when it is read again. */
static void take(void *user, unsigned slot, const char *value, unsigned line, const char *app)
{
	struct seen *seen = user;
	struct spill_policy again = {0};
	struct spill_error error;
	char first[SPILL_PATH_MAX], second[SPILL_PATH_MAX];

	fuzz_require(slot < SPILL_OPTION_SLOTS, "slot out of range");
	fuzz_require(line > seen->last_line, "lines do not grow");
	seen->last_line = line;
	fuzz_require(!app || (*app && !strpbrk(app, "/]")), "a section for no program");
	fuzz_require(!spill_option_put(&seen->policy, slot, value, &error),
	             "the reader took what the option refuses");
	spill_option_format(&seen->policy, slot, first, sizeof(first));
	fuzz_require(!spill_option_put(&again, slot, first, &error), "a printed value is refused");
	spill_option_format(&again, slot, second, sizeof(second));
	fuzz_require(!strcmp(first, second), "a printed value means something else");
}

static void take_rule(void *user, const struct spill_rule *rule, unsigned line)
{
	struct seen *seen = user;
	struct spill_rule again = {.set = 0};
	struct spill_error error;
	char first[SPILL_RULE_TEXT], second[SPILL_RULE_TEXT];

	fuzz_require(line > seen->last_line, "lines do not grow");
	seen->last_line = line;
	fuzz_require(*rule->name && !strchr(rule->name, ']'), "a rule without a name");
	fuzz_require(spill_rule_check(rule, &error), "a rule that does nothing");
	for (unsigned row = 0; row < SPILL_RULE_OPTIONS; row++) {
		if (!(rule->set & spill_rule_option_row(row)->bit))
			continue;
		spill_rule_option_format(rule, row, first, sizeof(first));
		fuzz_require(!spill_rule_option_put(&again, row, first, &error),
		             "a printed value is refused");
	}
	spill_rule_format(rule, first, sizeof(first));
	fuzz_require(spill_rule_format(&again, second, sizeof(second)) < sizeof(second) - 1, "a rule is cut");
	fuzz_require(!strcmp(first, second), "a printed rule means something else");
	fuzz_require(rule->least == again.least && rule->most == again.most &&
	                 rule->devices == again.devices && rule->cap == again.cap,
	             "a printed number of a rule is another");
}

/* FILE:LINE:COL: text, in one line, with positions that exist. */
static void check_error(const char *error, const char *data, size_t size)
{
	unsigned lines = 1;
	unsigned long line, column;
	char *end;

	for (size_t i = 0; i < size; i++)
		lines += data[i] == '\n';
	fuzz_require(!strncmp(error, "F:", 2), "the message does not name the file");
	line = strtoul(error + 2, &end, 10);
	fuzz_require(line >= 1 && line <= lines && *end == ':', "the message's line does not exist");
	column = strtoul(end + 1, &end, 10);
	fuzz_require(column >= 1 && column <= size + 1 && !strncmp(end, ": ", 2),
	             "the message's column does not exist");
	for (const char *c = error; *c; c++)
		fuzz_require((unsigned char)*c >= 0x20, "a control character in the message");
}

/* A checker gets the errors one by one. */
struct errors {
	const char *data;
	size_t size;
	unsigned count;
};

static void take_problem(void *user, const char *error)
{
	struct errors *errors = user;

	check_error(error, errors->data, errors->size);
	errors->count++;
}

static void pass_over(void *user, unsigned slot, const char *value, unsigned line, const char *app)
{
}

static void pass_over_rule(void *user, const struct spill_rule *rule, unsigned line)
{
}

/* A checker finds errors in the files that are refused, and in no others. */
static void check_all_errors(const char *data, size_t size, bool valid)
{
	struct errors errors = {data, size, 0};
	char error[512];

	fuzz_require(spill_ini_read("F", data, size,
	                            &(struct spill_ini_taker){pass_over, pass_over_rule, &errors,
	                                                      .problem = take_problem},
	                            error, sizeof(error)) == valid,
	             "a checker differs from the library");
	fuzz_require(!errors.count == valid,
	             "a file without an error is refused, or one with an error is not");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct seen seen = {.last_line = 0};
	char error[512] = "";
	/* A copy of exactly this size, so that reading one byte too many is seen. */
	char *copy = malloc(size ? size : 1);

	fuzz_require(copy != NULL, "no memory");
	if (size)
		memcpy(copy, data, size);
	spill_policy_default(&seen.policy);

	bool valid = spill_ini_read("F", copy, size, &(struct spill_ini_taker){take, take_rule, &seen}, error,
	                            sizeof(error));
	if (!valid) {
		fuzz_require(seen.last_line == 0, "options of a file that was refused");
		check_error(error, copy, size);
	}
	check_all_errors(copy, size, valid);
	free(copy);
	return 0;
}
